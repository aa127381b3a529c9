"""Patterns for the tags of a phase, such as `{team}-{run_type}-{priority}` (as in NTCIR)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runs.errors import InvalidInput, Unprocessable
from runs.models import Phase

_PART = re.compile(r"\{([a-z][a-z0-9_]*)\}|([A-Za-z0-9._-]+)")
_TAG_TEXT = re.compile(r"[A-Za-z0-9._-]+")
# What stands for a field of which the entry says nothing: any number, or any text of a tag.
_ANY = {"priority": "[1-9][0-9]{0,5}", "name": _TAG_TEXT.pattern}


def check_naming(phase: Phase) -> None:
    """Raise InvalidInput for a malformed pattern, or one with a field that tags cannot have.

    A field can be in a tag if entries cannot leave it out and its texts fit into tags.
    """
    if not phase.naming:
        return

    known = {"team": None, "name": None, "priority": None, **_choices(phase)}
    parts = list(_PART.finditer(phase.naming))
    named = [part[1] for part in parts if part[1]]
    if "".join(part[0] for part in parts) != phase.naming or len(set(named)) != len(named):
        message = (
            "write letters, digits, '.', '_', '-', and each field once in braces, as in "
            "{team}-{run_type}-{priority}"
        )
        raise InvalidInput(message, pointer="/naming")

    if unknown := [name for name in named if name not in known]:
        message = (
            f"a tag cannot have {{{unknown[0]}}}; the fields are {', '.join(known)}: of the form "
            "those of type choice "
            "that are required and whose choices can stand in a tag"
        )
        raise InvalidInput(message, pointer="/naming")

    if set(named) <= {"team"}:
        message = (
            "a tag is not the name of the team alone, and differs from run to run; add {name} or "
            "{priority}"
        )
        raise InvalidInput(message, pointer="/naming")


def check_tag_named(
    phase: Phase,
    tag: str,
    *,
    team: str,
    run_type: str,
    priority: int | None,
    answers: Mapping[str, Any],
) -> None:
    """Raise Unprocessable (`wrong_tag`) for a tag that does not fit the pattern with these fields.

    Case does not matter. Without a `priority` any number fits: priorities close up when an entry is
    withdrawn, and the tag with the next free priority may be taken.
    """
    if not phase.naming:
        return

    fields: dict[str, Any] = {
        **answers,
        "team": team,
        "run_type": run_type,
        "priority": priority,
        "name": "",
    }
    choices, pattern, expected = _choices(phase), "", ""

    for part in _PART.finditer(phase.naming):
        name, value = part[1], str(fields.get(part[1]) or "")
        if not name or value:
            pattern, expected = pattern + re.escape(value or part[0]), expected + (value or part[0])
        else:
            among = "|".join(re.escape(choice) for choice in choices.get(name, []))
            pattern, expected = f"{pattern}(?:{_ANY.get(name, among)})", expected + part[0]

    if not re.fullmatch(pattern, tag, re.IGNORECASE | re.ASCII):
        message = (
            f"the tag {tag!r} is not of the form {expected}; phase {phase.slug} names runs "
            f"{phase.naming}"
        )
        raise Unprocessable(message, code="wrong_tag", pointer="/tag")


def _choices(phase: Phase) -> dict[str, list[str]]:
    """Return the fields of an entry that are one of some texts, all of which can stand in a tag."""
    fields = {
        field["key"]: list(field["choices"])
        for field in phase.form
        if field["type"] == "choice" and field.get("required")
    }
    if phase.run_types:
        fields["run_type"] = [field["key"] for field in phase.run_types]

    return {
        key: texts
        for key, texts in fields.items()
        if all(_TAG_TEXT.fullmatch(text) for text in texts)
    }
