"""The pages of teams: the reader's own, and one team with its members and invitations."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import slugify
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.accounts.accounts import NewMembershipSerializer, NewTeamSerializer, RoleSerializer
from runs.errors import InvalidInput, NotFound
from runs.models import Invitation, Membership, Scope, Team, User
from runs.services.accounts.invitation_links import DAYS, create_link, revoke_link
from runs.services.accounts.teams import (
    change_role,
    create_team,
    delete_team,
    end_invitation,
    invite,
    remove_member,
)
from runs.web.access import led_team, visible_team
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access


class TeamsPage(FormPage):
    """The teams of the reader; create another one."""

    scopes = {"POST": Scope.MANAGE}
    fields = ("name", "slug")

    def get(self, request: Request) -> HttpResponse:
        return self._page(request)

    def post(self, request: Request) -> HttpResponse:
        fields = fields_of(request, "name", "slug")
        fields["slug"] = fields.get("slug") or slugify(fields.get("name", ""))[:64]
        try:
            serializer = NewTeamSerializer(data=fields)
            serializer.is_valid(raise_exception=True)
            owner = cast(User, request.user)
            team = create_team(owner=owner, origin=origin_of(request), **serializer.validated_data)
        except (EvalHubError, APIException) as error:
            return self._page(request, fields, refusal_of(error))

        messages.success(request, f"Team {team.name} created. Invite its members.")
        return redirect_to(request, reverse("team-page", args=[team.slug]))

    def _page(
        self, request: Request, fields: dict[str, str] | None = None, refusal: Refusal | None = None
    ) -> HttpResponse:
        memberships = Membership.objects.filter(user=request.user.pk).select_related("team")
        context = {
            "memberships": memberships.order_by("team__slug"),
            "invitations": Invitation.objects.filter(user=request.user.pk).count(),
            "form_values": fields or {},
        }

        return render_form(request, "runs/teams.html", context, refusal)


class TeamPage(FormPage):
    """One team. `action` changes its members and invitations as the API does, or leaves it."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.READERS}
    fields = ("action", "username", "role", "key")

    def get(self, request: Request, team: str) -> HttpResponse:
        return self._page(request, visible_team(request, team))

    def post(self, request: Request, team: str) -> HttpResponse:
        visible = visible_team(request, team)
        try:
            if request.data.get("action") == "link":
                user, origin = cast(User, request.user), origin_of(request)
                _, code = create_link(team=led_team(request, team), by=user, origin=origin)
                path = f"{reverse('join-page')}?{urlencode({'code': code})}"
                return self._page(request, visible, new_link=request.build_absolute_uri(path))
            message, address = _act(request, visible)
        except (EvalHubError, APIException) as error:
            return self._page(request, visible, refusal_of(error))

        messages.success(request, message)
        return redirect_to(request, address)

    def _page(
        self, request: Request, team: Team, refusal: Refusal | None = None, new_link: str = ""
    ) -> HttpResponse:
        led = Team.objects.led_by(request.user).filter(pk=team.pk)
        leads = request.user.is_staff or led.exists()
        invitations = team.invitations.select_related("user", "invited_by")
        links = team.links.select_related("created_by").filter(expires_at__gt=timezone.now())

        context = {
            "team": team,
            "leads": leads and team.personal_of_id is None,
            "members": list(team.memberships.select_related("user").order_by("user__username")),
            "invitations": list(invitations.order_by("user__username")),
            "links": list(links),
            "collections": list(team.collections.visible_to(request.user)),
            "systems": list(team.systems.order_by("slug")),
            "roles": Membership.Role.choices,
            "days": DAYS,
            "form_values": request.data if refusal else {"role": Membership.Role.MEMBER},
            "refused": refusal,
            # Other forms of the page have no field to show it at.
            "field_errors": refusal.fields
            if refusal and request.data.get("action") == "invite"
            else {},
            "new_link": new_link,
        }

        status = refusal.status if refusal else 201 if new_link else 200
        response = render(request, "runs/team.html", context, status=status)
        response["Cache-Control"] = "no-store"
        return response


def _act(request: Request, team: Team) -> tuple[str, str]:
    """Do what a form of the page says. Return a sentence about it and the page to go to."""
    form, origin, address = request.data, origin_of(request), reverse("team-page", args=[team.slug])
    action, username = form.get("action"), str(form.get("username", ""))
    if action != "leave":
        led_team(request, team.slug)

    if action == "leave":
        remove_member(membership=_member(team, request.user.get_username()), origin=origin)
        done, address = f"You have left team {team.name}.", reverse("teams-page")
    elif action == "invite":
        serializer = NewMembershipSerializer(
            data={"username": username, "role": form.get("role", "")}
        )
        serializer.is_valid(raise_exception=True)
        by = cast(User, request.user)
        invite(team=team, by=by, origin=origin, **serializer.validated_data)
        done = f"{username} is invited; the invitation is on the account page of {username}."
    elif action == "role":
        role = RoleSerializer(data={"role": form.get("role", "")})
        role.is_valid(raise_exception=True)
        change_role(
            membership=_member(team, username), role=role.validated_data["role"], origin=origin
        )
        done = f"{username} is {role.validated_data['role']} now."
    elif action == "remove":
        remove_member(membership=_member(team, username), origin=origin)
        done = f"{username} removed from the team."
    elif action == "withdraw":
        invitations = team.invitations.select_related("team", "user")
        invitation = invitations.filter(user__username=username).first()
        if invitation is None:
            raise NotFound(f"{username!r} is not invited to team {team}")
        end_invitation(invitation=invitation, origin=origin)
        done = f"Invitation of {username} withdrawn."
    elif action == "revoke":
        revoke_link(team=team, key=str(form.get("key", "")), origin=origin)
        done = "Invitation link revoked."
    elif action == "delete":
        delete_team(team=team, origin=origin)
        done, address = f"Team {team.name} deleted.", reverse("teams-page")
    else:
        raise InvalidInput("press one of the buttons", pointer="/action")

    return done, address


def _member(team: Team, username: str) -> Membership:
    memberships = team.memberships.select_related("user", "team")
    membership = memberships.filter(user__username=username).first()
    if membership is None:
        raise NotFound(f"there is no {username!r} in team {team}")
    return membership
