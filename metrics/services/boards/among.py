"""A leaderboard of some of a collection's runs, and what several of them read only once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from metrics.engine.grammar import Measure
from metrics.models import Evaluation, MetricVector
from metrics.services.boards.versions import Place
from metrics.services.values.judged_views import Mean, sound_means
from runs.models import Collection, Qrels

# The code and reason of a run that stands beside others without a rank.
BESIDE = ("not_competing", "it does not compete")


@dataclass(frozen=True)
class Evaluated:
    """The evaluated runs of a collection under one version of judgements, read once for several leaderboards."""

    collection: Collection
    qrels: Qrels
    scores: str

    @cached_property
    def rows(self) -> list[tuple[int, bool, UUID]]:
        """Return of each its key, whether it was made from the files of its run, and its run, in the order of
        submission."""
        current = Evaluation.objects.current(self.qrels, self.scores).evaluated().with_files()
        return list(current.order_by("run__created_at", "run").values_list("pk", "same_files", "run_id"))

    @cached_property
    def _stored(self) -> dict[str, dict[int, Mean]]:
        return {}

    def stored_means(self, measure: Measure) -> dict[int, Mean]:
        """Return the means of a measure that are stored and sound."""
        if measure.name not in self._stored:
            current = Evaluation.objects.current(self.qrels, self.scores).evaluated()
            rows = MetricVector.objects.filter(evaluation__in=current, measure=measure.name)
            found, _ = sound_means(rows, self.qrels.pk)
            self._stored[measure.name] = {pk: mean for (pk, _), mean in found.items()}
        return self._stored[measure.name]


@dataclass(frozen=True)
class Among:
    """The `runs` that a leaderboard is of, as if the collection had no others.

    Those of them that are `beside` stand at their place by value without a rank; others are ranked, and compared in
    statistics, as if they were not there, except the one that is `against`, with which others are compared. Only those
    that are `shown` have rows, which changes no rank. `evaluated` has been read before, under the same judgements.
    """

    runs: frozenset[UUID]
    beside: frozenset[UUID] = frozenset()
    shown: frozenset[UUID] | None = None
    against: UUID | None = None
    evaluated: Evaluated | None = None

    def ranked_anew(self, places: list[Place], runs: dict[int, UUID]) -> list[Place]:
        """Return the places with the ranks that those have who are ranked."""
        if self.beside.isdisjoint(runs.values()):
            return places
        found, first, counted = list[Place](), dict[int, int](), 0
        for place in places:
            if runs[place.pk] in self.beside:
                found.append(Place(place.pk, None, *BESIDE))
                continue
            counted += place.rank is not None
            rank = None if place.rank is None else first.setdefault(place.rank, counted)
            found.append(place._replace(rank=rank))
        return found

    def compared(self, ranked: list[tuple[int, float]], runs: dict[int, UUID]) -> list[tuple[int, float]]:
        return [pair for pair in ranked if runs[pair[0]] not in self.beside or runs[pair[0]] == self.against]
