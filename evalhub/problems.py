"""Where errors become HTTP: RFC 9457 problem details for everything that goes wrong, and the pages of lists."""

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

from evalhub.database_errors import away
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
# SQLite's word for bytes that were text once.
_NO_TEXT = "Could not decode to UTF-8"


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an exception into a problem response; unknown errors are left to Django, which answers 500 and logs them."""
    set_rollback()
    if isinstance(error, EvalHubError) and not isinstance(error, errors.StorageUnavailable):
        status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
        waits = error.wait if isinstance(error, errors.LimitReached | errors.Unavailable) else None
        headers = None if waits is None else {"Retry-After": _whole_seconds(waits)}
        return _response(
            problem(status, error.code, error.message, _entries(error)), context, headers
        )
    if isinstance(error, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        message = f"the body is larger than the limit of {limit:,} bytes for anything but files"
        return _response(problem(413, "body_too_large", message), context)
    if isinstance(error, RecursionError | OverflowError | DataError):
        # JSON too deep to decode, a date without its UTC: only what a client sends goes so far, and
        # it is logged.
        _log.warning("%s refused", context.get("request"), exc_info=error)
        return _response(
            problem(400, "out_of_range", "a value is nested too deeply or out of range"), context
        )
    if isinstance(
        error, OSError | DatabaseError | InterfaceError | RuntimeError | errors.StorageUnavailable
    ):
        return _unavailable(error, context)
    if isinstance(error, Http404 | PermissionDenied):
        missing = isinstance(error, Http404)
        told = (
            (404, "not_found", "not found")
            if missing
            else (403, "not_allowed", "permission denied")
        )
        return _response(problem(*told[:2], str(error) or told[2]), context)
    return _rest_framework(error, context) if isinstance(error, exceptions.APIException) else None


def _unavailable(error: Exception, context: dict[str, Any]) -> Response | None:
    """A full storage, a silent database or client, a server that ends: nothing was stored, trying again may help."""
    unreadable = _NO_TEXT in str(error)
    if unreadable or errors.says_damaged(error):
        _log.error(
            "what is stored is damaged; evalhub fsck names it, and what can still be read",
            exc_info=error,
        )
        code = errors.StoredValueCorrupt.code if unreadable else "database_damaged"
        what = "a stored text" if unreadable else "the database"
        message = f"{what} is damaged, and nothing is shown of it; the operator finds where with evalhub fsck"
        return _response(problem(500, code, message), context)
    if isinstance(error, UnreadablePostError):
        return _response(
            problem(408, "body_too_slow", "the request body did not arrive in time"), context
        )
    told = away(error)
    if told is None:
        return None
    headers = {"Retry-After": str(told.wait)} if told.wait else {}
    return _response(problem(told.status, told.code, told.detail), context, headers)


def _rest_framework(error: exceptions.APIException, context: dict[str, Any]) -> Response:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = _whole_seconds(wait)
    if isinstance(error, exceptions.ValidationError):
        entries = list(_fields(error.get_full_details(), ""))
        body = problem(
            400, "invalid", "; ".join(_sentence(entry) for entry in entries[:3]), entries
        )
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
            yield from _fields(
                inner, pointer if name == "non_field_errors" else f"{pointer}/{name}"
            )
    else:
        for inner in details:
            yield from _fields(inner, pointer)


def _sentence(entry: dict[str, Any]) -> str:
    return (
        f"{entry['pointer'].lstrip('/')}: {entry['detail']}"
        if entry["pointer"]
        else str(entry["detail"])
    )


def _entries(error: EvalHubError) -> list[dict[str, Any]]:
    where = {"pointer": error.pointer} if error.pointer else {}
    if isinstance(error, errors.InvalidFile):
        report = error.report
        entries: list[dict[str, Any]] = [
            {**where, "line": problem.line or None, "code": problem.code, "detail": problem.message}
            for problem in report.problems
        ]
        if report.read_to:
            rest = f"the file was read no further than line {report.read_to:,}; there may be more problems below"
            entries.append({**where, "line": None, "code": "more_problems", "detail": rest})
        elif report.problem_count > len(entries):
            counts = ", ".join(f"{count:,} {code}" for code, count in report.problem_counts.items())
            rest = f"{report.problem_count - len(entries):,} more problems are not listed; total: {counts}"
            entries.append({**where, "line": None, "code": "more_problems", "detail": rest})
        return entries
    return [{**where, "code": error.code, "detail": error.message}] if where else []


def problem(
    status: int, code: str, detail: str, entries: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return problem details of RFC 9457, without their instance."""
    return {
        "type": f"urn:evalhub:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": entries or [],
        # What the operator needs to find the reason; what the client did wrong is told in full, and
        # always alike.
        **(
            {"request_id": current_request_id()}
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR
            else {}
        ),
    }


def _response(
    body: dict[str, Any], context: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    request = context.get("request")
    body["instance"] = request.path if request is not None else ""
    return Response(body, body["status"], headers=headers, content_type=PROBLEM_TYPE)


class Pagination(LimitOffsetPagination):
    """`limit` and `offset`; a value that means nothing is refused, not ignored."""

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
        # Whoever reports what broke can say which request it was: its id leads to the lines of the
        # log.
        broke = (
            {"request_id": current_request_id()}
            if status >= HTTPStatus.INTERNAL_SERVER_ERROR
            else {}
        )
        return render(
            request,
            "evalhub/error.html",
            {"status": status, "detail": detail, **broke},
            status=status,
        )

    return view


_unreadable = _error_page(400, "bad_request", "the request could not be parsed")
_other_host = _error_page(
    400,
    "bad_request",
    "this server does not serve the host name of the request; EVALHUB_ALLOWED_HOSTS lists the names it serves",
)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer a request that Django refuses to read; a host name is told apart, which every new installation meets."""
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
    """Answer a request that no view could: 503 where the database or the storage is away, wherever it was missed."""
    told = away(sys.exc_info()[1])
    page = _error_page(told.status, told.code, told.detail) if told else _broken
    response: HttpResponse = page(request)
    if told and told.wait:
        response["Retry-After"] = str(told.wait)
    return response


_foreign_form = _error_page(
    403,
    "not_allowed",
    "the form came from another site or an outdated page; go back, reload the page and send it again",
)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form from elsewhere, with advice for its reader and none for developers."""
    answer: HttpResponse = _foreign_form(request)
    return answer


def slow_down(request: HttpRequest, wait: float) -> HttpResponse:
    """Return the answer to an address that asks too often; `wait` is in seconds."""
    answer: HttpResponse = too_many_requests(request)
    answer["Retry-After"] = _whole_seconds(wait)
    return answer
