"""Values of another program beside EvalHub's, with the reason for every difference where it can be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .answers import Listed, Values

# Of a difference, relative to values above 1: what summing in another order leaves is far below.
TOLERANCE = 1e-9
UNEXPLAINED = "not explained"
_NAMED = 3
# Few decimals would fit values that differ for another reason.
_ROUNDED_TO = range(2, 9)


@dataclass(frozen=True)
class Theirs:
    """What another program computed of a run by one measure: the mean, and values by topic where it has them.

    None and NaN are values that it does not have.
    """

    mean: float | None
    by_topic: Mapping[str, float | None] = field(default_factory=dict)


class Agreement(Listed):
    """Both means for every run and measure, how far values by topic are apart, and why."""

    @property
    def differences(self) -> list[dict[str, Any]]:
        """The rows that have a reason: those on which both programs do not agree."""
        return [row for row in self.rows() if row["reason"]]

    def text(self) -> str:
        """Return a line for each difference, or one that says that there is none."""
        rows = self.rows()
        if not self.differences:
            runs, measures = (
                len({row["run"] for row in rows}),
                len({row["measure"] for row in rows}),
            )
            return f"{runs} runs and {measures} measures: every value is EvalHub's."

        return "\n".join(
            f"{row['run']}, {row['measure']}: {row['reason']}" for row in self.differences
        )


def beside(
    run: str,
    name: str,
    theirs: Theirs,
    values: Values,
    explain: Callable[[Iterable[str]], Mapping[str, str]] | None = None,
) -> dict[str, Any]:
    """Return a row of an Agreement: another program's values of measure `name`, beside those that EvalHub gives it.

    `values` has that measure alone. `explain` returns what it knows about topics on which the two
    differ: such as different judgements.
    """
    (measure,) = values.measures
    ours, mean = values.of(measure), values.raw["means"][measure]["mean"]
    known = {topic: _value(value) for topic, value in theirs.by_topic.items()}
    common = [topic for topic in known if topic in ours]
    apart = [
        abs(known[topic] - ours[topic])  # type: ignore[operator]
        for topic in common
        if None not in (known[topic], ours[topic])
    ]

    differing = [topic for topic in common if not agree(known[topic], ours[topic])]
    reasons = _of_topics(known, values, measure, differing, explain)
    if not (differing and _digits(known, ours)):
        reasons += _of_means(
            _value(theirs.mean), mean, known, ours, values.raw["means"][measure]["aggregate"]
        )

    return {
        "run": run,
        "measure": name,
        "theirs": _value(theirs.mean),
        "evalhub": mean,
        "topics": len(common),
        "differing": len(differing),
        "largest": max(apart, default=None),
        "reason": "; ".join(reasons),
    }


def agree(theirs: float | None, ours: float | None) -> bool:
    """Whether two values are the same but for rounding in the last digits; two that do not exist are."""
    if theirs is None or ours is None:
        return theirs is ours
    return abs(theirs - ours) <= TOLERANCE * max(1.0, abs(theirs), abs(ours))


def _value(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _of_topics(
    known: Mapping[str, float | None],
    values: Values,
    measure: str,
    differing: list[str],
    explain: Callable[[Iterable[str]], Mapping[str, str]] | None,
) -> list[str]:
    """Say why topics differ, each reason with the number of topics that it holds for."""
    ours = values.of(measure)
    if digits := _digits(known, ours):
        return [f"values there are rounded to {digits} decimals"] if differing else []

    undefined = {
        topic["topic_id"]: topic.get("undefined", {}).get(measure) for topic in values.raw["topics"]
    }
    told = (
        explain([topic for topic in differing if None not in (known[topic], ours[topic])])
        if explain
        else {}
    )

    grouped: dict[str, list[str]] = {}
    for topic in differing:
        if ours[topic] is None:
            why = f"no value here ({undefined[topic] or 'undefined'}), {known[topic]:g} there"
        elif known[topic] is None:
            why = "no value there, where the topic is not judged"
        else:
            why = told.get(topic, "")

        grouped.setdefault(why, []).append(topic)

    reasons = [f"{_topics(topics)}: {why}" for why, topics in grouped.items() if why]
    if unknown := grouped.get(""):
        first = unknown[0]
        reasons.append(
            f"{_topics(unknown)}: {UNEXPLAINED}; {first} has {known[first]} there, {ours[first]} "
            "here"
        )

    return reasons


def _of_means(
    theirs: float | None,
    mean: float | None,
    known: Mapping[str, float | None],
    ours: Mapping[str, float | None],
    aggregate: str,
) -> list[str]:
    """Say why means differ for another reason than the values that they are means of."""
    if agree(theirs, mean):
        return []
    if theirs is None:
        return ["its mean there is not a number: topics without judgements are in it"]
    if mean is None:
        return ["no mean here"]

    counted = [topic for topic, value in known.items() if value is not None]
    total = sum(value for value in known.values() if value is not None)
    averages = {"sum": total, "mean": total / len(counted)} if counted else {}
    if not any(agree(theirs, number) for number in averages.values()) and (
        digits := _decimals([theirs], [mean])
    ):
        return [f"the mean there is rounded to {digits} decimals"]

    if not known:
        return ["only means are known there, so that no topic can be compared"]

    outside = [topic for topic in counted if topic not in ours]
    left_out = [
        topic for topic, value in ours.items() if value is not None and topic not in counted
    ]
    reasons = []
    if outside:
        reasons.append(f"{_topics(outside)}: in the mean there, not judged here")

    if left_out:
        shared = [value for topic in counted if (value := ours.get(topic)) is not None]
        over = f", over which EvalHub's mean is {sum(shared) / len(shared):.6g}" if shared else ""
        reasons.append(
            f"the mean there is over {len(counted)} topics{over}, here over "
            f"{len(counted) + len(left_out)}"
        )

    if not reasons:
        others = [
            how for how, number in averages.items() if agree(theirs, number) and how != aggregate
        ]
        reasons += [f"it is the {how} over topics there, the {aggregate} here" for how in others]

    return reasons


def _digits(known: Mapping[str, float | None], ours: Mapping[str, float | None]) -> int | None:
    """Return to how many decimals all values were rounded, None where they were not."""
    both = [(known[topic], ours[topic]) for topic in known if topic in ours]
    pairs = [(theirs, own) for theirs, own in both if theirs is not None and own is not None]
    return _decimals([theirs for theirs, _ in pairs], [own for _, own in pairs])


def _decimals(theirs: list[float], ours: list[float]) -> int | None:
    """Return the number of decimals that makes of our values all of theirs, None where they are none or the same."""
    if all(map(agree, theirs, ours)):
        return None

    for digits in _ROUNDED_TO:
        half = 0.5 * 10**-digits * (1 + 1e-6)
        if all(
            agree(round(value, digits), value) and abs(value - own) <= half
            for value, own in zip(theirs, ours, strict=True)
        ):
            return digits

    return None


def _topics(topics: list[str]) -> str:
    """Name a few topics and count them all: `2 topics (301, 302)`."""
    named = ", ".join(topics[:_NAMED]) + (", ..." if len(topics) > _NAMED else "")
    return f"{len(topics)} topic{'s' if len(topics) > 1 else ''} ({named})"
