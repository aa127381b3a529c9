"""The runs that are chosen on a leaderboard; the address names them, on whatever page they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from metrics.engine.errors import EvalHubError
from metrics.models import Evaluation
from metrics.pages.boards.questions import hidden_fields, with_shown_measures
from metrics.pages.parts import Query, query_string
from metrics.questions.parameters import scores_in
from metrics.services.boards.entries import EVERY
from metrics.services.boards.evaluating import ProgressQuery, read_progress
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.matching import matching_runs
from metrics.services.comparisons.comparison import MAX_RUNS
from metrics.services.question import MAX_BASELINES, measure_in, measures_in
from runs.models import Collection, Run

# At most this many runs are chosen at once, each named by as many digits of its id.
MOST_CHOSEN, _DIGITS = 60, 8
MIN_RUNS = 2
# What is compared instead of the chosen runs.
ALL, FILTERED = "all", "filtered"
_SHORT = re.compile(rf"[0-9a-f]{{{_DIGITS},32}}")


@dataclass(frozen=True)
class ChosenRun:
    """A chosen run: `short` names it in the address, `on_page` says whether its box is shown, and
    `without` is the address of the leaderboard without it."""

    id: UUID
    short: str
    tag: str
    on_page: bool
    without: str


@dataclass(frozen=True)
class Selection:
    """The chosen runs on all pages of a leaderboard.

    `hidden_fields` are the other parameters that the form keeps, and `shorts` the short names of
    all runs.
    """

    runs: list[ChosenRun]
    hidden_fields: list[tuple[str, str]]
    cleared: str
    shorts: dict[UUID, str]
    left_out: int = 0
    most: int = MOST_CHOSEN

    @property
    def ids(self) -> set[UUID]:
        return {run.id for run in self.runs}

    @property
    def elsewhere(self) -> list[ChosenRun]:
        return [run for run in self.runs if not run.on_page]


def short_ids(runs: Iterable[UUID]) -> dict[UUID, str]:
    """Return the first eight digits of each run's id, or all of them where these are not unique."""
    groups: dict[str, list[UUID]] = {}
    for run in runs:
        groups.setdefault(run.hex[:_DIGITS], []).append(run)

    shorts = {}
    for short, group in groups.items():
        for run in group:
            shorts[run] = short if len(group) == 1 else run.hex

    return shorts


def read_selection(board: Leaderboard, query: Query) -> Selection:
    """Return the chosen runs that are ranked, in the order of the address; ignore the others."""
    run_ids = board.runs
    shorts = short_ids(run_ids.values())
    ranked = {run_ids[pk] for pk, _ in board.order}
    chosen = [run for run in _named(query, shorts) if run in ranked]
    listed = chosen[:MOST_CHOSEN]

    rows = [*board.rows, *([board.pinned] if board.pinned else [])]
    tags = {row.run.pk: row.run.tag for row in rows if row.rank is not None}
    on_page = set(tags)
    elsewhere = [run for run in listed if run not in on_page]
    if elsewhere:
        tags |= dict(Run.objects.filter(pk__in=elsewhere).values_list("pk", "tag"))

    runs = []
    for run in listed:
        rest = ",".join(shorts[other] for other in listed if other != run)
        without = query_string(query, select=rest)
        runs.append(ChosenRun(run, shorts[run], tags[run], run in on_page, without))

    return Selection(
        runs=runs,
        hidden_fields=hidden_fields(query, "select"),
        cleared=query_string(query, select=None),
        shorts=shorts,
        left_out=len(chosen) - len(listed),
    )


def _named(query: Query, shorts: dict[UUID, str]) -> list[UUID]:
    """Return the runs that the address names by the start of their ids; ignore ambiguous names."""
    prefixes = [
        part.strip().lower().replace("-", "")
        for part in query.get("select", "").split(",")
        if part.strip()
    ]

    runs = {short: run for run, short in shorts.items()}
    named: dict[UUID, None] = {}
    for text in prefixes:
        if _SHORT.fullmatch(text):
            run = runs.get(text[:_DIGITS]) or runs.get(text)
            if run and run.hex.startswith(text):
                named[run] = None

    return list(named)


def group_address(collection: Collection, query: Query) -> str | None:
    """Return the address that adds the chosen runs to an experiment, or None if none are chosen."""
    runs = ",".join(str(run) for run in _chosen(collection, query))
    return f"{reverse('experiments-page')}?{urlencode({'runs': runs})}" if runs else None


def baselines_address(collection: Collection, query: Query) -> str | None:
    """Return the address of the leaderboard with the first chosen runs as its baselines."""
    runs = ",".join(str(run) for run in _chosen(collection, query)[:MAX_BASELINES])
    if not runs:
        return None
    page = reverse("collection-page", args=[collection.slug])
    return f"{page}{query_string(query, baseline=runs, select=None)}#leaderboard"


def _chosen(collection: Collection, query: Query) -> list[UUID]:
    """Return the runs that the address names among all that are not withdrawn."""
    live = Run.objects.filter(collection=collection, deleted_at=None).order_by()
    return _named(query, short_ids(live.values_list("pk", flat=True)))[:MOST_CHOSEN]


def _filtered(collection: Collection, query: Query, reader: Any) -> list[UUID]:
    """Return the evaluated runs that the filter selects, as many as can be chosen."""
    qrels = collection.active_qrels
    if qrels is None:
        return []

    visible = Run.objects.visible_to(reader).filter(collection=collection)
    selected = matching_runs(collection, query.get("filter", ""), reader, visible)
    evaluations = Evaluation.objects.current(qrels, scores_in(query) or collection.scores)
    runs = evaluations.evaluated().filter(run__in=selected.order_by().values("pk"))
    return list(runs.order_by("run").values_list("run", flat=True)[:MOST_CHOSEN])


def comparison_address(collection: Collection, query: Query, which: str, reader: Any) -> str | None:
    """Return the address that compares the chosen runs, those of the filter, or all of them.

    Chosen runs keep the family that they were chosen from, the whole leaderboard if it can be
    compared at once, and its baseline: the comparison has the same p values. There is no such
    family where they were chosen among more than the official entries.

    Return None for fewer than two chosen runs, and for an invalid measure.
    """
    try:
        if which == FILTERED:
            chosen = _filtered(collection, query, reader)
        else:
            chosen = [] if which == ALL else _chosen(collection, query)
        if which != ALL and len(chosen) < MIN_RUNS:
            return None

        query = with_shown_measures(collection, query)
        measures = measures_in(query, "measures", collection.measures, collection)
        comparison = {
            "measure": measure_in(query, "sort", measures[0].name, collection).name,
            "runs": ",".join(str(run) for run in chosen),
            "baseline": query.get("baseline"),
            "topics": query.get("topics"),
        }
        progress = read_progress(collection=collection, query=ProgressQuery(scores_in(query)))
    except EvalHubError:
        return None

    if chosen and progress.evaluated <= MAX_RUNS and query.get("entries") != EVERY:
        comparison["family"] = "all"

    parameters = urlencode({name: text for name, text in comparison.items() if text})
    return f"{reverse('comparison-page', args=[collection.slug])}?{parameters}"
