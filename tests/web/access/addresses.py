"""Every address of the service, as the URL configuration and the attributes of the views have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.test import RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evalhub.operating.probes import PROBES
from runs.models import Scope
from runs.web.forms import FormPage
from runs.web.parameters import parameters_read
from runs.web.permissions import Access

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# The chart of an address that has others than a run.
CHARTS = {
    "collection-chart": "what-if",
    "session-chart": "curves",
    "stored-comparison-chart": "significance",
}


@dataclass(frozen=True)
class Address:
    """An address with its view. A page is asked by a browser with a session, the API with a token."""

    name: str
    parameters: tuple[str, ...]
    callback: Any

    @cached_property
    def view(self) -> Any:
        """Return the class of the view, or None where it is a function."""
        return getattr(self.callback, "cls", None)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        if self.view:
            return tuple(method for method in METHODS if hasattr(self.view, method.lower()))
        # A function says it in its refusal of any other method.
        refusal = self.callback(RequestFactory().options("/"))
        return tuple(method for method in METHODS if method in refusal["Allow"].split(", "))

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(method for method in self.methods if method != "GET")

    @property
    def is_form(self) -> bool:
        return bool(self.view and issubclass(self.view, FormPage))

    @property
    def is_page(self) -> bool:
        return not self.view or self.is_form

    def is_signed_in(self, method: str) -> bool:
        """Return whether a request without an account is sent to log in."""
        if method != "GET":
            return self.view is not None
        return bool(getattr(self.view, "signed_in", False))

    def scope(self, method: str) -> str:
        scopes = getattr(self.view, "scopes", {})
        return str(Scope.READ if method == "GET" else scopes.get(method, ""))

    def access(self, method: str) -> Access | None:
        """Return what the view says of who may use a method. The form of a page is for those who
        may send it."""
        stated: dict[str, Access] = getattr(self.view, "access", {})
        if method == "GET" and self.is_form and self.is_signed_in("GET") and "GET" not in stated:
            return stated.get("POST")
        return stated.get(method)

    def reads(self, method: str = "GET") -> list[str]:
        """Return the names of the query parameters that the address reads."""
        if not self.view:
            return sorted(getattr(self.callback, "reads", ()))
        view = self.view()
        view.request, view.args, view.kwargs = None, (), {}
        return sorted(parameters_read(view, method))

    def path(self, values: dict[str, Any]) -> str:
        own = {**values, "chart": CHARTS.get(self.name, values["chart"])}
        return reverse(self.name, kwargs={name: own[name] for name in self.parameters})


def patterns(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    """Every pattern of the project but those of the administration."""
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLPattern):
            yield entry
        elif entry.namespace != "admin":
            yield from patterns(entry)


ADDRESSES = {
    str(pattern.name): Address(
        str(pattern.name), tuple(pattern.pattern.converters), pattern.callback
    )
    for pattern in patterns()
}
PAGES = tuple(name for name, address in ADDRESSES.items() if address.is_page and name not in PROBES)
API = tuple(name for name, address in ADDRESSES.items() if not address.is_page)
# Nothing of any collection is in them.
CONSTANT = (
    "schema", "api-docs", "measures", "measure", "measures-page", "measure-page", "version",
    "client-page", "client-wheel", *PROBES,
)  # fmt: skip
