"""Describe the searchers of a log by means and standard deviations, in total and by group."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from metrics.services.question import Parameter, Question, nested, parameter
from metrics.services.sessions.values import ChosenSessions, SessionSelection
from runs.errors import InvalidInput

MAX_GROUPS = 50
BY_SYSTEM = "system"
# Texts of one attribute that are counted, the most frequent first.
_MOST_TEXTS = 50

Attribute = float | str


@dataclass(frozen=True)
class SearchersQuery(Question):
    """What the searchers of the selected sessions are grouped by; None: no groups."""

    by: str | None = parameter(Parameter("an attribute to group by, or system; default: no groups"))
    selection: SessionSelection = nested(SessionSelection)


@dataclass(frozen=True)
class Feature:
    """One attribute of a group.

    It has the number of searchers with it, and its mean, standard deviation (n - 1), lowest and
    highest value, or how often each text occurs.

    Numbers are None for texts, and the deviation is None for a single value.
    """

    name: str
    known: int
    mean: float | None = None
    deviation: float | None = None
    low: float | None = None
    high: float | None = None
    texts: dict[str, int] | None = None


@dataclass(frozen=True)
class SearcherGroup:
    """A group of searchers, or all of them if `name` is empty, and their features."""

    name: str
    searchers: int
    features: list[Feature]


@dataclass(frozen=True)
class Searchers:
    """All searchers of the selected sessions, and their groups.

    Attributes on which sessions of one searcher do not agree are `differing`, and their first
    value is used. Source: Järvelin et al., ECIR 2008, table 1.
    """

    whole: SearcherGroup
    groups: list[SearcherGroup]
    differing: list[str]


def read_searchers(*, chosen: ChosenSessions, by: str | None = None) -> Searchers:
    """Return the attributes of the searchers, grouped by an attribute or by their systems.

    Raise InvalidInput for an attribute that no searcher has, or for too many groups.
    """
    by_searcher: dict[str, dict[str, Attribute]] = {}
    systems: dict[str, dict[str, None]] = {}
    differing: dict[str, None] = {}
    parsed: dict[bytes, dict[str, Attribute]] = {}
    for session in chosen.judged.sessions:
        if not session.searcher:
            continue

        name, attributes = session.searcher.decode(), session.attributes
        systems.setdefault(name, {})[session.system.decode()] = None
        values = by_searcher.setdefault(name, {})
        if attributes and attributes not in parsed:
            parsed[attributes] = json.loads(attributes)

        for key, value in parsed.get(attributes, {}).items():
            if values.setdefault(key, value) != value:
                differing[key] = None

    names = list(dict.fromkeys(key for values in by_searcher.values() for key in values))
    numbers = {
        key
        for key in names
        if not any(isinstance(values.get(key), str) for values in by_searcher.values())
    }

    if by is not None and by != BY_SYSTEM and by not in names:
        message = (
            f"no searcher here has the attribute {by[:100]!r}; group by "
            f"{', '.join([BY_SYSTEM, *names])[:300]}"
        )
        raise InvalidInput(message, pointer="by")

    members: dict[str, list[dict[str, Attribute]]] = {}
    for name, values in by_searcher.items() if by else ():
        groups: Iterable[str] = (
            systems[name] if by == BY_SYSTEM else [_text(values[by])] if by in values else []
        )

        for group in groups:
            members.setdefault(group, []).append(values)

    if len(members) > MAX_GROUPS:
        message = (
            f"{len(members):,} groups; at most {MAX_GROUPS}: group by an attribute with fewer "
            "values"
        )
        raise InvalidInput(message, code="too_many_values", pointer="by")

    return Searchers(
        _group("", list(by_searcher.values()), names, numbers),
        [_group(name, members[name], names, numbers) for name in sorted(members)],
        list(differing),
    )


def _group(
    name: str, searchers: list[dict[str, Attribute]], names: list[str], numbers: set[str]
) -> SearcherGroup:
    features = []
    for key in names:
        attribute_values = [attributes[key] for attributes in searchers if key in attributes]
        if key not in numbers:
            counts = Counter(map(_text, attribute_values)).most_common(_MOST_TEXTS)
            features.append(Feature(key, len(attribute_values), texts=dict(counts)))
        elif attribute_values:
            values = np.array(attribute_values, np.float64)
            deviation = float(values.std(ddof=1)) if len(values) > 1 else None
            features.append(
                Feature(
                    key,
                    len(attribute_values),
                    float(values.mean()),
                    deviation,
                    float(values.min()),
                    float(values.max()),
                )
            )
        else:
            features.append(Feature(key, 0))

    return SearcherGroup(name, len(searchers), features)


def _text(value: Attribute) -> str:
    return value if isinstance(value, str) else f"{value:g}"
