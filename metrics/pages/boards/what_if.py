"""The page of other gains, discounts and depths.

Sliders define a measure, and the page shows the leaderboard in its order; or it shows several
settings side by side.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.boards.what_if import what_if_figure
from metrics.engine.analysis.what_if import PRESETS
from metrics.engine.judgement.gains import MAX_GAIN, NAMED, GainMap
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.pages.parts import PageFigure, Query, fill, query_of, query_string
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.what_if import Combination, Place, WhatIf, WhatIfQuery, ask_what_if
from metrics.tables import NOTHING, mean_cell
from runs.errors import InvalidInput
from runs.models import Collection
from runs.parameters import choice_in
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

FAMILIES = ("nDCG", "DCG", "nCG", "CG", "RBP", "11pt_avg")
DISCOUNTS = {"log2": "log2(rank + 1)", "jk": "Järvelin and Kekäläinen", "session": "1 + log(rank)"}
# Presets by their names on the page.
_PRESETS = {
    "linear gains": "linear",
    "exponential gains": "exponential",
    "impatient user": "impatient",
    "patient user": "patient",
    "patient user, binary": "liberal",
    "RBP, binary": "binary",
}
# Parameters of several settings, read as by the API; those of the sliders belong to several
# settings where they are lists.
# What asks for several settings, read as by the API; what it shares with the sliders does where it
# is a list.
_SETTINGS, _LISTS = ("preset", "gains", "depths", "measures"), ("family", "dis", "b")
# At most this many levels have a slider.
_MOST_LEVELS = 6
# Rows of the table, as many as the chart has.
_ROWS = 200
_GAIN_TOP = 20.0
# The highest level with an exponential gain that a slider reaches.
_MOST_EXPONENTIAL = 16


@dataclass(frozen=True)
class Slider:
    """One number to choose: `name` is its parameter, `step` the distance between two values."""

    name: str
    label: str
    low: float
    high: float
    step: float
    value: float

    @property
    def attributes(self) -> dict[str, str]:
        return {name: f"{getattr(self, name):.15g}" for name in ("low", "high", "step", "value")}


@dataclass(frozen=True)
class Controls:
    """The values of the sliders, and the measure that they define."""

    family: str
    discount: str
    gains: list[Slider]
    base: Slider
    depth: Slider
    persistence: Slider
    shortcuts: dict[str, str] = field(default_factory=dict)

    @property
    def measure(self) -> Measure:
        if self.family == "11pt_avg":
            return parse_measure(self.family)

        gains = [slider.value for slider in self.gains]
        levels = [int(slider.name.removeprefix("g")) for slider in self.gains]
        parameters = [_gains(levels, gains)]

        if self.family == "RBP":
            binary = gains and set(gains) == {1.0}
            parameters = [f"p={self.persistence.value:g}", *(["rel=1"] if binary else parameters)]
        elif self.family.endswith("DCG") and self.discount != "log2":
            parameters += [f"dis='{self.discount}'", f"b={self.base.value:g}"]

        return parse_measure(f"{self.family}({','.join(parameters)})@{self.depth.value:g}")


# To sort a thousand runs again takes a third of a second, and readers come back to an address or
# share it.
@page
@reads("family", "dis", "b", "depth", "p", *_SETTINGS, numbered="g")
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def what_if_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the leaderboard of a collection by a measure defined with sliders, or by several
    settings, with the official one."""
    collection = visible_collection(request, slug)
    query = query_of(request)
    several = any(query.get(name) for name in _SETTINGS) or any(
        "," in query.get(name, "") for name in _LISTS
    )
    context: dict[str, Any] = {
        "collection": collection,
        "families": FAMILIES,
        "discounts": DISCOUNTS,
        "presets": PRESETS,
        "chosen_presets": query.get("preset", "").split(","),
        "query": query if several else {},
        "several": several,
    }

    status = fill(context, "controls", _controls, request, collection, {} if several else query)

    if "controls" in context and several:
        status = fill(context, "answer", _settings_answer, collection, query)
    elif "controls" in context:
        status = fill(context, "answer", _answer, collection, context["controls"])

    return render(request, "metrics/what_if.html", context, status=status)


