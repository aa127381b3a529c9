"""Pieces that several answers have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from metrics.engine.grammar import Measure
from metrics.engine.steps import Matrix
from metrics.models import Evaluation
from metrics.services.values.values import is_stale
from runs.models import Run


def number(value: float | None) -> float | None:
    """NaN and infinity have no place in JSON: what has no value is null."""
    return value if value is not None and math.isfinite(value) else None


def numbers(values: Sequence[float]) -> list[float | None]:
    return [number(value) for value in values]


def coverage(evaluation: Evaluation) -> dict[str, int | None]:
    return {"answered": evaluation.topics_answered, "judged": evaluation.qrels.topics}


def read_from(evaluation: Evaluation) -> dict[str, Any]:
    """Which evaluation of which run an answer was made from."""
    return {
        "run": evaluation.run_id,
        "qrels": evaluation.qrels.version,
        "scores": evaluation.scores,
        "engine_version": evaluation.engine_version,
        "stale": is_stale(evaluation),
        "coverage": coverage(evaluation),
    }


def aggregates_of(measures: Iterable[Measure]) -> dict[str, str]:
    """What each measure's figure of a run is: mean, sum, geometric mean or pooled ratio."""
    return {measure.name: measure.aggregate_name for measure in measures}


def run_name(run: Run) -> dict[str, Any]:
    return {"id": run.pk, "team": run.team.slug, "tag": run.tag, "created_at": run.created_at}


def topic_curves(evaluation: Evaluation, curves: Matrix) -> list[dict[str, Any]]:
    """Every topic's curve with its name, in the order of the judgements."""
    rows = zip(evaluation.qrels.topic_ids, curves.tolist(), strict=True)
    return [{"topic_id": topic_id, "values": numbers(values)} for topic_id, values in rows]
