"""The page of the reader's tokens: create one, copy it once, revoke one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.accounts.accounts import TokenSerializer
from runs.errors import InvalidInput
from runs.models import ALL_SCOPES, DEFAULT_SCOPES, ApiToken, Scope, User
from runs.services.accounts.tokens import issue_token, revoke_token
from runs.web.forms import FormPage, redirect_to
from runs.web.origin import origin_of
from runs.web.views import problem_of

_DAYS = {"30": "30 days", "90": "90 days", "365": "a year", "": "never"}
_MEANINGS = {
    Scope.READ.value: "read what you can see",
    Scope.SUBMIT.value: "submit runs",
    Scope.MANAGE.value: "manage collections, teams and tokens",
}


class TokensPage(FormPage):
    """The tokens of the logged-in user; `action` creates or revokes one."""

    scopes = {"POST": Scope.MANAGE}
    fields = ("action", "name", "days", "scopes", "key")

    def get(self, request: Request) -> HttpResponse:
        return _page(request)

    def post(self, request: Request) -> HttpResponse:
        try:
            if request.data.get("action") == "revoke":
                key = str(request.data.get("key", ""))
                revoke_token(user=cast(User, request.user), key=key, origin=origin_of(request))
                return redirect_to(request, reverse("tokens-page"))
            token, text = _issue(request)
        except (EvalHubError, APIException) as error:
            status, detail = problem_of(error)
            return _page(request, status, refused=detail)

        return _page(request, 201, new_token=token, text=text)


def _issue(request: Request) -> tuple[ApiToken, str]:
    days = str(request.data.get("days", ""))
    if days not in _DAYS:
        choices = ", ".join(choice for choice in _DAYS if choice)
        raise InvalidInput(f"days must be one of {choices}, or empty", pointer="/days")

    scopes = request.data.getlist("scopes") if hasattr(request.data, "getlist") else []
    serializer = TokenSerializer(data={"name": request.data.get("name", ""), "scopes": scopes})
    serializer.is_valid(raise_exception=True)
    expires_at = timezone.now() + timedelta(days=int(days)) if days else None
    fields = {**serializer.validated_data, "expires_at": expires_at}

    return issue_token(user=cast(User, request.user), origin=origin_of(request), **fields)


def _page(request: Request, status: int = 200, **result: Any) -> HttpResponse:
    context = {
        "tokens": ApiToken.objects.filter(user=request.user.pk, revoked_at=None),
        "now": timezone.now(),
        "scopes": [(scope, _MEANINGS[scope], scope in DEFAULT_SCOPES) for scope in ALL_SCOPES],
        "days": _DAYS,
        **result,
    }

    response = render(request, "runs/tokens.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
