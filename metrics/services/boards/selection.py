"""Select the evaluated runs that take part: all of a leaderboard, or some of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import ranked_evaluations
from metrics.services.queue.damage import check_files
from runs.models import Collection, Qrels, Team
from runs.models.submissions.runs import NO_RANKING

# What answers say of an evaluation and its run: of a thousand, every other column would take a
# tenth of a second.
_SHOWN = (
    "qrels_id",
    "scores",
    "state",
    "engine_version",
    "topics_answered",
    "run__tag",
    "run__team_id",
    "run__created_at",
    "run__version",
    "run__system_id",
    "run__sha256",
    "run__known_sha256",
    "run__size",
    "run__grouped",
)


def select_evaluations(
    *,
    collection: Collection,
    qrels: Qrels,
    scores: str,
    runs: list[str],
    most: int,
    measures: Iterable[Measure] = (),
    ranked: bool = False,
) -> list[Evaluation]:
    """Return the evaluations of these runs in the given order.

    Without any, return those of all runs that the collection's leaderboard ranks, by submission;
    runs are left out there that have no value under one of the `measures`: of which tables have
    none, or that have no ranking. `ranked` leaves these out in any case.

    Stale and withdrawn runs are left out. Raise StatisticsError for more than `most` of them, or a
    run that is not evaluated.
    """
    named = list(dict.fromkeys(runs))
    current = (
        Evaluation.objects.current(qrels, scores).evaluated()
        if named
        else ranked_evaluations(collection, qrels, scores).with_values_of(measures)
    )
    if ranked and not named:
        current = current.exclude(run__sha256=NO_RANKING)

    rows = (
        current.with_files().select_related("run").only(*_SHOWN).order_by("run__created_at", "run")
    )
    if len(named) > most:
        raise too_many_runs(most)

    if not named:
        evaluations = list(rows[: most + 1])
        if len(evaluations) > most:
            raise too_many_runs(most)
    else:
        by_run = {str(evaluation.run_id): evaluation for evaluation in rows.filter(run__in=named)}
        missing = [run for run in named if run not in by_run]
        if missing:
            message = (
                f"run {missing[0]} is not evaluated against the active judgements of "
                f"{collection.slug}"
            )
            raise StatisticsError(message, code="unknown_run", pointer="runs")
        evaluations = [by_run[run] for run in named]

    check_files(Evaluation, ((evaluation.pk, evaluation.same_files) for evaluation in evaluations))
    # Their collection and judgements are already loaded, and runs of few teams: none is read again
    # for every row.
    teams = Team.objects.in_bulk({evaluation.run.team_id for evaluation in evaluations})
    for evaluation in evaluations:
        evaluation.qrels, evaluation.run.collection = qrels, collection
        evaluation.run.team = teams[evaluation.run.team_id]

    return evaluations


def tested_measures(collection: Collection) -> list[str]:
    """Return the collection's measures that have values of topics to test, or else all."""
    names = []
    for name in collection.measures:
        with suppress(MeasureError):
            names += [] if collection.measure(name).pools else [name]
    return names or list(collection.measures)


def effectiveness_measures(collection: Collection) -> list[str]:
    """Return the tested measures except Judged, which does not say how good a run is."""
    tested = tested_measures(collection)
    names = [name for name in tested if collection.measure(name).definition.name != "Judged"]
    return names or tested


def too_many_runs(most: int) -> StatisticsError:
    return StatisticsError(
        f"at most {most:,} runs at once: name some with runs=", code="too_many_runs", pointer="runs"
    )
