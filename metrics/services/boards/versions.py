"""Show each system by its latest version, or by its best one under the board's measure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np

from metrics.engine.analysis.best_of import expected_best
from metrics.engine.arrays import Flags, Ints
from metrics.engine.cautions import Caution
from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.services.values.effort import check_values
from metrics.services.values.judged_views import vectors_of
from runs.models import Collection, Run

ALL, LATEST, BEST = "all", "latest", "best"
VERSIONS = (ALL, LATEST, BEST)
# What a caption says of the rows.
CAPTIONS = {
    ALL: "",
    LATEST: "Each system by its latest evaluated version.",
    BEST: "Each system by its best of k versions: means are too high, more so with more versions.",
}
BEST_CAUTION = Caution(
    "best_of_versions",
    "each system is shown by its best of k versions, chosen by these means: they are too high and "
    "have no intervals; p values count the pairs of all versions",
)


class Place(NamedTuple):
    """An evaluation with its rank, or with the code and reason why it has none."""

    pk: int
    rank: int | None
    code: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Places:
    """The places of evaluations in their order as arrays: a page shows few of them.

    `ranks` has 0 for none, and `why` the codes and reasons of evaluations without a rank.
    """

    keys: Ints
    ranks: Ints
    why: Mapping[int, tuple[str, str]]

    @classmethod
    def of(cls, places: Sequence[Place]) -> Places:
        keys = np.array([place.pk for place in places], np.int64)
        ranks = np.array([place.rank or 0 for place in places], np.int64)
        return cls(
            keys,
            ranks,
            {place.pk: (place.code, place.reason) for place in places if place.rank is None},
        )

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Place]:
        return iter(self[:])

    def __getitem__(self, part: slice | list[int]) -> list[Place]:
        rows = zip(self.keys[part].tolist(), self.ranks[part].tolist(), strict=True)
        return [Place(pk, rank) if rank else Place(pk, None, *self.why[pk]) for pk, rank in rows]

    @property
    def ranked(self) -> int:
        """Return how many have a rank."""
        return int(np.count_nonzero(self.ranks))

    def only(self, keys: Ints) -> Places:
        """Return the places of some evaluations."""
        selected = np.isin(self.keys, keys)
        return Places(self.keys[selected], self.ranks[selected], self.why)


@dataclass(frozen=True)
class Chosen:
    """What a row says of the version that represents its system.

    `of` is the number of versions it was chosen from, `newer` the number of a newer one that has no
    values yet, and `expected` the mean of the best one on other topics.
    """

    of: int
    newer: int | None = None
    expected: float | None = None


@dataclass(frozen=True)
class Lineup:
    """The versions of a collection's live runs, and the evaluated ones among them.

    `places` has the key of each evaluation and its run, best first or in any order.
    """

    versions: Mapping[UUID, tuple[int, int]]
    places: list[tuple[int, UUID]]
    choice: str

    @cached_property
    def evaluated(self) -> dict[int, list[tuple[int, UUID]]]:
        """Return the evaluated versions of each system, in the order of `places`."""
        evaluated: dict[int, list[tuple[int, UUID]]] = {}
        for pk, run in self.places:
            if run in self.versions:
                evaluated.setdefault(self.versions[run][0], []).append((pk, run))
        return evaluated

    @cached_property
    def newest(self) -> dict[int, UUID]:
        """Return the newest live version of each system."""
        newest: dict[int, UUID] = {}
        for run, (system, version) in self.versions.items():
            if system not in newest or version > self.versions[newest[system]][1]:
                newest[system] = run
        return newest

    @cached_property
    def representatives(self) -> dict[int, UUID]:
        """Return the run that represents each system.

        It is the latest or the first of the evaluated ones, else the newest one.
        """

        def chosen(versions: list[tuple[int, UUID]]) -> UUID:
            if self.choice == BEST:
                return versions[0][1]
            return max((run for _, run in versions), key=lambda run: self.versions[run][1])

        return {
            **self.newest,
            **{system: chosen(versions) for system, versions in self.evaluated.items()},
        }

    @cached_property
    def shown(self) -> set[UUID]:
        return set(self.representatives.values())

    def keeps(self, run: UUID) -> bool:
        """Return whether a run has a row: it stands for its system, or has none."""
        return run not in self.versions or run in self.shown

    def ranked_anew(self, places: Iterable[Place], runs: Mapping[int, UUID]) -> list[Place]:
        """Return the places that have a row, with their ranks among themselves."""
        new_places, new_ranks = list[Place](), dict[int, int]()
        for place in places:
            if self.keeps(runs[place.pk]):
                rank = (
                    None
                    if place.rank is None
                    else new_ranks.setdefault(place.rank, len(new_places) + 1)
                )
                new_places.append(place._replace(rank=rank))

        return new_places

    def chosen(self, run: UUID) -> Chosen | None:
        """Return what the row of a run says of its system; None for a run without one."""
        if run not in self.versions:
            return None

        system, version = self.versions[run]
        if self.choice == BEST:
            return Chosen(len(self.evaluated.get(system, ())))

        newest = self.versions[self.newest[system]][1]
        return Chosen(self._live[system], newest if newest > version else None)

    @cached_property
    def _live(self) -> Counter[int]:
        return Counter(system for system, _ in self.versions.values())


def read_versions(collection: Collection) -> dict[UUID, tuple[int, int]]:
    """Return the system and the version of each live run of a collection that is a version."""
    live = Run.objects.filter(
        collection=collection, deleted_at=None, system__isnull=False
    ).order_by()
    rows = live.values_list("pk", "system", "version")

    return {run: (system, version) for run, system, version in rows if version is not None}


def has_versions(collection: Collection) -> bool:
    """Return whether a system has several versions, so that leaderboards of systems differ."""
    return Run.objects.filter(collection=collection, deleted_at=None, version__gt=1).exists()


def expected_means(
    lineup: Lineup,
    runs: Iterable[UUID],
    ranked: Iterable[int],
    measure: Measure,
    topics: int,
    selected: Flags | None = None,
) -> dict[UUID, float]:
    """Return the expected mean of the best version of each system of these runs.

    Systems with fewer than two ranked versions are left out.

    A measure has none if its mean is not a mean of the values of topics. Raise StatisticsError for
    too many values.
    """
    if measure.definition.aggregate is not Aggregate.MEAN or measure.pools:
        return {}

    ranked_keys, versions_of = set(ranked), {}
    for run in runs:
        if run in lineup.versions:
            versions = [
                pk
                for pk, _ in lineup.evaluated.get(lineup.versions[run][0], ())
                if pk in ranked_keys
            ]
            if len(versions) > 1:
                versions_of[run] = versions

    ids = [pk for versions in versions_of.values() for pk in versions]
    if not ids:
        return {}

    check_values(len(ids), topics, 1)
    vectors = vectors_of(ids, [measure])

    expected = {}
    for run, versions in versions_of.items():
        values = np.vstack([vectors[pk, measure.name].values for pk in versions])
        values = values if selected is None else values[:, selected]
        common = values[:, np.isfinite(values).all(axis=0)]
        mean = expected_best(common, lower_is_better=measure.definition.lower_is_better)
        if np.isfinite(mean):
            expected[run] = mean

    return expected
