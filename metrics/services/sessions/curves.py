"""Read curves of session sets: sDCG and nsDCG as stored by workers, others from judged views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard

from metrics.engine.compiled.packing import pack, unpack
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import (
    MeanCurves,
    mean_ideal_curves,
    mean_session_curves,
    width,
)
from metrics.engine.sessions.grammar import parse_session_measure, setting_of
from metrics.engine.sessions.vectors import (
    Matrix,
    SessionVectors,
    normalised_vectors,
    session_vectors,
)
from metrics.models import StoredSessionCurves
from metrics.services.sessions.judged_sets import JudgedSet

# The measures of sets that workers store curves of; a set with more components of vectors has those
# of its systems only.
STORED = ("sDCG", "nsDCG")
MAX_COMPONENTS = 1_000_000


@dataclass(frozen=True)
class SessionCurves:
    """The mean curves of each system's sessions and of their ideals.

    It has each session's own vector, if requested.

    `ideal` of a normalised measure is 1 throughout.
    """

    curves: MeanCurves
    ideal: Matrix
    vectors: SessionVectors | None


def compute_curves(
    judged: JudgedSet, measure: Measure, length: int, *, least: int = 1, per_session: bool
) -> SessionCurves:
    """Return the curves of a measure with `length` components.

    The means are those of sessions with at least `least` queries. Raise MeasureError for a
    measure without a vector.
    """
    setting, normalised = setting_of(measure)
    view, group, groups = judged.view, judged.system, len(judged.systems)
    curves = mean_session_curves(
        view, setting, group, groups, normalised=normalised, least=least, length=length
    )

    if normalised:
        ideal = np.ones_like(curves.values)
    else:
        ideal = mean_ideal_curves(view, setting, group, groups, least=least, length=length).values

    vectors = None
    if per_session:
        vectors = (
            normalised_vectors(view, setting, *normalised)
            if normalised
            else session_vectors(view, setting)
        )

    return SessionCurves(curves, ideal, vectors)


def has_stored_curves(measure: Measure) -> bool:
    """Return whether workers store the curves of a measure.

    These are the measures of STORED without parameters that change them.
    """
    name = measure.definition.name
    return name in STORED and setting_of(measure) == setting_of(parse_session_measure(name))


def stored_curves(evaluation_id: int, judged: JudgedSet) -> StoredSessionCurves:
    """Return the curves of a set as a row, neither sealed nor saved."""
    arrays: list[tuple[str, Any]] = []
    for name in STORED:
        measure = parse_session_measure(name)
        setting, _ = setting_of(measure)
        curves = compute_curves(
            judged,
            measure,
            width(judged.view, setting),
            per_session=judged.view.n_queries * setting.depth <= MAX_COMPONENTS,
        )

        arrays += [
            (f"{name} mean", curves.curves.values.ravel()),
            (f"{name} count", curves.curves.count),
            (f"{name} ideal", curves.ideal.ravel()),
        ]

        if curves.vectors:
            arrays += [
                (f"{name} values", curves.vectors.values),
                (f"{name} starts", curves.vectors.starts),
            ]

    content = zstandard.compress(pack({}, arrays))
    return StoredSessionCurves(evaluation_id=evaluation_id, content=content)


def arrays_of(row: StoredSessionCurves) -> dict[str, Any]:
    """Return what is stored in a row, by its name."""
    return unpack(zstandard.decompress(bytes(row.content)), "stored curves of sessions")[1]


def unpack_curves(row: StoredSessionCurves, measure: Measure, length: int) -> SessionCurves:
    """Return the curves of a stored measure from a sound row, without vectors where it has none."""
    arrays, name = arrays_of(row), measure.definition.name
    count = arrays[f"{name} count"]
    mean, ideal = (arrays[f"{name} {part}"].reshape(len(count), -1) for part in ("mean", "ideal"))
    vectors = None

    if f"{name} values" in arrays:
        vectors = SessionVectors(arrays[f"{name} values"], arrays[f"{name} starts"])

    return SessionCurves(MeanCurves(mean[:, :length], count), ideal[:, :length], vectors)
