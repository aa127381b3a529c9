"""What pages with forms share: the API's rules (sessions, CSRF, scopes, rates, uploads), and its refusals as HTML."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.views import APIView

from runs.api.uploads import MultiPartParser
from runs.views import checked, problem_of, reads


class PageSession(SessionAuthentication):
    """A browser's session; a request without one is asked to log in (401), not refused (403)."""

    def authenticate_header(self, request: Request) -> str:
        return "Session"


class FormPage(APIView):
    """A page for logged-in users; others are redirected to log in first."""

    authentication_classes = (PageSession,)
    parser_classes = (MultiPartParser, FormParser)
    signed_in = True
    # The parameters of the address and of the form; a form with a file is read by its serializer, which knows its
    # fields.
    reads: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    # A page is not part of the API's description.
    schema = None

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        return checked(reads(*cls.reads, fields=cls.fields)(super().as_view(**initkwargs)))

    def handle_exception(self, error: Exception) -> Any:
        """Return the refusal as a page, with the status and the sentence of the API."""
        request: HttpRequest = self.request._request
        if isinstance(error, NotAuthenticated) and request.method in ("GET", "HEAD"):
            return redirect_to_login(request.get_full_path())
        answer = super().handle_exception(error)
        status, detail = problem_of(error)
        page = render(request, "evalhub/error.html", {"status": status, "detail": detail}, status=status)
        if "Retry-After" in answer:
            page["Retry-After"] = answer["Retry-After"]
        return page


def see(request: Request, address: str) -> HttpResponse:
    """Redirect the browser to another page; htmx would otherwise put that page into this one."""
    if request.headers.get("HX-Request"):
        response = HttpResponse()
        response["HX-Redirect"] = address
        return response
    return HttpResponseRedirect(address, status=303)
