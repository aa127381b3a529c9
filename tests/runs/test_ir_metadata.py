"""The ir_metadata header: what is read, and that nothing in it can do harm."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.formats.ir_metadata import read_ir_metadata
from tests.readers import of_a_reader


def header(*lines: str, prefix: str = "# ") -> list[bytes]:
    return [f"{prefix}{line}".encode() for line in ("ir_metadata.start", *lines, "ir_metadata.end")]


@pytest.mark.parametrize("prefix", ["# ", "#"])
def test_the_header_is_read(prefix: str) -> None:
    lines = [
        "schema-version: 0.1",
        "tag: 'my-run'",
        "platform:",
        "  hardware:",
        "    ram: 64 GB",
        "",
        "actor: [a, b]",
    ]
    expected = {
        "schema-version": 0.1,
        "tag": "my-run",
        "platform": {"hardware": {"ram": "64 GB"}},
        "actor": ["a", "b"],
    }
    assert read_ir_metadata(header(*lines, prefix=prefix)) == (expected, None)


def test_comments_around_the_header_and_line_ends_do_not_matter() -> None:
    lines = [
        b"# made today\r\n",
        *(line + b"\r\n" for line in header("tag: a")),
        b"# more: text\r\n",
    ]
    assert read_ir_metadata(lines) == ({"tag": "a"}, None)


@pytest.mark.parametrize("lines", [[], [b"# tag: a"], [b"# ir_metadata.end"]])
def test_without_a_header_there_is_nothing(lines: list[bytes]) -> None:
    assert read_ir_metadata(lines) == (None, None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a: 2024-05-01", {"a": "2024-05-01"}),
        ("a: 2024-05-01T10:00:00Z", {"a": "2024-05-01T10:00:00+00:00"}),
        ("1: a", {"1": "a"}),
        ("2024-05-01: a", {"2024-05-01": "a"}),
        ("a: .nan", {"a": "nan"}),
        ("a: -.inf", {"a": "-inf"}),
        ("a: null", {"a": None}),
        ("a: !!set {b}", {"a": ["b"]}),
        ("a: !!binary aGk=", {"a": "aGk="}),
        ("a: 0x" + "f" * 20, {"a": "0x" + "f" * 20}),
    ],
)
def test_values_are_fit_for_json(line: str, expected: dict[str, object]) -> None:
    assert read_ir_metadata(header(line)) == (expected, None)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (header("tag: a")[:-1], "no line ir_metadata.end"),
        (header("tag: [a"), "bad YAML: .* in its line"),
        (header(), "not a mapping"),
        (header("- a"), "not a mapping"),
        (header("a: b", "---", "c: d"), "bad YAML"),
        (header("a: " + "b" * 100_000), "more than 100,000 bytes"),
        (header("a: &x b", "c: *x"), "anchors or aliases"),
        (header("a: *x"), "anchors or aliases"),
        (header("a: " + "[" * 20 + "]" * 20), "nested more than 20"),
        (header("a: " + "[" * 90_000), "nested more than 20|bad YAML"),
        (header(r'a: "\0"'), "NUL"),
        (header(r'a: "\ud83d\ude00"'), "surrogate"),
        (header(r'"\0": a'), "NUL"),
        (header("1: a", "'1': b"), "keys are the same"),
        (header("a: " + "1" * 5000), "bad YAML"),
        (header("a: 2024-13-45"), "bad YAML"),
        (header("a: !!bool maybe"), "bad YAML"),
        (header("a: !!timestamp now"), "bad YAML"),
        (header(r'a: "\UFFFFFFFF"'), "bad YAML"),
        (header("a: !!python/object/apply:os.getcwd []"), "bad YAML"),
        ([b"# ir_metadata.start", b"# a: \xff", b"# ir_metadata.end"], "not UTF-8"),
    ],
)
def test_an_unusable_header_gives_a_warning(lines: list[bytes], why: str) -> None:
    metadata, warning = read_ir_metadata(lines)
    assert metadata is None
    assert warning is not None
    with pytest.raises(ValueError, match=why):
        raise ValueError(warning)


def test_nesting_of_twenty_is_accepted() -> None:
    metadata, warning = read_ir_metadata(header("a: " + "[" * 18 + "b" + "]" * 18))
    assert metadata is not None
    assert warning is None


YAML = st.text(alphabet=" \nab:-[]{},&*!|>'\"\\#%?0123456789.xe_~=<\x00\u2028\ud7ff") | st.text()


@pytest.mark.slow
@of_a_reader
@given(st.lists(YAML) | st.lists(st.binary()))
def test_any_header_is_read_or_ignored_and_never_raises(lines: list[str | bytes]) -> None:
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    body = b"\n".join(encoded).split(b"\n")
    for prefix in (b"# ", b"#"):
        comments = [b"# ir_metadata.start", *(prefix + line for line in body), b"# ir_metadata.end"]
        metadata, warning = read_ir_metadata(comments)
        assert (metadata is None) != (warning is None)
        json.dumps(metadata, allow_nan=False).encode()
