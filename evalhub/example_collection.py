"""The button of an empty server that loads the lab's collection of `evalhub demo`."""

from __future__ import annotations

from contextlib import suppress
from typing import cast

from django.http import Http404, HttpResponse
from django.urls import reverse
from rest_framework.request import Request

from evalhub.example.loading import LAB_SLUG, Loader, load_lab
from runs.errors import Conflict
from runs.models import Scope, User
from runs.models.accounts.accounts import is_staff
from runs.web.forms import FormPage, redirect_to
from runs.web.origin import origin_of
from runs.web.permissions import Access


class ExampleCollection(FormPage):
    """Create the example collection with its runs, which the workers then evaluate."""

    scopes = {"POST": Scope.MANAGE}
    access = {"POST": Access.ADMINISTRATORS}
    fields = ("action",)

    def post(self, request: Request) -> HttpResponse:
        user = cast(User, request.user)
        if not is_staff(user):
            raise Http404("there is nothing at this address")

        # A conflict: another team has a collection of this name, or another request loads it.
        with suppress(Conflict):
            load_lab(Loader(team=user.personal_team, user=user, origin=origin_of(request)))

        return redirect_to(request, reverse("collection-page", args=[LAB_SLUG]))
