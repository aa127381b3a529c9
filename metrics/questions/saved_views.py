"""Check the parameters of a view that is saved, and read those of a view that a request names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.http import Http404, QueryDict
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.declared import BOARD, HOW_MADE, names_of
from metrics.questions.run_ids import without_labels
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.question import measure_in, measures_in
from runs.errors import InvalidInput, NotAllowed
from runs.models import Collection, View
from runs.models.sharing.saved_views import MAX_QUERY
from runs.web.parameters import refusals, text_of

# The parameters of a leaderboard that a view has, in this order: all but the offset.
VIEW_PARAMETERS = tuple(name for name in names_of(BOARD) if name != "offset")
# The `statistics` of a page that shows none.
_NO_STATISTICS = "none"
_MOST_FIELDS = 100


def view_query(parameters: Mapping[str, str]) -> str:
    """Return the query string of the parameters that a view keeps."""
    texts = {name: parameters.get(name, "").strip() for name in VIEW_PARAMETERS}
    return urlencode({name: text for name, text in texts.items() if text})


def canonical_query(text: str, collection: Collection, reader: Any) -> str:
    """Return the query string of a leaderboard as a view keeps it.

    Raise InvalidInput, with the pointer /query, for one that the leaderboard does not read.
    """
    if len(text) > 3 * MAX_QUERY:
        raise _too_long(len(text))

    try:
        fields = parse_qsl(
            text.strip().removeprefix("?"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
        query_dict = QueryDict(mutable=True)
        for name, value in fields:
            query_dict.appendlist(name, value)

        for refusal in refusals(query_dict, VIEW_PARAMETERS):
            raise refusal

        # The view keeps labels, which are movable.
        parameters = text_of(query_dict)
        by_id = without_labels(parameters, collection, reader)
        BoardQuery.read(by_id, collection, reader)
        StandingsQuery.requested({**by_id, "statistics": _statistics_in(by_id)})

        if parameters.get("measures"):
            measures = measures_in(parameters, "measures", [], collection)
            parameters["measures"] = ",".join(measure.name for measure in measures)

        if parameters.get("sort"):
            sort = measure_in(parameters, "sort", collection.measures[0], collection)
            parameters["sort"] = sort.name
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error
    except ValueError as error:
        raise InvalidInput(f"query: not a query string ({error})", pointer="/query") from error

    query = view_query(parameters)
    if len(query) > MAX_QUERY:
        raise _too_long(len(query))

    return query


def _statistics_in(parameters: Mapping[str, str]) -> str:
    statistics = parameters.get("statistics", "")
    return "" if statistics == _NO_STATISTICS else statistics


def _too_long(length: int) -> InvalidInput:
    return InvalidInput(
        f"query: {length:,} characters; at most {MAX_QUERY:,}",
        code="text_too_long",
        pointer="/query",
    )


def visible_view(user: Any, code: str) -> View:
    """Return a view that the user sees."""
    views = View.objects.visible_to(user).select_related("collection__team", "team", "owner")
    view = views.filter(code=code).first()
    if view is None:
        raise Http404(f"there is no view {code[:20]!r}")

    return view


def changeable_view(user: Any, code: str) -> View:
    """Return a view that the user may change. Raise NotAllowed if the user may only see it."""
    view = visible_view(user, code)
    if not View.objects.changeable_by(user).filter(pk=view.pk).exists():
        raise NotAllowed(
            f"view {code} is for all readers of collection {view.collection}; "
            "its organisers change it"
        )

    return view


def parameters_of(view: View) -> dict[str, str]:
    return dict(parse_qsl(view.query))


def with_view(parameters: Mapping[str, str], collection: Collection, reader: Any) -> dict[str, str]:
    """Return the parameters of a request together with those of the view that it names.

    A parameter of the request, even without a value, replaces that of the view. Raise InvalidInput
    (`unknown_view`) for a view that the reader does not see.
    """
    own = dict(parameters)
    code = own.pop("view", "")
    if not code:
        return own

    view = View.objects.visible_to(reader).filter(collection=collection, code=code).first()
    if view is None:
        message = (
            f"there is no view {code[:20]!r} of collection {collection.slug}; "
            "its views/ lists those that you see"
        )
        raise InvalidInput(message, code="unknown_view", pointer="view")

    return {**parameters_of(view), **own}


def board_parameters(request: Request, collection: Collection) -> dict[str, str]:
    """Return the parameters of a leaderboard of the API, those of a view included.

    Labels are replaced by the ids of their runs.
    """
    own = text_of(request.query_params)
    merged = with_view(own, collection, request.user)

    # The page shows statistics unless a view says none; the API shows those that are named.
    if own.get("view"):
        merged["statistics"] = _statistics_in(merged)
        if not (merged["statistics"] or merged.get("baseline")):
            for name in HOW_MADE:
                if not own.get(name):
                    merged.pop(name, None)

    return without_labels(merged, collection, request.user)