def _controls(request: HttpRequest, collection: Collection, query: Query) -> Controls:
    check_scores(request, collection)
    qrels = active_qrels(collection)
    # The levels above 0 that occur, lowest first.
    levels = sorted(int(level) for level in qrels.levels if int(level) > 0)[:_MOST_LEVELS]
    # The first view differs from the official leaderboard, whose gains are the levels.
    if not any(query.values()) and max(levels, default=0) <= _MOST_EXPONENTIAL:
        query = _settings(parse_measure(PRESETS["exponential"]), levels)
    gains = {level: _number(query, f"g{level}", float(level), 0, MAX_GAIN) for level in levels}
    names = {f"g{level}" for level in levels}

    unknown = [name for name in query if re.fullmatch(r"g[0-9]+", name) and name not in names]
    if unknown:
        message = (
            f"{unknown[0][:40]} is not the gain of a level here; "
            f"the levels are {', '.join(map(str, levels))}"
        )
        raise InvalidInput(message, code="unknown_parameter", pointer=unknown[0])

    # A gain beyond the usual scale extends it to the next power of ten.
    highest = max(gains.values(), default=0)
    top = _GAIN_TOP if highest <= _GAIN_TOP else 10.0 ** math.ceil(math.log10(highest))

    titles = {}
    for level in levels:
        label = collection.level_labels.get(str(level))
        titles[level] = f"gain of level {level}, {label}" if label else f"gain of level {level}"

    return Controls(
        choice_in(query, "family", FAMILIES) or "nDCG",
        choice_in(query, "dis", tuple(DISCOUNTS)) or "log2",
        [Slider(f"g{level}", titles[level], 0, top, 0.5, gain) for level, gain in gains.items()],
        Slider("b", "base of the logarithm", 1.5, 20, 0.5, _number(query, "b", 2, 1.5, 20)),
        Slider("depth", "cutoff rank", 1, 200, 1, float(int(_number(query, "depth", 10, 1, 200)))),
        Slider("p", "persistence p", 0.05, 0.95, 0.05, _number(query, "p", 0.8, 0.05, 0.95)),
        # The presets as query strings of this page.
        {
            name: urlencode(_settings(parse_measure(PRESETS[preset]), levels))
            for name, preset in _PRESETS.items()
        },
    )


def _number(query: Query, name: str, default: float, low: float, high: float) -> float:
    # A text that is no plain number is treated as one out of range.
    text = query.get(name) or f"{default:.15g}"
    try:
        value = float(text) if text.isascii() and "_" not in text and len(text) < 20 else low - 1
    except ValueError:
        value = low - 1

    if not low <= value <= high:
        raise InvalidInput(
            f"{name}={text[:40]}: {name} is a number from {low:g} to {high:g}", pointer=name
        )

    return value


def _settings(measure: Measure, levels: list[int]) -> dict[str, str]:
    """Return the positions of the sliders for a measure; those at their default are left out."""
    parameters = measure.parameters
    gains = np.ones(len(levels))
    if not parameters.get("rel"):
        gains = parameters["gains"].of(np.array(levels, np.int64))

    settings = {"family": measure.definition.name}
    if measure.cutoff:
        settings["depth"] = f"{measure.cutoff}"

    settings |= {
        f"g{level}": f"{gain:.15g}" for level, gain in zip(levels, gains.tolist(), strict=True)
    }
    return settings | {
        name: f"{parameters[name]}" for name in ("dis", "b", "p") if name in parameters
    }


def _gains(levels: list[int], gains: list[float]) -> str:
    """Return the gains of the sliders as a parameter.

    A name that fits all of them is preferred, as it then applies to every level; otherwise it is
    the list of gains.
    """
    for name in NAMED:
        if GainMap(name).of(np.array(levels, np.int64)).tolist() == gains:
            return f"gains={name}"
    pairs = zip(levels, gains, strict=True)
    return "gains='" + ",".join(f"{level}:{gain:.15g}" for level, gain in pairs) + "'"


