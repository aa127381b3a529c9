"""Pages with forms: the API's rules (sessions, CSRF, scopes, uploads) and its errors as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated, ValidationError
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.views import APIView

from runs.errors import FileReport, InvalidFile
from runs.web.uploads import MultiPartParser
from runs.web.views import answer_of_the_api, check_parameters, problem_of, reads

_OF_EVERY_FORM = ("csrfmiddlewaretoken", "action")


class PageSession(SessionAuthentication):
    """A browser's session; a request without one gets a login (401), not a refusal (403)."""

    def authenticate_header(self, request: Request) -> str:
        return "Session"


class FormPage(APIView):
    """A page for logged-in users; others are redirected to log in first."""

    authentication_classes = (PageSession,)
    parser_classes = (MultiPartParser, FormParser)
    signed_in = True
    # The parameters of the address and of the form; a form with a file is read by its serializer,
    # which knows its fields.
    reads: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    # A page is not part of the API's description.
    schema = None

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return check_parameters(reads(*cls.reads, fields=cls.fields)(super().as_view(**initkwargs)))

    def handle_exception(self, error: Exception) -> Any:
        """Return the error as a page, with the status and the sentence of the API."""
        request = self.request
        if isinstance(error, NotAuthenticated) and request.method in ("GET", "HEAD"):
            return redirect_to_login(request.get_full_path())

        answer = super().handle_exception(error)
        status, detail = problem_of(error)
        context = {"status": status, "detail": detail, "code": answer.data["code"]}
        page = render(request, "evalhub/error.html", context, status=status)

        if "Retry-After" in answer:
            page["Retry-After"] = answer["Retry-After"]

        return page


def redirect_to(request: Request, address: str) -> HttpResponse:
    """Redirect the browser to another page; htmx would otherwise put that page into this one."""
    if request.headers.get("HX-Request"):
        response = HttpResponse()
        response["HX-Redirect"] = address
        return response

    return HttpResponseRedirect(address, status=303)


@dataclass(frozen=True)
class Refusal:
    """Why a form was refused: the API's status and sentence, one for each wrong field, a report."""

    status: int
    detail: str
    fields: dict[str, str] = field(default_factory=dict)
    report: FileReport | None = None
    code: str = ""


def render_form(
    request: Request, template: str, context: dict[str, Any], refusal: Refusal | None = None
) -> HttpResponse:
    """Render a page with a form; after a refusal with its status and its sentences."""
    context = {
        **context,
        "refused": refusal,
        "field_errors": refusal.fields if refusal else {},
    }
    status = refusal.status if refusal else 200

    return render(request, template, context, status=status)


def refusal_of(error: Exception) -> Refusal:
    """Return an error as a page shows it, with the names of the fields as the form has them."""
    answer = answer_of_the_api(error)
    report = error.report if isinstance(error, InvalidFile) else None
    fields: dict[str, str] = {}

    for entry in [] if report else answer.data.get("errors", []):
        name = str(entry.get("pointer", "")).strip("/").partition("/")[0]
        fields.setdefault(name, entry["detail"])

    detail = answer.data["detail"]
    if isinstance(error, ValidationError) and "file" in fields:
        # Nothing else can be wrong with it before it is read.
        detail = fields["file"] = "choose a file first"

    return Refusal(answer.status_code, detail, fields, report, answer.data["code"])


def fields_of(request: Request, *names: str) -> dict[str, str]:
    """Return these fields of a form as text; those that were not sent are left out."""
    return {name: str(request.data[name]) for name in names if name in request.data}


class FormInput:
    # A mixin for serializers of uploads, which reads the fields of a form: empty ones and files
    # that were not chosen are left out, and so are its CSRF token and the button that was pressed.
    def to_internal_value(self, data: Any) -> Any:
        fields = {
            name: value
            for name, value in data.items()
            if value != "" and name not in _OF_EVERY_FORM
        }

        return super().to_internal_value(fields)  # type: ignore[misc]
