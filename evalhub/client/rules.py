"""The rules of a gate: how they are written, and their verdicts fine, worse and undecided.

Means, intervals and p are the server's. With d the mean over topics of candidate minus baseline,
with its sign changed if lower values are better, so that d < 0 is worse:

    no-worse-than MARGIN   worse: the interval of d lies below -MARGIN; fine: it lies above
    no-significant-drop    worse: d < 0 and p < alpha, corrected over the gate's rules of this kind
    no-drop                worse: d < 0
    at-least X             worse: the candidate's mean is below X

A rule is undecided, whatever its numbers, if a run answered few topics or has nothing judged, or if
judged documents alone give another verdict.

Source: no-worse-than is one-sided non-inferiority, read from the interval of confidence 1 - 2 alpha
(Schuirmann, 1987).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import BadRule, EvalHubError

NO_WORSE, NO_SIGNIFICANT_DROP, NO_DROP, AT_LEAST = (
    "no-worse-than",
    "no-significant-drop",
    "no-drop",
    "at-least",
)
FINE, WORSE, UNDECIDED = "fine", "worse", "undecided"
# Cautions of a server about runs with so few data that there is no verdict.
UNMEASURED = ("few_topics_answered", "nothing_judged")
# As on the server: a run that answered a smaller share of the topics gets no verdict.
LEAST_ANSWERED = 0.9
# With fewer topics neither an interval nor p is of use.
LEAST_TOPICS = 10
# Means that differ less are equal: this is the rounding of sums.
ROUNDING = 1e-12
_KINDS = (NO_WORSE, NO_SIGNIFICANT_DROP, NO_DROP, AT_LEAST)
_NUMBER = re.compile(r"[-+.0-9][-+.0-9eE]*%?")
_BRACKETS = re.compile(r"\([^()]*\)")
_FORM = (
    "MEASURE no-worse-than MARGIN, MEASURE no-significant-drop, MEASURE no-drop or MEASURE "
    "at-least X"
)


@dataclass(frozen=True)
class Rule:
    """A rule. `number` is the margin, or for at-least the smallest mean.

    A `relative` margin is a share of the baseline's mean. A margin of no-significant-drop decides
    nothing: it is compared with the detectable difference.
    """

    measure: str
    kind: str = NO_WORSE
    number: float | None = None
    relative: bool = False

    def __str__(self) -> str:
        if self.number is None:
            return f"{self.measure} {self.kind}"
        number = f"{100 * self.number:.10g}%" if self.relative else f"{self.number:.10g}"
        return f"{self.measure} {self.kind} {number}"


def parse_rule(text: str | Rule) -> Rule:
    """Return the rule of a text such as `nDCG@10 no-worse-than 0.01`, or raise BadRule."""
    if isinstance(text, Rule):
        return text

    words = text.split()
    number_text = words.pop() if len(words) > 1 and _NUMBER.fullmatch(words[-1]) else None
    kind = words.pop() if len(words) > 1 and words[-1] in _KINDS else NO_WORSE
    measure = " ".join(words)
    # A measure has blanks only in its brackets.
    if not measure or " " in _BRACKETS.sub("", measure):
        raise BadRule(f"{text!r} is not a rule; write {_FORM}")

    if number_text is None:
        if kind in (NO_WORSE, AT_LEAST):
            missing = "a margin, such as 0.01 or 2%" if kind == NO_WORSE else "a number"
            raise BadRule(f"{text!r}: {kind} needs {missing}; rules are {_FORM}")
        return Rule(measure, kind)

    if kind == NO_DROP:
        raise BadRule(f"{text!r}: no-drop takes no number; {NO_WORSE} takes a margin")

    relative = number_text.endswith("%")
    try:
        number = float(number_text.removesuffix("%")) / (100 if relative else 1)
    except ValueError:
        raise BadRule(f"{text!r}: {number_text} is not a number") from None

    if not math.isfinite(number) or (kind != AT_LEAST and number <= 0):
        raise BadRule(f"{text!r}: a margin is a number above 0; for none, write no-drop")
    if relative and (kind == AT_LEAST or number >= 1):
        raise BadRule(
            f"{text!r}: "
            f"{'at-least takes a number' if kind == AT_LEAST else 'a share is below 100%'}"
        )
    return Rule(measure, kind, number, relative)


@dataclass
class Result:
    """The result of a rule. Every difference is signed so that below 0 is worse, or None.

    `unmeasured` says why nothing can be decided, whatever the numbers are. `on_judged` has the
    numbers of judged documents alone, if the runs are judged unevenly.
    """

    rule: Rule
    verdict: str = UNDECIDED
    reason: str = ""
    d: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    margin: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None
    topics_needed: int | None = None
    candidate_mean: float | None = None
    baseline_mean: float | None = None
    worst_topics: list[dict[str, Any]] = field(default_factory=list)
    topics_left_out: list[str] = field(default_factory=list)
    cautions: list[dict[str, str]] = field(default_factory=list)
    lower_is_better: bool = False
    unmeasured: str = ""
    coverage: dict[str, dict[str, Any]] = field(default_factory=dict)
    on_judged: Result | None = None

    def raw(self) -> dict[str, Any]:
        private = ("rule", "lower_is_better", "unmeasured", "on_judged")
        fields = {name: value for name, value in vars(self).items() if name not in private}
        rule = {"rule": str(self.rule), "measure": self.rule.measure, "kind": self.rule.kind}

        on_judged = None
        if self.on_judged:
            names = ("verdict", "d", "low", "high", "n", "p_value", "p_adjusted")
            on_judged = {name: getattr(self.on_judged, name) for name in names}

        return {**rule, **fields, "on_judged": on_judged}

    def add_caution(self, code: str, message: str) -> None:
        self.cautions.append({"code": code, "message": message})


def read_pair(rule: Rule, comparison: dict[str, Any], candidate: str, test: str) -> Result:
    """Return the numbers of a rule from one measure of the server's comparison of two runs.

    `decide` adds the verdict.
    """
    if "lower_is_better" not in comparison:
        raise EvalHubError(
            "this server is too old for a gate: its version/ does not have the feature gate"
        )

    (pair,) = comparison["pairs"]
    statistics = pair["tests"][test]
    result = _numbers(rule, comparison, candidate, pair, statistics, pair["difference"])
    result.detectable = pair["detectable"]

    means = {mean["run"]: mean["mean"] for mean in comparison["means"]}
    coverage = {mean["run"]: mean.get("coverage") or {} for mean in comparison["means"]}
    result.candidate_mean = means.pop(candidate)
    ((baseline, result.baseline_mean),) = means.items()
    result.coverage = {"candidate": coverage[candidate], "baseline": coverage[baseline]}

    result.topics_left_out = [topic["topic_id"] for topic in comparison["topics"]["reasons"]]
    result.cautions = [*comparison["cautions"], *comparison["tests"][test]["cautions"]]
    result.unmeasured = "; ".join(
        caution["message"] for caution in comparison["cautions"] if caution["code"] in UNMEASURED
    )

    if rule.number is not None:
        result.margin = rule.number * abs(result.baseline_mean) if rule.relative else rule.number
    if result.margin and rule.kind == NO_WORSE:
        # n' = ceil(((t(1 - alpha) + t(power)) s_d / MARGIN)^2), from what n topics detect.
        result.topics_needed = math.ceil(result.n * (result.detectable / result.margin) ** 2 - 1e-9)

    if count := comparison["topics"]["left_out"]:
        result.add_caution(
            "topics_left_out", f"{count} topics have no value of one of the runs and do not count"
        )

    if pair["deviation"] == 0:
        # Without spread there is no interval: d alone decides.
        result.low = result.high = result.d
        result.add_caution(
            "constant_difference", "the difference is the same on every topic; it alone decides"
        )

    if on_judged := pair.get("on_judged"):
        statistics, difference = on_judged["tests"][test], on_judged["difference"]
        judged = _numbers(rule, comparison, candidate, pair, statistics, difference)
        judged.margin = result.margin
        if statistics["withheld"] == "no_spread":
            judged.low = judged.high = judged.d
        result.on_judged = judged

    return result


def _numbers(
    rule: Rule,
    comparison: dict[str, Any],
    candidate: str,
    pair: dict[str, Any],
    statistics: dict[str, Any],
    difference: float,
) -> Result:
    """Return a difference of the pair with its interval and p, signed so that below 0 is worse."""
    # The server subtracts in the order of the means.
    lower_is_better = comparison["lower_is_better"]
    sign = (1 if pair["a"] == candidate else -1) * (-1 if lower_is_better else 1)
    low, high = statistics["low"], statistics["high"]
    if sign < 0:
        low, high = (None if end is None else -end for end in (high, low))

    return Result(
        rule,
        d=sign * difference,
        low=low,
        high=high,
        n=comparison["topics"]["used"],
        p_value=statistics["p_value"],
        lower_is_better=lower_is_better,
    )


def decide(results: list[Result], alpha: float) -> None:
    """Give each result its verdict, with p of rules about significance corrected by Holm.

    A result is undecided if too little was measured, and if judged documents alone give another
    verdict.
    """
    _decide(results, alpha)
    # Holm's correction is over all rules: results without judged documents alone take part, too.
    _decide([result.on_judged or replace(result, cautions=[]) for result in results], alpha)

    for result in results:
        judged = result.on_judged
        if result.unmeasured:
            _set_verdict(result, UNDECIDED, result.unmeasured)
        elif judged and judged.verdict != result.verdict:
            _set_verdict(
                result,
                UNDECIDED,
                f"depends on judging: {result.verdict} with {result.d:+.4f}, {judged.verdict} with "
                f"{judged.d:+.4f} on judged documents alone",
            )


def _decide(results: list[Result], alpha: float) -> None:
    significance_results = [
        result
        for result in results
        if result.rule.kind == NO_SIGNIFICANT_DROP and result.d is not None
    ]

    # Without spread there is no p: a difference is certain, and without one p is 1.
    p_values = [
        (float(not result.d) if result.p_value is None else result.p_value)
        for result in significance_results
    ]
    for result, adjusted in zip(significance_results, holm(p_values), strict=True):
        result.p_adjusted = adjusted

    for result in results:
        if result.rule.kind == AT_LEAST or result.d is None:
            continue

        if result.rule.kind == NO_DROP:
            worse = result.d < -ROUNDING
            _set_verdict(
                result,
                WORSE if worse else FINE,
                "the mean is lower" if worse else "the mean is not lower",
            )
        elif result.n < LEAST_TOPICS:
            _set_verdict(
                result, UNDECIDED, f"{result.n} topics are too few: {LEAST_TOPICS} at least"
            )
            result.add_caution("few_topics", result.reason)
        elif result.rule.kind == NO_SIGNIFICANT_DROP:
            _decide_significance(result, alpha)
        else:
            _decide_margin(result)


def _set_verdict(result: Result, verdict: str, reason: str) -> None:
    result.verdict, result.reason = verdict, reason


def _decide_margin(result: Result) -> None:
    d, low, high, margin = result.d, result.low, result.high, result.margin
    if not margin:
        _set_verdict(
            result,
            UNDECIDED,
            "the baseline's mean is 0, and no share of it is a margin; give an absolute one",
        )
    elif d is None or low is None or high is None:
        _set_verdict(result, UNDECIDED, "the test gives no interval")
    elif low == high:
        worse = d < -margin - ROUNDING
        _set_verdict(
            result,
            WORSE if worse else FINE,
            f"every topic differs by {d:+.4f}, margin {margin:.4f}",
        )
    elif high < -margin:
        _set_verdict(result, WORSE, f"{d:+.4f}, worse by {-high:.4f} at least, margin {margin:.4f}")
    elif low > -margin:
        bound = f"better by {low:.4f} at least" if low > 0 else f"worse by {-low:.4f} at most"
        _set_verdict(result, FINE, f"{d:+.4f}, {bound}, margin {margin:.4f}")
    else:
        _set_verdict(
            result, UNDECIDED, f"{d:+.4f}, between {low:+.4f} and {high:+.4f}, margin {margin:.4f}"
        )
        needed = result.topics_needed or 0
        if needed <= result.n:
            more = (
                "so many topics decide in 8 of 10 cases where there is no difference; there may "
                "be a small one"
            )
        else:
            more = f"where there is no difference, {needed:,} topics would decide in 8 of 10 cases"
        result.reason += f"; {more}"


def _decide_significance(result: Result, alpha: float) -> None:
    d, p = result.d or 0.0, result.p_adjusted
    worse = d < -ROUNDING and p is not None and p < alpha
    if p is None:
        p_text = "no p"
    else:
        p_text = "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    _set_verdict(result, WORSE if worse else FINE, f"{d:+.4f}, {p_text} corrected")

    detectable, margin = result.detectable, result.margin
    if detectable is not None and margin is not None and detectable > margin:
        result.add_caution(
            "blind_to_margin",
            f"these {result.n} topics show a drop of {detectable:.4f} in 8 of 10 cases, and smaller "
            f"ones less often: a drop of {margin:.4f} may pass",
        )


def decide_least(
    rule: Rule,
    mean: float | None,
    topics: int,
    lower_is_better: bool,
    coverage: dict[str, Any] | None = None,
) -> Result:
    """Return the result of at-least for a mean; if lower values are better, it is at most X.

    `coverage` has the shares `answered` and `judged` of the run, None if unknown.
    """
    result = Result(rule, n=topics, candidate_mean=mean, margin=None)
    result.coverage = {"candidate": coverage} if coverage else {}
    least, shares = rule.number or 0.0, coverage or {}

    answered, judged = shares.get("answered"), shares.get("judged")
    if answered is not None and answered < LEAST_ANSWERED:
        _set_verdict(result, UNDECIDED, f"the run answered {100 * answered:.0f}% of the topics")
    elif judged == 0:
        reason = f"none of the run's first {shares['k']} documents of any topic is judged"
        _set_verdict(result, UNDECIDED, reason)
    elif mean is None:
        _set_verdict(result, UNDECIDED, "the run has no mean of this measure")
    else:
        worse = mean > least + ROUNDING if lower_is_better else mean < least - ROUNDING
        bound = "most" if lower_is_better else "least"
        _set_verdict(
            result,
            WORSE if worse else FINE,
            f"the mean is {mean:.4f}, required at {bound} {least:.4f}",
        )

    return result


def holm(p_values: list[float]) -> list[float]:
    """Return p corrected by Holm's method over all of them."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest

    return adjusted
