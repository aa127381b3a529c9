"""Pages of collections and runs, and what every page shares: how a refusal becomes a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from rest_framework.settings import api_settings

from metrics.engine.errors import EvalHubError
from runs.api.access import collections_of

View = Callable[..., HttpResponse]


def problem_of(error: Exception) -> tuple[int, str]:
    """The status and the sentence that the API answers for an error: there is one place that decides them."""
    handler: Any = api_settings.EXCEPTION_HANDLER
    answer = handler(error, {})
    return answer.status_code, answer.data["detail"]


def page(view: View) -> View:
    """A view that only reads; what it refuses becomes an error page with the status of the API."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (EvalHubError, Http404, OperationalError) as error:
            status, detail = problem_of(error)
            return render(request, "evalhub/error.html", {"status": status, "detail": detail}, status=status)

    return require_safe(guarded)


@page
def home(request: HttpRequest) -> HttpResponse:
    """What this is, and the collections that the reader may see."""
    return render(request, "runs/home.html", {"collections": list(collections_of(request.user))})
