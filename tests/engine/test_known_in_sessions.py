"""Documents that searchers knew before their sessions, for coverage and novelty, against counting by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.judged import JudgedSessions
from runs.errors import InvalidFile
from runs.formats.sessions import jsonl
from tests.engine.session_build import blocks_of, judged_sessions, session

DOCUMENTS = [f"d{number}" for number in range(12)]
QRELS = {"t": {name: number % 3 for number, name in enumerate(DOCUMENTS[:10])}, "u": {"d0": 1}}
RELEVANT = {name for name, level in QRELS["t"].items() if level > 0}


def random_sessions(number: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(5)

    def some(most: int) -> list[str]:
        return [str(name) for name in rng.permutation(DOCUMENTS)[: rng.integers(0, most)]]

    records = []
    for place in range(number):
        queries = [some(8) for _ in range(rng.integers(1, 4))]
        records.append(
            dict(session(*queries, name=f"s{place}", known=some(6) if place % 4 else []))
        )
    return records


def shares(ranking: Sequence[str], known: set[str]) -> tuple[float, float]:
    """Coverage and novelty of a list for a user who knew these documents."""
    hits, base = [name for name in ranking if name in RELEVANT], known & RELEVANT
    old = [name for name in hits if name in base]
    coverage = len(old) / len(base) if base else np.nan
    return coverage, 1 - len(old) / len(hits) if base and hits else np.nan


def values(view: JudgedSessions, name: str) -> list[float]:
    return session_values(view, parse_session_measure(name)).tolist()


def test_a_query_is_new_beside_what_was_known_and_shown_before() -> None:
    records = random_sessions(40)
    expected: dict[str, list[float]] = {"Coverage": [], "Novelty": []}
    for record in records:
        known = set(record["known"])  # type: ignore[call-overload]
        novel = []
        for query in record["queries"]:  # type: ignore[attr-defined]
            novel.append(shares(query["documents"], known))
            known |= set(query["documents"])
        for name, column in zip(expected, zip(*novel, strict=True), strict=True):
            expected[name].append(column[-1])
    view = judged_sessions(records, QRELS)
    for name, wanted in expected.items():
        np.testing.assert_allclose(values(view, f"Query(of='{name}',figure='last')"), wanted)


def test_a_session_as_one_ranking_is_new_beside_what_was_known() -> None:
    records = random_sessions(40)
    expected = []
    for record in records:
        documents = [name for query in record["queries"] for name in query["documents"]]  # type: ignore[attr-defined]
        expected.append(shares(list(dict.fromkeys(documents)), set(record["known"])))  # type: ignore[call-overload]
    view = judged_sessions(records, QRELS)
    for name, wanted in zip(("Coverage", "Novelty"), zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(values(view, f"Session(of='{name}')"), wanted)


def test_known_documents_are_kept_with_the_view() -> None:
    view = judged_sessions(random_sessions(20), QRELS)
    again = JudgedSessions.from_bytes(view.to_bytes())
    some = np.array([7, 2, 11, 4])
    name = "Query(of='Novelty')"
    np.testing.assert_array_equal(values(again, name), values(view, name))
    np.testing.assert_array_equal(
        values(again.take(some), name), np.array(values(view, name))[some]
    )
    without = judged_sessions([{**record, "known": []} for record in random_sessions(20)], QRELS)
    assert without.known is None
    assert JudgedSessions.from_bytes(without.to_bytes()).known is None


def test_known_documents_are_written_as_they_were_read() -> None:
    blocks = blocks_of(random_sessions(6))
    written = [json.loads(line) for line in b"".join(jsonl.write(iter(blocks))).splitlines()]
    assert [line.get("known", []) for line in written] == [
        record["known"] for record in random_sessions(6)
    ]


@pytest.mark.parametrize("known", [["d1", "d1"], [1], "d1", ["a b"], [""]])
def test_what_is_no_list_of_known_documents_is_refused(known: object) -> None:
    with pytest.raises(InvalidFile):
        blocks_of([session(["d1"], known=known)])
