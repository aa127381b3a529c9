"""Translate forms of campaigns into input of the API: times, types of runs, fields, answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from evalhub.campaigns.services.forms import MAX_FIELDS, MAX_LENGTH
from evalhub.campaigns.services.phase_times import ANYWHERE, read_zone
from runs.errors import InvalidInput

ZONES = ("AoE", "UTC", "Europe/Lisbon", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "Asia/Kolkata",
         "Asia/Tokyo", "Australia/Sydney")  # fmt: skip
TYPE_WORDS = {
    "text": "text", "number": "number", "choice": "one of some choices", "choices": "several of some choices",
    "yes_no": "yes or no", "url": "web address",
}  # fmt: skip
# Rows without content at the end of the editor of a form.
_SPARE = 3
_PARTS = ("key", "label", "type", "choices", "help", "required", "private", "max_length")
_LINE = re.compile(r"\s*([a-z][a-z0-9_]{0,30})\s*(?:=\s*(.*\S)\s*)?")


def zone_shown(zone: str) -> str:
    return "AoE" if zone == ANYWHERE else zone


def time_in(form: Mapping[str, Any], name: str, zone: str) -> str | None:
    """Return the day and time of a form as the API takes them, or None if both are empty.

    Raise InvalidInput for a time without a day, or one that the zone passes over.
    """
    day, clock = str(form.get(f"{name}_day", "")).strip(), str(form.get(f"{name}_time", "")).strip()
    if not day and clock:
        raise InvalidInput("choose the day, too", pointer=f"/{name}")
    if not day or not clock:
        return day or None

    try:
        local = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=ZoneInfo(read_zone(zone)))
        round_trip = local.astimezone(UTC).astimezone(local.tzinfo)
    except (ValueError, OverflowError) as error:
        message = f"{day[:20]} {clock[:20]} is not a time; write 2027-05-31 and 18:00"
        raise InvalidInput(message, code="bad_time", pointer=f"/{name}") from error

    if round_trip.replace(tzinfo=None) != local.replace(tzinfo=None):
        message = f"the clocks of {zone} pass over {day} {clock}; choose another time"
        raise InvalidInput(message, code="bad_time", pointer=f"/{name}")

    return local.astimezone(UTC).isoformat()


def time_fields(at: datetime | None, name: str, zone: str, *, ends: bool) -> dict[str, str]:
    """Return the values of the day field and the time field of an instant.

    At midnight the time is empty, and an end is that of the day before.
    """
    if at is None:
        return {f"{name}_day": "", f"{name}_time": ""}

    local = at.astimezone(ZoneInfo(zone))
    if local.time() == time():
        return {f"{name}_day": f"{local - timedelta(days=ends):%Y-%m-%d}", f"{name}_time": ""}

    return {
        f"{name}_day": f"{local:%Y-%m-%d}",
        f"{name}_time": f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}",
    }


def types_in(text: str) -> list[dict[str, str]]:
    """Return the types of runs in lines such as `automatic = Automatic`.

    Raise InvalidInput with the number of the line.
    """
    types = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue

        match = _LINE.fullmatch(line)
        if not match:
            message = f"line {number}: write a key and, optionally, its label, as in: automatic = Automatic"
            raise InvalidInput(message, pointer="/run_types")

        types.append({"key": match[1], "label": match[2] or match[1]})

    return types


def types_as_lines(types: Iterable[Mapping[str, str]]) -> str:
    return "\n".join(f"{run_type['key']} = {run_type['label']}" for run_type in types)


def titles_in(text: str) -> dict[str, str]:
    """Return the titles of measures in lines such as `nDCG@10 = nDCG`.

    Raise InvalidInput with the number of the line.
    """
    titles = {}
    for number, line in enumerate(text.splitlines(), 1):
        # A measure may have a sign of equality, without spaces.
        measure, sign, title = line.rpartition(" = ")
        if sign:
            titles[measure.strip()] = title.strip()
        elif line.strip():
            message = f"line {number}: write a measure and its title, as in: nDCG@10 = nDCG"
            raise InvalidInput(message, pointer="/measure_titles")

    return titles


def titles_as_lines(titles: Mapping[str, str]) -> str:
    return "\n".join(f"{measure} = {title}" for measure, title in titles.items())


def form_names() -> list[str]:
    """Return the names of all fields that the editor of a form may send."""
    return [f"field-{number}-{part}" for number in range(MAX_FIELDS) for part in _PARTS]


def rows_in(form: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of the editor as they were sent, without those that are empty."""
    rows = [
        {part: str(form.get(f"field-{number}-{part}", "")) for part in _PARTS}
        for number in range(MAX_FIELDS)
    ]
    return [row for row in rows if row["key"].strip() or row["label"].strip()]


def rows_of(form: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the rows of the editor for a stored form."""
    return [
        {
            **{part: str(field[part]) for part in ("key", "label", "type", "help")},
            "choices": "\n".join(field["choices"]),
            "required": "on" if field["required"] else "",
            "private": "" if field["public"] else "on",
            "max_length": "" if field["max_length"] == MAX_LENGTH else str(field["max_length"]),
        }
        for field in form
    ]


def with_spare(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the rows with empty ones behind them, as many as there may be."""
    spare = min(_SPARE, MAX_FIELDS - len(rows))
    return [*rows, *({**dict.fromkeys(_PARTS, ""), "type": "text"} for _ in range(spare))]


def form_in(rows: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the fields of a form from rows; a row without a key gets one from its label."""
    fields = []
    for row in rows:
        key = row["key"].strip() or re.sub(r"[^a-z0-9]+", "_", row["label"].lower()).strip("_")[:31]
        length = row["max_length"].strip()
        if length and not (length.isascii() and length.isdecimal() and len(length) < 6):
            raise InvalidInput(
                f"field {key}: the most characters are a whole number", pointer="/form"
            )

        choices = [line.strip() for line in row["choices"].splitlines() if line.strip()]
        fields.append(
            {
                "key": key, "label": row["label"].strip() or key, "type": row["type"], "help": row["help"].strip(),
                "choices": choices, "required": bool(row["required"]), "public": not row["private"],
                **({"max_length": int(length)} if length else {}),
            }
        )  # fmt: skip

    return fields


def answers_in(form: Any, fields: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answers of a form to these fields, as the API takes them.

    The service validates them.
    """
    answers: dict[str, Any] = {}
    for field in fields:
        name, kind = f"answer-{field['key']}", field["type"]
        text = str(form.get(name, "")).replace("\r\n", "\n")
        if kind == "choices":
            answers[field["key"]] = [str(choice) for choice in form.getlist(name)] or None
        elif kind == "yes_no":
            answers[field["key"]] = {"yes": True, "no": False}.get(text, text)
        elif kind == "number":
            answers[field["key"]] = _number(text)
        else:
            answers[field["key"]] = text

    return answers


def answer_rows(
    fields: Iterable[Mapping[str, Any]], answers: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return each field with what its input shows."""
    words = {True: "yes", False: "no"}
    rows = []

    for field in fields:
        value = answers.get(field["key"], "")
        if isinstance(value, bool):
            value = words[value]

        rows.append(
            {**field, "name": f"answer-{field['key']}", "value": "" if value is None else value}
        )

    return rows


def _number(text: str) -> Any:
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue

    return text
