"""A comparison in words: the question of a test, the better run, whether tests agree, and a
sentence for a paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metrics.engine.significance import TESTS
from metrics.engine.significance.effect_sizes import detectable_by_half, power_in_words
from metrics.engine.significance.families import Family
from metrics.engine.significance.verdicts import (
    DEPENDS_ON_JUDGING,
    MIN_TOPICS,
    NO_SPREAD,
    OF_COVERAGE,
    OTHER_DIRECTION,
    REASONS,
    TOO_FEW_TOPICS,
)
from metrics.exports.comparisons.words import (
    CORRECTION_NAMES,
    PRACTICAL_NAMES,
    WITHHELD,
    corrected_over,
    how_tested,
    named_family,
    test_name,
    too_few,
    withheld_pairs,
)
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import ShownPair, Verdict, names_of, runs_by_row
from metrics.services.comparisons.stored import Answer
from metrics.tables import amount, figure, probability, probability_words, signed, statistic

ASKS = {
    "paired_t": "Is the mean difference zero, if differences are roughly normal?",
    "t_and_tukey": (
        "Which means differ by the pair's own variance and by that of all runs, "
        "considering all pairs?"
    ),
    "wilcoxon": "Are the ranked differences symmetric around zero?",
    "sign": "Does one run win on more topics than the other, whatever the margin?",
    "randomisation": "Is the mean difference zero, if the runs are exchangeable on every topic?",
    "bootstrap": "Is the mean difference zero, over topics sampled like these?",
    "max_t": (
        "Which means differ, considering all compared pairs at once, "
        "whatever the spread of the runs?"
    ),
    "tukey_hsd": "Which means differ, considering all pairs at once?",
    "randomised_tukey_hsd": (
        "Which means differ, considering all pairs at once, if the runs are exchangeable?"
    ),
    "nemenyi": "Which mean ranks differ, considering all pairs at once?",
    "conover": "Do the rank sums over topics differ?",
    "welch_t": "Do the means differ, treating the topics as different?",
    "mann_whitney": "Do the values rank differently, treating the topics as different?",
}

PRACTICAL_ASKS = {
    "tost": "Is each run not worse than the other by the margin? Needs a margin.",
    "bayes_t": (
        "How likely is each run better, or are both practically equal, "
        "if differences are roughly normal?"
    ),
    "bayes_bootstrap": (
        "How likely is each run better, or are both practically equal, over topics like these?"
    ),
}

# A p within this factor of the level is close to it.
_NEAR = 3


@dataclass(frozen=True)
class Headline:
    """Two runs: which is better, by how much, how reliably, and on how many topics.

    `unmeasured` says that too little was judged for a verdict.
    """

    lead: str
    detail: str
    significant: bool
    label: str
    unmeasured: bool = False


def headline(pair: ShownPair, compared: Compared, answer: Answer) -> Headline:
    """Return the headline by the first test; it names the better run first."""
    name, verdict = compared.measure.name, pair.verdicts[0]
    names = names_of([pair.a, pair.b])
    significance = "significant" if verdict.significant else "not significant"
    label = f"{significance} at {answer.query.rule.alpha:g}"
    if verdict.withheld:
        reason = WITHHELD[verdict.withheld]
        label = reason if verdict.withheld == DEPENDS_ON_JUDGING else f"no verdict: {reason}"

    unmeasured = verdict.withheld in OF_COVERAGE

    if pair.wins == pair.losses == 0:
        return Headline(
            lead=f"{names[pair.a]} and {names[pair.b]} have the same {name} on every topic.",
            detail="",
            significant=False,
            label=label,
            unmeasured=unmeasured,
        )

    # The pair's difference says who is ahead by the means; equal means leave the first in front.
    a_is_ahead = pair.difference == 0 or (
        (pair.difference > 0) != compared.measure.definition.lower_is_better
    )
    ahead, behind = (pair.a, pair.b) if a_is_ahead else (pair.b, pair.a)
    size = amount(compared.measure, pair.difference)

    if pair.difference == 0:
        lead = f"{names[ahead]} and {names[behind]} have the same mean {name}"
    elif verdict.significant:
        lead = f"{names[ahead]} is better than {names[behind]} by {size} {name}"
    else:
        plain = "" if verdict.withheld else ", but not significantly"
        lead = f"{names[ahead]} is ahead of {names[behind]} by {size} {name}{plain}"

    lead += _why_withheld(pair, verdict, compared, answer)
    # The difference has the sign of the tables, whichever run is better.
    difference = f"{names[pair.a]} minus {names[pair.b]}{_lower(compared)}"
    baseline = _with_baseline(answer)
    test_words = _p(verdict, answer, f" by {_the(verdict.test, baseline)}")
    # A test without a p is followed by an exact one.
    exact = next(
        (other for other in pair.verdicts if other.exact and other.p_value == other.p_value), None
    )
    if exact is not None and math.isnan(verdict.p_value):
        test_words += f", {_p(exact, answer, f' by {_the(exact.test, baseline)} (exact)')}"

    if not math.isnan(verdict.low):
        interval = f"{_percent(answer)} interval {signed(verdict.low)} to {signed(verdict.high)}; "
        test_words = interval + test_words

    wins, losses = (pair.wins, pair.losses) if a_is_ahead else (pair.losses, pair.wins)
    # The difference before these words begins with the first run.
    who = "" if a_is_ahead else f"{names[ahead]} is "
    counts = f"{who}better on {_topics(wins)}, worse on {losses:,}"
    if pair.ties:
        counts += f", equal on {pair.ties:,}"

    excluded = _not_excluded(pair, verdict, compared, answer)
    detail = f"{difference}: {test_words}; {counts}.{excluded}"

    return Headline(f"{lead}.", detail, verdict.significant, label, unmeasured)


def _not_excluded(pair: ShownPair, verdict: Verdict, compared: Compared, answer: Answer) -> str:
    """Return the difference that would be found, so that nobody reads "no difference"."""
    if verdict.significant or verdict.withheld or not pair.detectable > 0:
        return ""

    alone = "" if answer.entrants.pairs.number == 1 else ", if this pair were tested alone"
    size = amount(compared.measure, pair.detectable)

    return (
        f" Not significant does not mean equal: a true difference of {size} would be found in "
        f"{power_in_words(compared.topics)} samples of {_topics(compared.topics)}{alone}."
    )


def not_excluded_by_many(answer: Answer, compared: Compared, family: Family) -> str:
    """Return what half of the pairs without a significant difference could have shown."""
    others = family.verdicts.not_significant
    if not len(others):
        return ""

    first, second = (side[others] for side in compared.pairs.indices())
    detectable = detectable_by_half(compared.values, first, second, answer.query.options.confidence)
    other = "other " if len(others) < compared.pairs.number else ""
    half = f"half of the {other}{len(others):,} pairs" if len(others) > 1 else f"the {other}pair"
    alone = "each tested alone" if len(others) > 1 else "tested alone"

    return (
        f"Not significant does not mean equal: {half}, {alone}, would show a true difference of "
        f"{amount(compared.measure, detectable)} in {power_in_words(compared.topics)} samples of "
        f"{_topics(compared.topics)}."
    )


def _equivalent(pair: ShownPair, compared: Compared) -> str:
    equivalence, family = pair.equivalence, compared.equivalence
    if equivalence is None or family is None or math.isnan(equivalence.both.p_value):
        return ""

    p_value = probability(equivalence.both.p_adjusted)
    claim = "They are" if equivalence.both.holds else "It is not shown that they are"

    return (
        f" {claim} equivalent within {family.margin:g} ({PRACTICAL_NAMES['tost']}, "
        f"{corrected_over(family.correction, family.size)}, "
        f"p {'' if p_value.startswith('<') else '= '}{p_value})."
    )


def _why_withheld(pair: ShownPair, verdict: Verdict, compared: Compared, answer: Answer) -> str:
    """Return why the difference of means has no verdict; empty if it has one."""
    test = _the(verdict.test, _with_baseline(answer))
    if verdict.withheld == TOO_FEW_TOPICS:
        return f"; {_topics(compared.topics)} are too few to tell this from chance"
    if verdict.withheld == NO_SPREAD:
        return f"; {test} cannot be computed, as the differences do not vary"
    if verdict.withheld == OTHER_DIRECTION:
        favoured = pair.a if verdict.leaning > 0 else pair.b
        favoured_name = names_of([pair.a, pair.b])[favoured]
        return f", but {test}, which does not test means, favours {favoured_name}"

    return ""


def carried_by(pair: ShownPair, topics: list[str]) -> str:
    """Return a sentence on the topics that carry the verdict, or the lead without one."""
    fragility, verdict = pair.fragility, pair.verdicts[0]
    named = [topics[place] for place in fragility.topics]

    if fragility.significance is not None:
        many, lost = fragility.significance, "it would no longer be significant"
    elif verdict.significant and not TESTS[verdict.test].ranks and len(topics) > MIN_TOPICS:
        return (
            f"It remains significant on the {MIN_TOPICS} topics that favour the better run least."
        )
    elif fragility.sign:
        many, lost = fragility.sign, "the lead would be gone"
    else:
        return ""

    which = ", ".join(named) + (f" and {many - len(named):,} more" if many > len(named) else "")
    return f"Without {_topics(many)} ({which}) {lost}."


def _lower(compared: Compared) -> str:
    return " (lower is better)" if compared.measure.definition.lower_is_better else ""


def _p(verdict: Verdict, answer: Answer, by: str = "") -> str:
    """Return the uncorrected p and, if the pair was tested with others, the p that decides."""
    plain = probability_words(verdict.p_value)
    if math.isnan(verdict.p_value) or answer.entrants.pairs.number == 1:
        return f"{plain}{by}"

    family = named_family(answer, verdict.test)
    if TESTS[verdict.test].simultaneous:
        return f"{plain}{by}, adjusted for {family}"

    correction = CORRECTION_NAMES[answer.query.rule.correction]
    decisive = f"{probability(verdict.p_adjusted)} with {correction} over {family}"

    return f"{plain} uncorrected{by}, {decisive}"


def _percent(answer: Answer) -> str:
    return f"{100 * answer.query.options.confidence:g}%"


def _with_baseline(answer: Answer) -> bool:
    return answer.entrants.pairs.are_some


def _the(test: str, baseline: bool) -> str:
    """Return the name of a test with an article if it needs one."""
    name = test_name(test, baseline=baseline)
    return name if "'s " in name and not name.endswith("unpaired") else f"the {name}"


def _topics(number: int) -> str:
    return f"{number:,} topic{'s' if number != 1 else ''}"


def agreement(pair: ShownPair, alpha: float, *, baseline: bool = False) -> str:
    """Return whether all tests have the same verdict, and if not, which ones differ."""
    withheld = {
        reason: [outcome.test for outcome in pair.verdicts if outcome.withheld == reason]
        for reason in REASONS
    }
    if len(pair.verdicts) < 2 or withheld[TOO_FEW_TOPICS]:
        return ""

    with_verdict = [verdict for verdict in pair.verdicts if not verdict.withheld]
    significant = [verdict.test for verdict in with_verdict if verdict.significant]
    not_significant = [verdict.test for verdict in with_verdict if not verdict.significant]
    sentences = []

    if len(with_verdict) > 1 and not (not_significant and significant):
        verdict = "significant" if significant else "not significant"
        whole = "All" if len(with_verdict) == len(pair.verdicts) else "The other"
        sentences.append(
            f"{whole} {len(with_verdict)} tests agree: the difference is {verdict} at {alpha:g}."
        )
    elif significant and not_significant:
        sentences.append(
            f"The tests do not agree at {alpha:g}: "
            f"the difference is significant by {_listed(significant, baseline)}, "
            f"not by {_listed(not_significant, baseline)}. "
            f"{_why(significant, not_significant, with_verdict, alpha)}"
        )

    if withheld[NO_SPREAD]:
        tests = _capitalised(_listed(withheld[NO_SPREAD], baseline))
        sentences.insert(0, f"{tests} cannot be computed: the differences do not vary.")

    if withheld[OTHER_DIRECTION]:
        tests = _capitalised(_listed(withheld[OTHER_DIRECTION], baseline))
        do_not = "does not" if len(withheld[OTHER_DIRECTION]) == 1 else "do not"
        sentences.append(f"{tests}, which {do_not} test means, found the opposite direction.")

    return " ".join(sentences)


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def _listed(tests: list[str], baseline: bool) -> str:
    names = [_the(test, baseline) for test in tests]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _why(
    significant: list[str], not_significant: list[str], with_verdict: list[Verdict], alpha: float
) -> str:
    """Return what different verdicts of tests of means and of ranks mean."""
    sides = [{TESTS[test].ranks for test in tests} for tests in (significant, not_significant)]
    if sides == [{False}, {True}]:
        return (
            "The former test means, the latter ranks or signs: "
            "a few topics with large differences decide."
        )

    if sides == [{True}, {False}]:
        return (
            "The former test ranks or signs, the latter means: "
            "many topics differ by little, or a few by much."
        )

    if all(alpha / _NEAR < verdict.p_value < alpha * _NEAR for verdict in with_verdict):
        return "They test different hypotheses, and every p is close to the significance level."

    return "They test different hypotheses."


def report(answer: Answer, compared: Compared, family: Family, pair: ShownPair | None) -> str:
    """Return the sentence for a paper: data, test, correction, seed, qrels version and result."""
    names = names_of(list(runs_by_row(answer, compared).values()))
    runs = " and ".join(names.values()) if len(names) == 2 else f"{len(names)} runs"
    selection = f", selected from {named_family(answer, family.test)}," if answer.narrowed else ""
    qrels = answer.entrants.qrels
    scores = answer.query.scores or qrels.collection.scores
    topics = answer.entrants.selection
    selected = f" (selected by {topics.text})" if topics else ""

    return (
        f"We compared {runs}{selection} by {compared.measure.name} on {compared.topics:,} topics"
        f"{selected} of {qrels.collection.name} ({qrels.full_name}, scores as {scores}). "
        f"Test (two-sided): {how_tested(answer, family)}. "
        f"{_outcome(answer, compared, family, pair)} "
        f"Computed with EvalHub, engine version {answer.engine_version}."
    )


def _outcome(answer: Answer, compared: Compared, family: Family, pair: ShownPair | None) -> str:
    if compared.topics < MIN_TOPICS and pair is None:
        return too_few(compared.topics)
    if pair is None:
        significant = int(family.significant.sum())
        are = "is" if significant == 1 else "are"
        significant_words = (
            f"{significant:,} of {compared.pairs.number:,} differences {are} significant."
        )
        counts = np.bincount(family.verdicts.withheld, minlength=len(REASONS)).tolist()
        sentences = [significant_words, *withheld_pairs(dict(zip(REASONS, counts, strict=True)))]

        return " ".join([*sentences, not_excluded_by_many(answer, compared, family)]).rstrip()

    verdict = next(verdict for verdict in pair.verdicts if verdict.test == family.test)
    names = names_of([pair.a, pair.b])
    mean_a, mean_b = (figure(compared.measure, mean) for mean in (pair.mean_a, pair.mean_b))
    joint = "simultaneous " if TESTS[family.test].joint_intervals and family.size > 1 else ""
    ends = f"{signed(verdict.low)} to {signed(verdict.high)}"
    interval = f"{_percent(answer)} {joint}confidence interval {ends}"
    if math.isnan(verdict.low):
        interval = "no confidence interval"

    statistic_words = (
        "" if math.isnan(verdict.statistic) else f"statistic {statistic(verdict.statistic)}, "
    )
    effect = "none" if math.isnan(pair.hedges_g.value) else f"{pair.hedges_g.value:.2f}"
    withheld = f" No verdict: {WITHHELD[verdict.withheld]}." if verdict.withheld else ""
    withheld += _not_excluded(pair, verdict, compared, answer) + _equivalent(pair, compared)

    return (
        f"Mean {mean_a} ({names[pair.a]}) and {mean_b} ({names[pair.b]}), "
        f"difference {signed(pair.difference)}, {interval}{_lower(compared)}, "
        f"{statistic_words}{_p(verdict, answer)}; Hedges's g = {effect}.{withheld}"
    )
