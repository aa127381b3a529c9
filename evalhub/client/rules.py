"""The rules of a gate: how they are written, and when a run is fine, worse or undecided under one.

Means, intervals and p are the server's. With d the mean over topics of candidate minus baseline,
turned round where lower values are better, so that d < 0 is worse:

    no-worse-than MARGIN      worse: the interval of d lies below -MARGIN; fine: it lies above; else undecided
    no-significant-drop       worse: d < 0 and p, corrected over the gate's rules of this kind, is below alpha
    no-drop                   worse: d < 0
    at-least X                worse: the candidate's mean is below X

Undecided whatever the numbers are: a run answered few topics or has nothing judged, or judged
documents alone give another verdict.

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
# Cautions of a server about a run of which so little was measured that there is no verdict.
UNMEASURED = ("few_topics_answered", "nothing_judged")
# As the server has it: a run that answered a smaller share of the topics gives no verdict.
LEAST_ANSWERED = 0.9
# With fewer topics neither an interval nor a p says anything.
LEAST_TOPICS = 10
# Means are equal that differ by the rounding of sums.
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
    """One rule. `number` is the margin, or of at-least the least mean; a `relative` margin is a share of the baseline's
    mean. A margin of no-significant-drop decides nothing: it is held against the detectable
    difference."""

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
    """Return the rule of a text such as `nDCG@10 no-worse-than 0.01`; BadRule says what is wrong with it."""
    if isinstance(text, Rule):
        return text

    words = text.split()
    given = words.pop() if len(words) > 1 and _NUMBER.fullmatch(words[-1]) else None
    kind = words.pop() if len(words) > 1 and words[-1] in _KINDS else NO_WORSE
    measure = " ".join(words)
    # Blanks belong to a measure within its brackets only.
    if not measure or " " in _BRACKETS.sub("", measure):
        raise BadRule(f"{text!r} is not a rule; write {_FORM}")

    if given is None:
        if kind in (NO_WORSE, AT_LEAST):
            missing = "a margin, such as 0.01 or 2%" if kind == NO_WORSE else "a number"
            raise BadRule(f"{text!r}: {kind} needs {missing}; rules are {_FORM}")
        return Rule(measure, kind)

    if kind == NO_DROP:
        raise BadRule(f"{text!r}: no-drop takes no number; {NO_WORSE} takes a margin")

    relative = given.endswith("%")
    try:
        number = float(given.removesuffix("%")) / (100 if relative else 1)
    except ValueError:
        raise BadRule(f"{text!r}: {given} is not a number") from None

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
    """What a rule says of a run. Every difference is turned so that below 0 is worse; None where there is none.

    `unmeasured` says why nothing can be decided, whatever the numbers are. `on_judged` has the
    numbers of judged documents alone, where the runs are judged unevenly.
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
        told = {
            name: value
            for name, value in vars(self).items()
            if name not in ("rule", "lower_is_better", "unmeasured", "on_judged")
        }

        alone = self.on_judged
        shown = ("verdict", "d", "low", "high", "n", "p_value", "p_adjusted")
        told["on_judged"] = alone and {name: getattr(alone, name) for name in shown}

        return {
            "rule": str(self.rule),
            "measure": self.rule.measure,
            "kind": self.rule.kind,
            **told,
        }

    def caution(self, code: str, message: str) -> None:
        self.cautions.append({"code": code, "message": message})


