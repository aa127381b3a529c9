"""Parameters: how metadata is flattened and merged, what headers and forms say, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.errors import FileReport, Unprocessable
from runs.formats.header_parameters import header_costs, with_header
from runs.formats.parameter_lines import edited, read_lines, shown_values, write_lines
from runs.formats.parameters import (
    MAX_LEAVES,
    canonical_name,
    flatten,
    join_name,
    merge_patch,
    nested,
    read_costs,
    read_metadata,
    split_name,
)

FLAT: dict[str, tuple[Any, dict[str, Any]]] = {
    "nested": ({"bm25": {"k1": 0.9, "b": 0.4}, "model": "BM25"}, {"bm25.k1": 0.9, "bm25.b": 0.4, "model": "BM25"}),
    "a dot is nesting": ({"bm25.k1": 0.9}, {"bm25.k1": 0.9}),
    "a dot in a name": ({"a\\.b": 1, "c\\\\d": 2, "e\\f": 3}, {"a\\.b": 1, "c\\\\d": 2, "e\\\\f": 3}),
    "types": ({"a": True, "b": "1", "c": 1, "d": None, "e": ""}, {"a": True, "b": "1", "c": 1, "e": ""}),
    "long integers": ({"a": 10**15 - 1, "b": 10**15}, {"a": 10**15 - 1, "b": str(10**15)}),
    "short lists": ({"a": [1, "x", None], "b": []}, {"a": '[1,"x",null]', "b": "[]"}),
    "by name": (
        {"stages": [{"name": "bm25", "k1": 0.9}, {"name": "mono t5", "k": 9}]},
        {"stages.bm25.name": "bm25", "stages.bm25.k1": 0.9, "stages.mono t5.name": "mono t5", "stages.mono t5.k": 9},
    ),
    "by position": ({"a": [{"name": "x", "k": 1}, {"name": "x", "k": 2}, 3]},
                    {"a.1.name": "x", "a.1.k": 1, "a.2.name": "x", "a.2.k": 2, "a.3": 3}),
    "composed": ({"cafe\u0301": 1}, {"caf\u00e9": 1}),
    "left out": (
        {"a": list(range(21)), "b" * 201: 1, ".".join("abcdefghi"): 1, "c": "x" * 6001, "": 1, "d": 2}, {"d": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "values"), FLAT.values(), ids=list(FLAT))
def test_metadata_is_flattened(metadata: Any, values: dict[str, Any]) -> None:
    leaves = {leaf.name: leaf.value for leaf in flatten(metadata).leaves}
    assert leaves == values
    assert [type(value) for value in leaves.values()] == [type(value) for value in values.values()]


def test_what_is_left_out_is_named() -> None:
    assert len(flatten(FLAT["left out"][0]).left_out) == 5
    many = flatten({f"k{number}": number for number in range(MAX_LEAVES + 2)})
    assert (len(many.leaves), many.left_out) == (
        MAX_LEAVES,
        [f"k{MAX_LEAVES}", f"k{MAX_LEAVES + 1}"],
    )


REFUSED = {
    "key_conflict": [
        {"a": 1, "a.b": 2},
        {"a.b": 2, "a": 1},
        {"a.b": 1, "a": {"b": 2}},
        {"a.b.c": 1, "a": {"b": 2}},
    ],
    "bad_key": [{"": 1}, {"a..b": 1}, {".a": 1}, {"a": {" ": 1}}, {"a." * 20 + "a": 1}],
    "not_finite": [{"a": float("nan")}, {"a": {"b": [1, float("inf")]}}],
    "text_too_long": [{"a": "x" * 6001}, {"a": ["x" * 6001]}],
}


@pytest.mark.parametrize(
    ("code", "metadata"), [(code, value) for code, all_ in REFUSED.items() for value in all_]
)
def test_what_cannot_be_kept_is_refused_with_its_key(code: str, metadata: Any) -> None:
    with pytest.raises(Unprocessable) as refused:
        read_metadata(metadata)
    assert (refused.value.code, refused.value.pointer) == (code, "/metadata")


# RFC 7396, appendix A.
MERGED = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), MERGED)
def test_patches_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


names = st.text(st.sampled_from("ab.\\ é="), min_size=1, max_size=5).filter(
    lambda name: all(map(str.strip, split_name(name)))
)
numbers = st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=5)
documents = st.dictionaries(
    names,
    st.recursive(
        scalars | st.lists(scalars, max_size=3),
        lambda inner: st.dictionaries(names, inner, max_size=3) | st.lists(inner, max_size=2),
        max_leaves=6,
    ),
    max_size=4,
)


@settings(max_examples=60)
@given(documents)
def test_nesting_is_settled_at_once(document: dict[str, Any]) -> None:
    try:
        nested_document = nested(document)
    except Unprocessable:
        return
    assert nested(nested_document) == nested_document
    assert (
        flatten(nested_document).leaves == flatten(json.loads(json.dumps(nested_document))).leaves
    )
    for leaf in flatten(nested_document).leaves:
        assert join_name(split_name(leaf.name)) == leaf.name
        value: Any = nested_document
        for step in leaf.path:
            value = value[step]
        assert value is not None


@settings(max_examples=60)
@given(documents, documents)
def test_a_merge_keeps_what_it_does_not_name(
    document: dict[str, Any], patch: dict[str, Any]
) -> None:
    merged = merge_patch(document, patch)
    assert all(merged[key] == document[key] for key in document.keys() - patch.keys())
    assert all(key not in merged for key, value in patch.items() if value is None)
    assert merge_patch(merged, patch) == merged


@settings(max_examples=60)
@given(documents)
def test_lines_say_the_same_as_the_metadata(document: dict[str, Any]) -> None:
    """What the form shows and sends back unchanged changes nothing."""
    values = shown_values(document)
    read = read_lines(write_lines(values), "parameters")
    assert json.dumps(read) == json.dumps(values)
    assert json.dumps(edited(document, read)) == json.dumps(document)


def test_lines_are_read_by_type() -> None:
    text = (
        'k1 = 0.9\n\nmodel=splade v2 = x\nno = "0.9"\nwith = true\n"a=b" = [1, 2]\n  big = 1e3  \n'
    )
    values = {
        "k1": 0.9,
        "model": "splade v2 = x",
        "no": "0.9",
        "with": True,
        "a=b": [1, 2],
        "big": 1000.0,
    }
    assert read_lines(text, "parameters") == values


LINES = {
    "a": "line 2: 'a' has no =; write key = value",
    "= 1": "line 2: there is no key before =",
    "a =": "line 2: there is no value after =; leave the whole line out to remove the key",
    "a = null": "line 2: null is not a value",
    'a = "x': "line 2: '\"x' begins like JSON but cannot be read",
    "a = [1": "line 2: '[1' begins like JSON",
    '"a = 1': "line 2: the quoted key is never closed",
    "b = 2": "line 2: b is there twice",
}


@pytest.mark.parametrize(("line", "message"), LINES.items(), ids=list(LINES))
def test_a_bad_line_is_named(line: str, message: str) -> None:
    with pytest.raises(Unprocessable, match="parameters, ") as refused:
        read_lines(f"b = 1\n{line}\n", "parameters")
    assert message in refused.value.message


def test_lines_change_values_where_they_stand() -> None:
    metadata = {
        "retrieval": [{"name": "bm25", "k1": 0.9, "b": 0.4}],
        "long": list(range(30)),
        "x": 1,
    }
    values = {**shown_values(metadata), "retrieval.bm25.k1": 1.2, "new.key": "y"}
    del values["x"], values["retrieval.bm25.b"]
    assert edited(metadata, values) == {
        "retrieval": [{"name": "bm25", "k1": 1.2}], "long": list(range(30)), "new": {"key": "y"},
    }  # fmt: skip


COSTS = [
    {"latency_ms": -1}, {"latency_ms": "12 ms"}, {"latency_ms": True}, {"latency_ms": None}, {"": 1}, {"a.b": 1},
    {"x": {}}, {"x": {"value": 2, "low": 3}}, {"x": {"value": 2, "high": 1}}, {"x": {"value": 2, "n": 0}},
    {"x": {"value": 2, "mean": 1}}, {"x": float("inf")}, {"x": [1]}, {f"c{number}": 1 for number in range(51)},
]  # fmt: skip


@pytest.mark.parametrize("costs", COSTS, ids=str)
def test_bad_costs_are_refused(costs: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable) as refused:
        read_costs(costs)
    assert refused.value.code == "bad_cost"


def test_costs_may_have_an_interval() -> None:
    costs = {"latency_ms": {"value": 12.1, "low": 11, "high": 14, "n": 200}, "index_bytes": 0}
    assert read_costs(costs) == costs


HEADER = {
    "actor": {"team": "lab"},
    "platform": {"hardware": {"cpu": {"model": "x"}}},
    "method": {
        "automatic": True,
        "retrieval": [{"name": "bm25", "k1": 0.9, "axiom.deterministic": True}],
        "gap": "nan",
    },
    "data": {"test collection": {"name": "d"}},
    "resources": {
        "runtime": {"wallclock": "171 ms", "user": "1.5 s", "system": "fast"},
        "cpu": {"energy used system": "12 J"},
        "ram": {"energy used system": "0.5 J"},
        "gpu": None,
    },
}


def test_a_header_says_parameters_and_costs() -> None:
    report = FileReport()
    metadata, costs = with_header(
        HEADER, {"method": {"automatic": False}, "seed": 1}, {"user_ms": 7}, report
    )
    assert {leaf.name: leaf.value for leaf in flatten(metadata).leaves} == {
        "method.automatic": False, "method.retrieval.bm25.name": "bm25", "method.retrieval.bm25.k1": 0.9,
        "method.retrieval.bm25.axiom.deterministic": True, "data.test collection.name": "d",
        "platform.hardware.cpu.model": "x", "seed": 1,
    }  # fmt: skip
    assert costs == {
        "wallclock_ms": 171,
        "user_ms": 7,
        "energy_cpu_j": 12,
        "energy_ram_j": 0.5,
        "energy_j": 12.5,
    }
    warnings = [(warning.code, warning.message) for warning in report.warnings]
    assert warnings == [
        ("not_finite", "method.gap of the header is not a finite number and left out"),
        (
            "header_overridden",
            "method.automatic is true in the file's header and false in the request, which counts",
        ),
        (
            "header_overridden",
            "user_ms is 1500.0 in the file's header and 7 in the request, which counts",
        ),
    ]


@pytest.mark.parametrize(
    "resources", [None, [], "x", {"runtime": ["171 ms"]}, {"cpu": {"energy used system": 12}}]
)
def test_odd_resources_say_nothing(resources: Any) -> None:
    assert header_costs({"resources": resources}) == {}


def test_a_name_has_one_spelling() -> None:
    assert canonical_name("a\\b.cafe\u0301") == "a\\\\b.caf\u00e9"
