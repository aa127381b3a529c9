"""The form of a phase: fields that organisers define as data, and the answers of an entry."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError

from runs.errors import InvalidInput, Unprocessable
from runs.models.text import check_line, check_text

MAX_FIELDS, MAX_CHOICES, MAX_LENGTH = 40, 50, 2_500
TYPES = ("text", "number", "choice", "choices", "yes_no", "url")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,30}")
_PARTS = {"key", "type", "label", "help", "choices", "required", "public", "max_length"}


def read_form(content: Any) -> list[dict[str, Any]]:
    """Return the fields of a form with every part filled in.

    Raise InvalidInput for the first wrong field.
    """
    fields: list[dict[str, Any]] = []
    for index, field in enumerate(_list(content, "/form", MAX_FIELDS)):
        pointer = f"/form/{index}"
        if not isinstance(field, dict) or set(field) - _PARTS:
            raise InvalidInput(
                f"a field of the form has {', '.join(sorted(_PARTS))}", pointer=pointer
            )

        key, label = _key(field, pointer, fields), _label(field, pointer)
        kind = field.get("type", "text")
        if kind not in TYPES:
            raise InvalidInput(
                f"field {key}: the type is one of {', '.join(TYPES)}", pointer=f"{pointer}/type"
            )

        choices = field.get("choices", [])
        has_choices = kind in ("choice", "choices")
        are_texts = isinstance(choices, list) and all(
            isinstance(c, str) and 0 < len(c) <= 200 for c in choices
        )
        if (
            not are_texts
            or bool(choices) != has_choices
            or len(set(choices)) != len(choices)
            or len(choices) > MAX_CHOICES
        ):
            expected = (
                "1 to 50 different texts"
                if has_choices
                else "no choices, unless its type is choice(s)"
            )
            raise InvalidInput(f"field {key}: {expected}", pointer=f"{pointer}/choices")

        length = field.get("max_length", MAX_LENGTH)
        if type(length) is not int or not 1 <= length <= MAX_LENGTH:
            raise InvalidInput(
                f"field {key}: max_length is 1 to {MAX_LENGTH}", pointer=f"{pointer}/max_length"
            )

        flags = {
            name: field.get(name, default)
            for name, default in (("required", False), ("public", True))
        }
        if any(type(flag) is not bool for flag in flags.values()) or not isinstance(
            field.get("help", ""), str
        ):
            raise InvalidInput(
                f"field {key}: required and public are true or false, help is a text",
                pointer=pointer,
            )

        extra = {"help": field.get("help", "")[:1_000], "choices": choices, "max_length": length}
        fields.append({"key": key, "type": kind, "label": label, **extra, **flags})

    return fields


def read_run_types(data: Any) -> list[dict[str, str]]:
    """Return the types of runs that an entry chooses from.

    Raise InvalidInput for the first wrong type.
    """
    run_types: list[dict[str, str]] = []
    for place, item in enumerate(_list(data, "/run_types", 20)):
        pointer = f"/run_types/{place}"
        if not isinstance(item, dict) or set(item) - {"key", "label"}:
            raise InvalidInput("a type of runs has a key and a label", pointer=pointer)

        run_types.append({"key": _key(item, pointer, run_types), "label": _label(item, pointer)})

    return run_types


def read_answers(form: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers to a form.

    Raise Unprocessable for an unknown field, a missing answer and a wrong one.
    """
    fields = {field["key"]: field for field in form}
    if unknown := [key for key in values if key not in fields]:
        raise _bad(
            unknown[0],
            f"the form has no field {unknown[0][:40]!r}; it has {', '.join(fields) or 'none'}",
        )

    answers = {key: value for key, value in values.items() if value is not None and value != ""}

    for key, field in fields.items():
        if key in answers:
            answers[key] = _answer(field, answers[key])
        elif field["required"]:
            raise _bad(key, f"{field['label']}: an answer is required")

    return answers


def read_run_type(run_types: Sequence[Mapping[str, str]], run_type: str) -> str:
    """Return the key of a run type.

    Raise Unprocessable unless the phase has this type, or has no types.
    """
    keys = [item["key"] for item in run_types]
    if run_type in keys or (not keys and not run_type):
        return run_type

    say = (
        f"the type of the run is one of {', '.join(keys)}"
        if keys
        else "this phase has no types of runs; leave run_type out"
    )
    raise Unprocessable(say, code="wrong_run_type", pointer="/run_type")


def _answer(field: Mapping[str, Any], value: Any) -> Any:
    kind, say = field["type"], f"{field['label']}: "
    if kind == "number" and type(value) in (int, float) and abs(value) < 1e300:
        return value
    if kind == "yes_no" and type(value) is bool:
        return value

    if kind == "choices" and isinstance(value, list):
        if all(choice in field["choices"] for choice in value):
            return list(dict.fromkeys(value))
    elif kind == "choice" and value in field["choices"]:
        return value
    elif kind in ("text", "url") and isinstance(value, str):
        try:
            check_text(value)
        except ValidationError as error:
            raise _bad(field["key"], say + error.messages[0]) from error

        if len(value) > field["max_length"]:
            raise _bad(
                field["key"], f"{say}at most {field['max_length']} characters, not {len(value):,}"
            )

        if kind == "text" or is_web_address(value):
            return value

    meant = {
        "number": "a number", "yes_no": "true or false", "url": "an http or https address", "text": "a text",
        "choice": f"one of {', '.join(field['choices'])}", "choices": f"a list from {', '.join(field['choices'])}",
    }  # fmt: skip
    raise _bad(field["key"], f"{say}the answer is {meant[kind]}")


def is_web_address(text: str) -> bool:
    """Return whether a text is an http or https address."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not re.search(r"\s", text)


def _bad(key: str, message: str) -> Unprocessable:
    return Unprocessable(message, code="bad_answer", pointer=f"/answers/{key[:60]}")


def _list(data: Any, pointer: str, most: int) -> list[Any]:
    if not isinstance(data, list) or len(data) > most:
        raise InvalidInput(f"{pointer[1:]} is a list of at most {most}", pointer=pointer)
    return data


def _key(item: Mapping[str, Any], where: str, before: Sequence[Mapping[str, Any]]) -> str:
    key = item.get("key")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        message = "a key has 1 to 31 lower-case letters, digits and '_', and begins with a letter"
        raise InvalidInput(message, pointer=f"{where}/key")
    if any(key == other["key"] for other in before):
        raise InvalidInput(f"the key {key} is there twice", pointer=f"{where}/key")

    return key


def _label(item: Mapping[str, Any], where: str) -> str:
    label = item.get("label", item.get("key"))
    if not isinstance(label, str) or not 0 < len(label) <= 200:
        raise InvalidInput("a label is a text of 1 to 200 characters", pointer=f"{where}/label")

    try:
        check_line(label)
    except ValidationError as error:
        raise InvalidInput(error.messages[0], pointer=f"{where}/label") from error

    return label