def read_pair(rule: Rule, compared: dict[str, Any], candidate: str, test: str) -> Result:
    """Return the numbers of a rule from one measure of the server's comparison of two runs; `decide` comes after."""
    if "lower_is_better" not in compared:
        raise EvalHubError(
            "this server is too old for a gate: its version/ does not have the feature gate"
        )

    (pair,) = compared["pairs"]
    means = {mean["run"]: mean["mean"] for mean in compared["means"]}
    coverage = {mean["run"]: mean.get("coverage") or {} for mean in compared["means"]}
    result = _numbers(rule, compared, candidate, pair, pair["tests"][test], pair["difference"])
    result.detectable = pair["detectable"]
    result.candidate_mean = means.pop(candidate)
    ((baseline, result.baseline_mean),) = means.items()
    result.coverage = {"candidate": coverage[candidate], "baseline": coverage[baseline]}
    result.topics_left_out = [topic["topic_id"] for topic in compared["topics"]["reasons"]]
    result.cautions = [*compared["cautions"], *compared["tests"][test]["cautions"]]
    result.unmeasured = "; ".join(
        caution["message"] for caution in compared["cautions"] if caution["code"] in UNMEASURED
    )
    if rule.number is not None:
        result.margin = rule.number * abs(result.baseline_mean) if rule.relative else rule.number

    if result.margin and rule.kind == NO_WORSE:
        # n' = ceil(((t(1 - alpha) + t(power)) s_d / MARGIN)^2), from what n topics detect.
        result.topics_needed = math.ceil(result.n * (result.detectable / result.margin) ** 2 - 1e-9)

    if left := compared["topics"]["left_out"]:
        result.caution(
            "topics_left_out", f"{left} topics have no value of one of the runs and do not count"
        )

    if pair["deviation"] == 0:
        # Without spread there is no interval: d alone decides.
        result.low = result.high = result.d
        result.caution(
            "constant_difference", "the difference is the same on every topic; it alone decides"
        )

    if alone := pair.get("on_judged"):
        told = alone["tests"][test]
        result.on_judged = _numbers(rule, compared, candidate, pair, told, alone["difference"])
        result.on_judged.margin = result.margin
        if told["withheld"] == "no_spread":
            result.on_judged.low = result.on_judged.high = result.on_judged.d

    return result


def _numbers(
    rule: Rule,
    compared: dict[str, Any],
    candidate: str,
    pair: dict[str, Any],
    told: dict[str, Any],
    difference: float,
) -> Result:
    """Return a difference of the pair with its interval and p, turned so that below 0 is worse."""
    # The server subtracts in the order of the means.
    turn = (1 if pair["a"] == candidate else -1) * (-1 if compared["lower_is_better"] else 1)
    ends = [None if told[end] is None else turn * told[end] for end in ("low", "high")]
    low, high = ends if turn > 0 else reversed(ends)
    result = Result(rule, d=turn * difference, low=low, high=high, n=compared["topics"]["used"])
    result.p_value, result.lower_is_better = told["p_value"], compared["lower_is_better"]

    return result


def decide(results: list[Result], alpha: float) -> None:
    """Give each result its verdict. p of the rules about significance are corrected over all of them, by Holm.

    Where too little was measured, and where judged documents alone give another verdict, a result
    is undecided.
    """
    _decide(results, alpha)
    # Holm's correction is over all rules: those without other numbers count with their own.
    _decide([result.on_judged or replace(result, cautions=[]) for result in results], alpha)
    for result in results:
        alone = result.on_judged
        if result.unmeasured:
            _say(result, UNDECIDED, result.unmeasured)
        elif alone and alone.verdict != result.verdict:
            reason = (
                f"depends on judging: {result.verdict} with {result.d:+.4f}, {alone.verdict} with {alone.d:+.4f} on "
                "judged documents alone"
            )
            _say(result, UNDECIDED, reason)


def _decide(results: list[Result], alpha: float) -> None:
    about_p = [
        result
        for result in results
        if result.rule.kind == NO_SIGNIFICANT_DROP and result.d is not None
    ]

    # A difference without spread is certain, none at all is none.
    values = [
        (float(not result.d) if result.p_value is None else result.p_value) for result in about_p
    ]
    for result, adjusted in zip(about_p, holm(values), strict=True):
        result.p_adjusted = adjusted

    for result in results:
        if result.rule.kind == AT_LEAST or result.d is None:
            continue

        if result.rule.kind == NO_DROP:
            worse = result.d < -ROUNDING
            _say(
                result,
                WORSE if worse else FINE,
                "the mean is lower" if worse else "the mean is not lower",
            )
        elif result.n < LEAST_TOPICS:
            _say(result, UNDECIDED, f"{result.n} topics are too few: {LEAST_TOPICS} at least")
            result.caution("few_topics", result.reason)
        elif result.rule.kind == NO_SIGNIFICANT_DROP:
            _decide_significance(result, alpha)
        else:
            _decide_margin(result)


