"""What every page shares: declared parameters, and errors as pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.db import DatabaseError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_safe
from rest_framework.settings import api_settings

from metrics.engine.errors import EvalHubError
from runs.errors import says_damaged
from runs.web.parameters import refusals

View = Callable[..., HttpResponseBase]


def problem_of(error: Exception) -> tuple[int, str]:
    """Return the API's status and sentence for an error, so that one place decides them."""
    answer = answer_of_the_api(error)
    return answer.status_code, answer.data["detail"]


def answer_of_the_api(error: Exception) -> Any:
    """Return the API's answer to an error. Raise the error if it has none."""
    handler: Any = api_settings.EXCEPTION_HANDLER
    answer = handler(error, {})
    if answer is None:
        raise error

    return answer


def error_page(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer an error with a page. Errors without an answer in the API are raised again."""
    answer = answer_of_the_api(error)
    status = answer.status_code
    context = {"status": status, "detail": answer.data["detail"], "code": answer.data["code"]}
    page = render(request, "evalhub/error.html", context, status=status)
    if wait := answer.headers.get("Retry-After"):
        page["Retry-After"] = wait

    return page


def reads(*names: str, fields: tuple[str, ...] = (), numbered: str = "") -> Callable[[View], View]:
    """Declare the query parameters that a page reads, and the fields of its form.

    A `numbered` one is read with any number behind it. `page` and `check_parameters` refuse all
    others; a page without a declaration reads none.
    """

    def decorate(view: View) -> View:
        page: Any = view
        page.reads, page.fields, page.numbered = names, fields, numbered
        return view

    return decorate


def check_parameters(view: View) -> View:
    """Decorate a view of a page to report unknown parameters.

    The page is shown without them, with a note that names them and with status 400. A request that
    changes something does nothing.
    """
    names, fields = getattr(view, "reads", ()), getattr(view, "fields", ())
    numbered = getattr(view, "numbered", "")

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        readable = list(names)
        if numbered:
            pattern = re.compile(rf"{numbered}[0-9]+")
            readable += [name for name in request.GET if pattern.fullmatch(name)]

        problems = list(refusals(request.GET, readable))

        if request.method not in ("GET", "HEAD"):
            if fields and not problems:
                problems = list(refusals(request.POST, ("csrfmiddlewaretoken", *fields), "field"))
            return error_page(request, problems[0]) if problems else view(request, *args, **kwargs)

        if not problems:
            return view(request, *args, **kwargs)

        request.refused = problems  # type: ignore[attr-defined]
        leave_out(request, [str(problem.pointer) for problem in problems])
        response = view(request, *args, **kwargs)
        if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
            response.status_code = HTTPStatus.BAD_REQUEST
            # A client with the page and this note must not get the answer that it is unchanged.
            del response["ETag"]

        # A redirect would lead to a page without the note.
        if response.status_code < HTTPStatus.BAD_REQUEST:
            request.refused = []  # type: ignore[attr-defined]
            return error_page(request, problems[0])

        return response

    return answer


def leave_out(request: HttpRequest, names: Iterable[str]) -> None:
    """Remove parameters from the query string, so that the page's links do not contain them."""
    parameters = request.GET.copy()
    for name in names:
        parameters.pop(name, None)
    request.GET = parameters  # type: ignore[assignment]


def page(view: View) -> View:
    """Decorate a view that only reads; its errors become pages with the status of the API."""

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

    return require_safe(check_parameters(guarded))


@page
def api_root(request: HttpRequest) -> HttpResponse:
    """Redirect from the root of the API to its documentation."""
    return HttpResponseRedirect(reverse("api-docs"))


@page
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect programs that know only this address to the icon that pages name."""
    return HttpResponseRedirect(static("evalhub/favicon.svg"))
