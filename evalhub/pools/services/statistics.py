"""What each run brought to a pool, and how the pool grows with its depth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from evalhub.pools.models import Pool, PoolRun
from evalhub.pools.services.pool_file import read_topics
from evalhub.pools.services.pooling import PooledDocument
from evalhub.pools.services.recipes import recipe_of
from metrics.engine.arrays import Flags, Ints
from runs.attention import keep_going
from runs.errors import StoredValueCorrupt
from runs.models import Qrels
from runs.services.collections.qrels import levels_by_topic

# Every depth up to this one is a point of the growth curve, then these.
_EVERY_DEPTH = 100
_LATER_DEPTHS = (120, 150, 200, 250, 300, 400, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000)
# A relevant document has at least this level.
_RELEVANT = 1


@dataclass(frozen=True)
class PoolStatistics:
    """Counts of a pool; the arrays have one entry for each of its `runs`, by their places.

    `contributed` are documents that a run has within its depth, `unique` those that no other run
    has and nobody added, `unique_relevant` those of them with a level of at least 1 in `qrels`, and
    `judged` all documents of the pool that it judges. These are None without qrels. `overlap` has
    the documents that two runs share, shape (runs, runs). `growth` has for a depth the documents
    with a best rank up to it, `strata` the documents of each stratum.
    """

    runs: list[PoolRun]
    topics: list[tuple[str, int]]
    contributed: Ints
    unique: Ints
    unique_relevant: Ints | None
    judged: int | None
    relevant: int | None
    overlap: Ints
    growth: list[tuple[int, int]]
    strata: dict[int, int] = field(default_factory=dict)
    qrels: Qrels | None = None


def read_statistics(pool: Pool, qrels: Qrels | None = None) -> PoolStatistics:
    """Return the statistics of a pool, with what qrels say of its documents.

    Raise StoredValueCorrupt if the row of one of its runs is gone.
    """
    pool_runs = _runs_of(pool)
    runs, depth = len(pool_runs), recipe_of(pool.recipe).k
    contributed, unique, unique_relevant = (np.zeros(runs, np.int64) for _ in range(3))
    overlap = np.zeros((runs, runs), np.int64)
    at_rank = np.zeros(depth + 1, np.int64)
    strata: dict[int, int] = {}
    topics, judged, relevant = [], 0, 0

    levels = levels_by_topic(qrels) if qrels else {}
    for topic_id, documents in read_topics(pool):
        keep_going()
        topics.append((topic_id, len(documents)))
        has = _contributions(documents, runs + 1)
        alone = has[has.sum(axis=1) == 1]
        of_topic = levels.get(topic_id, {})
        judged_levels = [of_topic.get(document.doc_id, -1) for document in documents]
        is_relevant = np.array(judged_levels) >= _RELEVANT

        contributed += has[:, :runs].sum(axis=0)
        unique += alone[:, :runs].sum(axis=0)
        unique_relevant += has[(has.sum(axis=1) == 1) & is_relevant, :runs].sum(axis=0)
        judged += sum(level >= 0 for level in judged_levels)
        relevant += int(is_relevant.sum())

        # Floating numbers multiply much faster than whole ones, and these are exact.
        members = has[:, :runs].astype(np.float64)
        overlap += (members.T @ members).astype(np.int64)
        at_rank += np.bincount(
            [document.best_rank or 0 for document in documents], minlength=len(at_rank)
        )
        for document in documents:
            strata[document.stratum] = strata.get(document.stratum, 0) + 1

    sums = np.cumsum(at_rank[1:])
    depths = [*range(1, min(depth, _EVERY_DEPTH) + 1), *_LATER_DEPTHS]
    growth = [(rank, int(sums[rank - 1])) for rank in depths if rank <= depth]
    if growth[-1][0] < depth:
        growth.append((depth, int(sums[-1])))

    return PoolStatistics(
        runs=pool_runs,
        topics=topics,
        contributed=contributed,
        unique=unique,
        unique_relevant=unique_relevant if qrels else None,
        judged=judged if qrels else None,
        relevant=relevant if qrels else None,
        overlap=overlap,
        growth=growth,
        strata=dict(sorted(strata.items())),
        qrels=qrels,
    )


def _runs_of(pool: Pool) -> list[PoolRun]:
    rows = list(pool.contributors.select_related("run", "team").order_by("place"))
    # Bits of documents are told apart by the places of all runs.
    if [row.place for row in rows] != list(range(len(pool.depths["documents"]))):
        message = f"the database lacks a run of {pool}; check it with fsck"
        raise StoredValueCorrupt(message)
    return rows


def _contributions(documents: list[PooledDocument], bits: int) -> Flags:
    """Return which runs have each document, and whether it was added; shape (documents, bits)."""
    size = -(-bits // 8)
    packed = b"".join(document.contributors.to_bytes(size, "little") for document in documents)
    rows = np.frombuffer(packed, np.uint8).reshape(len(documents), size)
    return np.unpackbits(rows, axis=1, count=bits, bitorder="little").astype(np.bool_)
