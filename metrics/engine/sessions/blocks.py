"""SessionBlock: a part of a session file as a reader yields it, whole sessions in arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

from metrics.engine.arrays import Bytes, Floats, Hashes, Ints, Positions
from metrics.engine.judgement.ranking import RankedBlock


@dataclass(frozen=True, slots=True)
class Session:
    """The ids of a session, empty where the file has none; the topic is then the session itself.

    `attributes` describe the searcher: a JSON object of numbers and texts without tabs or line
    ends.
    """

    session_id: bytes
    topic_id: bytes
    searcher: bytes = b""
    system: bytes = b""
    attributes: bytes = b""


@dataclass(frozen=True, slots=True)
class Query:
    """A query without its ranking. `time` is in seconds, None if the file has none."""

    text: str = ""
    time: float | None = None
    clicked: tuple[bytes, ...] = ()
    judged: dict[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SessionBlock:
    """Complete sessions, queries in their order, documents by rank, doc ids as spans of `data`.

    Shapes: `query_starts` has one entry per session and one more (offsets into the queries);
    `document_starts` has one per query and one more (row offsets); `scanned` has one per query, -1
    where the number of documents looked at is not recorded; the other arrays have one per document.
    `ranks` count from 1 and may have gaps. `scores` is NaN where unknown. `doc_hashes` are made
    under the seed of the judgements they will meet. `known` has the documents that the searcher of
    each session knew before it, a topic for each session; None where the file names none."""

    sessions: list[Session]
    queries: list[Query]
    query_starts: Ints
    document_starts: Ints
    scanned: Ints
    ranks: Ints
    scores: Floats
    data: Bytes
    doc_starts: Positions
    doc_ends: Positions
    doc_hashes: Hashes
    known: RankedBlock | None = None

    def as_rankings(self) -> RankedBlock:
        """Return every query as a topic without an id, in the order of the file."""
        return RankedBlock(
            data=self.data,
            topic_ids=[b""] * len(self.queries),
            topic_starts=self.document_starts,
            scores=self.scores,
            doc_starts=self.doc_starts,
            doc_ends=self.doc_ends,
            doc_hashes=self.doc_hashes,
        )
