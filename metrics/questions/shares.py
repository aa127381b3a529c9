"""Read what a user shares: a leaderboard, a comparison or a run, with its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, QueryDict
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.comparisons import stored_comparison
from metrics.questions.declared import COMPARISON, names_of
from metrics.questions.run_ids import without_labels
from metrics.questions.saved_views import canonical_query
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import Outlook, look_up_comparison
from metrics.services.question import measure_in, measures_in
from runs.errors import InvalidInput
from runs.models import Collection, ShareLink
from runs.models.sharing.shares import MAX_SHARED_QUERY
from runs.parameters import choice_in
from runs.services.sharing.shares import Shared
from runs.web.access import scored_collection, scored_run
from runs.web.parameters import refusals, text_of

_Kind = ShareLink.Kind
# The charts that a leaderboard shows below its runs, and the parameters that choose one.
BOARD_CHARTS = ("means", "scatter", "over-time")
_OF_TOPICS = (
    "leave topics=, by= and weights= out: readers of a link do not see attributes of topics"
)
_DRAWN = ("chart", "x", "y")
# The fields that name an object by its id.
_NAMES = {_Kind.RUN: "run", _Kind.COMPARISON: "comparison"}


def shared_in(request: HttpRequest | Request, fields: Mapping[str, Any]) -> Shared:
    """Return what the fields `kind`, `collection`, `run`, `comparison` and `query` name.

    Raise Http404 for what the user does not see, InvalidInput for fields that do not go together.
    """
    kind, query = str(fields.get("kind", "")), str(fields.get("query") or "")
    if kind not in _Kind.values:
        raise InvalidInput(
            f"{kind[:20]!r} is not one of {', '.join(_Kind.values)}", pointer="/kind"
        )

    for name in _NAMES.values():
        if fields.get(name) and name != kind:
            raise InvalidInput(
                f"{name} belongs to kind={name}; leave it out of kind={kind}", pointer=f"/{name}"
            )

    if fields.get("collection") and (kind == _Kind.RUN or fields.get("comparison")):
        raise InvalidInput(
            f"a {kind} is named by its id alone; leave the collection out", pointer="/collection"
        )

    if kind == _Kind.RUN:
        run = scored_run(request, _id_in(fields, "run"))
        return Shared(kind, run.collection, str(run.pk), _run_query(query, run.collection))

    if kind == _Kind.COMPARISON and fields.get("comparison"):
        if query:
            raise InvalidInput("a stored comparison has no query; leave it out", pointer="/query")

        stored = stored_comparison(request, _id_in(fields, "comparison"))
        if "topics" in stored.query:
            raise InvalidInput(_OF_TOPICS, pointer="/comparison")
        return Shared(kind, stored.qrels.collection, str(stored.pk))

    if not fields.get("collection"):
        raise InvalidInput("name the collection", code="required", pointer="/collection")

    collection = scored_collection(request, str(fields["collection"]))
    read = _comparison_query if kind == _Kind.COMPARISON else _board_query
    return Shared(kind, collection, query=read(query, collection, request.user))


def parameters_of_link(link: ShareLink) -> dict[str, str]:
    return dict(parse_qsl(link.query))


def _id_in(fields: Mapping[str, Any], name: str) -> UUID:
    text = str(fields.get(name) or "")
    if not text:
        raise InvalidInput(f"name the {name} by its id", code="required", pointer=f"/{name}")

    try:
        return UUID(text)
    except ValueError:
        raise Http404(f"there is no {name} {text[:40]!r}") from None


def _run_query(text: str, collection: Collection) -> str:
    """Return the measures that a query string of a run names, as one."""
    try:
        parameters = _parse(text, ["measures", "topics"])
        if parameters.get("topics"):
            raise InvalidInput(_OF_TOPICS)

        measures = measures_in(parameters, "measures", [], collection)
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error

    if not measures:
        return ""

    return urlencode({"measures": ",".join(measure.name for measure in measures)})


def _board_query(text: str, collection: Collection, reader: Any) -> str:
    """Return the query string of a leaderboard, with its chart if one is shown."""
    fields = text.strip().removeprefix("?").split("&")
    drawing = [field for field in fields if field.partition("=")[0] in _DRAWN]
    query = canonical_query(
        "&".join(field for field in fields if field not in drawing), collection, reader
    )
    if {"topics", "by"} & dict(parse_qsl(query)).keys():
        raise InvalidInput(_OF_TOPICS, pointer="/query")

    drawn = _parse("&".join(drawing), list(_DRAWN))

    try:
        chart = choice_in(drawn, "chart", ("none", *BOARD_CHARTS))
        axes = {
            axis: measure_in(drawn, axis, "", collection).name
            for axis in ("x", "y")
            if chart == "scatter" and drawn.get(axis)
        }
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error

    if not chart or chart == "none":
        return query

    address = "&".join(part for part in (query, urlencode({"chart": chart, **axes})) if part)
    if len(address) > MAX_SHARED_QUERY:
        raise InvalidInput("the measures of the chart are too long", pointer="/query")
    return address


def _comparison_query(text: str, collection: Collection, reader: Any) -> str:
    """Return the query string of a comparison, with ids in place of labels, which are movable."""
    try:
        parameters = without_labels(_parse(text, names_of(COMPARISON)), collection, reader)
        query = ComparisonQuery.read(parameters, collection)
        if query.topics or query.by or query.weights:
            raise InvalidInput(_OF_TOPICS)
        if isinstance(look_up_comparison(collection=collection, query=query), Outlook):
            message = "this comparison must run in the background; then share the stored one"
            raise InvalidInput(message, code="too_much_work")
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error

    address = urlencode(query.address())
    if len(address) > MAX_SHARED_QUERY:
        message = (
            "query: too many runs to share; run the comparison in the background, then share the "
            "stored one"
        )
        raise InvalidInput(message, code="too_many_runs", pointer="/query")

    return address


def _parse(text: str, names: list[str]) -> dict[str, str]:
    """Return the parameters of a query string. Raise InvalidInput for other names."""
    try:
        pairs = parse_qsl(
            text.strip().removeprefix("?")[: 3 * MAX_SHARED_QUERY], max_num_fields=100
        )
    except ValueError as error:
        raise InvalidInput(f"query: not a query string ({error})") from error

    query_dict = QueryDict(mutable=True)
    for name, value in pairs:
        query_dict.appendlist(name, value)

    for refusal in refusals(query_dict, names):
        raise refusal

    return text_of(query_dict)
