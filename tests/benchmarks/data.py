"""The seeded data sets of the benchmark: about 5 % of the rows tied, scores to 4 decimals, ties in random order.

S 50 topics x 1000 documents, M 250, L2 2,000 (levels 0-3); L like MS MARCO: 6,980 topics x 1000,
one judgement a topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

DEPTH = 1000


@dataclass(frozen=True)
class DataSet:
    """A run and its qrels as files."""

    name: str
    topics: int
    judged: int
    levels: int

    def files(self, folder: Path) -> tuple[Path, Path]:
        """The qrels and the run, written once."""
        qrels, run = folder / f"{self.name}.qrels", folder / f"{self.name}.run"
        if not run.exists():
            rng = np.random.default_rng(len(self.name) * 1000 + self.topics)
            with run.open("w") as out, qrels.open("w") as judgements:
                for topic in range(1, self.topics + 1):
                    documents = rng.choice(20 * DEPTH, DEPTH, replace=False) + topic * 1000
                    out.write(_ranking(rng, topic, documents))
                    judgements.write(self._judgements(rng, topic, documents))
        return qrels, run

    def _judgements(self, rng: np.random.Generator, topic: int, documents: np.ndarray) -> str:
        retrieved = rng.choice(documents, min(self.judged // 3 + 1, DEPTH), replace=False)
        if self.judged == 1:
            levels = np.ones(1 + (topic % 10 == 0), np.int64)
            retrieved = rng.choice(documents, len(levels), replace=False)
            return _lines(topic, retrieved, levels)
        others = 10_000_000 + rng.choice(10_000, self.judged - len(retrieved), replace=False)
        judged = np.concatenate([retrieved, others])
        return _lines(
            topic, judged, rng.choice(self.levels, len(judged), p=(0.75, 0.15, 0.07, 0.03))
        )


SETS = {
    "S": DataSet("S", 50, 1500, 4),
    "M": DataSet("M", 250, 1500, 4),
    "L2": DataSet("L2", 2000, 300, 4),
    "L": DataSet("L", 6980, 1, 2),
    "upload": DataSet("upload", 960, 300, 4),
}


def _ranking(rng: np.random.Generator, topic: int, documents: np.ndarray) -> str:
    scores = np.sort(rng.gamma(3.0, 4.0, DEPTH))[::-1]
    tied = rng.random(DEPTH) < 0.025
    scores[1:][tied[1:]] = scores[:-1][tied[1:]]
    pairs = zip(documents.tolist(), scores.tolist(), strict=True)
    return "".join(
        f"{topic} Q0 D{doc:08d} {rank} {score:.4f} system\n"
        for rank, (doc, score) in enumerate(pairs, 1)
    )


def _lines(topic: int, documents: np.ndarray, levels: np.ndarray) -> str:
    pairs = zip(documents.tolist(), levels.tolist(), strict=True)
    return "".join(f"{topic} 0 D{doc:08d} {level}\n" for doc, level in pairs)
