"""Errors as HTTP: problem details of RFC 9457, and error pages; also the pagination of lists."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, PermissionDenied, RequestDataTooBig
from django.db import DatabaseError, DataError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.shortcuts import render
from rest_framework import exceptions
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from evalhub.database_errors import outage_of
from evalhub.operating.logs import current_request_id
from metrics.engine.errors import EvalHubError, MeasureError, StatisticsError
from runs import errors
from runs.parameters import MAX_OFFSET, integer_in

_STATUS: dict[type[EvalHubError], int] = {
    MeasureError: 400,
    StatisticsError: 400,
    errors.InvalidInput: 400,
    errors.InvalidFile: 422,
    errors.Unprocessable: 422,
    errors.UnsupportedFile: 415,
    errors.FileTooLarge: 413,
    errors.StoredFileCorrupt: 500,
    errors.StoredValueCorrupt: 500,
    errors.NotFound: 404,
    errors.Gone: 410,
    errors.NotAllowed: 403,
    errors.ChangedMeanwhile: 412,
    errors.KeyReused: 422,
    errors.Conflict: 409,
    errors.LimitReached: 429,
    errors.Unavailable: 503,
    errors.ClientLeft: 408,
}
PROBLEM_TYPE = "application/problem+json"
_log = logging.getLogger(__name__)
# The message of SQLite for a damaged text.
_NO_TEXT = "Could not decode to UTF-8"


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to an exception, or None for one that Django answers and logs."""
    set_rollback()

    if isinstance(error, EvalHubError) and not isinstance(error, errors.StorageUnavailable):
        status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
        headers = {}
        if isinstance(error, errors.LimitReached | errors.Unavailable) and error.wait is not None:
            headers["Retry-After"] = _whole_seconds(error.wait)

        body = problem(status, error.code, error.message, _entries(error))
        return _response(body, context, headers)

    if isinstance(error, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        message = f"the body is larger than the limit of {limit:,} bytes for anything but files"
        return _response(problem(413, "body_too_large", message), context)

    if isinstance(error, RecursionError | OverflowError | DataError):
        # JSON too deep to decode, a date without its UTC: values of the client, which are logged.
        _log.warning("%s refused", context.get("request"), exc_info=error)
        message = "a value is nested too deeply or out of range"
        return _response(problem(400, "out_of_range", message), context)

    if isinstance(
        error, OSError | DatabaseError | InterfaceError | RuntimeError | errors.StorageUnavailable
    ):
        return _unavailable(error, context)

    if isinstance(error, Http404 | PermissionDenied):
        status, code, message = 404, "not_found", "not found"
        if isinstance(error, PermissionDenied):
            status, code, message = 403, "not_allowed", "permission denied"

        return _response(problem(status, code, str(error) or message), context)

    return _rest_framework(error, context) if isinstance(error, exceptions.APIException) else None


def _unavailable(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the response to damaged values, a slow client or an outage; nothing was stored."""
    unreadable = _NO_TEXT in str(error)
    if unreadable or errors.says_damaged(error):
        _log.error(
            "what is stored is damaged; evalhub fsck names it, and what can still be read",
            exc_info=error,
        )
        code = errors.StoredValueCorrupt.code if unreadable else "database_damaged"
        subject = "a stored text" if unreadable else "the database"
        message = (
            f"{subject} is damaged, and nothing is shown of it; the operator finds where with "
            "evalhub fsck"
        )
        return _response(problem(500, code, message), context)

    if isinstance(error, UnreadablePostError):
        message = "the request body did not arrive in time"
        return _response(problem(408, "body_too_slow", message), context)

    outage = outage_of(error)
    if outage is None:
        return None

    headers = {"Retry-After": str(outage.wait)} if outage.wait else {}
    return _response(problem(outage.status, outage.code, outage.detail), context, headers)


def _rest_framework(error: exceptions.APIException, context: dict[str, Any]) -> Response:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge

    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = _whole_seconds(wait)

    if isinstance(error, exceptions.ValidationError):
        entries = list(_fields(error.get_full_details(), ""))
        detail = "; ".join(_sentence(entry) for entry in entries[:3])
        body = problem(400, "invalid", detail, entries)
    else:
        code = error.get_codes()
        body = problem(
            error.status_code, code if isinstance(code, str) else "invalid", str(error.detail)
        )

    return _response(body, context, headers)


def _whole_seconds(wait: float) -> str:
    return str(int(wait) + 1)


def _fields(details: Any, pointer: str) -> Iterator[dict[str, Any]]:
    """Yield the leaves of DRF's nested validation errors, each with a JSON pointer to its field."""
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        # Filters refuse an empty value without a code.
        yield {
            "pointer": pointer,
            "code": details["code"] or "invalid",
            "detail": str(details["message"]),
        }
    elif isinstance(details, dict):
        for name, inner in details.items():
            field = pointer if name == "non_field_errors" else f"{pointer}/{name}"
            yield from _fields(inner, field)
    else:
        for inner in details:
            yield from _fields(inner, pointer)


def _sentence(entry: dict[str, Any]) -> str:
    name = entry["pointer"].lstrip("/")
    return f"{name}: {entry['detail']}" if entry["pointer"] else str(entry["detail"])


def _entries(error: EvalHubError) -> list[dict[str, Any]]:
    """Return the entries of an error: those of the lines of a file, or that of the pointer."""
    pointer = {"pointer": error.pointer} if error.pointer else {}
    if not isinstance(error, errors.InvalidFile):
        return [{**pointer, "code": error.code, "detail": error.message}] if pointer else []

    report = error.report
    entries: list[dict[str, Any]] = [
        {**pointer, "line": line.line or None, "code": line.code, "detail": line.message}
        for line in report.problems
    ]

    rest = ""
    if report.read_to:
        rest = (
            f"the file was read no further than line {report.read_to:,}; there may be more "
            "problems below"
        )
    elif report.problem_count > len(entries):
        counts = ", ".join(f"{count:,} {code}" for code, count in report.problem_counts.items())
        left_out = report.problem_count - len(entries)
        rest = f"{left_out:,} more problems are not listed; total: {counts}"

    if rest:
        entries.append({**pointer, "line": None, "code": "more_problems", "detail": rest})

    return entries


def problem(
    status: int, code: str, detail: str, entries: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return problem details of RFC 9457, without their instance."""
    body = {
        "type": f"urn:evalhub:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": entries or [],
    }
    return body | _request_id(status)


def _request_id(status: int) -> dict[str, Any]:
    """Return the id of the request for a server error: the operator finds it in the log."""
    if status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return {}
    return {"request_id": current_request_id()}


def _response(
    body: dict[str, Any], context: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    request = context.get("request")
    body["instance"] = request.path if request is not None else ""
    return Response(body, body["status"], headers=headers, content_type=PROBLEM_TYPE)


class Pagination(LimitOffsetPagination):
    """`limit` and `offset`. Raise InvalidInput for invalid values."""

    default_limit = 50
    max_limit = 200

    def get_limit(self, request: Request) -> int:
        return integer_in(request.query_params, "limit", self.default_limit, 1, self.max_limit)

    def get_offset(self, request: Request) -> int:
        return integer_in(request.query_params, "offset", 0, 0, MAX_OFFSET)


def _error_page(status: int, code: str, detail: str) -> Any:
    """Return a view for Django's own errors: problem details under /api/, a page elsewhere."""

    def view(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
        if request.path.startswith("/api/"):
            body = {**problem(status, code, detail), "instance": request.path}
            return JsonResponse(body, status=status, content_type=PROBLEM_TYPE)

        context = {"status": status, "detail": detail, **_request_id(status)}
        return render(request, "evalhub/error.html", context, status=status)

    return view


_unreadable = _error_page(400, "bad_request", "the request could not be parsed")
_other_host = _error_page(
    400,
    "bad_request",
    "this server does not serve the host name of the request; EVALHUB_ALLOWED_HOSTS lists the "
    "names it serves",
)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer a request that Django refuses to read. A wrong host name has a page of its own."""
    page = _other_host if isinstance(exception, DisallowedHost) else _unreadable
    response: HttpResponse = page(request, exception)
    return response


forbidden = _error_page(403, "not_allowed", "permission denied")
not_found = _error_page(404, "not_found", "page not found")
too_many_requests = _error_page(
    429, "throttled", "too many requests from this address; try again later"
)
token_in_address = _error_page(
    400, "token_in_address", "send the token in the Authorization header, not in the URL"
)
_broken = _error_page(500, "server_error", "internal error; the administrator can see the details")


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a request after an error: 503 during an outage of the database or the storage."""
    outage = outage_of(sys.exc_info()[1])
    page = _error_page(outage.status, outage.code, outage.detail) if outage else _broken
    response: HttpResponse = page(request)
    if outage and outage.wait:
        response["Retry-After"] = str(outage.wait)

    return response


_foreign_form = _error_page(
    403,
    "not_allowed",
    "the form came from another site or an outdated page; go back, reload the page and send it "
    "again",
)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form from elsewhere, with advice for its reader and none for developers."""
    response: HttpResponse = _foreign_form(request)
    return response


def slow_down(request: HttpRequest, wait: float) -> HttpResponse:
    """Return the answer to an address that asks too often; `wait` is in seconds."""
    response: HttpResponse = too_many_requests(request)
    response["Retry-After"] = _whole_seconds(wait)
    return response
