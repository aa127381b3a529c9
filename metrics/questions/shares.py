"""Read what is to be shared: a leaderboard, a comparison or a run that the user sees, with the parameters it keeps."""

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
from metrics.services.question import measures_in
from runs.errors import InvalidInput
from runs.models import Collection, ShareLink
from runs.models.sharing.shares import MAX_SHARED_QUERY
from runs.services.sharing.shares import Shared
from runs.web.access import scored_collection, scored_run
from runs.web.parameters import refusals, text_of

_Kind = ShareLink.Kind
# What names the object, beside the collection.
_NAMES = {_Kind.RUN: "run", _Kind.COMPARISON: "comparison"}


def shared_in(request: HttpRequest | Request, given: Mapping[str, Any]) -> Shared:
    """Return what the fields `kind`, `collection`, `run`, `comparison` and `query` name. Raise Http404 for what the
    user does not see, InvalidInput for fields that do not go together."""
    kind, query = str(given.get("kind", "")), str(given.get("query") or "")
    if kind not in _Kind.values:
        raise InvalidInput(
            f"{kind[:20]!r} is not one of {', '.join(_Kind.values)}", pointer="/kind"
        )
    for name in _NAMES.values():
        if given.get(name) and name != kind:
            raise InvalidInput(
                f"{name} belongs to kind={name}; leave it out of kind={kind}", pointer=f"/{name}"
            )
    if given.get("collection") and (kind == _Kind.RUN or given.get("comparison")):
        raise InvalidInput(
            f"a {kind} is named by its id alone; leave the collection out", pointer="/collection"
        )
    if kind == _Kind.RUN:
        run = scored_run(request, _id_in(given, "run"))
        return Shared(kind, run.collection, str(run.pk), _run_query(query, run.collection))
    if kind == _Kind.COMPARISON and given.get("comparison"):
        if query:
            raise InvalidInput("a stored comparison has no query; leave it out", pointer="/query")
        stored = stored_comparison(request, _id_in(given, "comparison"))
        return Shared(kind, stored.qrels.collection, str(stored.pk))
    if not given.get("collection"):
        raise InvalidInput("name the collection", code="required", pointer="/collection")
    collection = scored_collection(request, str(given["collection"]))
    read = _comparison_query if kind == _Kind.COMPARISON else canonical_query
    return Shared(kind, collection, query=read(query, collection, request.user))


def parameters_of_link(link: ShareLink) -> dict[str, str]:
    return dict(parse_qsl(link.query))


def _id_in(given: Mapping[str, Any], name: str) -> UUID:
    text = str(given.get(name) or "")
    if not text:
        raise InvalidInput(f"name the {name} by its id", code="required", pointer=f"/{name}")
    try:
        return UUID(text)
    except ValueError:
        raise Http404(f"there is no {name} {text[:40]!r}") from None


def _run_query(text: str, collection: Collection) -> str:
    try:
        given = _parsed(text, ["measures"])
        measures = measures_in(given, "measures", [], collection.documents)
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error
    return urlencode({"measures": ",".join(one.name for one in measures)}) if measures else ""


def _comparison_query(text: str, collection: Collection, reader: Any) -> str:
    """Return the parameters of a comparison, with ids in place of labels: what is shared does not move."""
    try:
        given = without_labels(_parsed(text, names_of(COMPARISON)), collection, reader)
        query = ComparisonQuery.read(given, collection)
        if isinstance(look_up_comparison(collection=collection, query=query), Outlook):
            message = "this comparison takes long: run it in the background first, then share the stored one"
            raise InvalidInput(message, code="too_much_work")
    except EvalHubError as error:
        raise InvalidInput(error.message, code=error.code, pointer="/query") from error
    kept = urlencode(query.address())
    if len(kept) > MAX_SHARED_QUERY:
        raise InvalidInput("query: too many runs to share; run the comparison in the background, then share the stored "
                           "one", code="too_many_runs", pointer="/query")  # fmt: skip
    return kept


def _parsed(text: str, known: list[str]) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            text.strip().removeprefix("?")[: 3 * MAX_SHARED_QUERY], max_num_fields=100
        )
    except ValueError as error:
        raise InvalidInput(f"query: not a query string ({error})") from error
    given = QueryDict(mutable=True)
    for name, value in pairs:
        given.appendlist(name, value)
    for refusal in refusals(given, known):
        raise refusal
    return text_of(given)
