"""The replicates of a run on its page: the value of each, and how far they are apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.urls import reverse

from metrics.engine.measures.grammar import Measure
from metrics.exports.table import Cell, Column, Row, Table
from metrics.models import Evaluation
from metrics.services.boards.topic_selection import TopicSelection
from metrics.services.queue.status import statuses
from metrics.services.values.judged_views import means_of
from metrics.services.values.replicates import replicates_of
from metrics.tables import NOTHING, figure
from runs.models import Run
from runs.services.submissions.replicates import live_replicates


@dataclass(frozen=True)
class ReplicatesPart:
    """The table of replicates and a sentence on them."""

    table: Table
    sentence: str


def replicates_part(
    run: Run,
    evaluation: Evaluation | None,
    measure: Measure | None,
    reader: Any,
    selection: TopicSelection | None = None,
) -> ReplicatesPart:
    """Return the section; without an evaluation or a measure there are no values."""
    runs = list(live_replicates(run).select_related("collection", "team"))
    states = statuses(runs, reader)
    evaluations = {
        replicate.run: replicate
        for replicate in (replicates_of(evaluation) if evaluation else [])
        if replicate.evaluation and replicate.state == Evaluation.State.EVALUATED
    }
    means: dict[Any, float | None] = {}
    if evaluation and measure:
        keys = [replicate.evaluation for replicate in evaluations.values() if replicate.evaluation]
        if selection:
            values = selection.means_of(keys, [measure], evaluation.qrels, frozenset())
        else:
            values = means_of(keys, [measure], evaluation.qrels_id)

        means = {
            pk: values[replicate.evaluation, measure.name][0]
            for pk, replicate in evaluations.items()
            if replicate.evaluation
        }

    rows = []
    for replicate in runs:
        stored = evaluations.get(replicate.pk)
        answered = stored.topics_answered if stored else None
        mean = means.get(replicate.pk)
        address = reverse("run-page", args=[replicate.pk])
        rows.append(
            Row(
                [
                    Cell(replicate.tag, address=address),
                    *([figure(measure, mean)] if measure and evaluation else []),
                    NOTHING if answered is None else answered,
                    states[str(replicate.pk)].state,
                ]
            )
        )

    columns = [
        Column("", "Replicate", head=True),
        *([Column("", measure.name)] if measure and evaluation else []),
        Column("", "Topics answered"),
        Column("", "State", style=""),
    ]
    defined = [mean for mean in means.values() if mean is not None]
    sentence = "Values of this run are the means over its replicates for each topic."
    if measure and len(defined) > 1 and len(defined) == len(runs):
        low, high = figure(measure, min(defined)), figure(measure, max(defined))
        deviation = float(np.std(defined, ddof=1))
        sentence += (
            f" Their {measure.name} is from {low} to {high}, with a standard deviation of "
            f"{deviation:.4f}."
        )

    return ReplicatesPart(Table("replicates", columns, rows, [], "Replicates"), sentence)
