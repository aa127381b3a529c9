"""All known measures of runs and of sessions, searched by text and found by any of their names."""

from __future__ import annotations

from typing import Literal

from metrics.engine.errors import MeasureError
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import MeasureDefinition
from metrics.engine.measures.finding import find_measures, names_of
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.sessions.grammar import parse_session_measure
from metrics.engine.sessions.measures import SESSION_MEASURES

Of = Literal["runs", "sessions"]
OF: dict[Of, dict[str, MeasureDefinition]] = {"runs": MEASURES, "sessions": SESSION_MEASURES}


def of_what(definition: MeasureDefinition) -> Of:
    """Return whether a measure is one of runs or of sessions."""
    return "sessions" if definition.name in SESSION_MEASURES else "runs"


def search_measures(text: str, of: Of | None = None) -> list[MeasureDefinition]:
    """Return the measures with every word in their text.

    Measures of runs come first among equally good matches.
    """
    kinds = [OF[of]] if of else [*OF.values()]
    return find_measures(text, [definition for kind in kinds for definition in kind.values()])


def find_measure(text: str) -> MeasureDefinition:
    """Return the measure of a name, with or without parameters and cutoff.

    Raise MeasureError for an unknown name.
    """
    name = text.strip().partition("(")[0].partition("@")[0]
    if name in MEASURES and name == text:
        return MEASURES[name]

    for definition in SESSION_MEASURES.values():
        if name in names_of(definition):
            return definition if name == text else parse_session_measure(text).definition

    try:
        return parse_measure(text).definition
    except MeasureError:
        # Names that need a number, such as trec_eval's.
        exact = [definition for definition in MEASURES.values() if text in names_of(definition)]
        if not exact:
            raise
        return exact[0]
