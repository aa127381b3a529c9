"""The errors of the service, in addition to those of the engine.

    EvalHubError                from the engine: a stable code, a sentence, a pointer to the cause
    ├── InvalidInput            a field of a request is invalid
    ├── Unprocessable           metadata or costs cannot be stored
    ├── InvalidFile             a file cannot be accepted; carries its FileReport
    ├── UnsupportedFile         a compression or format is not supported
    ├── FileTooLarge            a file is beyond a limit, before or after decompression
    ├── StoredFileCorrupt       a stored file is missing or no longer has its SHA-256
    │   └── StoredFileMissing   a stored file is missing; it may come back
    ├── StorageUnavailable      the store is missing or cannot be used; trying again may help
    │   ├── WrongStore          the store belongs to another install
    │   └── StoreRefuses        the object store refuses bucket or key; an operator must help
    ├── StoredValueCorrupt      a stored value no longer has its digest; it is not shown
    ├── NotFound                an object does not exist, or not for this user
    ├── Gone                    a share link was revoked or has expired
    ├── NotAllowed              the user may see an object but not change it
    │   └── Blind               the answer depends on judgements that only organisers may see yet
    ├── ChangedMeanwhile        an object has changed since the sender of a change has read it
    ├── KeyReused               an idempotency key came with another request before
    ├── Conflict                a change contradicts the present state
    ├── LimitReached            a quota or a rate is used up; says how long to wait
    └── LeftOff                 a request ends whatever it is doing; the data is not the cause
        ├── Unavailable         the server has no time now; says how long to wait
        └── ClientLeft          the client closed the connection before the answer was ready

Only `evalhub.problems` turns them into HTTP statuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from metrics.engine.errors import EvalHubError

PROBLEMS_SHOWN = 50
# Lines that a warning names; all of them are counted.
LINES_NAMED = 10


class InvalidInput(EvalHubError):
    code = "invalid"


class Unprocessable(EvalHubError):
    code = "invalid"


class UnsupportedFile(EvalHubError):
    code = "unsupported_media_type"


class FileTooLarge(EvalHubError):
    code = "file_too_large"


# Parts of the messages of SQLite and PostgreSQL about damaged pages.
_DAMAGED_DATABASE = (
    "malformed",
    "file is not a database",
    "invalid page in block",
    "could not read block",
)


def says_damaged(error: Exception) -> bool:
    """Return whether an error of a database says that the database is damaged."""
    return any(text in str(error) for text in _DAMAGED_DATABASE)


class StoredFileCorrupt(EvalHubError):
    code = "stored_file_corrupt"


class StoredFileMissing(StoredFileCorrupt):
    code = "stored_file_missing"


class StorageUnavailable(EvalHubError):
    code = "storage_unavailable"


class WrongStore(StorageUnavailable):
    code = "wrong_store"


class StoreRefuses(StorageUnavailable):
    """The message for clients does not name the cause; `reason` is for the operator."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoredValueCorrupt(EvalHubError):
    code = "stored_value_corrupt"


class NotFound(EvalHubError):
    code = "not_found"


class ReplicatesUnfinished(NotFound):
    """A run waits for the evaluations of its replicates."""

    code = "replicates_unfinished"


class Gone(EvalHubError):
    code = "share_revoked"


class NotAllowed(EvalHubError):
    code = "not_allowed"


class Blind(NotAllowed):
    """The message is constant, so that the answer reveals nothing about the judgements."""

    code = "blind"

    def __init__(self) -> None:
        super().__init__(
            "the judgements of this collection are blind until the organisers release them"
        )


class ChangedMeanwhile(EvalHubError):
    code = "changed_meanwhile"


class KeyReused(EvalHubError):
    code = "idempotency_key_reused"


class Conflict(EvalHubError):
    code = "conflict"


