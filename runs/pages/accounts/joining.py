"""Pages for people who cannot log in yet: invitation links, registration, forgotten passwords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput, NotFound
from runs.models import InvitationLink, User
from runs.services.accounts.addresses import ask_address
from runs.services.accounts.first_account import create_first_account
from runs.services.accounts.invitation_links import (
    creates_accounts,
    find_link,
    join,
    join_as_newcomer,
    mail_has_links,
)
from runs.services.accounts.passwords import request_reset, reset_password, user_of
from runs.services.accounts.provider_accounts import provider_label
from runs.services.accounts.registration import request_account, takes_registrations
from runs.services.audit.trail import Origin
from runs.web.forms import refusal_of
from runs.web.origin import origin_of
from runs.web.views import check_parameters, error_page, reads

_ACCOUNT = ("username", "password", "again")
FORM = require_http_methods(["GET", "HEAD", "POST"])


def password_of(form: Any) -> str:
    """Return the new password of a form. Raise InvalidInput if its two fields differ."""
    if form.get("password", "") != form.get("again", ""):
        raise InvalidInput("the two passwords differ", pointer="/again")
    return str(form.get("password", ""))


def welcome(request: HttpRequest, user: User, message: str, address: str = "") -> HttpResponse:
    """Log a new user in, and lead to a page: the home page unless an address says otherwise."""
    login(request, user)
    messages.success(request, message)
    return HttpResponseRedirect(address or reverse("home"), status=303)


@FORM
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
            password=password_of(form),
            origin=origin_of(request),
        )
    except EvalHubError as error:
        refusal = refusal_of(error)
        context = {"form_values": form, "refused": refusal, "field_errors": refusal.fields}
        return render(request, "runs/first_account.html", context, status=refusal.status)

    return welcome(request, user, f"Welcome, {user}. You are the administrator of this server.")


@FORM
@sensitive_post_parameters("code", "password", "again")
@check_parameters
@reads("code", fields=("code", "email", *_ACCOUNT))
def join_page(request: HttpRequest) -> HttpResponse:
    """Join the team of an invitation link, with an account or with a new one, or create one."""
    form = request.POST if request.method == "POST" else request.GET
    code = form.get("code", "")
    context: dict[str, Any] = {"code": code, "form_values": form}
    status = 200
    if request.method != "POST" and not code:
        return without_trace(render(request, "runs/join.html", context))

    try:
        link = find_link(code)
        context |= {"link": link, "creates_accounts": creates_accounts(link)}
        context["asks_address"] = asks_address(request, link)
        context["provider"] = provider_label()
        if link.campaign:
            query = urlencode({"code": code})
            return HttpResponseRedirect(f"{reverse('join-campaign-page')}?{query}", status=303)

        if request.method == "POST" and request.user.is_authenticated:
            return _join(request, link, form.get("email", ""))

        if request.method == "POST":
            user = join_as_newcomer(
                link=link,
                username=form.get("username", ""),
                password=password_of(form),
                email=form.get("email", ""),
                origin=origin_of(request),
            )
            team = f" You are in team {link.team.name}." if link.team else ""
            return welcome(request, user, f"Welcome, {user}.{team}")
    except EvalHubError as error:
        if "link" not in context:
            return without_trace(error_page(request, error))
        refusal = refusal_of(error)
        context |= {"refused": refusal, "field_errors": refusal.fields}
        status = refusal.status

    return without_trace(render(request, "runs/join.html", context, status=status))


def _join(request: HttpRequest, link: InvitationLink, email: str) -> HttpResponse:
    """Let the signed-in reader join, and send a mail to the address, if one was asked for."""
    user, origin = cast(User, request.user), origin_of(request)
    with transaction.atomic():
        team = join(link=link, user=user, origin=origin).team
        if email.strip() and asks_address(request, link):
            ask_address(user=user, email=email, origin=origin)

    messages.success(request, f"You are now in team {team.name}.")
    if link.participation:
        desk = reverse("campaign-team-page", args=[link.participation.campaign.slug])
        return HttpResponseRedirect(desk, status=303)

    return HttpResponseRedirect(reverse("team-page", args=[team.slug]), status=303)


@FORM
@check_parameters
@reads(fields=("email",))
def register_page(request: HttpRequest) -> HttpResponse:
    """Ask for an account: a mail to the address has the link that creates it."""
    if not takes_registrations():
        return error_page(request, NotFound("administrators create the accounts of this server"))

    context = {"domains": settings.EVALHUB_REGISTRATION_DOMAINS}
    return _mail_form(request, "runs/register.html", context, request_account)


@FORM
@check_parameters
@reads(fields=("email",))
def forgotten_password_page(request: HttpRequest) -> HttpResponse:
    """Ask for a mail with a link that sets a new password."""
    if not mail_has_links():
        message = "this server sends no mail; ask an administrator for a new password"
        return error_page(request, NotFound(message))

    return _mail_form(request, "runs/forgotten_password.html", {}, _request_reset)


def _request_reset(*, email: str, origin: Origin) -> None:
    request_reset(email=email)


def _mail_form(
    request: HttpRequest, template: str, context: dict[str, Any], act: Callable[..., None]
) -> HttpResponse:
    """Answer a form with an address: the page is the same for every address."""
    if request.method != "POST":
        return without_trace(render(request, template, context))

    context = {**context, "form_values": request.POST}
    try:
        act(email=request.POST.get("email", ""), origin=origin_of(request))
    except EvalHubError as error:
        refusal = refusal_of(error)
        context |= {"refused": refusal, "field_errors": refusal.fields}
        return without_trace(render(request, template, context, status=refusal.status))

    return without_trace(render(request, template, {**context, "mail_sent": True}))


@FORM
@sensitive_post_parameters("code", "password", "again")
@check_parameters
@reads("code", fields=("code", "password", "again"))
def new_password_page(request: HttpRequest) -> HttpResponse:
    """Set a new password with the link of a mail, which works once."""
    form = request.POST if request.method == "POST" else request.GET
    token = form.get("code", "")
    context: dict[str, Any] = {"code": token}
    status = 200
    if request.method != "POST" and not token:
        return HttpResponseRedirect(reverse("forgotten-password-page"), status=303)

    try:
        context["account"] = user_of(token)
        if request.method == "POST":
            user = reset_password(
                token=token, password=password_of(form), origin=origin_of(request)
            )
            messages.success(
                request, f"{user} has a new password, and all sessions have ended. Log in with it."
            )
            return HttpResponseRedirect(reverse("login"), status=303)
    except EvalHubError as error:
        if "account" not in context:
            return without_trace(error_page(request, error))
        refusal = refusal_of(error)
        context |= {"refused": refusal, "field_errors": refusal.fields}
        status = refusal.status

    return without_trace(render(request, "runs/new_password.html", context, status=status))


def asks_address(request: HttpRequest, link: InvitationLink) -> bool:
    """Return whether the form of a link has a field for a mail address.

    It has one where the server sends mail to people who have none yet.
    """
    if request.user.is_authenticated:
        return bool(settings.EVALHUB_MAIL_URL and not request.user.email)
    return bool(settings.EVALHUB_MAIL_URL and not link.email)


def without_trace(response: HttpResponse) -> HttpResponse:
    """Keep a page with a secret in its address out of caches, search engines and other hosts.

    Its forms need the policy `same-origin`: with `no-referrer` browsers send them without the
    origin that the check of CSRF tokens reads.
    """
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "same-origin"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
