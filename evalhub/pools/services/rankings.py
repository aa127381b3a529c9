"""Read the first documents of many runs, in the order of the tie rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from metrics.engine.judgement.judging import ScoreType, order_topic
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.formats.scanning.pieces import Opener
from runs.formats.trec_run import read_run
from runs.models import Run
from runs.services.storage.files import read_stored

Numbers = npt.NDArray[np.int32]
# Ranks of all runs and topics together: about a gigabyte if no two runs share a document.
MAX_CELLS = 10_000_000


@dataclass
class Rankings:
    """The documents of runs at ranks 1 to `depth`.

    A document is a number: its topic is `topics[topic_of[number]]`, its id `doc_ids[number]`.
    `ranked` has an array for each run, shape (topics, depth): the documents by rank, -1 behind the
    last one.
    """

    topics: list[bytes]
    depth: int
    doc_ids: list[bytes] = field(default_factory=list)
    topic_of: list[int] = field(default_factory=list)
    ranked: list[Numbers] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers: list[dict[bytes, int]] = [{} for _ in self.topics]

    def number(self, topic: int, doc_id: bytes) -> int:
        """Return the number of a document of a topic, a new one if it has none."""
        numbers = self._numbers[topic]
        number = numbers.get(doc_id)
        if number is None:
            number = numbers[doc_id] = len(self.doc_ids)
            self.doc_ids.append(doc_id)
            self.topic_of.append(topic)
        return number

    def find(self, topic: int, doc_id: bytes) -> int | None:
        """Return the number of a document of a topic, or None if it has none."""
        return self._numbers[topic].get(doc_id)


def read_rankings(*, runs: Sequence[Run], topics: Sequence[str] | None, depth: int) -> Rankings:
    """Return the documents of runs for topics, by default for all that the runs answer.

    Ranks are those of the tie rule, never the rank column. Without `topics`, they are in the order
    in which the runs name them. Raise InvalidInput if this is more than MAX_CELLS ranks.
    """
    names = [topic.encode() for topic in topics] if topics is not None else _topics_of(runs)
    most = MAX_CELLS // max(1, len(runs) * len(names))
    if depth > most:
        message = (
            f"{len(runs)} runs x {len(names):,} topics x {depth:,} ranks are more than "
            f"{MAX_CELLS:,}; take at most {most:,} ranks, fewer runs or fewer topics"
        )
        raise InvalidInput(message, code="pool_too_large", pointer="/k")

    rankings = Rankings(names, depth)
    place = {topic: number for number, topic in enumerate(names)}
    for run in runs:
        rankings.ranked.append(read_stored(run.sha256, partial(_read_ranks, rankings, place, run)))

    return rankings


def _topics_of(runs: Sequence[Run]) -> list[bytes]:
    topics: dict[bytes, None] = {}
    for run in runs:
        keep_going()
        topics |= dict.fromkeys(read_stored(run.sha256, partial(_read_topics, run)))

    return list(topics)


def _read_topics(run: Run, opener: Opener) -> list[bytes]:
    blocks = read_run(opener, grouped=run.grouped)
    return [topic for block in blocks for topic in block.topic_ids]


def _read_ranks(rankings: Rankings, place: dict[bytes, int], run: Run, opener: Opener) -> Numbers:
    """Return the documents of one run, shape (topics, depth)."""
    ranks = np.full((len(place), rankings.depth), -1, np.int32)
    scores: ScoreType = "float32" if run.collection.scores == "float32" else "float64"
    for block in read_run(opener, grouped=run.grouped):
        keep_going()
        text = block.data.tobytes()

        for topic_id in block.topic_ids:
            topic = place.get(topic_id)
            if topic is None:
                continue

            rows = order_topic(block, topic_id, scores)[: rankings.depth]
            spans = zip(block.doc_starts[rows].tolist(), block.doc_ends[rows].tolist(), strict=True)
            ranks[topic, : len(rows)] = [
                rankings.number(topic, text[start:end]) for start, end in spans
            ]

    return ranks
