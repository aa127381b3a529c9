"""Parts that pages share: the query as text, parts that may be missing, and charts in a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import mark_safe

from metrics.charts.figure import Figure
from metrics.charts.rendering import render_inline
from metrics.engine.errors import EvalHubError
from metrics.exports.formats import FORMATS
from metrics.exports.table import Table
from metrics.questions.run_ids import shown_without_labels
from metrics.services.queue.status import RunStatus
from runs.errors import LeftOff
from runs.models import Collection, ShareLink
from runs.web.parameters import text_of
from runs.web.views import problem_of

# Errors that describe the state of the collection; all others are errors of the request.
_STATES = (
    "blind",
    "no_active_qrels",
    "not_evaluated",
    "too_few_runs",
    "too_few_topics",
    "too_many_runs",
    "no_pooled_runs",
    "no_session_sets",
    "too_few_systems",
    "too_many_systems",
    "nothing_to_draw",
    "sampled_judgements",
)

# A page shows at most this much of a chart's table; the file has all of it.
_MOST_COLUMNS, _MOST_ROWS = 26, 200
_WAITING = ("queued", "evaluating")

Query = dict[str, str]


@dataclass(frozen=True)
class Problem:
    """The reason why a part of a page is missing."""

    detail: str
    code: str

    @property
    def is_state(self) -> bool:
        return self.code in _STATES


def query_of(request: HttpRequest, collection: Collection | None = None) -> Query:
    """Return the query string as text.

    Repeated lists are joined. With the collection of the page, labels of runs become ids.
    """
    parameters = text_of(request.GET)
    if collection:
        parameters = shown_without_labels(parameters, collection, request.user)
    return {"runs": "", **parameters}


def query_string(query: Query, **changes: str | None) -> str:
    """Return the query string with other parameters; empty values and None are left out."""
    parameters = {name: value for name, value in {**query, **changes}.items() if value}
    return f"?{urlencode(parameters)}"


def fill(context: dict[str, Any], part: str, build: Callable[..., Any], *arguments: Any) -> int:
    """Put a part of the page, or the problem that replaces it, into the context.

    Return the status of the page.
    """
    try:
        context[part] = build(*arguments)
    except LeftOff:
        # A busy server, or a client that left, ends the whole request.
        raise
    except EvalHubError as error:
        status, detail = problem_of(error)
        problem = Problem(detail, error.code)
        context[f"{part}_problem"] = problem
        return 200 if problem.is_state else status

    return 200


@dataclass(frozen=True)
class RunField:
    """The choice of one run in a form.

    `choices` are the id, tag and team of each run that is listed, `chosen` is an id, and `none` is
    the text of the empty choice. `first` is the value and text of a choice before the runs. With
    `more` runs than are listed, the field is one to type in.
    """

    name: str
    choices: list[tuple[str, str, str]]
    chosen: str
    more: bool
    none: str
    first: tuple[str, str] | None = None

    @property
    def names(self) -> list[str]:
        return [f"{team}/{tag}" for _, tag, team in self.choices]

    @property
    def typed(self) -> str:
        for run, tag, team in self.choices:
            if run == self.chosen:
                return f"{team}/{tag}"
        return self.chosen


@dataclass(frozen=True)
class Subject:
    """A run or session set that waits for evaluation, with its page and the address of its
    progress."""

    noun: str
    page: str
    status_address: str


def run_subject(run: UUID) -> Subject:
    return Subject("run", reverse("run-page", args=[run]), reverse("run-status", args=[run]))


def set_subject(session_set: UUID) -> Subject:
    page, status = (
        reverse(name, args=[session_set]) for name in ("session-set-page", "session-set-status")
    )
    return Subject("session set", page, status)


def level_class(level: int | None) -> str:
    """Return the CSS class of a document's row for its level."""
    if level is None:
        return "unjudged"
    return f"relevant of-{min(level, 4)}" if level > 0 else "nonrelevant"


@dataclass(frozen=True)
class PageFigure:
    """A chart in a page, with the addresses of its files by look and format.

    `size` and `narrow` are its sizes on a screen and on a phone; the marks of a `linked` chart lead
    to pages.
    """

    figure: Figure
    view: str
    arguments: Mapping[str, Any]
    query: Mapping[str, str]
    size: str = "column"
    narrow: str = "narrow"
    linked: bool = True

    def address(self, form: str, **look: str) -> str:
        path = reverse(
            self.view, kwargs={**self.arguments, "chart": self.figure.name, "form": form}
        )
        query = urlencode({name: value for name, value in {**self.query, **look}.items() if value})
        return f"{path}?{query}" if query else path

    @property
    def drawings(self) -> list[tuple[str, str]]:
        """Return the class and the SVG of each drawing; the style sheet shows one of them."""
        return [
            (kind, mark_safe(render_inline(self.figure, size, linked=self.linked)))  # noqa: S308 -- titled() writes it
            for kind, size in (("wide", self.size), ("narrow", self.narrow))
        ]

    @property
    def files(self) -> list[tuple[str, str]]:
        """Return the image of the page as files to download."""
        files = [
            (form.upper(), self.address(form, size=self.size)) for form in ("svg", "png", "pdf")
        ]
        return [*files, ("CSV", self.address("csv"))] if self.figure.rows else files

    @property
    def table(self) -> Table:
        """Return the rows of the chart that a page has room for."""
        return Table.of_values(self.figure.name, self.figure.columns, self.figure.rows[:_MOST_ROWS])

    @property
    def rest(self) -> int:
        """Return how many rows the table leaves out."""
        return max(0, len(self.figure.rows) - _MOST_ROWS)

    @property
    def has_table(self) -> bool:
        """Return whether the table of the chart fits into a page."""
        return bool(self.figure.rows) and len(self.figure.columns) <= _MOST_COLUMNS


def run_figure(
    figure: Figure, run: UUID, query: Mapping[str, str], size: str = "column"
) -> PageFigure:
    """Return a chart of one run."""
    return PageFigure(figure, "run-chart", {"run": run}, query, size)


def shared_figure(
    figure: Figure, link: ShareLink, size: str = "column", narrow: str = "narrow"
) -> PageFigure:
    """Return a chart of what a share link opens, with the link's addresses."""
    figure = figure if figure.source else figure.drawn_from(link.collection)
    return PageFigure(figure, "shared-chart", {"share": link.key}, {}, size, narrow, linked=False)


def shared_files(link: ShareLink, kinds: Iterable[str]) -> list[tuple[str, str]]:
    """Return the title and the address of each file of a share link."""
    return [(FORMATS[kind].title, reverse("shared-file", args=[link.key, kind])) for kind in kinds]


def set_figure(
    figure: Figure, session_set: UUID, query: Mapping[str, str], size: str = "column"
) -> PageFigure:
    """Return a chart of one session set."""
    return PageFigure(figure, "session-chart", {"session_set": session_set}, query, size)


def status_piece(request: HttpRequest, subject: Subject, status: RunStatus) -> HttpResponse:
    """Render the progress of an evaluation.

    This fragment of a page reloads itself until the evaluation has ended.
    """
    response = render(request, "metrics/_status.html", {"subject": subject, "status": status})
    if status.state not in _WAITING:
        response["HX-Refresh"] = "true"
    response["Cache-Control"] = "no-store"
    return response
