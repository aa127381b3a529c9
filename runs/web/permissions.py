"""The permissions of a token: one permission class for every view of the API."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from runs.errors import NotAllowed
from runs.models import ApiToken, Scope


class Scoped(BasePermission):
    """Require the scope `read` for reading, and for any other method the one that the view's `scopes` names.

    A changing method that is not named there is always refused: `scopes = {"POST": "submit"}`.
    Reading needs no login unless the view says `signed_in = True`; changing always does.
    runs/web/access.py decides which objects a user may reach.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        method = request.method or ""
        reads = method in SAFE_METHODS
        if not request.user.is_authenticated and (not reads or getattr(view, "signed_in", False)):
            return False
        if not reads and not hasattr(view, method.lower()):
            # The view has no such method: it answers 405.
            return True
        scope = Scope.READ if reads else getattr(view, "scopes", {}).get(method)
        if scope is None:
            raise NotAllowed(f"{method} is not allowed here")
        if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
            message = f"this token lacks the scope {str(scope)!r}; create one that has it on your account page"
            raise NotAllowed(message, code="missing_scope")
        return True
