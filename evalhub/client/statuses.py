"""Exit statuses of the command line, the same for an error in every command."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import (
    Ambiguous,
    BadConfig,
    BadFile,
    BadRule,
    BadSource,
    Blind,
    Conflict,
    EvalHubError,
    EvaluationFailed,
    NoEvaluation,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    QuotaExceeded,
    Refused,
    Throttled,
    TimedOut,
    WrongOption,
)
from .output import BadFormat

DONE, FAILED, WRONG, UNKNOWN, MISSING, REFUSED, LIMITED, NOT_EVALUATED, LATE, CONFLICT = range(10)
# 10 and 11 are those of the gate.
NOTHING_COMES, INTERRUPTED = 12, 130

# The first class that an error is an instance of decides.
_STATUSES: tuple[tuple[type[EvalHubError], int], ...] = (
    (BadFormat, WRONG),
    (WrongOption, WRONG),
    (Ambiguous, WRONG),
    (BadRule, WRONG),
    (BadConfig, UNKNOWN),
    (NotAuthenticated, UNKNOWN),
    (Blind, MISSING),
    (NotAllowed, UNKNOWN),
    (NotFound, MISSING),
    (BadFile, REFUSED),
    (BadSource, REFUSED),
    (QuotaExceeded, LIMITED),
    (EvaluationFailed, NOT_EVALUATED),
    (TimedOut, LATE),
    (NoEvaluation, NOTHING_COMES),
    (Conflict, CONFLICT),
    (Throttled, FAILED),
    (Refused, WRONG),
)
# The order in which several errors decide: what ended a batch comes before errors in single files.
_WORST = (LIMITED, FAILED, UNKNOWN, MISSING, WRONG, REFUSED, CONFLICT)


def status_of(error: EvalHubError) -> int:
    """Return the exit status of an error, by default 1."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), FAILED)


def worst_of(errors: Iterable[EvalHubError]) -> int:
    """Return the exit status of several errors, 0 for none."""
    statuses = {status_of(error) for error in errors}
    return next((status for status in _WORST if status in statuses), FAILED if statuses else DONE)
