"""Find measures by a text: a name, another tool's name, a word of the definition."""

from __future__ import annotations

import re
from collections.abc import Iterable

from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import MeasureDefinition


def find_measures(
    text: str, definitions: Iterable[MeasureDefinition] = MEASURES.values()
) -> list[MeasureDefinition]:
    """Return the measures in which every word of the text occurs, all for an empty text; those with
    a name that begins with it come first."""
    words = re.findall(r"\w+", text.lower())
    matches = [
        definition
        for definition in definitions
        if all(word in _text_of(definition) for word in words)
    ]

    return sorted(matches, key=lambda definition: _order(definition, words))


def names_of(definition: MeasureDefinition) -> list[str]:
    """Return all names that mean the measure."""
    names = [definition.name, *definition.aliases]
    if definition.trec_eval:
        names.append(definition.trec_eval)
    names += [name for name, _ in definition.forms]

    return list(dict.fromkeys(names))


def _text_of(definition: MeasureDefinition) -> str:
    parameters = [f"{parameter.name} {parameter.text}" for parameter in definition.parameters]
    return " ".join([*names_of(definition), *definition.sections().values(), *parameters]).lower()


def _order(definition: MeasureDefinition, words: list[str]) -> int:
    """Return 0 if a name is the first word, 1 if one begins with it, 2 if one contains it, 3 if the
    summary has every word, else 4."""
    names = [name.lower() for name in names_of(definition)]
    first = words[0] if words else ""
    summary = definition.sections()["summary"].lower()
    tests = (
        first in names,
        any(name.startswith(first) for name in names),
        any(first in name for name in names),
        all(word in summary for word in words),
    )

    return next((order for order, met in enumerate(tests) if met), len(tests))
