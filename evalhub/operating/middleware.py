"""The middleware of every request: id, probes, slashes, secrets in addresses, limits, log, headers."""

from __future__ import annotations

import hashlib
import logging
import re
import time
import unicodedata
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote, unquote_plus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.urls import Resolver404, resolve
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.functional import SimpleLazyObject

from evalhub.client.version import VERSION as CLIENT_VERSION
from evalhub.operating.logs import begin_request
from evalhub.operating.probes import PROBES
from evalhub.operating.request_counters import count_request
from evalhub.problems import slow_down, token_in_address
from evalhub.version import LEAST_CLIENT, LEAST_CLIENT_HEADER, OFFERED_CLIENT_HEADER
from runs.services.audit.rates import RATES
from runs.web.origin import network_of, sender_of

# Only Swagger's page has inline styles, and every script is one of EvalHub's files.
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_DOCS_POLICY = f"{_POLICY}; style-src 'self' 'unsafe-inline'"

_log = logging.getLogger("evalhub.access")


class RequestRecord:
    """Give every request an id, which the answer repeats; count and log the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        start = time.perf_counter()
        request_id = begin_request(request.headers.get("X-Request-ID", ""))
        # Inner code, such as the audit trail, reads the id here.
        request.META["HTTP_X_REQUEST_ID"] = request_id
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        if request.path.startswith("/api/"):
            response[LEAST_CLIENT_HEADER] = LEAST_CLIENT
            response[OFFERED_CLIENT_HEADER] = CLIENT_VERSION

        seconds = time.perf_counter() - start
        view = request.resolver_match.view_name if request.resolver_match else "none"
        count_request(view, request.method or "", response.status_code, seconds)
        _log.info("request", extra=_log_fields(request, view, response.status_code, seconds))

        return response


def _log_fields(request: HttpRequest, view: str, status: int, seconds: float) -> dict[str, Any]:
    """Return the fields of a request for the log, without its query, which may contain a secret."""
    # Only a user that was read already: to read it here might need a database that is away.
    user = vars(request).get("user")
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_cached_user", None)

    return {
        "method": (request.method or "")[:20],
        "path": quote(request.path[:500]),
        "view": view,
        "status": status,
        "seconds": round(seconds, 4),
        "user": getattr(user, "pk", None),
    }


_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class NoBodyForHead:
    """Set the length of answers, and answer HEAD with the headers of GET alone.

    Without its length an answer would end its connection; and the server logs every body that it has
    to discard.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response: Any = self.get_response(request)
        has_body = response.status_code not in _WITHOUT_BODY
        if not response.streaming and (response.content or has_body):
            response.setdefault("Content-Length", str(len(response.content)))

        if request.method == "HEAD":
            # A file that was opened for the body is closed with the answer.
            setattr(response, "streaming_content" if response.streaming else "content", b"")

        return cast(HttpResponse, response)


class ProbesFirst:
    """Answer probes before anything else: their requests have no host name, TLS or session."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        probe = PROBES.get(request.path_info.removeprefix("/"))
        return probe(request) if probe else self.get_response(request)


class FinalSlash:
    """Accept a request that changes something without the final slash of its address.

    Django would redirect it, and clients repeat a redirected request as GET, without its body: an
    upload would look like a success and store nothing. Requests that only read are redirected, so
    that every page has one address.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        changes = request.method not in _READING
        if changes and not path.endswith("/") and not _has_view(path) and _has_view(f"{path}/"):
            request.path, request.path_info = f"{request.path}/", f"{path}/"
            request.META["PATH_INFO"] = request.path_info

        return self.get_response(request)


_READING = ("GET", "HEAD", "OPTIONS")


def _has_view(path: str) -> bool:
    """Return whether a path is the address of a view, other than the unnamed one of the admin."""
    try:
        return resolve(path).url_name is not None
    except Resolver404:
        return False


class ContentSecurityPolicy:
    """Allow only EvalHub's own files to run or be shown, and no framing by other sites."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        policy = _DOCS_POLICY if request.path == "/api/v1/docs/" else _POLICY
        response.setdefault("Content-Security-Policy", policy)

        return response


class PrivateAnswers:
    """Keep answers out of shared caches, as they depend on the reader; others must revalidate."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_cache=True)
        patch_vary_headers(response, ("Authorization", "Cookie"))

        return response


