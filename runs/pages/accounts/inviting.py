"""The page on which administrators invite people without an account."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.accounts.account_invitations import AccountInvitationSerializer, check_administrator
from runs.models import Scope, Team, User
from runs.services.accounts.invitation_links import (
    DAYS,
    account_links,
    create_account_link,
    is_open,
    mail_has_links,
    revoke_link,
)
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.permissions import Access


class InvitePage(FormPage):
    """Links that create accounts: make one, see the open ones, revoke one."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ADMINISTRATORS, "POST": Access.ADMINISTRATORS}
    fields = ("action", "team", "email", "days", "max_uses", "key")

    def get(self, request: Request) -> HttpResponse:
        check_administrator(request)
        return self._page(request)

    def post(self, request: Request) -> HttpResponse:
        check_administrator(request)
        user, origin = cast(User, request.user), origin_of(request)
        try:
            if request.data.get("action") == "revoke":
                revoke_link(key=str(request.data.get("key", "")), origin=origin)
                messages.success(request, "Invitation link revoked.")
                return redirect_to(request, reverse("invite-page"))

            fields = fields_of(request, "team", "email", "days", "max_uses")
            filled: dict[str, Any] = {
                name: value for name, value in fields.items() if value.strip()
            }
            if "max_uses" in fields and "max_uses" not in filled:
                filled["max_uses"] = None
            serializer = AccountInvitationSerializer(data=filled)
            serializer.is_valid(raise_exception=True)
            link, code = create_account_link(by=user, **serializer.validated_data, origin=origin)
        except (EvalHubError, APIException) as error:
            return self._page(request, refusal_of(error))

        path = f"{reverse('join-page')}?{urlencode({'code': code})}"
        return self._page(request, new_link=request.build_absolute_uri(path), mailed_to=link.email)

    def _page(
        self,
        request: Request,
        refusal: Refusal | None = None,
        new_link: str = "",
        mailed_to: str = "",
    ) -> HttpResponse:
        context = {
            "links": list(account_links().filter(is_open())),
            "teams": list(Team.objects.filter(personal_of=None)),
            "sends_mail": mail_has_links(),
            "form_values": request.data if refusal else {"days": DAYS, "max_uses": 1},
            "refused": refusal,
            "field_errors": refusal.fields if refusal else {},
            "new_link": new_link,
            "mailed_to": mailed_to,
        }

        status = refusal.status if refusal else 201 if new_link else 200
        response = render(request, "runs/invite.html", context, status=status)
        response["Cache-Control"] = "no-store"
        return response
