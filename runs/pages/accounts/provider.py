"""Logging in with an account of the OpenID Connect provider.

The first login of an account asks for a user name, and creates an account of this server; a user
who is logged in links it instead. Both are confirmed with a form: an address alone changes nothing.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.http import require_GET

from metrics.engine.errors import EvalHubError
from runs.errors import Conflict, NotFound
from runs.pages.accounts.joining import FORM, welcome, without_trace
from runs.services.accounts.passwords import takes_passwords
from runs.services.accounts.provider_accounts import (
    Identity,
    create_with_provider,
    find_user,
    identity_of,
    link_provider,
    provider_label,
)
from runs.web.forms import refusal_of
from runs.web.origin import origin_of
from runs.web.views import check_parameters, error_page, problem_of, reads

# In the session: where the browser goes after the login, and who it is until the form is sent.
_NEXT, _IDENTITY = "provider_next", "provider_identity"
_FORM_SECONDS = 900


@require_GET
@check_parameters
@reads("next")
def provider_login(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    if not provider_label():
        return error_page(request, NotFound("this server has no provider to log in with"))

    from runs.web.openid import begin

    request.session[_NEXT] = request.GET.get("next", "")
    try:
        return without_trace(begin(request, reverse("provider-callback")))
    except EvalHubError as error:
        return _refuse(request, error)


@require_GET
def provider_callback(request: HttpRequest) -> HttpResponse:
    """Log in the person whom the provider sent back, or ask what their first login is for.

    Providers add parameters of their own to the address.
    """
    if not provider_label():
        return error_page(request, NotFound("this server has no provider to log in with"))

    from runs.web.openid import finish

    try:
        identity = identity_of(finish(request))
        user = find_user(identity)
        if user is None:
            request.session[_IDENTITY] = {**asdict(identity), "until": time.time() + _FORM_SECONDS}
            return _lead(reverse("new-provider-account-page"))

        if request.user.is_authenticated and request.user.pk != user.pk:
            raise Conflict(
                f"the account of {provider_label()} is that of user {user}, and you are logged in "
                f"as {request.user}; log out first"
            )
    except EvalHubError as error:
        return _refuse(request, error)

    address = _address_after(request)
    request.session.pop(_IDENTITY, None)
    login(request, user)
    return _lead(address)


@FORM
@check_parameters
@reads(fields=("username",))
def new_provider_account_page(request: HttpRequest) -> HttpResponse:
    """Create an account at the first login, or link that of the user who is logged in."""
    identity = _identity_in(request)
    if identity is None:
        messages.error(request, "Log in first.")
        return _lead(reverse("login"))

    context: dict[str, Any] = {
        "provider": provider_label(),
        "identity": identity,
        "takes_passwords": takes_passwords(),
        "form_values": {"username": identity.username, **request.POST.dict()},
    }
    status = 200
    if request.method == "POST":
        try:
            return _join(request, identity)
        except EvalHubError as error:
            refusal = refusal_of(error)
            context |= {"refused": refusal, "field_errors": refusal.fields}
            status = refusal.status

    template = "runs/new_provider_account.html"
    return without_trace(render(request, template, context, status=status))


def _join(request: HttpRequest, identity: Identity) -> HttpResponse:
    origin = origin_of(request)
    if request.user.is_authenticated:
        user = request.user
        link_provider(user=user, identity=identity, origin=origin)
        message = f"From now on you log in as {user} with {provider_label()}."
        messages.success(request, message)
        request.session.pop(_IDENTITY)
        return _lead(_address_after(request))

    username = request.POST.get("username", "")
    user = create_with_provider(identity=identity, username=username, origin=origin)
    address = _address_after(request)
    request.session.pop(_IDENTITY)
    return welcome(request, user, f"Welcome, {user}.", address)


def _identity_in(request: HttpRequest) -> Identity | None:
    """Return who the provider said it is, for a quarter of an hour."""
    fields = dict(request.session.get(_IDENTITY, {}))
    if fields.pop("until", 0.0) < time.time():
        return None
    return Identity(**fields)


def _address_after(request: HttpRequest) -> str:
    """Return where the browser goes after a login, on this server alone."""
    address = str(request.session.pop(_NEXT, ""))
    is_local = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_local else reverse("home")


def _refuse(request: HttpRequest, error: EvalHubError) -> HttpResponse:
    """Lead back to where the login began, with the reason; its address has no code any more."""
    _, detail = problem_of(error)
    messages.error(request, detail[:1].upper() + detail[1:])
    if request.user.is_authenticated:
        return _lead(reverse("account-page"))

    address = str(request.session.get(_NEXT, ""))
    query = f"?{urlencode({'next': address})}" if address else ""
    return _lead(f"{reverse('login')}{query}")


def _lead(address: str) -> HttpResponse:
    return without_trace(HttpResponseRedirect(address, status=303))
