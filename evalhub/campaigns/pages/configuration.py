"""The page on which organisers download and apply the configuration of a campaign."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.api.configuration import change_answer, read_config
from evalhub.campaigns.pages.desk_pages import DeskPage
from evalhub.campaigns.questions.lookup import organised_campaign
from evalhub.campaigns.services.configuration import apply_config
from metrics.engine.errors import EvalHubError
from runs.errors import InvalidInput
from runs.formats.yaml_values import MAX_BYTES
from runs.models import Campaign, Scope, User
from runs.web.forms import redirect_to, refusal_of
from runs.web.json_bodies import mapping_of
from runs.web.origin import origin_of
from runs.web.views import answer_of_the_api


class ConfigurationPage(DeskPage):
    """Show what a file would change, and then apply the same text."""

    name, template = "campaign-config-page", "campaigns/config.html"
    scopes = {"POST": Scope.MANAGE}
    fields = ("action", "text")
    # What the check of a file found, for the answer to this request alone: every request has a view
    # of its own.
    checked: dict[str, Any] | None = None

    def post(self, request: Request, campaign: str) -> HttpResponse:
        organised, user = organised_campaign(request, campaign), cast(User, request.user)
        applies = request.data.get("action") == "apply"
        try:
            content = _content(request)
            configuration, origin = (
                read_config(mapping_of(content), request, organised),
                origin_of(request),
            )
            changes = apply_config(
                campaign=organised,
                config=configuration,
                user=user,
                dry_run=not applies,
                origin=origin,
            )
        except (EvalHubError, APIException) as error:
            refused = refusal_of(error)
            errors = answer_of_the_api(error).data.get("errors") or [{}]
            place = str(errors[0].get("pointer", ""))

            return self.show(
                request, organised_campaign(request, campaign), {"place": place}, refused
            )

        if applies:
            count = len(changes)
            messages.success(request, f"{count} change{'' if count == 1 else 's'} applied.")
            return redirect_to(request, reverse(self.name, args=[campaign]))

        self.checked = {
            "text": content.decode(),
            "changes": [change_answer(change) for change in changes],
            "allowed": bool(changes) and not any(change.refused for change in changes),
        }

        return self.show(request, organised_campaign(request, campaign), {})

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        return {"checked": self.checked, "place": kwargs.get("place", "")}


def _content(request: Request) -> bytes:
    """Return the file that was chosen, or else the text. Raise InvalidInput if there is neither."""
    file = request.FILES.get("file")
    if file:
        file.seek(0)

    content: bytes = (
        file.read(MAX_BYTES + 1) if file else str(request.data.get("text", "")).encode()
    )
    if not content.strip():
        raise InvalidInput("choose a file first", code="required", pointer="/file")

    return content
