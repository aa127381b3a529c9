"""What the service can refuse, beside the errors of the engine.

    EvalHubError                the engine's: a stable code, a sentence, a pointer to the culprit
    ├── InvalidInput            a field of a request that does not fit
    ├── Unprocessable           metadata or costs whose content cannot be kept
    ├── InvalidFile             a file that cannot be accepted; carries its FileReport
    ├── UnsupportedFile         a compression or format we do not read
    ├── FileTooLarge            a file beyond a limit, before or after decompression
    ├── StoredFileCorrupt       a stored file that is missing or no longer has its SHA-256
    │   └── StoredFileMissing   one that is not there now; it may come back
    ├── StorageUnavailable      the store is not there, or cannot be used; trying again may help
    │   ├── WrongStore          the store is that of another install
    │   └── StoreRefuses        the object store knows neither its bucket nor its key; an operator must help
    ├── StoredValueCorrupt      a stored value that no longer has its digest; nothing is shown of it
    ├── NotFound                an object that is not there, or not for this user
    ├── Gone                    a share link that was revoked or has expired
    ├── NotAllowed              an object that may be seen but not changed by this user
    │   └── Blind               anything that depends on judgements nobody but the organisers may see yet
    ├── ChangedMeanwhile        a change of something that is not as its sender has read it
    ├── KeyReused               an idempotency key that came with another request before
    ├── Conflict                a change that contradicts the state it meets
    ├── LimitReached            one more than a quota or a rate allows; says how long to wait
    └── LeftOff                 what ends a request whatever it is doing, and says nothing of the data
        ├── Unavailable         what the server has no time for now; says how long to wait
        └── ClientLeft          the client of a request that was being answered is gone

Only `evalhub.problems` turns one into an HTTP status.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from metrics.engine.errors import EvalHubError

PROBLEMS_SHOWN = 50
# How many lines a warning names; all of them are counted.
LINES_NAMED = 10


class InvalidInput(EvalHubError):
    code = "invalid"


class Unprocessable(EvalHubError):
    code = "invalid"


class UnsupportedFile(EvalHubError):
    code = "unsupported_media_type"


class FileTooLarge(EvalHubError):
    code = "file_too_large"


# As SQLite and PostgreSQL say that a page of theirs is not what it was.
_DAMAGED_DATABASE = (
    "malformed",
    "file is not a database",
    "invalid page in block",
    "could not read block",
)


def says_damaged(error: Exception) -> bool:
    """Return whether this error of a database says that the database is damaged."""
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
    """What a client reads says nothing of the cause; `reason` is for the operator."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoredValueCorrupt(EvalHubError):
    code = "stored_value_corrupt"


class NotFound(EvalHubError):
    code = "not_found"


class Gone(EvalHubError):
    code = "share_revoked"


class NotAllowed(EvalHubError):
    code = "not_allowed"


class Blind(NotAllowed):
    """Its text is constant: whatever was asked, the answer tells nothing of the judgements."""

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
    """`wait` is in seconds; None where waiting does not help."""

    code = "throttled"

    def __init__(self, message: str, *, wait: float | None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.wait = wait


class LeftOff(EvalHubError):
    """Code that converts errors of files must let this one through: the file is not its cause."""


class Unavailable(LeftOff):
    """`wait` is in seconds."""

    code = "server_busy"

    def __init__(self, message: str, *, wait: float, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.wait = wait


class ClientLeft(LeftOff):
    """The client no longer reads the answer; the log and the counters record that the work was stopped."""

    code = "client_left"

    def __init__(self) -> None:
        super().__init__("the client closed the connection before the answer was ready")


@dataclass(frozen=True)
class Problem:
    """One thing wrong or odd in a file; `line` is 1-based, 0 where it concerns the whole file."""

    line: int
    code: str
    message: str


@dataclass
class ProblemKind:
    """All problems or warnings of one kind in a file: their number, and the first lines; no lines if it is about the
    whole file.

    `kind` distinguishes problems of the same code.
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
    """Problems and warnings of one file: the first 50 problems, one entry for each kind of warning, and a count for
    every code. `read_to` is the line where the reading was stopped; 0 where the file was read to
    its end."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[ProblemKind] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    read_to: int = 0

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], ProblemKind]:
        """The warnings by code and kind."""
        return {}

    @property
    def problem_counts(self) -> dict[str, int]:
        """Return how many problems of each code there are, listed or not."""
        odd = {warning.code for warning in self.warnings}
        return {code: count for code, count in self.counts.items() if code not in odd}

    @property
    def problem_count(self) -> int:
        return sum(self.problem_counts.values())

    @property
    def problem_kinds(self) -> list[ProblemKind]:
        """The listed problems, those with the same code and message together."""
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
        """Warn of something. The message is that of the first warning of its code, or of its code and `kind`."""
        self.counts[code] = self.counts.get(code, 0) + count
        found = self._kinds.get((code, kind))
        if found is None:
            # The codes are few, but kinds may be anything that stands in a file.
            if kind and len(self.warnings) >= PROBLEMS_SHOWN:
                return
            found = self._kinds[code, kind] = ProblemKind(code, message, kind)
            self.warnings.append(found)
        found.count += count
        if line and len(found.lines) < LINES_NAMED:
            found.lines.append(line)

    def drop_warnings(self, code: str) -> None:
        """Take back the warnings of a code."""
        self.warnings = [warning for warning in self.warnings if warning.code != code]
        for key in [key for key in self._kinds if key[0] == code]:
            del self._kinds[key]
        self.counts.pop(code, None)

    def count_more(self, code: str, count: int) -> None:
        """Count findings of a code beyond the problems or lines that were reported one by one."""
        self.counts[code] += count
        for entry in self.warnings:
            if entry.code == code:
                entry.count += count

    def stop_when_full(self, line: int, at_once: bool = False) -> None:
        """Raise InvalidFile where as many problems are found as are listed, or `at_once`: for files of which every
        line costs much to read."""
        if at_once or len(self.problems) >= PROBLEMS_SHOWN:
            self.read_to = line
            self.check()

    def check(self) -> None:
        """Raise InvalidFile when the file has a problem."""
        if self.problems:
            self.problems.sort(key=lambda problem: problem.line)
            raise InvalidFile(self)


class InvalidFile(EvalHubError):
    """`pointer` says in which field of the request the file came, where there may be several."""

    code = "invalid_file"

    def __init__(self, report: FileReport) -> None:
        first, total = report.problems[0], report.problem_count
        where = f"line {first.line}: " if first.line else ""
        listed = len(report.problems)
        more = (
            f"; {total:,} problems in total, the first {listed} are listed"
            if total > listed
            else ""
        )
        if report.read_to:
            more = f"; after {total:,} problems the file was read no further than line {report.read_to:,}"
        super().__init__(f"{where}{first.message}{more}", code=first.code)
        self.report = report
