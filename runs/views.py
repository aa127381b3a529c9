"""Pages of collections and runs, and what every page shares: how a refusal becomes a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.db import DatabaseError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from rest_framework.settings import api_settings

from metrics.engine.errors import EvalHubError
from runs.api.access import collections_of
from runs.api.parameters import refusals
from runs.errors import says_damaged

View = Callable[..., HttpResponseBase]


def problem_of(error: Exception) -> tuple[int, str]:
    """The status and the sentence that the API answers for an error: there is one place that decides them."""
    answer = _answer_of_the_api(error)
    return answer.status_code, answer.data["detail"]


def _answer_of_the_api(error: Exception) -> Any:
    handler: Any = api_settings.EXCEPTION_HANDLER
    answer = handler(error, {})
    if answer is None:
        raise error
    return answer


def error_page(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer an error with a page; what the API has no answer for is raised again."""
    answer = _answer_of_the_api(error)
    status, detail = answer.status_code, answer.data["detail"]
    page = render(request, "evalhub/error.html", {"status": status, "detail": detail}, status=status)
    if wait := answer.headers.get("Retry-After"):
        page["Retry-After"] = wait
    return page


def reads(*names: str, fields: tuple[str, ...] = (), numbered: str = "") -> Callable[[View], View]:
    """Say which query parameters a page reads, and which fields of a form; `numbered` ones end in a number.

    `page` and `checked` refuse all others; a page that says nothing reads none.
    """

    def decorate(view: View) -> View:
        view.reads, view.fields, view.numbered = names, fields, numbered  # type: ignore[attr-defined]
        return view

    return decorate


def checked(view: View) -> View:
    """A view of a page that leaves nothing out unsaid: it comes without the parameters that it does not read, with a
    note that names them and with status 400; whatever changes something does nothing."""
    names, fields = getattr(view, "reads", ()), getattr(view, "fields", ())
    numbered = getattr(view, "numbered", "")

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        known = [*names, *(name for name in request.GET if numbered and re.fullmatch(rf"{numbered}[0-9]+", name))]
        refused = list(refusals(request.GET, known))
        if request.method not in ("GET", "HEAD"):
            if fields and not refused:
                refused = list(refusals(request.POST, ("csrfmiddlewaretoken", *fields), "field"))
            return error_page(request, refused[0]) if refused else view(request, *args, **kwargs)
        if not refused:
            return view(request, *args, **kwargs)
        request.refused = refused  # type: ignore[attr-defined]
        leave_out(request, [str(one.pointer) for one in refused])
        response = view(request, *args, **kwargs)
        if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
            response.status_code = HTTPStatus.BAD_REQUEST
            # Who has the page with this note must not be told that it is unchanged.
            del response["ETag"]
        if response.status_code < HTTPStatus.BAD_REQUEST:
            request.refused = []  # type: ignore[attr-defined]
            return error_page(request, refused[0])
        return response

    return answer


def leave_out(request: HttpRequest, names: Iterable[str]) -> None:
    """Take parameters out of the query string, so that no link of the page asks for them again."""
    kept = request.GET.copy()
    for name in names:
        kept.pop(name, None)
    request.GET = kept  # type: ignore[assignment]


def page(view: View) -> View:
    """A view that only reads; what it refuses becomes an error page with the status of the API."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except (EvalHubError, Http404, OperationalError) as error:
            return error_page(request, error)
        except DatabaseError as error:
            if not says_damaged(error):
                raise
            return error_page(request, error)

    return require_safe(checked(guarded))


@page
def home(request: HttpRequest) -> HttpResponse:
    """What this is, and the collections that the reader may see."""
    return render(request, "runs/home.html", {"collections": list(collections_of(request.user))})
