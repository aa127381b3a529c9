"""The rankings of two runs for one topic, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.models import Evaluation
from metrics.services.question import SCORES, Question, RunIds, TopicId, parameter
from metrics.services.values.rankings import RankedDocument, read_ranking
from runs.models import Collection, Run
from runs.services.collections.documents import read_titles

SHOWN_RANKS = 20


@dataclass(frozen=True, kw_only=True)
class TwoRankingsQuery(Question):
    """Two runs and a topic."""

    runs: list[str] = parameter(RunIds("the ids of two runs"))
    topic: str = parameter(TopicId("the topic"))
    scores: str | None = parameter(SCORES)


@dataclass(frozen=True)
class Placed:
    """A document of one ranking.

    `elsewhere` is its rank in the other one, or None if that does not contain it.
    """

    document: RankedDocument
    elsewhere: int | None

    @property
    def moved(self) -> int:
        """Return how many ranks higher it is here than in the other ranking, 0 if absent there."""
        return self.elsewhere - self.document.rank if self.elsewhere else 0


@dataclass(frozen=True)
class RankingSide:
    """The first documents of one run's ranking, and the length of the whole."""

    run: Run
    documents: list[Placed]
    length: int


@dataclass(frozen=True)
class TwoRankings:
    """Both sides of one topic; `common` is the number of documents among the first of both."""

    topic_id: str
    a: RankingSide
    b: RankingSide

    @property
    def common(self) -> int:
        return len(
            {placed.document.doc_id for placed in self.a.documents}
            & {placed.document.doc_id for placed in self.b.documents}
        )

    @property
    def shown_ranks(self) -> int:
        """Return how many ranks are looked at on each side: the longer of both lists."""
        return max(len(self.a.documents), len(self.b.documents))

    @property
    def further_down(self) -> int:
        """Return how many of these documents the other run has, but below its first ones."""
        placed = [*self.a.documents, *self.b.documents]
        return sum(document.elsewhere is not None for document in placed) - 2 * self.common


def titles_of_both(collection: Collection, rankings: TwoRankings) -> dict[str, str]:
    """Return the titles of the documents on both sides."""
    placed = [*rankings.a.documents, *rankings.b.documents]
    documents = read_titles(collection, (each.document.doc_id for each in placed))
    return {doc_id: document.title for doc_id, document in documents.items()}


def read_two_rankings(
    *, a: Evaluation, b: Evaluation, topic_id: str, ranks: int = SHOWN_RANKS
) -> TwoRankings:
    """Return the first `ranks` documents of both from the stored files.

    Raise NotFound for a topic without judgements.
    """
    first, second = (
        read_ranking(evaluation=evaluation, topic_id=topic_id).documents for evaluation in (a, b)
    )
    return TwoRankings(
        topic_id, _side(a.run, first, second, ranks), _side(b.run, second, first, ranks)
    )


def _side(
    run: Run, documents: list[RankedDocument], other: list[RankedDocument], ranks: int
) -> RankingSide:
    elsewhere = {ranked.doc_id: ranked.rank for ranked in other}
    return RankingSide(
        run,
        [Placed(document, elsewhere.get(document.doc_id)) for document in documents[:ranks]],
        len(documents),
    )
