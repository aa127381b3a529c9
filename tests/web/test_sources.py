"""The addresses of docs/sources.md: each answers, what it names exists, and each number that is printed comes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from rest_framework.test import APIClient

from evalhub.operating.examples import RANKINGS, examples
from metrics.engine.measures.grammar import parse_measure
from runs.models import Run
from tests.conftest import SESSIONS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit
from tests.test_docs import ROOT

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words
TEXT = (ROOT / "docs/sources.md").read_text()
NUMBERS = re.findall(r"^\| (.+) \| `(.+)` \| `(\S+)`(.*) \| (.+) \| (.+) \|$", TEXT, re.MULTILINE)
ADDRESSES = re.findall(
    r"`((?:runs|collections|session-sets)/\{(?:run|collection|set)\}[^`]+)`", TEXT
)
RANKINGS_LISTED = re.findall(
    r"^\| `\{(\w+)\}` \| (\w+) \| ([\d× ]+) \| ([\d ]*)\|$", TEXT, re.MULTILINE
)
QRELS = "1 0 a 2\n1 0 b 1\n1 0 c 3\n1 0 n 0\n2 0 x 1\n2 0 y 2\n3 0 z 3\n3 0 w 1\n"
RUNS = (
    "1 Q0 a 1 3 t\n1 Q0 n 2 2 t\n1 Q0 c 3 1 t\n2 Q0 x 1 2 t\n",
    "1 Q0 b 1 9 t\n2 Q0 y 1 9 t\n3 Q0 w 1 8 t\n",
)


@pytest.fixture(scope="module")
def names(api: APIClient, submit: Callable[..., Run]) -> dict[str, str]:
    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    assert (
        api.patch("/api/v1/collections/small/", {"documents": 1000}, format="json").status_code
        == 200
    )
    run, other = (
        str(submit(text, tag=tag).pk) for text, tag in zip(RUNS, ("one", "two"), strict=True)
    )
    timed = SESSIONS.replace('"documents"', '"time": 4.5, "documents"')
    answer = upload(api, "collections/small/sessions/", timed)
    fields = {"slug": "second", "name": "Second", "measures": ["AP"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    assert upload(api, "collections/second/qrels/", QRELS).status_code == 201
    assert upload(api, "collections/second/sessions/", timed).status_code == 202
    evaluate_all()
    ids = {"run": run, "other": other, "set": answer.json()["id"]}
    return {**ids, "collection": "small", "second": "second"}


@pytest.fixture(scope="module")
def example_ids(api: APIClient) -> dict[str, str]:
    """The ids of the runs and of the set, and the names of the collections, that rows of numbers are about."""
    ids = {}
    for example in examples():
        fields = {"slug": example.slug, "name": example.name, "documents": example.documents}
        assert api.post("/api/v1/collections/", fields, format="json").status_code == 201
        path = f"collections/{example.slug}"
        ids[example.name] = example.slug
        for qrels in example.qrels:
            assert upload(api, f"{path}/qrels/", qrels).status_code == 201
        for run in example.runs.values():
            answer = upload(api, f"{path}/runs/", run)
            if len(example.runs) == 1:
                ids[example.name] = answer.json()["id"]
        if example.sessions:
            ids[example.name] = upload(api, f"{path}/sessions/", example.sessions).json()["id"]
    evaluate_all()
    # The ranking that the sources call G or G'.
    return ids | {"G": ids["g"]}


def ask(api: APIClient, address: str, names: dict[str, str]) -> Any:
    path = re.sub(r"\{(\w+)\}", lambda match: names[match[1]], address)
    answer = api.get(f"/api/v1/{quote(path, safe='/?&=,;()@.')}")
    assert answer.status_code == 200, (address, getattr(answer, "content", b"")[:300])
    return answer


def test_every_address_answers(api: APIClient, names: dict[str, str]) -> None:
    assert len(ADDRESSES) > 80
    drawn = 0
    for address in dict.fromkeys(ADDRESSES):
        drawn += ".svg" in address
        # A few pictures are drawn, of the others what they are drawn from.
        ask(api, address.replace(".svg", ".json") if drawn > 2 else address, names)


def test_figures_of_normalised_curves_divide_averages_by_averages() -> None:
    """Both studies of cumulated gain divide the average vector by the averaged ideal one."""
    cumulated_gain = TEXT.partition("## Baeza-Yates")[0]
    addresses = re.findall(r"curves\.svg\?measure=(nD?CG\([^`]+)&", cumulated_gain)
    assert len(addresses) == 6
    for address in addresses:
        assert "norm='average'" in address


def found_at(answer: Any, path: str) -> Iterator[Any]:
    """What stands at a path of an answer; `*` goes through all there is."""
    first, _, rest = path.partition("/")
    if isinstance(answer, dict):
        inner = list(answer.values()) if first == "*" else [answer[first]]
    else:
        inner = answer if first == "*" else [answer[int(first)]]
    for item in inner:
        if rest:
            yield from found_at(item, rest)
        else:
            yield from item if isinstance(item, list) else [item]


def numbers_of(answer: Any, path: str, how: str) -> list[Any]:
    values = list(found_at(answer, path))
    if "step by step" in how:
        values = np.diff(values, prepend=0).tolist()
    if ranks := re.search(r" at ([\d ]+)", how):
        values = [values[int(rank) - 1] for rank in ranks[1].split()]
    return [value * 100 for value in values] if "× 100" in how else values


def digits_of(text: str) -> int:
    return len(text.partition(".")[2])


def rounded_value(value: float, digits: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    # What is a half but for rounding errors is rounded up, as by hand.
    return Decimal(repr(round(value, 9))).quantize(Decimal(1).scaleb(-digits), rounding)


def test_every_printed_number_comes_out(api: APIClient, example_ids: dict[str, str]) -> None:
    assert len(NUMBERS) > 45
    answers: dict[str, Any] = {}
    for where, address, path, how, printed, here in NUMBERS:
        answer = answers[address] = answers.get(address) or ask(api, address, example_ids).json()
        values = numbers_of(answer, path, how)
        source, ours = printed.split(), here.split()
        assert len(source) == len(ours) <= len(values), (where, values)
        if isinstance(values[0], bool):
            assert source == ours, where
            assert [mark != "–" for mark in source] == values, where
            continue
        values = values[: len(ours)]
        assert [
            rounded_value(value, digits_of(text)) for value, text in zip(values, ours, strict=True)
        ] == [Decimal(text) for text in ours], (where, values)
        numbers = [(Fraction(text), 4 if "/" in text else digits_of(text)) for text in source]
        rounded = [
            Fraction(rounded_value(value, digits))
            for value, (_, digits) in zip(values, numbers, strict=True)
        ]
        cut = [
            Fraction(rounded_value(value, digits, ROUND_DOWN))
            for value, (_, digits) in zip(values, numbers, strict=True)
        ]
        theirs = [Fraction(rounded_value(float(number), digits)) for number, digits in numbers]
        kind = re.search(r"\((cut|wrong)\)", where)
        assert [theirs == rounded, all(number in pair for number, *pair in zip(theirs, rounded, cut, strict=True))] == {
            None: [True, True], "cut": [False, True], "wrong": [False, False],
        }[kind and kind[1]], (where, values)  # fmt: skip


def test_the_rankings_of_the_examples_are_those_of_the_table() -> None:
    listed: dict[str, dict[str, tuple[str, str]]] = {}
    for name, topic, ranking, missed in RANKINGS_LISTED:
        listed.setdefault(name.lower(), {})[topic] = (ranking.strip(), missed.strip())
    assert listed == RANKINGS


def test_every_name_of_ntcir_is_a_measure() -> None:
    rows = re.findall(
        r"^\| [^`|]+ \| (`[^|]+) \|",
        TEXT.partition("## NTCIR")[2].partition("## ")[0],
        re.MULTILINE,
    )
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 12
    for name in names:
        assert parse_measure(name)
