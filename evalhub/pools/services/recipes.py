"""The recipe of a pool: which documents of runs are to be judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runs.errors import InvalidInput

# The most ranks of a run that a pool considers.
MAX_DEPTH = 10_000
MAX_EXTRA = 10_000
MAX_STRATA = 50
# Ranks that `take` and `sample` consider where the request does not say how many.
USUAL_DEPTH = 1000
RRF_K = 60


class Method(StrEnum):
    """How documents are chosen."""

    DEPTH = "depth"
    TAKE = "take"
    SAMPLE = "sample"


class Fusion(StrEnum):
    """How `take` scores documents: reciprocal rank fusion, or rank-biased precision."""

    RRF = "rrf"
    RBP = "rbp"


@dataclass(frozen=True)
class Stratum:
    """Documents with a best rank from `first` to `last`, and the share of them that is drawn."""

    first: int
    last: int
    rate: float


@dataclass(frozen=True)
class ExtraDocument:
    """A document that organisers add to a topic."""

    topic_id: str
    doc_id: str


@dataclass(frozen=True)
class Recipe:
    """The method of a pool and its parameters.

    `k` ranks of each run are considered. With a `budget`, depth stops before the pool has more
    documents over all topics. `take` has the `n` best documents of a topic by `by`. `priorities`
    are those of entries, None for all. `only_new` leaves out documents that the active qrels or an
    earlier pool of the collection has.
    """

    method: Method
    k: int = USUAL_DEPTH
    budget: int | None = None
    n: int | None = None
    by: Fusion = Fusion.RRF
    p: float = 0.8
    strata: tuple[Stratum, ...] = ()
    priorities: tuple[int, ...] | None = None
    baselines: bool = False
    topics: tuple[str, ...] | None = None
    extra: tuple[ExtraDocument, ...] = field(default=())
    only_new: bool = True

    def __post_init__(self) -> None:
        """Raise InvalidInput for strata that overlap or are out of order."""
        end = 0
        for place, stratum in enumerate(self.strata):
            if not end < stratum.first <= stratum.last:
                message = (
                    f"stratum {place + 1} has the ranks {stratum.first} to {stratum.last}; strata "
                    "ascend and do not overlap, and the first rank of each is at most its last"
                )
                raise InvalidInput(message, code="bad_strata", pointer=f"/strata/{place}/ranks")
            end = stratum.last

    def as_json(self) -> dict[str, Any]:
        """Return what is stored of it: the parameters of its method, and what it leaves out."""
        stored: dict[str, Any] = {"method": str(self.method), "k": self.k}
        if self.method == Method.DEPTH and self.budget is not None:
            stored["budget"] = self.budget
        if self.method == Method.TAKE:
            stored |= {"n": self.n, "by": str(self.by)}
            stored |= {"p": self.p} if self.by == Fusion.RBP else {}
        if self.method == Method.SAMPLE:
            stored["strata"] = [
                {"ranks": [stratum.first, stratum.last], "rate": stratum.rate}
                for stratum in self.strata
            ]

        stored["only_new"] = self.only_new
        if self.priorities is not None:
            stored["priorities"] = list(self.priorities)
        if self.baselines:
            stored["baselines"] = True
        if self.topics is not None:
            stored["topics"] = list(self.topics)
        if self.extra:
            stored["extra"] = [
                {"topic_id": document.topic_id, "doc_id": document.doc_id}
                for document in self.extra
            ]
        return stored

    def in_words(self) -> str:
        """Return the method in a few words."""
        if self.method == Method.TAKE:
            scores = f"RBP with p = {self.p:g}" if self.by == Fusion.RBP else "reciprocal ranks"
            return f"the best {self.n} of a topic by {scores}"
        if self.method == Method.SAMPLE:
            return "a sample of " + ", ".join(
                f"{stratum.rate:.3g} of ranks {stratum.first} to {stratum.last}"
                for stratum in self.strata
            )
        budget = f", at most {self.budget:,} documents" if self.budget is not None else ""
        return f"depth {self.k}{budget}"


def recipe_of(stored: dict[str, Any]) -> Recipe:
    """Return a recipe as `as_json` has stored it."""
    fields = dict(stored)
    if "strata" in fields:
        fields["strata"] = tuple(
            Stratum(first=first, last=last, rate=stratum["rate"])
            for stratum in fields["strata"]
            for first, last in (stratum["ranks"],)
        )
    if "extra" in fields:
        fields["extra"] = tuple(ExtraDocument(**document) for document in fields["extra"])
    for name in ("priorities", "topics"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "by" in fields:
        fields["by"] = Fusion(fields["by"])

    return Recipe(**{**fields, "method": Method(fields["method"])})
