"""Log lines: one form for people, one for programs (JSON), and no secrets in either."""

from __future__ import annotations

import contextvars
import json
import logging
import re
import uuid
from datetime import UTC, datetime
from typing import Any

# The fields of a line after its message, in this order, which calls pass as `extra`.
FIELDS = (
    "request_id", "method", "path", "view", "status", "seconds", "user", "evaluation",
    "session_evaluation", "qrels", "comparison", "run", "session_set", "state", "attempts", "code",
)  # fmt: skip
_VALID_ID = re.compile(r"\A[A-Za-z0-9._-]{1,64}\Z")
_TOKEN = re.compile(r"evh_[0-9a-f]{4,}_[\w-]+")
# The secret of a share link, if its address is logged before the middleware removes it.
_SHARE = re.compile(r"(/s/+[^/\s]{1,40}/+)[^\s\"']+")
# Codes of invitations, and tokens of links in mails.
# The address of a login page has them in its `next`, with %3D for the equals sign.
_CODE = re.compile(
    r"((?:code(?:=|%3D)[0-9a-f]+-)|confirm(?:=|%3D))(?:[A-Za-z0-9:_-]|%3A){24,}", re.IGNORECASE
)
# PostgreSQL quotes the whole row that it refuses.
_ROW = re.compile(r"(DETAIL: +).*")
# Set by each request and each task, and not reset after it: Django logs some answers when all
# middleware is done.
_context: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("context", default={})  # noqa: B039


def begin_request(client_id: str) -> str:
    """Return the id of a new request: that of the client if it is valid, or a new one."""
    request_id = client_id if _VALID_ID.match(client_id) else uuid.uuid4().hex
    _context.set({"request_id": request_id})
    return request_id


def begin_evaluation(evaluation_id: int) -> None:
    """Mark the following log lines of this thread as about this evaluation."""
    _context.set({"evaluation": evaluation_id})


def begin_session_evaluation(session_evaluation_id: int) -> None:
    """Mark the following log lines of this thread as about this evaluation of a session set."""
    _context.set({"session_evaluation": session_evaluation_id})


def begin_vectors(qrels_id: int) -> None:
    """Mark the following log lines of this thread as about the vectors under these judgements."""
    _context.set({"qrels": qrels_id})


def begin_comparison(comparison_id: str) -> None:
    """Mark the following log lines of this thread as about this comparison."""
    _context.set({"comparison": comparison_id})


def current_request_id() -> str:
    """Return the id of this thread's request; empty if there is none."""
    return str(_context.get().get("request_id", ""))


class ContextFilter(logging.Filter):
    """Add the current request or job to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        vars(record).update(_context.get())
        return True


class NoProbes(logging.Filter):
    """Drop Django's line for every probe that finds the service not ready: the probes log each
    change once."""

    def filter(self, record: logging.LogRecord) -> bool:
        path = getattr(getattr(record, "request", None), "path_info", "")
        return (path, getattr(record, "status_code", 0)) != ("/readyz", 503)


def hide_secrets(text: str) -> str:
    """Return the text without tokens and secrets of share links, and without the content of rows."""
    return _ROW.sub(r"\1[hidden]", _without_tokens(text))


def _without_tokens(text: str) -> str:
    without_codes = _CODE.sub(r"\1[hidden]", _TOKEN.sub("evh_[hidden]", text))
    return _SHARE.sub(r"\1[hidden]", without_codes)


class LineFormatter(logging.Formatter):
    """Time, level, logger, message, then the known fields as name=value; one line, except for a
    traceback."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return (super().formatMessage(record) + fields).replace("\r", "\\r").replace("\n", "\\n")

    def format(self, record: logging.LogRecord) -> str:
        return hide_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, the known fields, and a traceback if
    there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": hide_secrets(record.getMessage()),
            **_fields(record),
        }

        if record.exc_info:
            line["traceback"] = hide_secrets(self.formatException(record.exc_info))

        return _without_tokens(json.dumps(line, ensure_ascii=False, default=str))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    values = {name: getattr(record, name, None) for name in FIELDS}
    return {name: value for name, value in values.items() if value not in (None, "")}


FORMATTERS = {"line": LineFormatter, "json": JsonFormatter}
