"""What the OpenAPI description cannot see by itself. Loaded with the URLs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from runs.api.authentication import TokenAuthentication


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The API token as a bearer token."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "evh_<id>_<secret>"}


def any_of_them(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """One of several answers may also fit another's description: a run has every field of a checked file."""
    for component in result["components"]["schemas"].values():
        if "oneOf" in component and "discriminator" not in component:
            component["anyOf"] = component.pop("oneOf")
    return result
