"""What an answer of a damaged installation is: the sound one, a refusal, less than the sound one, or wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.damage.world import Answer

SAME, REFUSED, LESS, TEXT, COUNT = "same", "refused", "less", "other text", "other count"
WRONG, TRACEBACK = "WRONG NUMBER", "TRACEBACK"
# From the best that can happen to the worst.
ORDER = (SAME, REFUSED, LESS, TEXT, COUNT, WRONG, TRACEBACK)
# Each says what is damaged or missing, or that the database is not there to be asked.
NAMED = (
    "stored_value_corrupt",
    "stored_file_corrupt",
    "stored_file_missing",
    "database_damaged",
    "migrations_missing",
    "database_unavailable",
    "storage_unavailable",
)
# What a page says instead.
SAID = (b"is damaged", b"does not answer", b"evalhub migrate")
# What counts or orders the rows that are there: it may be another number where a row is missing.
COUNTS = (
    "number",
    "rank",
    "ranked",
    "count",
    "total",
    "runs",
    "position",
    "offset",
    "tau_official",
    "swaps",
)
# Counts from a file stand in its row, with a digest that is compared when the run is read by
# itself, and by fsck.
COUNTED = (
    "lines", "size", "documents", "topics", "judgements", "tied_documents", "judged", "answered", "known_documents",
    "sessions", "queries", "levels", "version", "priority",
)  # fmt: skip
# Of when and how often something was done, and of where it stands meanwhile: no numbers of a
# result.
AROUND = (
    "now",
    "since",
    "created_at",
    "seconds",
    "attempts",
    "status",
    "state",
    "states",
    "queue",
    "code",
    "reason",
    "evaluated_at",
)


def judge(answer: Answer, sound: Answer) -> str:
    """One of ORDER."""
    if answer.status == 0:
        return REFUSED
    if answer.status >= 500:
        named = answer.code in NAMED or any(words in answer.content for words in SAID)
        return REFUSED if named else TRACEBACK
    if answer.status != 200:
        # What is damaged may not be found, nor what asks for it be allowed to.
        return LESS
    if answer.content == sound.content:
        return SAME
    try:
        got, right = json.loads(answer.content), json.loads(sound.content)
    except ValueError:
        return WRONG
    kinds = set(differences(got, right))
    return max(kinds, key=ORDER.index) if kinds else SAME


def differences(answer: Any, sound: Any, key: str = "") -> Iterator[str]:
    """How two JSON values differ: in numbers, in texts, or in what is missing of one."""
    if key in AROUND or answer == sound:
        return
    if answer in (None, [], {}) or (key in COUNTS and not isinstance(answer, dict | list)):
        yield LESS
    elif isinstance(answer, dict) and isinstance(sound, dict):
        if answer.keys() != sound.keys():
            yield TEXT
        for name in answer.keys() & sound.keys():
            yield from differences(answer[name], sound[name], name)
    elif isinstance(answer, list) and isinstance(sound, list):
        yield from _of_lists(answer, sound, key)
    elif isinstance(answer, bool | str) or isinstance(sound, bool | str):
        yield TEXT
    else:
        yield COUNT if key in COUNTED else WRONG


def _of_lists(answer: list[Any], sound: list[Any], key: str) -> Iterator[str]:
    """Rows are compared with those of the same name, wherever they stand."""
    names = [_name_of(row) for row in sound]
    if None in names or len(set(names)) < len(names):
        if len(answer) != len(sound):
            yield LESS if len(answer) < len(sound) else WRONG
        for item, right in zip(answer, sound, strict=False):
            yield from differences(item, right, key)
        return
    by_name = dict(zip(names, sound, strict=True))
    if len(answer) < len(sound):
        yield LESS
    for row in answer:
        name = _name_of(row)
        if name in by_name:
            yield from differences(row, by_name[name], key)
        else:
            yield TEXT


def _name_of(row: Any) -> str | None:
    """What a row is of: a run, a topic, a session, a measure."""
    if not isinstance(row, dict):
        return None
    named = {
        name: row[name]
        for name in ("id", "topic", "session", "system", "session_set", "measure", "name", "a", "b")
        if name in row
    }
    if "run" in row:
        named["run"] = row["run"].get("id") if isinstance(row["run"], dict) else row["run"]
    return json.dumps(named, sort_keys=True) if named else None
