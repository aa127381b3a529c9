"""The pages on which a suite and its versions are made."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.suites.models import Suite, SuiteVersion
from evalhub.suites.questions.lookup import (
    deletable_suite,
    managed_suite,
    visible_results,
    visible_version,
)
from evalhub.suites.questions.members import (
    SuiteSerializer,
    SuiteVersionSerializer,
    lines_of,
    members_in,
)
from evalhub.suites.services.suites import (
    add_version,
    create_suite,
    delete_suite,
    members_of,
    request_of,
)
from metrics.engine.errors import EvalHubError
from runs.models import Scope, Team, User
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access

_VERSION_FIELDS = ("members", "note")
_SUITE_FIELDS = ("name", "slug", "team", "description", *_VERSION_FIELDS)


class NewSuitePage(FormPage):
    """Make a suite of a team that the user owns."""

    scopes = {"POST": Scope.MANAGE}
    fields = _SUITE_FIELDS

    def get(self, request: Request) -> HttpResponse:
        return self.show(request)

    def show(
        self, request: Request, fields: dict[str, str] | None = None, refusal: Refusal | None = None
    ) -> HttpResponse:
        teams = list(Team.objects.led_by(request.user))
        shared = [team for team in teams if team.personal_of_id is None]
        proposed = {"team": (shared or teams)[0].slug if teams else ""}
        context = {"teams": teams, "form_values": fields or proposed}
        return render_form(request, "suites/new.html", context, refusal)

    def post(self, request: Request) -> HttpResponse:
        fields = fields_of(request, *_SUITE_FIELDS)
        fields["slug"] = fields.get("slug") or slugify(fields.get("name", ""))[:64]
        try:
            body: dict[str, Any] = {**fields, "members": members_in(fields.get("members", ""))}
            serializer = SuiteSerializer(data=body, context={"request": request})
            serializer.is_valid(raise_exception=True)
            data = serializer.validated_data
            version = create_suite(
                **{**data, "members": members_of(data["members"], request.user)},
                user=cast(User, request.user),
                origin=origin_of(request),
            )
        except (EvalHubError, APIException) as error:
            return self.show(request, fields, refusal_of(error))

        return _show_version(request, version)


class NewSuiteVersionPage(FormPage):
    """Make a version of a suite, beginning with the collections of the newest one, or delete it."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    fields = ("action", *_VERSION_FIELDS)

    def get(self, request: Request, suite: str) -> HttpResponse:
        managed = managed_suite(request, suite)
        version = visible_version(request, suite)
        members = list(version.members.select_related("collection", "qrels").order_by("position"))
        visible = visible_results(request, version)
        for member in members:
            # Which judgements count is as hidden as the results, and could not be sent again.
            if member.collection_id not in visible:
                member.qrels = None
        return self.show(request, managed, {"members": lines_of(list(map(request_of, members)))})

    def show(
        self, request: Request, suite: Suite, fields: dict[str, str], refusal: Refusal | None = None
    ) -> HttpResponse:
        context = {"suite": suite, "form_values": fields}
        return render_form(request, "suites/new_version.html", context, refusal)

    def post(self, request: Request, suite: str) -> HttpResponse:
        if request.data.get("action") == "delete":
            deletable = deletable_suite(request, suite)
            delete_suite(suite=deletable, origin=origin_of(request))
            messages.success(request, f"Suite {deletable.name} deleted. Its collections stay.")
            return redirect_to(request, reverse("suites-page"))

        managed = managed_suite(request, suite)
        fields = fields_of(request, *_VERSION_FIELDS)
        try:
            body: dict[str, Any] = {**fields, "members": members_in(fields.get("members", ""))}
            serializer = SuiteVersionSerializer(data=body)
            serializer.is_valid(raise_exception=True)
            data = serializer.validated_data
            version = add_version(
                suite=managed,
                members=members_of(data["members"], request.user),
                note=data["note"],
                user=cast(User, request.user),
                origin=origin_of(request),
            )
        except (EvalHubError, APIException) as error:
            return self.show(request, managed, fields, refusal_of(error))

        return _show_version(request, version)


def _show_version(request: Request, version: SuiteVersion) -> HttpResponse:
    collections = version.members.count()
    plural = "s" * (collections != 1)
    messages.success(request, f"Version {version.number} has {collections} collection{plural}.")
    return redirect_to(request, reverse("suite-page", args=[version.suite.slug]))
