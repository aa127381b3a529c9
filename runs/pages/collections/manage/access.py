"""The access to a collection: blind judgements, their release, and the members of its team."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from runs.errors import InvalidInput
from runs.models import Collection
from runs.pages.collections.manage.sections import ChangingSection, change_fields
from runs.services.collections.collections import release_collection
from runs.web.origin import origin_of


class AccessPage(ChangingSection):
    """Make a collection blind before its first judgements, or release it."""

    address, template = "manage-access-page", "runs/manage/access.html"
    fields = ("action", "confirm")

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        members = collection.team.memberships.select_related("user")
        return {
            "members": list(members.order_by("role", "user__username")),
            "visibility": collection.get_visibility_display(),
            "active": collection.qrels.filter(active=True).defer("topic_ids").first(),
            "judged": collection.qrels.exists(),
            "form_values": request.data if request.method == "POST" else {},
        }

    def change(self, request: Request, collection: Collection) -> str:
        action = request.data.get("action")
        if action == "blind":
            change_fields(request, collection, {"blind": True})
            return (
                "The collection is blind now: "
                "only its organisers see what depends on the judgements."
            )

        if action != "release":
            raise InvalidInput("press one of the buttons", pointer="/action")

        if str(request.data.get("confirm", "")).strip() != collection.slug:
            message = f"type {collection.slug}, the short name of the collection, to release it"
            raise InvalidInput(message, pointer="/confirm")

        release_collection(collection=collection, origin=origin_of(request))
        return "Released: everyone who can see the collection sees its scores now."