class LimitReached(EvalHubError):
    """`wait` is in seconds; None if waiting does not help."""

    code = "throttled"

    def __init__(self, message: str, *, wait: float | None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.wait = wait


class LeftOff(EvalHubError):
    """Code that converts errors of files must not convert this one: the file is not its cause."""


class Unavailable(LeftOff):
    """`wait` is in seconds."""

    code = "server_busy"

    def __init__(self, message: str, *, wait: float, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.wait = wait


class ClientLeft(LeftOff):
    """The client no longer reads the answer; log and counters record that the work was stopped."""

    code = "client_left"

    def __init__(self) -> None:
        super().__init__("the client closed the connection before the answer was ready")


@dataclass(frozen=True)
class Problem:
    """A problem or warning in a file; `line` is 1-based, 0 if it concerns the whole file."""

    line: int
    code: str
    message: str


@dataclass
class ProblemKind:
    """All problems or warnings of one kind in a file: their number, and the first lines.

    `kind` distinguishes problems of the same code. There are no lines if they are about the whole
    file.
    """

    code: str
    message: str
    kind: str = ""
    count: int = 0
    lines: list[int] = field(default_factory=list)

    @property
    def line(self) -> int:
        return min(self.lines, default=0)


@dataclass
class FileReport:
    """The first 50 problems of a file, an entry for each kind of warning, and counts by code.

    `read_to` is the line where the reading was stopped; 0 if the file was read to its end.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[ProblemKind] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    read_to: int = 0

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], ProblemKind]:
        """Return the warnings by code and kind."""
        return {}

    @property
    def problem_counts(self) -> dict[str, int]:
        """Return how many problems of each code there are, listed or not."""
        warning_codes = {warning.code for warning in self.warnings}
        return {code: count for code, count in self.counts.items() if code not in warning_codes}

    @property
    def problem_count(self) -> int:
        return sum(self.problem_counts.values())

    @property
    def problem_kinds(self) -> list[ProblemKind]:
        """Return the listed problems, those with the same code and message together."""
        listed: dict[tuple[str, str], ProblemKind] = {}

        for problem in self.problems:
            entry = listed.setdefault(
                (problem.code, problem.message), ProblemKind(problem.code, problem.message)
            )
            entry.count += 1
            if problem.line and len(entry.lines) < LINES_NAMED:
                entry.lines.append(problem.line)

        return list(listed.values())

    def problem(self, line: int, code: str, message: str, count: int = 1) -> None:
        self.counts[code] = self.counts.get(code, 0) + count
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(Problem(line, code, message))

    def warning(
        self, line: int, code: str, message: str, count: int = 1, *, kind: str = ""
    ) -> None:
        """Add a warning. The first message of each code, or of each code and `kind`, stays."""
        self.counts[code] = self.counts.get(code, 0) + count
        entry = self._kinds.get((code, kind))
        if entry is None:
            # There are few codes, but kinds may be any text of a file.
            if kind and len(self.warnings) >= PROBLEMS_SHOWN:
                return
            entry = self._kinds[code, kind] = ProblemKind(code, message, kind)
            self.warnings.append(entry)

        entry.count += count
        if line and len(entry.lines) < LINES_NAMED:
            entry.lines.append(line)

    def drop_warnings(self, code: str) -> None:
        """Remove the warnings of a code."""
        self.warnings = [warning for warning in self.warnings if warning.code != code]
        for key in [key for key in self._kinds if key[0] == code]:
            del self._kinds[key]
        self.counts.pop(code, None)

    def count_more(self, code: str, count: int) -> None:
        """Count problems or warnings of a code beyond those that were reported one by one."""
        self.counts[code] += count
        for entry in self.warnings:
            if entry.code == code:
                entry.count += count

    def stop_when_full(self, line: int, at_once: bool = False) -> None:
        """Raise InvalidFile if the list of problems is full, or `at_once` if it has any.

        `at_once` is for files with lines that are expensive to read.
        """
        if at_once or len(self.problems) >= PROBLEMS_SHOWN:
            self.read_to = line
            self.check()

    def check(self) -> None:
        """Raise InvalidFile when the file has a problem."""
        if self.problems:
            self.problems.sort(key=lambda problem: problem.line)
            raise InvalidFile(self)


class InvalidFile(EvalHubError):
    """`pointer` names the file's field in the request, if there may be several files."""

    code = "invalid_file"

    def __init__(self, report: FileReport) -> None:
        first, total = report.problems[0], report.problem_count
        place = f"line {first.line}: " if first.line else ""
        listed = len(report.problems)
        ending = ""

        if report.read_to:
            ending = (
                f"; after {total:,} problems the file was read no further "
                f"than line {report.read_to:,}"
            )
        elif total > listed:
            ending = f"; {total:,} problems in total, the first {listed} are listed"

        super().__init__(f"{place}{first.message}{ending}", code=first.code)
        self.report = report
