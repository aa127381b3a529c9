"""The runs that are chosen on a leaderboard: its address names them, whatever rows it shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from metrics.engine.errors import EvalHubError
from metrics.pages.boards.questions import kept_fields, with_shown_measures
from metrics.pages.parts import Query, changed
from metrics.questions.parameters import scores_in
from metrics.services.boards.entries import EVERY
from metrics.services.boards.evaluating import ProgressQuery, read_progress
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.comparisons.comparison import MAX_RUNS
from metrics.services.question import measure_in, measures_in
from runs.models import Collection, Run

# At most this many runs are chosen at once, each named by as many digits of its id.
MOST_CHOSEN, _DIGITS = 60, 8
_SHORT = re.compile(rf"[0-9a-f]{{{_DIGITS},32}}")


@dataclass(frozen=True)
class Chosen:
    """A chosen run: `short` names it in the address, `here` if its box is on the page, and the address of the
    leaderboard without it."""

    id: UUID
    short: str
    tag: str
    here: bool
    without: str


@dataclass(frozen=True)
class Selection:
    """The chosen runs on all pages of a leaderboard; `kept` are the other parameters that the form keeps, and `shorts`
    names every run of the leaderboard."""

    runs: list[Chosen]
    kept: list[tuple[str, str]]
    cleared: str
    shorts: dict[UUID, str]
    left_out: int = 0
    most: int = MOST_CHOSEN

    @property
    def ids(self) -> set[UUID]:
        return {run.id for run in self.runs}

    @property
    def elsewhere(self) -> list[Chosen]:
        return [run for run in self.runs if not run.here]


def short_ids(runs: Iterable[UUID]) -> dict[UUID, str]:
    """Return the first eight digits of the id of each run, or all of them where two runs have the same ones."""
    found: dict[str, list[UUID]] = {}
    for run in runs:
        found.setdefault(run.hex[:_DIGITS], []).append(run)
    return {
        run: short if len(same) == 1 else run.hex for short, same in found.items() for run in same
    }


def read_selection(board: Leaderboard, query: Query) -> Selection:
    """Return the chosen runs that are ranked now, in the order of the address; others are ignored."""
    runs_of = board.runs
    shorts = short_ids(runs_of.values())
    ranked = {runs_of[pk] for pk, _ in board.order}
    chosen = [run for run in _named(query, shorts) if run in ranked]
    kept = chosen[:MOST_CHOSEN]
    rows = [*board.rows, *([board.pinned] if board.pinned else [])]
    here = {row.run.pk: row.run.tag for row in rows if row.rank is not None}
    away = [run for run in kept if run not in here]
    tags = {
        **here,
        **(dict(Run.objects.filter(pk__in=away).values_list("pk", "tag")) if away else {}),
    }

    def without(gone: UUID) -> str:
        return changed(query, select=",".join(shorts[run] for run in kept if run != gone))

    runs = [Chosen(run, shorts[run], tags[run], run in here, without(run)) for run in kept]
    return Selection(
        runs,
        kept_fields(query, "select"),
        changed(query, select=None),
        shorts,
        left_out=len(chosen) - len(kept),
    )


def _named(query: Query, shorts: dict[UUID, str]) -> list[UUID]:
    """Return the runs that the address names by the beginning of their ids; what names none or several is ignored."""
    wanted = [
        part.strip().lower().replace("-", "")
        for part in query.get("select", "").split(",")
        if part.strip()
    ]
    runs = {short: run for run, short in shorts.items()}
    found: dict[UUID, None] = {}
    for text in wanted:
        if _SHORT.fullmatch(text):
            run = runs.get(text[:_DIGITS]) or runs.get(text)
            if run and run.hex.startswith(text):
                found[run] = None
    return list(found)


def group_address(collection: Collection, query: Query) -> str | None:
    """Return the address of the page that puts the chosen runs into an experiment, or None without any."""
    named = ",".join(str(run) for run in _chosen(collection, query))
    return f"{reverse('experiments-page')}?{urlencode({'runs': named})}" if named else None


def _chosen(collection: Collection, query: Query) -> list[UUID]:
    """Return the runs that the address names, of all that are not withdrawn."""
    live = Run.objects.filter(collection=collection, deleted_at=None).order_by()
    return _named(query, short_ids(live.values_list("pk", flat=True)))[:MOST_CHOSEN]


def comparison_address(collection: Collection, query: Query, which: str) -> str | None:
    """Return the address that compares the chosen runs, or all of them.

    Chosen runs keep the family from which they were chosen, the whole leaderboard if it can be
    compared at once, and its baseline: the comparison has the same p values.
    Chosen among more than the official entries they have no such family.
    Return None for fewer than two chosen runs, and for an invalid measure.
    """
    chosen = [] if which == "all" else _chosen(collection, query)
    if which != "all" and len(chosen) < 2:
        return None
    try:
        query = with_shown_measures(collection, query)
        measures = measures_in(query, "measures", collection.measures, collection.documents)
        asked = {
            "measure": measure_in(query, "sort", measures[0].name, collection.documents).name,
            "runs": ",".join(str(run) for run in chosen),
            "baseline": query.get("baseline"),
        }
        progress = read_progress(collection=collection, query=ProgressQuery(scores_in(query)))
    except EvalHubError:
        return None
    if chosen and progress.evaluated <= MAX_RUNS and query.get("entries") != EVERY:
        asked["family"] = "all"
    given = urlencode({name: text for name, text in asked.items() if text})
    return f"{reverse('comparison-page', args=[collection.slug])}?{given}"
