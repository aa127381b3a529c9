"""Pages for people without an account: the first visit of a server, and an invitation link."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.models import User
from runs.services.accounts.first_account import create_first_account
from runs.services.accounts.invitation_links import find_link, join, join_as_newcomer
from runs.web.forms import refusal_of
from runs.web.origin import origin_of
from runs.web.views import check_parameters, error_page, reads

_ACCOUNT = ("username", "password", "again")
_FORM = require_http_methods(["GET", "HEAD", "POST"])


def _password_of(form: Any) -> str:
    if form.get("password", "") != form.get("again", ""):
        raise InvalidInput("the two passwords differ", pointer="/again")
    return str(form.get("password", ""))


def _welcome(request: HttpRequest, user: User, message: str) -> HttpResponse:
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    messages.success(request, message)
    return HttpResponseRedirect(reverse("home"), status=303)


@_FORM
@sensitive_post_parameters("code", "password", "again")
@check_parameters
@reads(fields=("code", *_ACCOUNT))
def first_account_page(request: HttpRequest) -> HttpResponse:
    """Create the first account. Its form is on the home page, and here after an error."""
    if request.method != "POST":
        return HttpResponseRedirect(reverse("home"))

    form = request.POST
    try:
        user = create_first_account(
            code=form.get("code", ""),
            username=form.get("username", ""),
            password=_password_of(form),
            origin=origin_of(request),
        )
    except EvalHubError as error:
        refusal = refusal_of(error)
        context = {"form_values": form, "refused": refusal, "field_errors": refusal.fields}
        return render(request, "runs/first_account.html", context, status=refusal.status)

    return _welcome(request, user, f"Welcome, {user}. You are the administrator of this server.")


@_FORM
@sensitive_post_parameters("code", "password", "again")
@check_parameters
@reads("code", fields=("code", *_ACCOUNT))
def join_page(request: HttpRequest) -> HttpResponse:
    """Join the team of an invitation link, with an account or with a new one."""
    form = request.POST if request.method == "POST" else request.GET
    code = form.get("code", "")
    context: dict[str, Any] = {"code": code, "form_values": form}
    status = 200
    if request.method != "POST" and not code:
        return render(request, "runs/join.html", context)

    try:
        link = find_link(code)
        context["link"] = link
        if request.method == "POST" and request.user.is_authenticated:
            join(link=link, user=request.user, origin=origin_of(request))
            messages.success(request, f"You are now in team {link.team.name}.")
            if link.participation:
                desk = reverse("campaign-team-page", args=[link.participation.campaign.slug])
                return HttpResponseRedirect(desk, status=303)
            return HttpResponseRedirect(reverse("team-page", args=[link.team.slug]), status=303)

        if request.method == "POST":
            user = join_as_newcomer(
                link=link,
                username=form.get("username", ""),
                password=_password_of(form),
                origin=origin_of(request),
            )
            return _welcome(request, user, f"Welcome, {user}. You are in team {link.team.name}.")
    except EvalHubError as error:
        if "link" not in context:
            return error_page(request, error)
        refusal = refusal_of(error)
        context |= {"refused": refusal, "field_errors": refusal.fields}
        status = refusal.status

    response = render(request, "runs/join.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
