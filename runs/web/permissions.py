"""The permissions of a token: one permission class for every view of the API."""

from __future__ import annotations

from enum import Enum
from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from runs.errors import NotAllowed
from runs.models import ApiToken, Scope


class Access(Enum):
    """Who may use a method of a view, where its scope and its address do not imply it.

    Without `access`, whoever sees the objects of an address may read them. A change with the scope
    `manage` is for those who manage the last of these objects, and one with `submit` for those who
    may add to it. The form of a page is for those who may send it. tests/web/access asks every
    address as everybody, and reads from this attribute what is to be answered.
    """

    READERS = "users who see the object"
    SIGNED_IN = "users who are logged in and see the object"
    TEAM = "the team of the object"
    ORGANISERS = "the organisers of the collection or campaign, the owners of the team"
    TEAM_OR_ORGANISERS = "either of these"
    PARTICIPANTS = "those who take part in the campaign"
    AUTHOR = "the author of the object"
    MEMBER_OR_OWNERS = "the member whom the address names, and the owners of the team"
    INVITED = "the user who is invited; others do not learn of the invitation"
    ADMINISTRATORS = "administrators; the address does not exist for others"


class Scoped(BasePermission):
    """Require the scope `read` for reading, and for other methods the one in the view's `scopes`.

    A changing method that is not named there is always refused: `scopes = {"POST": "submit"}`.
    Reading needs no login unless the view says `signed_in = True`; changing always does.
    runs/web/access.py decides which objects a user may reach, and the view says by `access` who may
    use which method, where that does not follow from these.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        method = request.method or ""
        safe = method in SAFE_METHODS
        if not request.user.is_authenticated and (not safe or getattr(view, "signed_in", False)):
            return False
        if not safe and not hasattr(view, method.lower()):
            # The view has no such method: it answers 405.
            return True

        scope = Scope.READ if safe else getattr(view, "scopes", {}).get(method)
        if scope is None:
            raise NotAllowed(f"{method} is not allowed here")

        if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
            message = (
                f"this token lacks the scope {str(scope)!r}; "
                "create one that has it on your account page"
            )
            raise NotAllowed(message, code="missing_scope")

        return True
