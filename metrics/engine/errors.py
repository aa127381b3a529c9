"""The errors of the engine.

    EvalHubError             a refusal that a user can act on: a stable code, a sentence, a pointer
    ├── MeasureError         a measure name or parameter without a meaning
    ├── StatisticsError      a comparison without an answer: too few runs or topics, unknown test
    └── InputError           of the library: a topic, document or line that cannot be read

The service adds its own in `runs.errors`.
"""

from __future__ import annotations


class EvalHubError(Exception):
    """A refusal: `code` is stable, `pointer` is a JSON pointer or a query parameter's name."""

    code = "error"

    def __init__(
        self, message: str, *, code: str | None = None, pointer: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.pointer = pointer


class MeasureError(EvalHubError):
    code = "unknown_measure"


class StatisticsError(EvalHubError):
    code = "no_comparison"


class InputError(EvalHubError, ValueError):
    """Judgements or a run that the library cannot read; the message names the place."""
