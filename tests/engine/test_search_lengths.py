"""Search lengths where relevant documents were not retrieved: against every order of the rest of the collection."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import judged_run

DOCUMENTS = 8
# The documents of a collection of eight that are relevant, and a ranking of some of them.
WORLDS = {
    "some found": ("abcd", "xaby"),
    "none found": ("ab", "xyz"),
    "all found": ("ab", "bxa"),
    "no answer": ("abc", ""),
    "only relevant": ("abcd", "dc"),
}
ALL = "abcdwxyz"


def values(measure: str, relevant: str, ranking: str) -> float:
    qrels = {"1": dict.fromkeys(relevant, 1)}
    run = (
        {"1": {doc: -float(place) for place, doc in enumerate(ranking)}}
        if ranking
        else {"2": {"a": 1.0}}
    )
    return float(parse_measure(measure).compute(judged_run(qrels, run))[0])


def ranks(relevant: str, order: str) -> list[int]:
    return [rank for rank, doc in enumerate(order, 1) if doc in relevant]


def lengths(relevant: str, order: str, n: int) -> list[float]:
    """SearchLength, ASL, ESL(n), all documents examined, and NormRecall of a ranking of the whole collection."""
    places = ranks(relevant, order)
    ideal = sum(range(1, len(relevant) + 1))
    recall = 1 - (sum(places) - ideal) / (len(places) * (DOCUMENTS - len(places)))
    nth = places[n - 1] if n <= len(places) else math.nan
    return [places[0], sum(places) / len(places), nth - n, nth, recall]


def measure_names(missing: str, n: int, documents: str) -> list[str]:
    end = f"missing='{missing}'{documents})"
    names = [
        f"SearchLength({end}",
        f"ASL({end}",
        f"ESL(n={n},{end}",
        f"ESL(n={n},count='all',{end}",
    ]
    return [*names, f"NormRecall(missing='{missing}',documents={DOCUMENTS})"]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("world", WORLDS)
def test_random_is_the_mean_over_every_order_of_the_rest(world: str, n: int) -> None:
    relevant, ranking = WORLDS[world]
    rest = [doc for doc in ALL if doc not in ranking]
    every = [lengths(relevant, ranking + "".join(order), n) for order in permutations(rest)]
    results = [
        values(name, relevant, ranking)
        for name in measure_names("random", n, f",documents={DOCUMENTS}")
    ]
    np.testing.assert_allclose(results, np.mean(every, axis=0), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("world", WORLDS)
def test_next_is_the_best_order_of_the_rest(world: str, n: int) -> None:
    relevant, ranking = WORLDS[world]
    rest = sorted((doc for doc in ALL if doc not in ranking), key=lambda doc: doc not in relevant)
    results = [values(name, relevant, ranking) for name in measure_names("next", n, "")]
    np.testing.assert_allclose(results, lengths(relevant, ranking + "".join(rest), n), atol=1e-12)


@pytest.mark.parametrize("world", ["some found", "all found", "only relevant"])
def test_ignore_knows_only_what_was_retrieved(world: str) -> None:
    relevant, ranking = WORLDS[world]
    known = "".join(doc for doc in relevant if doc in ranking)
    _, average, examined, every, recall = lengths(known, ranking, len(known))
    assert values("ASL(missing='ignore')", relevant, ranking) == average
    assert values(
        f"NormRecall(missing='ignore',documents={DOCUMENTS})", relevant, ranking
    ) == pytest.approx(recall)
    # The user is after all there are, and goes on to the last one that the ranking has.
    n = len(relevant)
    assert values(f"ESL(n={n},missing='ignore')", relevant, ranking) == examined
    assert values(f"ESL(n={n},count='all',missing='ignore')", relevant, ranking) == every


@pytest.mark.parametrize("measure", ["ASL(missing='ignore')", "ESL(n=2,missing='ignore')"])
def test_nothing_retrieved_has_no_value_where_the_rest_is_ignored(measure: str) -> None:
    relevant, ranking = WORLDS["none found"]
    qrels, run = (
        {"1": dict.fromkeys(relevant, 1)},
        {"1": {doc: -float(i) for i, doc in enumerate(ranking)}},
    )
    view, parsed = judged_run(qrels, run), parse_measure(measure)
    assert math.isnan(parsed.compute(view)[0])
    assert parsed.why_undefined(view, parsed.compute(view)) == ["no_relevant_document_retrieved"]


def test_last_puts_all_non_relevant_documents_first() -> None:
    relevant, ranking = WORLDS["some found"]
    assert values(f"ESL(n=3,missing='last',documents={DOCUMENTS})", relevant, ranking) == 4
    assert (
        values(f"ESL(n=3,count='all',missing='last',documents={DOCUMENTS})", relevant, ranking) == 7
    )


def test_all_documents_examined_count_ties_by_chance() -> None:
    """Van Rijsbergen's example: 4 non-relevant ones on average before the sixth relevant one, so ten are examined."""
    qrels = {"1": {**{f"r{i}": 1 for i in range(5)}, "x": 1, "y": 1}}
    above = {f"r{i}": 3.0 for i in range(5)} | {f"n{i}": 2.0 for i in range(3)}
    view = judged_run(qrels, {"1": above | dict.fromkeys(("x", "y", "n3", "n4", "n5"), 1.0)})
    assert parse_measure("ESL(n=6,count='all')").compute(view)[0] == 10


@pytest.mark.parametrize("measure", ["SearchLength", "ASL", "ESL", "NormRecall"])
def test_a_collection_too_small_for_what_is_relevant_gives_no_value(measure: str) -> None:
    parsed = parse_measure(f"{measure}(missing='random',documents=4)")
    view = judged_run({"1": {"a": 1, "b": 1}}, {"1": {"x": 3.0, "y": 2.0, "z": 1.0}})
    assert math.isnan(parsed.compute(view)[0])
    assert parsed.why_undefined(view, parsed.compute(view)) == ["collection_too_small"]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("SearchLength(missing='ignore')", "one of 'undefined', 'next', 'random', 'last'"),
        ("ASL(missing='random')", "go together"),
        ("ESL(missing='next',documents=9)", "go together"),
        ("ESL(count='relevant')", "one of 'nonrelevant', 'all'"),
    ],
)
def test_conventions_that_mean_nothing_are_refused(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_measure(written)