def _say(result: Result, verdict: str, reason: str) -> None:
    result.verdict, result.reason = verdict, reason


def _decide_margin(result: Result) -> None:
    d, low, high, margin = result.d, result.low, result.high, result.margin
    if not margin:
        _say(
            result,
            UNDECIDED,
            "the baseline's mean is 0, and no share of it is a margin; give an absolute one",
        )
    elif d is None or low is None or high is None:
        _say(result, UNDECIDED, "the test gives no interval")
    elif low == high:
        worse = d < -margin - ROUNDING
        _say(
            result,
            WORSE if worse else FINE,
            f"every topic differs by {d:+.4f}, margin {margin:.4f}",
        )
    elif high < -margin:
        _say(result, WORSE, f"{d:+.4f}, worse by {-high:.4f} at least, margin {margin:.4f}")
    elif low > -margin:
        bound = f"better by {low:.4f} at least" if low > 0 else f"worse by {-low:.4f} at most"
        _say(result, FINE, f"{d:+.4f}, {bound}, margin {margin:.4f}")
    else:
        _say(
            result, UNDECIDED, f"{d:+.4f}, between {low:+.4f} and {high:+.4f}, margin {margin:.4f}"
        )
        needed = result.topics_needed or 0
        more = f"where there is no difference, {needed:,} topics would decide in 8 of 10 cases"
        if needed <= result.n:
            more = (
                "so many topics decide in 8 of 10 cases where there is no difference; there may "
                "be a small one"
            )

        result.reason += f"; {more}"


def _decide_significance(result: Result, alpha: float) -> None:
    d, p = result.d or 0.0, result.p_adjusted
    worse = d < -ROUNDING and p is not None and p < alpha
    told = "no p" if p is None else "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
    _say(result, WORSE if worse else FINE, f"{d:+.4f}, {told} corrected")

    if (
        result.detectable is not None
        and result.margin is not None
        and result.detectable > result.margin
    ):
        message = (
            f"these {result.n} topics show a drop of {result.detectable:.4f} in 8 of 10 cases, and smaller ones less "
            f"often: a drop of {result.margin:.4f} may pass"
        )
        result.caution("blind_to_margin", message)


def decide_least(
    rule: Rule,
    mean: float | None,
    topics: int,
    lower_is_better: bool,
    coverage: dict[str, Any] | None = None,
) -> Result:
    """Return what at-least says of a mean; where lower values are better, it is at most X.

    `coverage` has the shares `answered` and `judged` of the run, None where they are not known.
    """
    result = Result(rule, n=topics, candidate_mean=mean, margin=None)
    result.coverage = {"candidate": coverage} if coverage else {}
    least, covered = rule.number or 0.0, coverage or {}

    answered, judged = covered.get("answered"), covered.get("judged")
    if answered is not None and answered < LEAST_ANSWERED:
        _say(result, UNDECIDED, f"the run answered {100 * answered:.0f}% of the topics")
    elif judged == 0:
        reason = f"none of the run's first {covered['k']} documents of any topic is judged"
        _say(result, UNDECIDED, reason)
    elif mean is None:
        _say(result, UNDECIDED, "the run has no mean of this measure")
    else:
        worse = mean > least + ROUNDING if lower_is_better else mean < least - ROUNDING
        bound = "most" if lower_is_better else "least"
        _say(
            result,
            WORSE if worse else FINE,
            f"the mean is {mean:.4f}, required at {bound} {least:.4f}",
        )

    return result


def holm(p_values: list[float]) -> list[float]:
    """Return p corrected by Holm's method over all of them."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest

    return adjusted
