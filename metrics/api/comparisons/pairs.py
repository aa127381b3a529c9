"""The API's answer for a pair of runs: the verdict of each test and the effect sizes."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from metrics.api.answers import number
from metrics.engine.significance.effect_sizes import READINGS
from metrics.engine.significance.verdicts import REASONS, VERDICTS
from metrics.services.comparisons import shown_pairs
from metrics.services.comparisons.shown_pairs import PairClaim, PairEquivalence, ShownPair
from runs.web.shapes import OneOf

Way = Annotated[str | None, OneOf(VERDICTS), "of a against b"]
Withheld = Annotated[str | None, OneOf(REASONS[1:]), "why there is no verdict, whatever p is"]


class Bounded(TypedDict):
    value: float | None
    low: float | None
    high: float | None


class Verdict(TypedDict):
    low: Annotated[float | None, "of the interval of the mean difference"]
    high: float | None
    statistic: Annotated[float | None, "null where there is none"]
    p_value: Annotated[float | None, "null where the test cannot be made"]
    p_adjusted: Annotated[float | None, "corrected over the family"]
    exact: Annotated[bool, "p is of the exact distribution"]
    significant: Annotated[bool, "whether there is a verdict"]
    verdict: Way
    withheld: Withheld


class VerdictOnJudged(TypedDict):
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: Annotated[float | None, "corrected over the same family"]
    verdict: Way
    withheld: Withheld


class OnJudged(TypedDict):
    """A pair on judged documents alone: unjudged ones removed, the rest moved up."""

    mean_a: float
    mean_b: float
    difference: Annotated[float, "mean of a minus mean of b"]
    tests: dict[str, VerdictOnJudged]


class Claim(TypedDict):
    p_value: Annotated[float | None, "one-sided; null without spread"]
    p_adjusted: Annotated[float | None, "corrected over the family"]
    holds: bool


class Equivalence(TypedDict):
    low: Annotated[float | None, "of the interval of 1 - 2 alpha"]
    high: float | None
    a_not_worse: Annotated[Claim, "a is not worse than b by the margin or more: non-inferiority"]
    b_not_worse: Claim
    equivalent: Annotated[Claim, "both: the runs differ by less than the margin"]
    withheld: Withheld
    topics: Annotated[
        int | None,
        "with which two runs that do not differ, of this spread, are equivalent in 8 of 10 "
        "samples of topics; null beyond a million",
    ]


class Chances(TypedDict):
    better: Annotated[float | None, "a is better than b by more than rope; null without spread"]
    equal: Annotated[float | None, "the difference of means is at most rope"]
    worse: float | None


class SplitPair(TypedDict):
    a: UUID
    b: UUID
    difference: Annotated[float, "mean of a minus mean of b"]
    wins: Annotated[int, "topics on which a is better"]
    ties: int
    losses: int
    tests: dict[str, Verdict]


class Fragility(TypedDict):
    sign: Annotated[
        int | None,
        "topics to leave out, at least, until the other run has the higher mean or both the same",
    ]
    significance: Annotated[
        int | None,
        "topics whose removal, those that favour the leading run most first, ends the significance "
        "by the first test; other topics may need fewer. null where it is not significant or of "
        "ranks, and where it still is with 5 topics left",
    ]
    topics: Annotated[list[str], "the topics of significance, else of sign: the first 10"]


class Pair(SplitPair):
    relative_difference: Annotated[float | None, "as a share of the mean of b"]
    reading: Annotated[str, OneOf(READINGS), "of the relative difference, after Sparck Jones"]
    cohen_d: Bounded
    hedges_g: Bounded
    standardised_difference: Bounded
    cliff_delta: Annotated[
        Bounded, "P(value of a above one of b) - P(below), over values of any two topics"
    ]
    probability_better: Annotated[
        Bounded, "that a is better on a topic, a tie as half a win; Wilson's interval"
    ]
    deviation: Annotated[
        float, "standard deviation of the differences over topics; 0 where all are the same"
    ]
    detectable: Annotated[
        float,
        "true difference of which the paired interval leaves out 0 in 8 of 10 samples of so many "
        "topics; in 7 to 8 of fewer than 25 topics",
    ]
    cautions: Annotated[
        list[Annotated[str, OneOf(shown_pairs.PAIR_CAUTIONS)]],
        "of the differences over topics: too skewed for p of a t test, or equal on more than half "
        "of the topics",
    ]
    fragility: Fragility
    equivalence: Annotated[Equivalence | None, "by tost; null if not requested"]
    chances: Annotated[dict[str, Chances], "by each posterior that is requested; they sum to one"]
    on_judged: Annotated[
        OnJudged | None,
        "where the runs are judged unevenly; null elsewhere, and where there are no such values",
    ]


def split_pair(pair: ShownPair) -> SplitPair:
    """Return a pair with the verdict of each test."""
    return SplitPair(
        a=pair.a.pk,
        b=pair.b.pk,
        difference=pair.difference,
        wins=pair.wins,
        ties=pair.ties,
        losses=pair.losses,
        tests={
            verdict.test: Verdict(
                low=number(verdict.low),
                high=number(verdict.high),
                statistic=number(verdict.statistic),
                p_value=number(verdict.p_value),
                p_adjusted=number(verdict.p_adjusted),
                exact=verdict.exact,
                significant=verdict.significant,
                verdict=way_of(verdict.better),
                withheld=verdict.withheld or None,
            )
            for verdict in pair.verdicts
        },
    )


def pair_answer(pair: ShownPair, topics: list[str]) -> Pair:
    """Return a pair with its verdicts and effect sizes; `topics` are the ids of all topics."""
    return Pair(
        **split_pair(pair),
        relative_difference=number(pair.relative),
        reading=pair.reading,
        cohen_d=_bounded(pair.cohen_d),
        hedges_g=_bounded(pair.hedges_g),
        standardised_difference=_bounded(pair.standardised),
        cliff_delta=_bounded(pair.cliff_delta),
        probability_better=_bounded(pair.probability_better),
        deviation=pair.deviation,
        detectable=pair.detectable,
        cautions=pair.cautions,
        fragility=Fragility(
            sign=pair.fragility.sign,
            significance=pair.fragility.significance,
            topics=[topics[place] for place in pair.fragility.topics],
        ),
        equivalence=_equivalence(pair.equivalence),
        chances={
            name: Chances(
                better=number(chances.better),
                equal=number(chances.equal),
                worse=number(chances.worse),
            )
            for name, chances in pair.chances.items()
        },
        on_judged=_on_judged(pair),
    )


def _on_judged(pair: ShownPair) -> OnJudged | None:
    if pair.on_judged is None:
        return None

    return OnJudged(
        mean_a=pair.on_judged.mean_a,
        mean_b=pair.on_judged.mean_b,
        difference=pair.on_judged.difference,
        tests={
            verdict.test: VerdictOnJudged(
                low=number(verdict.low),
                high=number(verdict.high),
                p_value=number(verdict.p_value),
                p_adjusted=number(verdict.p_adjusted),
                verdict=way_of(verdict.better),
                withheld=verdict.withheld or None,
            )
            for verdict in pair.on_judged.verdicts
        },
    )


def _equivalence(equivalence: PairEquivalence | None) -> Equivalence | None:
    if equivalence is None:
        return None

    return Equivalence(
        low=number(equivalence.low),
        high=number(equivalence.high),
        a_not_worse=_claim(equivalence.a),
        b_not_worse=_claim(equivalence.b),
        equivalent=_claim(equivalence.both),
        withheld=equivalence.withheld or None,
        topics=equivalence.topics,
    )


def _claim(claim: PairClaim) -> Claim:
    return Claim(
        p_value=number(claim.p_value), p_adjusted=number(claim.p_adjusted), holds=claim.holds
    )


def _bounded(size: shown_pairs.Bounded) -> Bounded:
    return Bounded(value=number(size.value), low=number(size.low), high=number(size.high))


def way_of(better: int) -> Way:
    """Return how the first run of a pair differs significantly, or None without a verdict."""
    return {1: "better", -1: "worse"}.get(better)
