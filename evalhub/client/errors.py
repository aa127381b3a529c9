"""What can go wrong between a client and a server.

EvalHubError
├── Refused             the server refuses: `.status`, `.code`, `.detail`, `.errors`, `.request_id`
│   ├── NotAuthenticated, NotAllowed, NotFound, Conflict, Throttled
│   ├── Blind           the judgements of the collection are not shown yet
│   ├── BadFile         a file with problems: `str()` lists the first ten by line
│   └── QuotaExceeded   one submission more than the team's quota, which ends at `.resets_at`
├── Unavailable         no connection, or a server that answered with an error until the last try
├── EvaluationFailed    a run whose evaluation failed: `.run`, with code and reason
├── TimedOut            waiting ended before `.run` was evaluated, or one of `.runs`; these go on
├── NoEvaluation        nothing evaluates `.runs` now: no judgements are active, no worker is alive
├── BadSignature        a webhook that was not signed with this secret, or not just now
└── BadSource, BadConfig, BadRule, Ambiguous   what was given cannot be used; nothing was sent

UploadWarning           a warning of Python: what the server says about a file that it has taken, and
                        what the client has done to a file before it was sent
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from typing import Any

import httpx

# Runs or lines that a message lists at most.
MAX_LISTED = 10


class EvalHubError(Exception):
    """Base of every error of this package."""


class BadConfig(EvalHubError):
    """An address, token or profile that is missing or cannot be used."""


class WrongOption(EvalHubError):
    """Options of the command that do not fit each other."""


class BadSource(EvalHubError):
    """A run that cannot be sent; nothing was sent."""


class BadRule(EvalHubError, ValueError):
    """A malformed rule of a gate or name of a label."""


class BadSignature(EvalHubError):
    """A webhook that the server did not sign with this secret in the last minutes: ignore it."""


class Ambiguous(EvalHubError):
    """A name that several runs have."""


class Unavailable(EvalHubError):
    """The server cannot be reached, or fails; `status` is that of its last answer, or None."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class EvaluationFailed(EvalHubError):
    """The evaluation of `run` failed."""

    def __init__(self, run: Any) -> None:
        status = run.raw["status"]
        super().__init__(
            f"the evaluation of {run.tag} ended as {status['state']}: "
            f"{status['code']}: {status['reason']}"
        )
        self.run = run


class TimedOut(EvalHubError):
    """Nobody waits for `runs` any more; their evaluation goes on."""

    def __init__(self, runs: list[Any], seconds: float, message: str = "") -> None:
        names = ", ".join(run.tag for run in runs[:MAX_LISTED])
        more = f" and {len(runs) - MAX_LISTED} more" if len(runs) > MAX_LISTED else ""
        super().__init__(
            message or f"not evaluated after {seconds:g} s: {names}{more}; the evaluation goes on"
        )
        self.runs, self.run = runs, runs[0] if runs else None


class NoEvaluation(EvalHubError):
    """Nothing evaluates `runs` now, so that nobody waits for them; `code` says why.

    They are stored, and evaluated as soon as the cause is gone.
    """

    def __init__(self, runs: Sequence[Any], code: str, reason: str) -> None:
        tags = list(dict.fromkeys(run.tag for run in runs))
        names = ", ".join(tags[:MAX_LISTED])
        more = f" and {len(tags) - MAX_LISTED} more" if len(tags) > MAX_LISTED else ""
        verb = "is" if len(tags) == 1 else "are"
        super().__init__(f"{names}{more} {verb} not evaluated now: {code}: {reason}")
        self.runs, self.run, self.code = runs, runs[0], code


class UploadWarning(UserWarning):
    """Something about a file that was taken, such as topics that nobody judged.

    It is a warning of Python: `warnings.filterwarnings("ignore", category=UploadWarning)`.
    """


class Refused(EvalHubError):
    """The server's refusal, with its problem details."""

    def __init__(
        self, status: int, body: dict[str, Any], wait: float | None = None, source: str = ""
    ) -> None:
        self.status = status
        self.code = str(body.get("code", ""))
        self.detail = str(body.get("detail", "")) or f"the server answered {status}"
        self.errors: list[dict[str, Any]] = body.get("errors") or []
        self.request_id = str(body.get("request_id", ""))
        self.wait = wait
        self.source = source
        super().__init__(self.detail)


class NotAuthenticated(Refused):
    """No token, or one that is unknown, expired or revoked."""


class NotAllowed(Refused):
    """The user may see this, but not do it."""


class Blind(NotAllowed):
    """The answer depends on judgements that are not released yet."""


class NotFound(Refused):
    """It does not exist, or this user may not see it."""

    def with_suggestion(self, name: str, candidates: Iterable[str]) -> NotFound:
        """Return this error, which now suggests the candidate that is most like the name."""
        self.detail += suggestion(name, candidates)
        self.args = (self.detail,)
        return self


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return the end of a message that suggests the candidate most like a name, or ""."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    matches = get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[matches[0]]!r}?" if matches else ""


class Conflict(Refused):
    """The request contradicts the present state: a tag is taken, for instance."""


class Throttled(Refused):
    """Too many requests at once or in a minute."""


class QuotaExceeded(Refused):
    """The daily submissions of a team, or its attempts in a phase, are used up.

    `wait` is the number of seconds until midnight UTC, None if no day brings another one.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._received_at = datetime.now(timezone.utc)

    @property
    def resets_at(self) -> datetime:
        """The moment from which the team may submit again, in UTC."""
        moment = self._received_at + timedelta(seconds=self.wait or 0.0)
        return moment.replace(microsecond=0)

    def __str__(self) -> str:
        return f"{self.detail} ({self.resets_at:%Y-%m-%d %H:%M} UTC)" if self.wait else self.detail


class BadFile(Refused):
    """A file that the server checked and refused."""

    def __str__(self) -> str:
        problems = [problem for problem in self.errors if problem.get("line")]
        lines = [
            f"{self.source}:{problem['line']}: {problem['code']}: {problem['detail']}"
            for problem in problems[:MAX_LISTED]
        ]

        if len(problems) > MAX_LISTED:
            lines.append(f"and {len(problems) - MAX_LISTED} more")
        return "\n".join(lines) or f"{self.source}: {self.detail}".removeprefix(": ")


_KINDS: dict[int, type[Refused]] = {
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: BadFile,
    415: BadFile,
    422: BadFile,
    429: Throttled,
}
_CODES: dict[str, type[Refused]] = {
    "blind": Blind, "quota_exceeded": QuotaExceeded, "attempts_exceeded": QuotaExceeded,
    "idempotency_key_reused": Conflict,
}  # fmt: skip


def error_of(response: httpx.Response, source: str = "") -> Refused | Unavailable:
    """Return the error for a response of 3xx, 4xx or 5xx; `source` names the file that was sent."""
    try:
        body = response.json()
    except ValueError:
        body = {}

    body = body if isinstance(body, dict) else {}
    status, code = response.status_code, str(body.get("code", ""))
    if status >= 500:
        detail = body.get("detail") or f"the server answered {status} {response.reason_phrase}"
        request = f" (request {body['request_id']})" if body.get("request_id") else ""
        return Unavailable(f"{detail}{request}", status)

    if status < 400:
        address = response.headers.get("Location", "")
        return Unavailable(
            f"the server sends elsewhere ({address}); use that address in the configuration", status
        )

    kind = _CODES.get(code) or _KINDS.get(status, Refused)
    return kind(status, body, seconds_of(response), source)


def seconds_of(response: httpx.Response) -> float | None:
    """Return `Retry-After` in seconds, or None."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdecimal() else None
