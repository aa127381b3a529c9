"""The home page, and what every page shares: declared parameters, and errors as pages."""

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
from django.urls import reverse
from django.views.decorators.http import require_safe
from rest_framework.settings import api_settings

from metrics.engine.errors import EvalHubError
from metrics.services.queue.status import failed_runs, statuses
from runs.errors import says_damaged
from runs.models import Campaign, CampaignMember, Collection, Invitation, Run, Team, User
from runs.models.collections.disclosure import in_team_of, led_by
from runs.services.accounts.first_account import has_code
from runs.services.tracking.activity import recent_activity
from runs.web.access import collections_of
from runs.web.parameters import refusals

View = Callable[..., HttpResponseBase]
# On the home page.
_MAX_RUNS, _MAX_CAMPAIGNS, _MAX_UNJUDGED, _MAX_DEEDS = 8, 5, 3, 10


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
def collections_page(request: HttpRequest) -> HttpResponse:
    """Redirect to the page that lists the collections."""
    return HttpResponseRedirect(reverse("home"))


@page
def api_root(request: HttpRequest) -> HttpResponse:
    """Redirect from the root of the API to its documentation."""
    return HttpResponseRedirect(reverse("api-docs"))


@page
def home(request: HttpRequest) -> HttpResponse:
    """Show the visible collections, the reader's latest runs and what to do next.

    The first visit of an installation shows the form for its first account.
    """
    collections = list(collections_of(request.user))
    context: dict[str, Any] = {"collections": collections}

    if request.user.is_authenticated:
        context |= _own_work(request, collections)
    elif not collections and not User.objects.exists():
        if has_code():
            return render(request, "runs/first_account.html")
        context["unclaimed"] = True

    return render(request, "runs/home.html", context)


def _own_work(request: HttpRequest, collections: list[Collection]) -> dict[str, Any]:
    """Return the reader's latest runs with their states, recent activity, and what to do next."""
    user = request.user
    own = Run.objects.visible_to(user).filter(in_team_of(user)).select_related("team", "collection")
    runs = list(own.defer("metadata", "ir_metadata", "warnings", "known_warnings")[:_MAX_RUNS])
    states = statuses(runs, user)

    managed = set(Collection.objects.managed_by(user).values_list("pk", flat=True))
    unjudged = [
        collection
        for collection in collections
        if collection.pk in managed and not collection.active_version  # type: ignore[attr-defined]
    ]

    members = CampaignMember.objects.filter(
        user=user.pk, left_at=None, campaign__state=Campaign.State.PUBLISHED
    )
    members = members.select_related("participation__campaign", "participation__team").order_by(
        "-campaign__created_at"
    )
    organised = (
        Campaign.objects.filter(led_by(user))
        .exclude(state=Campaign.State.ARCHIVED)
        .order_by("-created_at")
    )

    return {
        "organised": list(organised[:_MAX_CAMPAIGNS]),
        "taking_part": [member.participation for member in members[:_MAX_CAMPAIGNS]],
        "runs": [(run, states[str(run.pk)]) for run in runs],
        "failed": failed_runs(user) if runs else 0,
        "deeds": recent_activity(user, _MAX_DEEDS),
        "unjudged": unjudged[:_MAX_UNJUDGED],
        "alone": not Team.objects.of(user).filter(personal_of=None).exists(),
        "invitations": Invitation.objects.filter(user=user.pk).count(),
    }
