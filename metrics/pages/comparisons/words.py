"""A comparison in words: what a test asks, who is better by how much, whether tests agree, how to report it."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.engine import ENGINE_VERSION
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.exports.comparisons.words import TEST_NAMES, how_tested
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import ShownPair, Verdict, names_of, rows_of, run_of
from metrics.services.comparisons.stored import Answer
from metrics.tables import figure, probability, signed
from runs.models import Run

ASKS = {
    "paired_t": "Is the mean difference zero, where differences are near a normal distribution?",
    "wilcoxon": "Do the ranked differences lean to one side?",
    "sign": "Is one run ahead on more topics than the other, by however much?",
    "randomisation": "Is the mean difference zero, where the runs could be exchanged on every topic?",
    "bootstrap": "Is the mean difference zero, on topics drawn like these?",
    "tukey_hsd": "Which means differ, of all pairs at once?",
    "randomised_tukey_hsd": "Which means differ, of all pairs at once, where the runs could be exchanged?",
    "nemenyi": "Which mean ranks differ, of all pairs at once?",
    "conover": "Do the rank sums over topics differ?",
    "welch_t": "Do the means differ, as if on different topics?",
    "mann_whitney": "Do the values rank differently, as if on different topics?",
}


@dataclass(frozen=True)
class Headline:
    """Two runs: which is ahead, by how much, how sure that is, and on how many topics."""

    lead: str
    detail: str
    significant: bool


def headline(pair: ShownPair, compared: Compared, answer: Answer) -> Headline:
    """By the first test; the run that is ahead is named first, whichever of the two it is."""
    name, verdict = compared.measure.name, pair.verdicts[0]
    names = names_of([pair.a, pair.b])
    if pair.wins == pair.losses == 0:
        return Headline(f"{names[pair.a]} and {names[pair.b]} have the same {name} on every topic.", "", False)
    ahead, behind, sign = _sides(pair, compared)
    size = _size(compared, pair.difference)
    if pair.difference == 0:
        lead = f"{names[ahead]} and {names[behind]} have the same mean {name}"
    elif verdict.significant:
        lead = f"{names[ahead]} is better than {names[behind]} by {size} {name}"
    else:
        lead = f"{names[ahead]} is ahead of {names[behind]} by {size} {name}, but not significantly"
    wins, losses = (pair.wins, pair.losses) if sign > 0 else (pair.losses, pair.wins)
    low, high = _ends(verdict, compared, sign)
    detail = (
        f"{_percent(answer)} interval {low} to {high}; {_p(verdict)} by {_the(verdict.test)}; better on {_topics(wins)}"
        f", worse on {losses:,}" + (f", equal on {pair.ties:,}." if pair.ties else ".")
    )
    return Headline(f"{lead}.", detail, verdict.significant)


def _sides(pair: ShownPair, compared: Compared) -> tuple[Run, Run, int]:
    """The better run, the other one, and 1 where the better one is `a`."""
    first = (pair.difference >= 0) != compared.measure.definition.lower_is_better or pair.difference == 0
    return (pair.a, pair.b, 1) if first else (pair.b, pair.a, -1)


def _size(compared: Compared, difference: float) -> str:
    return figure(compared.measure, abs(difference))


def _ends(verdict: Verdict, compared: Compared, sign: int) -> tuple[str, str]:
    """The interval of how much better the run ahead is: its own difference, or that turned round."""
    sign = -sign if compared.measure.definition.lower_is_better else sign
    low, high = sorted((sign * verdict.low, sign * verdict.high))
    return signed(low), signed(high)


def _p(verdict: Verdict) -> str:
    text = probability(verdict.p_value)
    plain = f"p {text}" if text.startswith("<") else f"p = {text}"
    if verdict.p_adjusted == verdict.p_value:
        return plain
    corrected = probability(verdict.p_adjusted)
    return f"{plain}, corrected {corrected}"


def _percent(answer: Answer) -> str:
    return f"{100 * answer.query.options.confidence:g} %"


def _the(test: str) -> str:
    """The test with its article, where its name has none of its own."""
    name = TEST_NAMES[test]
    return name if "'s " in name and not name.endswith("unpaired") else f"the {name}"


def _topics(number: int) -> str:
    return f"{number:,} topic{'s' if number != 1 else ''}"


def agreement(pair: ShownPair, alpha: float) -> str:
    """Whether the tests come to one verdict, and where they do not, which ones part."""
    found = [verdict.test for verdict in pair.verdicts if verdict.significant]
    missed = [verdict.test for verdict in pair.verdicts if not verdict.significant]
    if len(pair.verdicts) < 2:
        return ""
    if not missed or not found:
        verdict = "significant" if found else "not significant"
        return f"All {len(pair.verdicts)} tests agree: the difference is {verdict} at {alpha:g}."
    text = (
        f"The tests do not agree at {alpha:g}: the difference is significant by {_listed(found)}, "
        f"not by {_listed(missed)}."
    )
    return f"{text} {_why(found, missed)}".strip()


def _listed(tests: list[str]) -> str:
    names = [_the(test) for test in tests]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _why(found: list[str], missed: list[str]) -> str:
    """What it means where tests of means and of ranks are on different sides."""
    sides = [{TESTS[test].ranks for test in tests} for tests in (found, missed)]
    if sides == [{False}, {True}]:
        return "The former ask about means, the latter about ranks or signs: few topics with large differences decide."
    if sides == [{True}, {False}]:
        return (
            "The former ask about ranks or signs, the latter about means: many topics differ by little, or a few much."
        )
    return "Their questions differ, and the answer is close to the level."


def report(answer: Answer, compared: Compared, family: Family, pair: ShownPair | None) -> str:
    """What an author writes: data, test, correction, B and seed, version of the judgements, and what came out."""
    rows = rows_of(answer, compared)
    names = names_of([run_of(answer, compared, row) for row in rows])
    who = " and ".join(names.values()) if len(rows) == 2 else f"{len(rows)} runs"
    qrels = answer.entrants.qrels
    return (
        f"We compared {who} by {compared.measure.name} on {compared.topics} topics of {qrels.collection.name} (qrels "
        f"version {qrels.version}). Test (two-sided): {how_tested(answer, family)}. "
        f"{_outcome(answer, compared, family, pair)} Computed with EvalHub, engine version {_engine(answer)}."
    )


def _outcome(answer: Answer, compared: Compared, family: Family, pair: ShownPair | None) -> str:
    if pair is None:
        return f"{int(family.significant.sum()):,} of {compared.pairs.number:,} differences are significant."
    verdict = next(verdict for verdict in pair.verdicts if verdict.test == family.test)
    names, statistic = names_of([pair.a, pair.b]), _statistic(verdict)
    return (
        f"Mean {_mean(compared, pair.mean_a)} ({names[pair.a]}) and {_mean(compared, pair.mean_b)} ({names[pair.b]}), "
        f"difference {signed(pair.difference)}, {_percent(answer)} confidence interval {signed(verdict.low)} to "
        f"{signed(verdict.high)}, {statistic}{_p(verdict)}; Hedges's g = {_effect(pair)}."
    )


def _statistic(verdict: Verdict) -> str:
    return "" if verdict.statistic != verdict.statistic else f"statistic {verdict.statistic:.4g}, "


def _effect(pair: ShownPair) -> str:
    return "none" if pair.hedges_g.value != pair.hedges_g.value else f"{pair.hedges_g.value:.2f}"


def _mean(compared: Compared, value: float) -> str:
    return figure(compared.measure, value)


def _engine(answer: Answer) -> str:
    return answer.stored.engine_version if answer.stored else ENGINE_VERSION
