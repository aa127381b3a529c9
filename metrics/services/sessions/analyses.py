"""Analyse session sets: mean curves, last queries against others, lengths, reformulations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import (
    LengthTable,
    MeanCurves,
    Which,
    length_table,
    mean_query_curves,
    reformulations,
    width,
)
from metrics.engine.sessions.grammar import setting_of
from metrics.engine.sessions.settings import Setting
from metrics.models import SessionEvaluation, StoredSessionCurves
from metrics.services.question import Flag, Integer, Question, nested, parameter
from metrics.services.queue.damage import give_up_evaluations
from metrics.services.sessions.curves import (
    SessionCurves,
    compute_curves,
    has_stored_curves,
    unpack_curves,
)
from metrics.services.sessions.judged_sets import begin_sessions, check_means
from metrics.services.sessions.parameters import VectorMeasure
from metrics.services.sessions.values import ChosenSessions, SessionSelection
from runs.errors import InvalidInput
from runs.models import SessionSet

WHICH: tuple[Which, ...] = ("last", "others", "best", "all")
# The most values in one answer.
MAX_FIGURES = 1_000_000
# This many components of a vector are as much work as a plain measure of a query.
_COMPONENTS = 8


@dataclass(frozen=True)
class QueryCurvesQuery(Question):
    """A measure that is a vector, and a selection of sessions."""

    measure: Measure = parameter(VectorMeasure())
    selection: SessionSelection = nested(SessionSelection)


@dataclass(frozen=True)
class SessionCurvesQuery(QueryCurvesQuery):
    """The same with the length of the curves."""

    length: int | None = parameter(Integer("components; default: the longest session's"))
    per_session: bool = parameter(Flag("true: every session's own vector as well"))


@dataclass(frozen=True)
class QueryCurves:
    """Mean curves of queries by their position.

    `changed` has for each system how many reformulations gained, lost and did neither.
    """

    curves: dict[Which, MeanCurves]
    changed: list[tuple[int, int, int]]


def read_session_curves(
    *,
    chosen: ChosenSessions,
    measure: Measure,
    length: int | None = None,
    per_session: bool = False,
    least: int = 1,
) -> SessionCurves:
    """Return the curves of a measure that is a vector, with `length` components.

    By default it has all. Those of a whole set come from the store where it has them.

    The means are those of the chosen sessions with at least `least` queries.

    Raise MeasureError for a measure without a vector, InvalidInput if the curves are too long for
    an answer.
    """
    setting, _ = setting_of(measure)
    view, groups = chosen.judged.view, len(chosen.judged.systems)
    longest = width(view, setting)
    length = min(length or longest, longest)
    _check_figures(2 * groups * length, "length")

    if per_session:
        _check_figures(view.n_queries * setting.depth, "per_session")

    if has_stored_curves(measure) and chosen.judged is chosen.whole and least == 1:
        evaluation = chosen.evaluation
        row = StoredSessionCurves.objects.filter(pk=evaluation.pk).first()
        if row and not row.is_sound(evaluation.qrels_id):
            raise give_up_evaluations(SessionEvaluation, [evaluation.pk], "curves")

        curves = row and unpack_curves(row, measure, length)
        if curves and (curves.vectors or not per_session):
            return curves if per_session else replace(curves, vectors=None)

    _check_components(chosen, setting)
    return compute_curves(chosen.judged, measure, length, least=least, per_session=per_session)


def read_query_curves(*, chosen: ChosenSessions, measure: Measure) -> QueryCurves:
    """Return the mean vectors of single queries, and the gains and losses of reformulations.

    Vectors have ranks 1 to X.
    """
    setting, normalised = setting_of(measure)
    view, judged = chosen.judged.view, chosen.judged
    _check_components(chosen, setting)
    _check_figures(len(WHICH) * len(judged.systems) * setting.depth, "measure")
    group, groups = judged.system, len(judged.systems)
    curves = {which: mean_query_curves(view, setting, which, group, groups) for which in WHICH}
    changes = reformulations(view, setting, normalised=normalised is not None)
    owner = group[view.session]
    parts = (
        np.bincount(owner[part], minlength=groups).tolist()
        for part in (changes.gained, changes.lost, changes.same)
    )

    return QueryCurves(curves, list(zip(*parts, strict=True)))


def read_lengths(*, chosen: ChosenSessions) -> LengthTable:
    """Return the sessions of each system by their number of queries."""
    return length_table(chosen.judged.view, chosen.judged.system, len(chosen.judged.systems))


def system_label(session_set: SessionSet, system: str) -> str:
    """Return the name of a system in a chart of its set.

    A system that the log does not name has the set's tag.
    """
    return system or session_set.tag


def system_places(evaluation: SessionEvaluation) -> dict[str, int]:
    """Return the place of a set's systems among those of the collection, by submission.

    It decides their colour.

    Withdrawn sets keep their place and later ones follow them, so that the colour of a system never
    changes.
    """
    check_means([evaluation])
    session_set = evaluation.session_set
    names: dict[str, None] = {}

    sets = SessionSet.objects.filter(
        collection=session_set.collection_id, created_at__lte=session_set.created_at
    ).exclude(pk=session_set.pk)
    for systems, tag in sets.order_by("created_at", "pk").values_list("systems", "tag"):
        names.update(dict.fromkeys(systems or [tag]))

    names.update(
        dict.fromkeys(system_label(session_set, system) for system in evaluation.means["systems"])
    )
    return {name: place for place, name in enumerate(names)}


def _check_components(chosen: ChosenSessions, setting: Setting) -> None:
    components = chosen.judged.view.n_queries * setting.depth
    begin_sessions(components / _COMPONENTS, "measure")


def _check_figures(figures: int, pointer: str) -> None:
    if figures > MAX_FIGURES:
        message = (
            f"{figures:,} values requested; the limit is {MAX_FIGURES:,}: name a system, a "
            "topic or fewer places"
        )
        raise InvalidInput(message, code="too_many_values", pointer=pointer)
