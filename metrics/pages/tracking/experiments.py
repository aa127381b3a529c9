"""The page of an experiment: its goal, its runs with their means, its notes, and its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.engine.measures.grammar import Measure
from metrics.exports.table import Cell
from metrics.models import Evaluation
from metrics.pages.parts import fill, query_string
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.entries import EVERY
from metrics.services.boards.filter import Field
from metrics.services.boards.leaderboard import Leaderboard, Row, read_leaderboard
from metrics.services.boards.matching import matching_runs
from metrics.services.boards.states import RANKED
from metrics.services.queue.status import statuses
from metrics.tables import Paging, best_means, mean_cell, signed
from runs.api.tracking.experiments import ExperimentChangeSerializer
from runs.errors import InvalidInput
from runs.models import Collection, Experiment, Run, Scope, User
from runs.pages.tracking.experiments import VISIBILITIES, describe_added
from runs.pages.tracking.notes import shown_notes
from runs.parameters import MAX_OFFSET, integer_in
from runs.services.tracking.experiments import (
    MAX_RUNS,
    change_experiment,
    change_runs,
    delete_experiment,
    may_change,
)
from runs.services.tracking.labels import labels_of
from runs.web.access import note_filter, sees_scores, visible_collection, visible_experiment
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of
from runs.web.naming import named_run
from runs.web.origin import origin_of
from runs.web.parameters import text_of

_MEASURES = 5
_OF_A_PAGE = 100
# The most choices of a baseline, and of a collection to add runs of.
_OFFERED = 500
_DESCRIBED = ("name", "goal", "visibility")


@dataclass(frozen=True)
class Line:
    """A run of the experiment: its rank in its collection, its means with their measures, and the
    difference of its first mean from that of the baseline; all empty without values."""

    run: Run
    state: str
    labels: tuple[str, ...]
    rank: int | None = None
    cells: tuple[tuple[str, Cell], ...] = ()
    difference: str = ""


class ExperimentPage(FormPage):
    """Show an experiment with its runs in one `collection`; `action` changes the experiment."""

    signed_in = False
    scopes = {"POST": Scope.SUBMIT}
    reads = ("collection", "offset")
    fields = ("action", *_DESCRIBED, "runs", "baseline", "collection", "filter")

    def get(self, request: Request, experiment: UUID) -> HttpResponse:
        return _page(request, visible_experiment(request, experiment))

    def post(self, request: Request, experiment: UUID) -> HttpResponse:
        visible = visible_experiment(request, experiment)
        try:
            message = _act(request, visible)
        except (EvalHubError, APIException) as error:
            return _page(request, visible, refusal_of(error))

        messages.success(request, message)
        if request.data.get("action") == "delete":
            return redirect_to(request, reverse("experiments-page"))

        return redirect_to(request, _address(visible, str(request.data.get("collection", ""))))


def _address(experiment: Experiment, collection: str) -> str:
    query = f"?{urlencode({'collection': collection})}" if collection else ""
    return reverse("experiment-page", args=[experiment.pk]) + query


def _act(request: Request, experiment: Experiment) -> str:
    """Carry out what a form of the page requests, and return a sentence about it."""
    form, action = cast(QueryDict, request.data), str(request.data.get("action", ""))
    actor: dict[str, Any] = {"user": cast(User, request.user), "origin": origin_of(request)}

    if action == "describe":
        serializer = ExperimentChangeSerializer(data=fields_of(request, *_DESCRIBED), partial=True)
        serializer.is_valid(raise_exception=True)
        change_experiment(experiment=experiment, changes=serializer.validated_data, **actor)
        return "Saved."

    if action == "baseline":
        text = str(form.get("baseline", "")).strip()
        own = Run.objects.visible_to(request.user).filter(experiments=experiment)
        chosen = named_run(text, own, "/baseline") if text else None
        change_experiment(experiment=experiment, changes={"baseline": chosen}, **actor)
        return "Baseline set." if chosen else "Baseline removed."

    if action == "remove":
        _, removed = change_runs(
            experiment=experiment, remove=_ids_in(form.getlist("runs"), "/runs"), **actor
        )
        return f"{removed:,} run{'' if removed == 1 else 's'} taken out of the experiment."

    if action == "add":
        collection = visible_collection(request, str(form.get("collection", "")))
        text = str(form.get("filter", "")).strip()
        if not text:
            message = "write which runs to add, such as own:yes for all of your teams'"
            raise InvalidInput(message, code="required", pointer="/filter")

        note_filter(request, collection, text)
        visible = Run.objects.visible_to(request.user).filter(collection=collection)
        matches = matching_runs(collection, text, request.user, visible)
        # One more than an experiment can have is enough to refuse them.
        run_ids = list(matches.values_list("pk", flat=True)[: MAX_RUNS + 1])
        new, _ = change_runs(experiment=experiment, add=run_ids, pointer="/filter", **actor)

        return describe_added(new, len(run_ids))

    if action == "delete":
        delete_experiment(experiment=experiment, **actor)
        return f"Experiment {experiment.name} deleted. Its runs are unchanged."

    raise InvalidInput("press one of the buttons", pointer="/action")


def _ids_in(texts: list[str], pointer: str) -> list[UUID]:
    try:
        return [UUID(text) for text in texts[: MAX_RUNS + 1] if text]
    except ValueError as error:
        raise InvalidInput(
            "choose runs of the experiment", code="unknown_run", pointer=pointer
        ) from error


def _page(request: Request, experiment: Experiment, refused: Refusal | None = None) -> HttpResponse:
    # A refused change may have set attributes: the experiment is read again.
    current: Any = visible_experiment(request, experiment.pk)
    runs = Run.objects.visible_to(request.user).filter(experiments=current)
    numbers = dict(runs.order_by().values_list("collection").annotate(number=Count("pk")))
    collections = sorted(
        Collection.objects.in_bulk(numbers).values(),
        key=lambda other: (-numbers[other.pk], other.slug),
    )

    parameters = text_of(request.query_params)
    collection = collections[0] if collections else None
    for other in collections:
        if other.slug == parameters.get("collection", ""):
            collection = other

    baseline = runs.filter(pk=current.shown_baseline).select_related("collection").first()
    changes = may_change(current, request.user)
    posted = refused is not None and request.data.get("action") == "describe"
    stored = {name: getattr(current, name) for name in _DESCRIBED}
    context: dict[str, Any] = {
        "experiment": current,
        "baseline": baseline,
        "collections": [
            (other, numbers[other.pk], _address(current, other.slug)) for other in collections
        ],
        "collection": collection,
        "may_change": changes,
        "filter": f"experiment:{current.team.slug}/{current.slug}",
        "notes": shown_notes(request.user, "experiment", current),
        "visibilities": VISIBILITIES,
        "form_values": {**stored, **fields_of(request, *_DESCRIBED)} if posted else stored,
        "typed": {
            "collection": collection.slug if collection else "",
            **fields_of(request, "filter", "collection"),
        },
        "refused": refused,
        "field_errors": refused.fields if refused else {},
    }

    status = refused.status if refused else 200

    if collection:
        pin = {}
        if baseline and baseline.collection == collection:
            pin = {"baseline": str(baseline.pk)}

        address = query_string({"filter": context["filter"]}, **pin)
        context["leaderboard"] = reverse("collection-page", args=[collection.slug]) + address
        offset = integer_in(parameters, "offset", 0, 0, MAX_OFFSET)
        fill(
            context,
            "table",
            _table,
            request,
            current,
            collection,
            runs.filter(collection=collection),
            numbers[collection.pk],
            offset,
        )

    if changes:
        context["candidates"] = list(
            runs.only("tag", "collection").select_related("collection")[:_OFFERED]
        )
        context["more"] = len(context["candidates"]) == _OFFERED
        context["sources"] = list(
            Collection.objects.visible_to(request.user).only("slug", "name")[:_OFFERED]
        )

    response = render(request, "metrics/experiment.html", context, status=status)
    response["Cache-Control"] = "no-store"

    return response


@dataclass(frozen=True)
class Table:
    """One page of the runs of an experiment in one collection, with the measures of their means.

    `ranked` is the number of ranked runs of the collection; `unranked` says why there is none.
    """

    lines: list[Line]
    paging: Paging
    measures: tuple[Measure, ...] = ()
    ranked: int = 0
    unranked: str = ""
    against: bool = False


def _table(
    request: Request,
    experiment: Any,
    collection: Collection,
    runs: QuerySet[Run],
    total: int,
    offset: int,
) -> Table:
    """Return a page of runs, with means if the reader may see them and there are judgements."""
    paging = Paging(offset, _OF_A_PAGE, total)

    if collection.active_qrels is None or not sees_scores(request, collection):
        runs_of_page = list(runs.select_related("team", "collection")[offset : offset + _OF_A_PAGE])
        states, labels = (
            statuses(runs_of_page, request.user),
            labels_of(run.pk for run in runs_of_page),
        )
        lines = [
            Line(run, states[str(run.pk)].state, tuple(labels.get(run.pk, ())))
            for run in runs_of_page
        ]
        reason = "the collection has no active judgements yet"
        if collection.blind:
            reason = "the judgements are blind"

        return Table(lines, paging, unranked=reason)

    measures = [collection.measure(name) for name in collection.measures[:_MEASURES]]
    board = read_leaderboard(
        collection=collection,
        query=BoardQuery(
            measures=measures,
            sort=measures[0],
            descending=not measures[0].definition.lower_is_better,
            offset=offset,
            limit=_OF_A_PAGE,
            filter=Field("experiment", (str(experiment),)),
            reader=request.user,
            entries=EVERY,
        ),
    )

    base = _mean_of(board, experiment.shown_baseline)

    best = best_means(board.rows, measures)
    lines = []
    for row in board.rows:
        is_baseline = row.run.pk == experiment.shown_baseline
        lines.append(_line(row, measures, board, best, None if is_baseline else base))

    return Table(lines, paging, tuple(measures), board.ranked, against=base is not None)


def _mean_of(board: Leaderboard, run: UUID | None) -> float | None:
    """Return the mean of a ranked run under the measure that ranks, on any page of the board."""
    if run is None:
        return None

    own = (
        Evaluation.objects.current(board.qrels, board.scores)
        .filter(run=run)
        .values_list("pk", flat=True)
        .first()
    )
    return dict(board.order).get(own) if own else None


def _line(
    row: Row,
    measures: list[Measure],
    board: Leaderboard,
    best: dict[str, tuple[str, int]],
    base: float | None,
) -> Line:
    cells = []
    for measure in measures:
        to_reach = best.get(measure.name) if row.rank else None
        cell = mean_cell(measure, row.values[measure.name], board.qrels.topics, to_reach)
        cells.append((measure.name, cell))

    own = row.values[measures[0].name][0] if row.rank else None
    difference = signed(own - base) if own is not None and base is not None else ""

    return Line(
        run=row.run,
        state="" if row.state == RANKED else row.state,
        labels=row.labels,
        rank=row.rank,
        cells=tuple(cells),
        difference=difference,
    )
