"""Find measures by a text: a name, another tool's name, a word of the definition."""

from __future__ import annotations

import re
from collections.abc import Iterable

from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import MeasureDefinition


def find_measures(
    text: str, known: Iterable[MeasureDefinition] = MEASURES.values()
) -> list[MeasureDefinition]:
    """Return the measures in which every word of the text occurs: those whose name it begins first,
    all for no words."""
    words = re.findall(r"\w+", text.lower())
    found = [one for one in known if all(word in _text_of(one) for word in words)]
    return sorted(found, key=lambda one: _place(one, words))


def names_of(definition: MeasureDefinition) -> list[str]:
    """Return all names that mean the measure."""
    forms = [name for name, _ in definition.forms]
    return list(
        dict.fromkeys(
            [definition.name, *definition.aliases, *filter(None, [definition.trec_eval]), *forms]
        )
    )


def _text_of(definition: MeasureDefinition) -> str:
    parameters = [f"{one.name} {one.text}" for one in definition.parameters]
    return " ".join([*names_of(definition), *definition.sections().values(), *parameters]).lower()


def _place(definition: MeasureDefinition, words: list[str]) -> int:
    """0 where a name is the first word, 1 where one begins with it, 2 where one has it, 3 where the
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

    return next((place for place, met in enumerate(tests) if met), len(tests))
