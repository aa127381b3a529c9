"""Examples of docs/sentences.md about parameters and costs: runs that say how they were made and what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from runs.models import Collection, Run
from tests.metrics.boards import describe

TOKEN = re.compile(
    r"\((?P<round>[^)]*)\)x(?P<rounds>\d+)|(?P<low>\d+)\.\.(?P<high>\d+)|(?P<value>\S+?)(?:x(?P<many>\d+))?(?=\s|$)"
)


def describe_runs(collection: Collection, texts: Sequence[str]) -> None:
    """Each of `said` is `name: values`, a value for each run, or `cost name: values`."""
    number = Run.objects.filter(collection=collection).count()
    metadata: list[dict[str, Any]] = [{} for _ in range(number)]
    costs: list[dict[str, Any]] = [{} for _ in range(number)]
    for line in texts:
        name, _, text = line.strip().partition(": ")
        parameters = list(values_of(text))
        assert len(parameters) == number, f"{line}: {len(parameters)} values for {number} runs"
        for place, value in enumerate(parameters):
            if value is None:
                continue
            if name.startswith("cost "):
                costs[place][name.removeprefix("cost ")] = {"value": value}
                continue
            *parts, last = name.split(".")
            inner = metadata[place]
            for part in parts:
                inner = inner.setdefault(part, {})
            inner[last] = value
    describe(collection, metadata, costs)


def values_of(text: str) -> Iterator[float | str | None]:
    """`1x3 a` is 1, 1, 1, a; `1..3` counts; `(1 2)x2` is 1, 2, 1, 2; `-` is no value."""
    for token in TOKEN.finditer(text):
        if token["rounds"]:
            yield from int(token["rounds"]) * list(values_of(token["round"]))
        elif token["low"]:
            yield from map(float, range(int(token["low"]), int(token["high"]) + 1))
        else:
            value = token["value"]
            number = re.fullmatch(r"-?\d*\.?\d+", value)
            yield from [None if value == "-" else float(value) if number else value] * int(
                token["many"] or 1
            )
