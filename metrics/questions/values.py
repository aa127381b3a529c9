"""The parameters of the values and curves of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metrics.engine.curves import MAX_DEPTH, curve_measures
from metrics.engine.errors import MeasureError
from metrics.engine.gains import GainMap
from metrics.engine.measures.definition import (
    INTERPOLATION,
    LEVEL,
    RECALL_ROUNDING,
    REL,
    Parameter,
    check_interpolation,
)
from metrics.engine.precision_recall import MAX_POINTS
from metrics.models import Evaluation
from metrics.questions.boards import board_query
from metrics.questions.parameters import (
    MAX_VERSION,
    choice_in,
    flag_in,
    measures_in,
    one_of,
    pointed,
    scores_in,
    several_in,
    share_in,
    word_in,
)
from metrics.questions.run_ids import run_ids_in
from metrics.services.values.curves import CurveQuery, RecallQuery
from metrics.services.values.curves_together import TogetherQuery
from metrics.services.values.matrix import LAYOUTS, MatrixQuery
from metrics.services.values.values import find_evaluation
from runs.api.parameters import integer_in
from runs.errors import InvalidInput
from runs.models import Collection, Run

MAX_VALUES = 1_000_000
_DEPTH = 100


def evaluation_in(parameters: Mapping[str, str], run: Run) -> Evaluation:
    """Return the evaluation of the run to read, by `qrels` and `scores`."""
    version = integer_in(parameters, "qrels", 0, 0, MAX_VERSION) or None
    return find_evaluation(run=run, scores=scores_in(parameters), version=version)


def curve_query(parameters: Mapping[str, str]) -> CurveQuery:
    """Return the query of curves. `measure` is read if `measures` is not given, as for the address of one curve."""
    name = one_of(parameters, "measures", "measure")
    try:
        measures = curve_measures(parameters.get(name) or "nDCG")
    except MeasureError as error:
        raise pointed(error, name) from error
    ranks = sorted(
        several_in(
            parameters, "ranks", lambda text: integer_in({"ranks": text}, "ranks", 0, 1, MAX_DEPTH)
        )
    )
    depth = integer_in(parameters, "depth", max([_DEPTH, *ranks]), 1, MAX_DEPTH)
    if ranks and ranks[-1] > depth:
        message = f"rank {ranks[-1]} lies beyond depth={depth}: name other ranks, or a larger depth"
        raise InvalidInput(message, pointer="ranks")
    return CurveQuery(
        measures=measures,
        depth=depth,
        ranks=tuple(ranks),
        confidence=share_in(parameters, "confidence", 0.95),
        per_topic=flag_in(parameters, "per_topic"),
        with_readings=flag_in(parameters, "readings"),
    )


def together_query(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> TogetherQuery:
    """Return which runs to show: those of `runs`, or those that `filter`, as on a leaderboard, selects."""
    runs, scores, text = (
        run_ids_in(parameters),
        scores_in(parameters),
        parameters.get("filter", "").strip(),
    )
    if runs and text:
        message = "runs names the runs and filter selects them from the leaderboard: give only one of them"
        raise InvalidInput(message, code="repeated_parameter", pointer="filter")
    asked = {"filter": text, "scores": scores or ""}
    return TogetherQuery(runs, board_query(asked, collection, reader) if text else None, scores)


def recall_query(parameters: Mapping[str, str]) -> RecallQuery:
    """Return the query of precision-recall curves. `rel` and `level` are levels separated by commas, or all; `gains`
    are gain maps separated by semicolons; the default is rel=1."""
    interp, rounding = (word_in(parameters, known) for known in (INTERPOLATION, RECALL_ROUNDING))
    problem = check_interpolation({"interp": interp, "rounding": rounding})
    if problem:
        raise MeasureError(problem, code="bad_parameter", pointer="rounding")
    gains = several_in(parameters, "gains", GainMap.parse, ";")
    if gains and interp == "interval":
        message = (
            "gains has the highest generalised precision at that recall or more: leave interp out"
        )
        raise MeasureError(message, code="bad_parameter", pointer="interp")
    rel = parameters.get("rel") or ("" if parameters.get("level") or gains else "1")
    return RecallQuery(
        points=integer_in(parameters, "points", 11, 2, MAX_POINTS),
        levels=_levels_in({"rel": rel}, REL),
        alone=_levels_in(parameters, LEVEL),
        gains=gains,
        interp=interp,
        rounding=rounding,
        confidence=share_in(parameters, "confidence", 0.95),
        per_topic=flag_in(parameters, "per_topic"),
    )


def _levels_in(parameters: Mapping[str, str], known: Parameter) -> list[int] | None:
    if parameters.get(known.name) == "all":
        return None
    return several_in(parameters, known.name, lambda level: int(known.read(known.name, level)))


def matrix_query(parameters: Mapping[str, str], collection: Collection) -> MatrixQuery:
    return MatrixQuery(
        measures=measures_in(parameters, "measures", collection.measures, collection.documents),
        runs=run_ids_in(parameters),
        scores=scores_in(parameters),
    )


def layout_in(parameters: Mapping[str, str], query: MatrixQuery) -> str:
    """Return one of LAYOUTS. Raise InvalidInput for a wide table of several measures, for which it has no columns."""
    layout = choice_in(parameters, "layout", LAYOUTS) or LAYOUTS[0]
    if layout == "wide" and len(query.measures) > 1:
        message = f"layout=wide is a table of one measure; {len(query.measures)} requested: name one with measures="
        raise InvalidInput(message, pointer="layout")
    return layout


def check_size(values: int, pointer: str = "per_topic") -> None:
    """Raise InvalidInput if the curves of all topics, or of all runs, make too long an answer."""
    if values > MAX_VALUES:
        whose = "of single topics " if pointer == "per_topic" else ""
        message = f"{values:,} values {whose}requested; the limit is {MAX_VALUES:,}: use fewer ranks or curves"
        raise InvalidInput(message, code="too_many_values", pointer=pointer)
