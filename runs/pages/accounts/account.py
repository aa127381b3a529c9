"""The page of the reader's account: answer invitations, change the password, end sessions."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.errors import NotFound
from runs.models import (
    ApiToken,
    Collection,
    Invitation,
    ProviderAccount,
    Scope,
    Team,
    User,
    Webhook,
)
from runs.services.accounts.accounts import change_password, end_sessions
from runs.services.accounts.addresses import address_in, ask_address, confirm_address
from runs.services.accounts.passwords import may_use_password
from runs.services.accounts.provider_accounts import provider_label, unlink_provider
from runs.services.accounts.teams import accept_invitation, end_invitation
from runs.services.audit.trail import Origin
from runs.web.forms import FormPage
from runs.web.origin import origin_of
from runs.web.views import problem_of


class AccountPage(FormPage):
    """The account of the logged-in user.

    `action` answers an invitation, changes the address or the password, unlinks an account of the
    provider, or ends the other sessions.
    """

    scopes = {"POST": Scope.MANAGE}
    reads = ("confirm",)
    fields = (
        "action",
        "team",
        "email",
        "confirmation",
        "old_password",
        "new_password1",
        "new_password2",
        "provider_account",
    )

    def get(self, request: Request) -> HttpResponse:
        return _page(request)

    def post(self, request: Request) -> HttpResponse:
        user, origin = cast(User, request.user), origin_of(request)
        action = request.data.get("action")
        if action in ("accept", "decline"):
            return _answer_invitation(request, user, origin)
        if action in ("address", "confirm"):
            return _change_address(request, user, origin)
        if action == "unlink":
            return _unlink(request, user, origin)

        if action == "sessions":
            end_sessions(user=user, origin=origin)
            message = "All other sessions have been ended."
        elif not may_use_password(user):
            return _page(request, 403, refused=["You log in without a password of this server."])
        else:
            form = PasswordChangeForm(user, request.data)
            if not form.is_valid():
                problems = [str(problem) for field in form.errors.values() for problem in field]
                return _page(request, 400, refused=problems)
            change_password(user=user, password=form.cleaned_data["new_password1"], origin=origin)
            message = "Password changed. All other sessions have been ended."

        # Keep this session.
        update_session_auth_hash(request, user)
        return _page(request, done=message)


def _change_address(request: Request, user: User, origin: Origin) -> HttpResponse:
    email = str(request.data.get("email", ""))
    mail_sent = False
    try:
        if request.data.get("action") == "confirm":
            token = str(request.data.get("confirmation", ""))
            confirm_address(user=user, token=token, origin=origin)
        else:
            mail_sent = ask_address(user=user, email=email, origin=origin)
    except EvalHubError as error:
        status, detail = problem_of(error)
        return _page(request, status, refused=[detail])

    if mail_sent:
        message = f"A mail was sent to {email.strip()}: open the link in it to confirm."
    elif user.email:
        message = f"Mail goes to {user.email}."
    else:
        message = "You get no mail."

    return _page(request, done=message)


def _unlink(request: Request, user: User, origin: Origin) -> HttpResponse:
    try:
        key = str(request.data.get("provider_account", ""))
        unlink_provider(user=user, key=key, origin=origin)
    except EvalHubError as error:
        status, detail = problem_of(error)
        return _page(request, status, refused=[detail])

    return _page(request, done="You no longer log in with that account.")


def _answer_invitation(request: Request, user: User, origin: Origin) -> HttpResponse:
    team = str(request.data.get("team", ""))
    try:
        invitation = user.invitations.select_related("team", "user").filter(team__slug=team).first()
        if invitation is None:
            raise NotFound(f"you are not invited to team {team!r}")
        if request.data.get("action") == "decline":
            end_invitation(invitation=invitation, origin=origin)
            return _page(request, done=f"Invitation to {team} declined.")
        accept_invitation(invitation=invitation, origin=origin)
    except EvalHubError as error:
        status, detail = problem_of(error)
        return _page(request, status, refused=[detail])

    return _page(request, done=f"You are now in team {team}.")


def _page(request: Request, status: int = 200, **messages: Any) -> HttpResponse:
    led_teams = Team.objects.led_by(request.user)
    webhooks = Webhook.objects.filter(
        Q(team__in=led_teams) | Q(collection__team__in=led_teams), enabled=False
    )
    invitations = Invitation.objects.filter(user=request.user.pk)
    confirmation = request.query_params.get("confirm", "") if request.method == "GET" else ""

    context = {
        "invitations": invitations.select_related("team", "invited_by", "participation__campaign"),
        "tokens": ApiToken.objects.usable().filter(user=request.user.pk).count(),
        "disabled_webhooks": webhooks.exclude(disabled_reason="").select_related(
            "team", "collection"
        ),
        "confirm": confirmation,
        "confirmed_address": address_in(confirmation) if confirmation else "",
        "provider": provider_label(),
        "provider_accounts": ProviderAccount.objects.filter(user=request.user.pk).order_by("pk"),
        "may_use_password": may_use_password(cast(User, request.user)),
        "led_teams": led_teams,
        "led_collections": Collection.objects.filter(team__in=led_teams),
        **messages,
    }

    response = render(request, "runs/account.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
