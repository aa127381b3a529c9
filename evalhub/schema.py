"""Parts of the OpenAPI description that its generator cannot derive, loaded with the URLs."""

from __future__ import annotations

import threading
from typing import Any

from django.http import HttpResponse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from runs.web.authentication import TokenAuthentication


class _JSONProblems:
    """A view that answers problems in JSON, whatever its other formats."""

    request: Any

    def handle_exception(self, error: Exception) -> Any:
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return super().handle_exception(error)  # type: ignore[misc]


# Generating the description takes a second, and it is the same for every reader. The generator loads
# parts of itself when it is first used, which two threads must not do at once.
_LOCK = threading.Lock()
# The description and the name of its file, by media type.
_DESCRIPTIONS: dict[str, tuple[bytes, str]] = {}


class SchemaView(_JSONProblems, SpectacularAPIView):
    """The description, as YAML or as JSON, by `format` (openapi or json) or the Accept header."""

    reads = ("format",)

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        renderer: BaseRenderer = request.accepted_renderer
        kind = str(renderer.media_type)
        with _LOCK:
            if kind not in _DESCRIPTIONS:
                response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
                content = renderer.render(response.data, kind, {"response": response})
                _DESCRIPTIONS[kind] = content, response.headers["Content-Disposition"]

        content, disposition = _DESCRIPTIONS[kind]
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        return HttpResponse(
            content, f"{kind}{charset}", headers={"Content-Disposition": disposition}
        )

    def get_format_suffix(self, **kwargs: Any) -> str | None:
        suffix: str | None = self.request.query_params.get("format")
        return suffix


class DocsView(_JSONProblems, SpectacularSwaggerSplitView):
    """The description as a page with a form for every call, which loads its script from itself."""

    reads = ("script",)
    template_name = "evalhub/api.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        server = request.build_absolute_uri("/").rstrip("/")
        response.data |= {"server": server, "api": f"{server}/api/v1"}

        return response


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The API token as a bearer token."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "evh_<id>_<secret>"}


def known_fields_only(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Describe request bodies as closed: they have only the fields of their description."""
    for name, component in result["components"]["schemas"].items():
        if name.endswith("Request") and component.get("type") == "object":
            component["additionalProperties"] = False

    return result


def any_of_them(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Describe alternative answers as `anyOf`: one may fit the description of another one, too."""
    for component in result["components"]["schemas"].values():
        if "oneOf" in component and "discriminator" not in component:
            component["anyOf"] = component.pop("oneOf")

    return result
