"""The runs that are selected on a leaderboard: its address contains them, whatever rows it shows."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from metrics.engine.errors import EvalHubError
from metrics.models import Evaluation
from metrics.pages.boards.questions import kept_fields
from metrics.pages.parts import Query, changed
from metrics.questions.parameters import measure_in, measures_in, scores_in
from metrics.questions.run_ids import run_ids_in
from metrics.services.boards.leaderboard import Leaderboard, read_progress
from metrics.services.comparisons.comparison import MAX_RUNS
from runs.models import Collection

# The server accepts an address with this many ids.
MOST_TICKED = 170


@dataclass(frozen=True)
class Ticked:
    """A selected run: `here` if its box is on the page, and the address of the leaderboard without it."""

    id: UUID
    tag: str
    here: bool
    without: str


@dataclass(frozen=True)
class Selection:
    """The selected runs on all pages of a leaderboard; `kept` are the other parameters that the form keeps."""

    runs: list[Ticked]
    kept: list[tuple[str, str]]
    cleared: str
    most: int = MOST_TICKED

    @property
    def ids(self) -> set[UUID]:
        return {run.id for run in self.runs}

    @property
    def elsewhere(self) -> list[Ticked]:
        return [run for run in self.runs if not run.here]


def read_selection(board: Leaderboard, query: Query) -> Selection:
    """Return the selected runs that are ranked now, in the order of the address; others are ignored."""
    named = _named(query)
    ranked = {pk for pk, _ in board.order} if named else set()
    rows = Evaluation.objects.filter(run__in=named).values_list("pk", "run_id", "run__tag") if named else []
    tags = {str(run): (run, tag) for pk, run, tag in rows if pk in ranked}
    here = {row.run.pk for row in board.rows if row.rank is not None}
    found = [one for one in named if one in tags]

    def without(gone: str) -> str:
        return changed(query, runs=",".join(one for one in found if one != gone))

    runs = [Ticked(*tags[one], here=tags[one][0] in here, without=without(one)) for one in found]
    return Selection(runs, kept_fields(query, "runs"), changed(query, runs=None))


def _named(query: Query) -> list[str]:
    try:
        return list(dict.fromkeys(run_ids_in(query)))
    except EvalHubError:
        return []


def comparison_address(collection: Collection, query: Query, which: str) -> str | None:
    """Return the address that compares the selected runs, or all of them.

    Selected runs keep the family from which they were chosen, the whole leaderboard if it can be compared at once.
    Return None for fewer than two selected runs, and for an invalid measure.
    """
    named = [] if which == "all" else _named(query)
    if which != "all" and len(named) < 2:
        return None
    try:
        measures = measures_in(query, "measures", collection.measures, collection.documents)
        asked = {
            "measure": measure_in(query, "sort", measures[0].name, collection.documents).name,
            "runs": ",".join(named),
        }
        ranked = read_progress(collection=collection, scores=scores_in(query)).evaluated
    except EvalHubError:
        return None
    if named and ranked <= MAX_RUNS:
        asked["family"] = "all"
    given = urlencode({name: text for name, text in asked.items() if text})
    return f"{reverse('comparison-page', args=[collection.slug])}?{given}"
