"""The parameters of a saved view: checked and written in one way when it is saved, put into a request that names it."""

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
from runs.models.sharing.saved_views import MAX_QUERY, ViewQuerySet
from runs.web.parameters import refusals, text_of

# What a view keeps of a leaderboard, in this order: everything but its place in the pages.
KEPT = tuple(name for name in names_of(BOARD) if name != "offset")
# What a page has in place of names of statistics, to show none.
_NO_STATISTICS = "none"
_MOST_FIELDS = 100


def kept_query(parameters: Mapping[str, str]) -> str:
    """Return the parameters that a view keeps, as text."""
    return urlencode(
        {name: parameters[name].strip() for name in KEPT if parameters.get(name, "").strip()}
    )


def canonical_query(text: str, collection: Collection, reader: Any) -> str:
    """Return the query string of a leaderboard as a view keeps it. Raise InvalidInput, with the pointer /query, for one
    that the leaderboard does not read."""
    if len(text) > 3 * MAX_QUERY:
        raise _too_long(len(text))
    try:
        pairs = parse_qsl(
            text.strip().removeprefix("?"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
        given = QueryDict(mutable=True)
        for name, value in pairs:
            given.appendlist(name, value)
        for refusal in refusals(given, KEPT):
            raise refusal
        parameters = text_of(given)
        asked = without_labels(parameters, collection, reader)
        BoardQuery.read(asked, collection, reader)
        StandingsQuery.requested({**asked, "statistics": _statistics_in(asked)})
        for name, read in (("measures", _measures), ("sort", _sort)):
            if parameters.get(name):
                parameters[name] = read(parameters, collection)
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error
    except ValueError as error:
        raise InvalidInput(f"query: not a query string ({error})", pointer="/query") from error
    query = kept_query(parameters)
    if len(query) > MAX_QUERY:
        raise _too_long(len(query))
    return query


def _measures(parameters: Mapping[str, str], collection: Collection) -> str:
    return ",".join(
        measure.name for measure in measures_in(parameters, "measures", [], collection.documents)
    )


def _sort(parameters: Mapping[str, str], collection: Collection) -> str:
    return measure_in(parameters, "sort", collection.measures[0], collection.documents).name


def _statistics_in(parameters: Mapping[str, str]) -> str:
    named = parameters.get("statistics", "")
    return "" if named == _NO_STATISTICS else named


def _too_long(length: int) -> InvalidInput:
    return InvalidInput(
        f"query: {length:,} characters; at most {MAX_QUERY:,}",
        code="text_too_long",
        pointer="/query",
    )


def seen_view(user: Any, code: str) -> View:
    """Return a view that the user sees."""
    return _the(View.objects.visible_to(user), code)


def changeable_view(user: Any, code: str) -> View:
    """Return a view that the user may change. Raise NotAllowed for one that the user may only see."""
    seen = seen_view(user, code)
    if not View.objects.changeable_by(user).filter(pk=seen.pk).exists():
        raise NotAllowed(
            f"view {code} is for all readers of collection {seen.collection}; its organisers change it"
        )
    return seen


def _the(views: ViewQuerySet, code: str) -> View:
    found = views.select_related("collection__team", "team", "owner").filter(code=code).first()
    if found is None:
        raise Http404(f"there is no view {code[:20]!r}")
    return found


def parameters_of(view: View) -> dict[str, str]:
    return dict(parse_qsl(view.query))


def with_view(parameters: Mapping[str, str], collection: Collection, reader: Any) -> dict[str, str]:
    """Return the parameters with those of the view that they name; a parameter that is given, even without a value,
    stands in place of the view's. Raise InvalidInput (`unknown_view`) for a view that the reader
    does not see."""
    given = dict(parameters)
    code = given.pop("view", "")
    if not code:
        return given
    view = View.objects.visible_to(reader).filter(collection=collection, code=code).first()
    if view is None:
        message = f"there is no view {code[:20]!r} of collection {collection.slug}; its views/ lists those that you see"
        raise InvalidInput(message, code="unknown_view", pointer="view")
    return {**parameters_of(view), **given}


def board_parameters(request: Request, collection: Collection) -> dict[str, str]:
    """Return the parameters of a leaderboard that the API is asked for, with those of a view, and ids of runs in place
    of labels. The page shows statistics unless a view says none; the API shows those that are
    named."""
    given = text_of(request.query_params)
    merged = with_view(given, collection, request.user)
    if given.get("view"):
        merged["statistics"] = _statistics_in(merged)
        if not (merged["statistics"] or merged.get("baseline")):
            merged = {
                name: text
                for name, text in merged.items()
                if name not in HOW_MADE or given.get(name)
            }
    return without_labels(merged, collection, request.user)
