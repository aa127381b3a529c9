"""What if gains, discounts or depths were others: a page of sliders, and the board in the order that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.boards.what_if import what_if_figure
from metrics.engine.errors import InvalidInput
from metrics.engine.grammar import Measure, parse_measure
from metrics.pages.parts import Query, ShownFigure, fill, query_of
from metrics.questions.parameters import choice_in
from metrics.questions.unchanged import unchanged_page
from metrics.services.boards.fingerprints import Fingerprint, of_boards
from metrics.services.boards.leaderboard import active_qrels
from metrics.services.boards.what_if import Combination, Place, WhatIf, WhatIfQuery, ask_what_if
from metrics.tables import mean_cell
from runs.api.access import check_scores, visible_collection
from runs.models import Collection, Qrels, can_see_scores
from runs.views import page

FAMILIES = ("nDCG", "DCG", "nCG", "CG", "RBP")
DISCOUNTS = {"log2": "log2(rank + 1)", "jk": "Järvelin and Kekäläinen", "session": "1 + log(rank)"}
# So many levels have a slider of their own; whatever is above the last of them gains its level.
_MOST_LEVELS = 6
_GAIN_TOP, _GAIN_TOP_WIDE = 20.0, 100.0


@dataclass(frozen=True)
class Slider:
    """One number to choose: `name` is that of its parameter, `step` the distance of two choices."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float

    @property
    def attributes(self) -> dict[str, str]:
        return {name: f"{getattr(self, name):g}" for name in ("low", "high", "step", "value")}


@dataclass(frozen=True)
class Controls:
    """What the sliders say, and the measure that they make."""

    family: str
    discount: str
    gains: list[Slider]
    base: Slider
    depth: Slider
    persistence: Slider
    shortcuts: dict[str, str] = field(default_factory=dict)

    @property
    def measure(self) -> Measure:
        gains = ",".join(f"{slider.name.removeprefix('g')}:{slider.value:g}" for slider in self.gains)
        given = [f"gains='{gains}'"] if gains else []
        if self.family == "RBP":
            given.insert(0, f"p={self.persistence.value:g}")
        elif self.family.endswith("DCG") and self.discount != "log2":
            given += [f"dis='{self.discount}'", f"b={self.base.value:g}"]
        return parse_measure(f"{self.family}({','.join(given)})@{self.depth.value:g}")


def _fingerprint(request: HttpRequest, slug: str) -> Fingerprint | None:
    """None where the judgements are blind. To order a thousand runs takes a second: an order is asked for again when
    somebody comes back to it, or sends its address to others."""
    found = visible_collection(request, slug)
    return of_boards(found) if can_see_scores(request.user, found) else None


@page
@unchanged_page(_fingerprint)
def what_if_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The board of a collection by a measure made with sliders, beside the official one."""
    collection = visible_collection(request, slug)
    query = query_of(request)
    context: dict[str, Any] = {"collection": collection, "families": FAMILIES, "discounts": DISCOUNTS}
    status = fill(context, "controls", _controls, request, collection, query)
    if "controls" in context:
        status = fill(context, "answer", _answer, collection, context["controls"])
    return render(request, "metrics/what_if.html", context, status=status)


def _controls(request: HttpRequest, collection: Collection, query: Query) -> Controls:
    check_scores(request, collection)
    qrels = active_qrels(collection)
    levels = _levels(qrels)
    gains = {level: _number(query, f"g{level}", float(level), 0, _GAIN_TOP_WIDE) for level in levels}
    top = _GAIN_TOP if max(gains.values(), default=0) <= _GAIN_TOP else _GAIN_TOP_WIDE
    labels = collection.level_labels
    return Controls(
        choice_in(query, "family", FAMILIES) or "nDCG",
        choice_in(query, "dis", tuple(DISCOUNTS)) or "log2",
        [Slider(f"g{level}", _level_label(level, labels), 0, top, 0.5, gain) for level, gain in gains.items()],
        Slider("b", "base of the logarithm", 1.5, 20, 0.5, _number(query, "b", 2, 1.5, 20)),
        Slider("depth", "down to rank", 1, 200, 1, float(int(_number(query, "depth", 10, 1, 200)))),
        Slider("p", "persistence p", 0.05, 0.95, 0.05, _number(query, "p", 0.8, 0.05, 0.95)),
        _shortcuts(levels),
    )


def _levels(qrels: Qrels) -> list[int]:
    """The levels above 0 that occur, lowest first."""
    return sorted(int(level) for level in qrels.levels if int(level) > 0)[:_MOST_LEVELS]


def _level_label(level: int, labels: Mapping[str, Any]) -> str:
    text = str(labels.get(str(level), ""))
    return f"gain of level {level}" + (f", {text}" if text else "")


def _number(query: Query, name: str, default: float, low: float, high: float) -> float:
    text = query.get(name) or f"{default:g}"
    try:
        value = float(text) if text.isascii() and "_" not in text and len(text) < 20 else low - 1
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise InvalidInput(f"{name}={text[:40]}: {name} is a number from {low:g} to {high:g}", pointer=name)
    return value


def _shortcuts(levels: list[int]) -> dict[str, str]:
    """Settings that the literature has names for, as query strings."""
    exponential = "&".join(f"g{level}={min(2.0**level - 1, _GAIN_TOP_WIDE):g}" for level in levels)
    steep = "&".join(f"g{level}={min(10.0 ** (level - 1), _GAIN_TOP_WIDE):g}" for level in levels)
    binary = "&".join(f"g{level}=1" for level in levels)
    return {
        "linear gains": "family=nDCG",
        "exponential gains": f"family=nDCG&{exponential}",
        "impatient user": f"family=nDCG&{steep}&dis=jk&b=2&depth=30",
        "patient user": "family=nDCG&dis=jk&b=10&depth=200",
        "RBP, binary": f"family=RBP&p=0.8&{binary}&depth=100",
    }


@dataclass(frozen=True)
class MovedLine:
    """A run on the re-ordered board: where it stands, where it stood, and both means."""

    place: Place
    official: Place
    mean: str
    official_mean: str

    @property
    def change(self) -> int:
        """Ranks gained; 0 where one of the boards has none for the run."""
        return (self.official.rank or 0) - (self.place.rank or 0) if self.place.rank and self.official.rank else 0

    @property
    def steps(self) -> int:
        return abs(self.change)


def _answer(collection: Collection, controls: Controls) -> dict[str, Any]:
    measure = controls.measure
    answer = ask_what_if(collection=collection, query=WhatIfQuery([measure]))
    combination = answer.combinations[0]
    figure = what_if_figure(answer, combination)
    arguments = {"collection": collection.slug}
    return {
        "measure": measure,
        "official": answer.official.measure,
        "lines": _lines(answer, combination),
        "tau": None if combination.tau is None else f"{combination.tau:.3f}",
        "coefficient": "tau-b" if answer.official.ties or combination.ties else "tau",
        "qrels": answer.qrels,
        "shown": ShownFigure(figure, "collection-chart", arguments, {"measures": measure.name}),
    }


def _lines(answer: WhatIf, combination: Combination) -> list[MovedLine]:
    before = {place.run.pk: place for place in answer.official.places}
    judged = answer.qrels.topics

    def text(measure: Measure, place: Place) -> str:
        return mean_cell(measure, (place.mean, place.topics), judged).text

    return [
        MovedLine(
            place, before[place.run.pk], text(combination.measure, place),
            text(answer.official.measure, before[place.run.pk]),
        )
        for place in combination.places
    ]  # fmt: skip
