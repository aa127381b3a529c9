"""The answer of the API about the attributes of a session set's searchers."""

from __future__ import annotations

from typing import Annotated, TypedDict

from metrics.api.sessions.answers import ReadFromSet, read_from
from metrics.services.sessions import searchers, values


class SearcherFeature(TypedDict):
    name: str
    known: Annotated[int, "searchers of whom it is known"]
    mean: Annotated[float | None, "null for texts"]
    deviation: Annotated[float | None, "standard deviation (n - 1)"]
    low: float | None
    high: float | None
    texts: Annotated[
        dict[str, int] | None, "how often each occurs, the 50 most frequent; null for numbers"
    ]


class SearcherFeatures(TypedDict):
    searchers: int
    features: list[SearcherFeature]


class SearcherGroup(SearcherFeatures):
    group: str


class Searchers(ReadFromSet):
    """The attributes of a log's searchers."""

    all: SearcherFeatures
    by: str | None
    groups: list[SearcherGroup]
    differing: Annotated[
        list[str], "attributes on which sessions of one searcher do not agree: the first counts"
    ]


def searchers_answer(
    chosen: values.ChosenSessions, attributes: searchers.Searchers, by: str | None
) -> Searchers:
    """Return the attributes of all searchers, and of each group."""
    return Searchers(
        **read_from(chosen.evaluation),
        all=_features(attributes.whole),
        by=by,
        groups=[SearcherGroup(**_features(group), group=group.name) for group in attributes.groups],
        differing=attributes.differing,
    )


def _features(group: searchers.SearcherGroup) -> SearcherFeatures:
    return SearcherFeatures(
        searchers=group.searchers,
        features=[
            SearcherFeature(
                name=feature.name,
                known=feature.known,
                mean=feature.mean,
                deviation=feature.deviation,
                low=feature.low,
                high=feature.high,
                texts=feature.texts,
            )
            for feature in group.features
        ],
    )
