"""Compare the values of another program with EvalHub's, and explain differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .answers import Listed, Values

# Relative to values above 1; summation in another order causes much smaller differences.
TOLERANCE = 1e-9
UNEXPLAINED = "not explained"
_MAX_NAMED = 3
# Fewer decimals would fit values that differ for another reason.
_DECIMALS = range(2, 9)


@dataclass(frozen=True)
class OtherValues:
    """The values of another program for a run and a measure: the mean, and values by topic.

    None and NaN are values that it does not have.
    """

    mean: float | None
    by_topic: Mapping[str, float | None] = field(default_factory=dict)


class Agreement(Listed):
    """Both means for every run and measure, and how and why values by topic differ."""

    @property
    def differences(self) -> list[dict[str, Any]]:
        """The rows with a reason, on which both programs do not agree."""
        return [row for row in self.rows() if row["reason"]]

    def text(self) -> str:
        """Return a line for each difference, or one that says that there is none."""
        if differences := self.differences:
            return "\n".join(
                f"{row['run']}, {row['measure']}: {row['reason']}" for row in differences
            )

        runs = {row["run"] for row in self.rows()}
        measures = {row["measure"] for row in self.rows()}
        return f"{len(runs)} runs and {len(measures)} measures: every value is EvalHub's."


def agreement_row(
    run: str,
    name: str,
    other: OtherValues,
    values: Values,
    explain: Callable[[Iterable[str]], Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Return a row of an Agreement: the values of another program and EvalHub's for measure `name`.

    `values` has that measure alone. `explain` returns reasons for topics on which the two differ,
    such as different judgements.
    """
    (measure,) = values.measures
    ours, our_mean = values.of(measure), values.raw["means"][measure]["mean"]
    theirs = {topic: _value(value) for topic, value in other.by_topic.items()}
    their_mean = _value(other.mean)

    common = [topic for topic in theirs if topic in ours]
    gaps = [
        abs(theirs[topic] - ours[topic])  # type: ignore[operator]
        for topic in common
        if None not in (theirs[topic], ours[topic])
    ]

    differing = [topic for topic in common if not agree(theirs[topic], ours[topic])]
    reasons = _topic_reasons(theirs, values, measure, differing, explain)
    # Rounded values explain a rounded mean.
    if not (differing and _digits(theirs, ours)):
        aggregate = values.raw["means"][measure]["aggregate"]
        reasons += _mean_reasons(their_mean, our_mean, theirs, ours, aggregate)

    return {
        "run": run,
        "measure": name,
        "theirs": their_mean,
        "evalhub": our_mean,
        "topics": len(common),
        "differing": len(differing),
        "largest": max(gaps, default=None),
        "reason": "; ".join(reasons),
    }


def agree(theirs: float | None, ours: float | None) -> bool:
    """Return whether two values are the same but for rounding of the last digits, or both None."""
    if theirs is None or ours is None:
        return theirs is ours
    return abs(theirs - ours) <= TOLERANCE * max(1.0, abs(theirs), abs(ours))


def _value(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _topic_reasons(
    theirs: Mapping[str, float | None],
    values: Values,
    measure: str,
    differing: list[str],
    explain: Callable[[Iterable[str]], Mapping[str, str]] | None,
) -> list[str]:
    """Return why topics differ: each reason with the number of its topics."""
    ours = values.of(measure)
    if digits := _digits(theirs, ours):
        return [f"values there are rounded to {digits} decimals"] if differing else []

    undefined = {
        topic["topic_id"]: topic.get("undefined", {}).get(measure) for topic in values.raw["topics"]
    }
    explanations: Mapping[str, str] = {}
    if explain:
        defined = [topic for topic in differing if None not in (theirs[topic], ours[topic])]
        explanations = explain(defined)

    grouped: dict[str, list[str]] = {}
    for topic in differing:
        if ours[topic] is None:
            reason = f"no value here ({undefined[topic] or 'undefined'}), {theirs[topic]:g} there"
        elif theirs[topic] is None:
            reason = "no value there, where the topic is not judged"
        else:
            reason = explanations.get(topic, "")

        grouped.setdefault(reason, []).append(topic)

    reasons = [f"{_topics(topics)}: {reason}" for reason, topics in grouped.items() if reason]
    if unexplained := grouped.get(""):
        first = unexplained[0]
        reasons.append(
            f"{_topics(unexplained)}: {UNEXPLAINED}; {first} has {theirs[first]} there, "
            f"{ours[first]} here"
        )

    return reasons


def _mean_reasons(
    their_mean: float | None,
    our_mean: float | None,
    theirs: Mapping[str, float | None],
    ours: Mapping[str, float | None],
    aggregate: str,
) -> list[str]:
    """Return why means differ for another reason than their values."""
    if agree(their_mean, our_mean):
        return []
    if their_mean is None:
        return ["its mean there is not a number: topics without judgements are in it"]
    if our_mean is None:
        return ["no mean here"]

    defined = {topic: value for topic, value in theirs.items() if value is not None}
    total = sum(defined.values())
    aggregates = {"sum": total, "mean": total / len(defined)} if defined else {}
    exact = any(agree(their_mean, number) for number in aggregates.values())
    if not exact and (digits := _decimals([their_mean], [our_mean])):
        return [f"the mean there is rounded to {digits} decimals"]

    if not theirs:
        return ["only means are known there, so that no topic can be compared"]

    # The means may be over different topics.
    outside = [topic for topic in defined if topic not in ours]
    missing = [topic for topic, value in ours.items() if value is not None and topic not in defined]
    reasons = []
    if outside:
        reasons.append(f"{_topics(outside)}: in the mean there, not judged here")
    if missing:
        shared = [value for topic in defined if (value := ours.get(topic)) is not None]
        over = f", over which EvalHub's mean is {sum(shared) / len(shared):.6g}" if shared else ""
        reasons.append(
            f"the mean there is over {len(defined)} topics{over}, here over "
            f"{len(defined) + len(missing)}"
        )

    # Or they are aggregated differently.
    if not reasons:
        for name, number in aggregates.items():
            if agree(their_mean, number) and name != aggregate:
                reasons.append(f"it is the {name} over topics there, the {aggregate} here")

    return reasons


def _digits(theirs: Mapping[str, float | None], ours: Mapping[str, float | None]) -> int | None:
    """Return to how many decimals all of their values are rounded, or None."""
    their_values, our_values = [], []
    for topic, their_value in theirs.items():
        our_value = ours.get(topic)
        if their_value is not None and our_value is not None:
            their_values.append(their_value)
            our_values.append(our_value)

    return _decimals(their_values, our_values)


def _decimals(theirs: list[float], ours: list[float]) -> int | None:
    """Return the number of decimals to which their values are ours rounded, or None."""
    if all(map(agree, theirs, ours)):
        return None

    for digits in _DECIMALS:
        half = 0.5 * 10**-digits * (1 + 1e-6)
        if all(
            agree(round(value, digits), value) and abs(value - our_value) <= half
            for value, our_value in zip(theirs, ours, strict=True)
        ):
            return digits

    return None


def _topics(topics: list[str]) -> str:
    """Count topics and name the first ones: `2 topics (301, 302)`."""
    named = ", ".join(topics[:_MAX_NAMED]) + (", ..." if len(topics) > _MAX_NAMED else "")
    return f"{len(topics)} topic{'s' if len(topics) > 1 else ''} ({named})"