# An EvalHub token anywhere, or a parameter that is meant to be one.
_NAMES = "token|access_token|auth_token|api_key|apikey|authorization"
_TOKEN = re.compile(rf"evh_[0-9a-f]{{8}}_|(?:^|[&;])(?:{_NAMES})=", re.IGNORECASE)
_IN_PATH = re.compile(r"evh_[0-9a-f]{8}_[^/]*", re.IGNORECASE)
# The variables with the address that servers log.
_LOGGED = ("QUERY_STRING", "RAW_URI", "REQUEST_URI")


class NoTokenInAddress:
    """Refuse a token in an address, and do not log it.

    Addresses are written into logs, histories and Referer headers.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path_token = _IN_PATH.search(request.path_info)
        if not path_token and not _TOKEN.search(unquote_plus(request.META.get("QUERY_STRING", ""))):
            return self.get_response(request)

        if path_token:
            request.path = _IN_PATH.sub("evh_...", request.path)
            request.path_info = _IN_PATH.sub("evh_...", request.path_info)
            request.META["PATH_INFO"] = request.path_info

        for name in _LOGGED:
            request.META[name] = "" if name == "QUERY_STRING" else request.path

        answer: HttpResponse = token_in_address(request)
        patch_cache_control(answer, private=True, no_cache=True)
        patch_vary_headers(answer, ("Authorization", "Cookie"))

        return answer


# A share link with key and secret, extra slashes, and perhaps more text after it.
_SHARE = re.compile(r"/+s/+([^/]+)/+([^/]+)(?:/.*)?", re.DOTALL)


class SecretOfShareLink:
    """Remove the secret of a share link from the address before anything else reads it.

    Logs, pages and reports of errors have its key alone. The view reads the secret from
    `share_secret`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if match := _SHARE.fullmatch(request.path_info):
            request.share_secret = match[2]  # type: ignore[attr-defined]
            prefix = request.path.removesuffix(request.path_info)
            request.path_info = f"/s/{match[1]}/"
            request.path = f"{prefix}{request.path_info}"
            request.META["PATH_INFO"] = request.path_info

            for name in _LOGGED:
                if name in request.META:
                    request.META[name] = "" if name == "QUERY_STRING" else request.path

        return self.get_response(request)


# The addresses to which passwords are sent, and which send mail to people without a session.
_PASSWORDS = (
    settings.LOGIN_URL,
    "/account/",
    "/first-account/",
    "/join/",
    "/join-campaign/",
    "/register/",
    "/forgotten-password/",
    "/new-password/",
    "/login/organisation/new/",
    "/admin/login/",
    "/admin/password_change/",
)


# The addresses that ask the OpenID Connect provider.
_PROVIDER = ("/login/organisation/", "/login/organisation/callback/")


class AddressRate:
    """Allow EVALHUB_ADDRESS_RATE requests and EVALHUB_LOGIN_RATE logins a minute for each address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        network = network_of(sender_of(request))
        wait = RATES.take(f"address:{network}", settings.EVALHUB_ADDRESS_RATE)
        path = request.path_info
        if path in _PROVIDER or (request.method == "POST" and path in _PASSWORDS):
            wait = wait or RATES.take(f"password:{network}", settings.EVALHUB_LOGIN_RATE)
        return slow_down(request, wait) if wait else self.get_response(request)


class AccountRate:
    """Allow EVALHUB_LOGIN_RATE passwords a minute for each account, from any address.

    Forms that the check of CSRF tokens refuses do not count: they lock nobody out.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        if request.method != "POST" or request.path_info not in _PASSWORDS:
            return None
        account = _account_of(request)
        wait = account and RATES.take(f"account:{account}", settings.EVALHUB_LOGIN_RATE)

        return slow_down(request, wait) if wait else None


def _account_of(request: HttpRequest) -> str:
    """Return a digest of the user name of a password request as the form reads it, or ""."""
    try:
        name = unicodedata.normalize("NFKC", request.POST.get("username", "")).strip()
    except UnreadablePostError:
        return ""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest() if name else ""