@dataclass(frozen=True)
class MovedLine:
    """A run on the re-ordered leaderboard: its rank, its official rank, and both means."""

    place: Place
    official: Place
    mean: str
    official_mean: str

    @property
    def change(self) -> int:
        """Return the ranks gained; 0 for a run without a rank on one of the leaderboards."""
        if not (self.place.rank and self.official.rank):
            return 0
        return self.official.rank - self.place.rank

    @property
    def steps(self) -> int:
        return abs(self.change)


def _answer(collection: Collection, controls: Controls) -> dict[str, Any]:
    measure = controls.measure
    answer = ask_what_if(collection=collection, query=WhatIfQuery(measures=[measure]))
    combination = answer.combinations[0]
    figure = what_if_figure(answer, combination)
    arguments = {"collection": collection.slug}

    return {
        "measure": measure,
        "official": answer.official.measure,
        "lines": _lines(answer, combination),
        "runs": len(combination.places),
        "tau": None if combination.tau is None else f"{combination.tau:.3f}",
        "coefficient": "tau-b" if answer.official.ties or combination.ties else "tau",
        "qrels": answer.qrels,
        "cautions": [caution.message for caution in answer.cautions],
        "chart": PageFigure(figure, "collection-chart", arguments, {"measures": measure.name}),
    }


def _lines(answer: WhatIf, combination: Combination) -> list[MovedLine]:
    before = {place.run.pk: place for place in answer.official.places}

    judged = answer.qrels.topics

    def text(measure: Measure, place: Place) -> str:
        return mean_cell(measure, (place.mean, place.topics), judged).text

    lines = []
    for place in combination.places[:_ROWS]:
        official = before[place.run.pk]
        lines.append(
            MovedLine(
                place=place,
                official=official,
                mean=text(combination.measure, place),
                official_mean=text(answer.official.measure, official),
            )
        )

    return lines


@dataclass(frozen=True)
class SettingColumn:
    """One of several settings: its preset or measure, and Kendall's tau of its order with the
    official one and with that of each setting."""

    name: str
    measure: Measure
    tau_official: str
    tau: list[str]


@dataclass(frozen=True)
class SettingsLine:
    """A run in the official order, and its rank and mean under each setting."""

    official: Place
    official_mean: str
    places: list[tuple[Place, str]]


def _settings_answer(collection: Collection, query: Query) -> dict[str, Any]:
    sliders = [name for name in query if re.fullmatch(r"depth|p|g[0-9]+", name) and query[name]]
    if sliders:
        message = (
            f"{sliders[0][:40]} belongs to the sliders; several settings are described by "
            f"{', '.join((*_SETTINGS, *_LISTS))}"
        )
        raise InvalidInput(message, code="unknown_parameter", pointer=sliders[0])

    answer = ask_what_if(collection=collection, query=WhatIfQuery.read(query, collection))

    def text(measure: Measure, place: Place) -> str:
        return mean_cell(measure, (place.mean, place.topics), answer.qrels.topics).text

    columns = [
        SettingColumn(
            name=answer.query.presets.get(board.measure, board.measure.name),
            measure=board.measure,
            tau_official=NOTHING if board.tau is None else f"{board.tau:.3f}",
            tau=[NOTHING if math.isnan(tau) else f"{tau:.3f}" for tau in row],
        )
        for board, row in zip(answer.combinations, answer.tau.tolist(), strict=True)
    ]

    orders = [
        (board.measure, {place.run.pk: place for place in board.places})
        for board in answer.combinations
    ]

    lines = []
    for official in answer.official.places[:_ROWS]:
        places = [(places[official.run.pk], measure) for measure, places in orders]
        lines.append(
            SettingsLine(
                official=official,
                official_mean=text(answer.official.measure, official),
                places=[(place, text(measure, place)) for place, measure in places],
            )
        )

    ties = answer.official.ties or any(board.ties for board in answer.combinations)
    return {
        "official": answer.official.measure,
        "columns": columns,
        "lines": lines,
        "runs": len(answer.runs),
        "coefficient": "tau-b" if ties else "tau",
        "cautions": [caution.message for caution in answer.cautions],
        "address": query_string(query),
    }
