"""The examples of docs/sources.md: the data of its printed numbers, as users would upload them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# For each example and topic: the levels of documents at ranks 1, 2 and so on, and those of relevant
# documents that were not retrieved.
RANKINGS = {
    "g": {"1": ("3 2 3 0 0 1 2 2 3 0", "1 1 1")},
    "far": {"1": ("1023 × 0 1", "")},
    "mir": {
        "q1": ("1 0 1 0 0 3 0 0 0 2 0 0 0 0 3", "3 2 2 1 1"),
        "q2": ("0 0 2 0 0 0 0 1 0 0 0 0 0 0 3", ""),
    },
    "course": {"1": ("1 0 1 0 1", "")},
}
# Documents of levels 0 to 3 in RN-2002-2, section 3.1, and of its whole database.
_ARTICLES, _DATABASE = (14617, 857, 700, 366), 53893
# TOIS 20(4), table 1: numbers of documents by level in TREC (rows) and in the second judgement, with
# the two highest levels in one.
_REJUDGED = ((2780, 134, 51), (691, 1004, 1077))
# ECIR 2008, table 2: sessions of 1, 2 and so on queries, by system.
_SESSION_LENGTHS = {
    "1": (28, 7, 10, 4, 5, 4, 1, 1, 0, 0, 0),
    "2": (21, 7, 9, 11, 2, 4, 2, 2, 0, 1, 1),
}
# Runs with the means and marks of RN-2002-2, table 1. A line is a topic with eight relevant documents
# of these levels; it has, for each run, the ranks of these documents, 0 if not retrieved.
_TABLE_1_TAGS, _TABLE_1_LEVELS = ("SSYN-C", "SUM", "BOOL"), (3, 3, 3, 3, 3, 2, 2, 1)
_TABLE_1_DEPTH = 200
_TABLE_1 = """\
2 3 6 63 65 4 77 1 | 9 38 39 138 176 13 41 110 | 10 24 80 176 185 2 168 3
5 6 11 40 68 4 49 3 | 3 16 81 150 184 152 198 1 | 2 0 0 0 0 1 0 0
1 4 6 184 189 2 3 51 | 1 148 157 0 0 2 3 4 | 14 62 63 129 156 157 188 2
1 2 14 122 155 9 16 68 | 3 10 121 132 138 2 4 5 | 2 15 73 151 177 28 183 0
4 6 9 13 33 5 16 1 | 1 6 18 64 146 12 16 166 | 2 3 4 9 95 48 55 43
1 3 43 91 129 2 113 51 | 4 42 100 136 173 3 192 14 | 2 0 0 0 0 0 0 0
1 2 14 126 187 0 0 0 | 1 3 131 137 186 5 111 2 | 3 22 27 40 83 6 34 9
2 3 12 48 122 101 145 137 | 1 3 132 148 190 2 13 177 | 1 2 3 162 0 4 0 5
1 6 30 59 169 115 130 22 | 2 6 85 145 163 10 39 7 | 13 23 35 121 124 29 40 38
2 3 36 47 108 6 78 12 | 2 3 7 131 0 0 0 191 | 26 50 148 178 181 23 188 2
2 3 10 16 17 51 141 13 | 2 8 13 15 159 1 137 200 | 2 0 0 0 0 0 0 0
1 2 4 92 134 7 0 157 | 1 2 4 114 157 3 5 6 | 2 5 12 40 64 4 27 28
1 2 5 147 0 3 0 4 | 1 2 3 142 0 197 0 4 | 2 0 0 0 0 0 0 0
1 2 3 102 0 4 5 6 | 1 2 24 192 0 3 200 4 | 1 2 4 149 150 5 7 3
1 2 3 4 0 0 0 0 | 1 2 8 128 186 13 42 73 | 1 4 6 108 0 2 14 72
1 2 3 0 0 0 0 0 | 2 27 105 141 155 58 97 8 | 0 0 0 0 0 1 2 0
3 4 5 7 18 14 20 6 | 3 8 9 29 168 16 76 5 | 3 4 36 38 53 1 11 40
1 3 5 97 194 7 150 2 | 3 14 36 167 185 6 9 0 | 0 0 0 0 0 0 0 0
1 2 9 107 114 14 168 13 | 12 15 22 144 183 37 174 7 | 1 3 111 125 165 2 13 81
2 3 5 85 169 4 147 13 | 1 3 75 182 195 8 111 80 | 2 20 120 150 173 139 169 4
1 5 6 8 23 2 4 0 | 1 3 26 124 178 11 121 53 | 5 23 29 31 101 38 44 7
1 11 12 73 122 2 105 8 | 3 8 61 171 180 1 2 82 | 1 2 0 0 0 0 0 0
1 2 5 187 0 3 4 0 | 1 4 57 194 200 3 197 12 | 16 26 63 67 169 2 174 1
2 3 5 20 83 28 114 4 | 60 61 62 70 76 64 67 74 | 0 0 0 0 0 0 0 0
3 11 133 144 0 2 4 1 | 1 4 19 24 151 26 59 7 | 0 0 0 0 0 0 0 0
1 7 30 143 155 12 16 5 | 2 32 132 158 163 5 54 76 | 0 0 0 0 0 1 3 2
1 2 3 134 0 4 5 6 | 2 9 72 134 147 176 192 4 | 2 0 0 0 0 0 0 0
4 7 8 122 151 12 173 2 | 1 3 10 196 200 31 0 4 | 2 0 0 0 0 0 0 0
3 14 120 164 188 1 2 0 | 4 11 44 117 158 21 91 116 | 16 89 96 138 0 188 0 7
1 3 5 61 170 2 6 4 | 1 7 113 146 161 3 196 8 | 16 26 69 126 135 79 189 15
"""


@dataclass(frozen=True)
class Example:
    """The files of a collection: versions of the judgements, runs by tag, and a session log."""

    name: str
    qrels: list[str]
    runs: dict[str, str] = field(default_factory=dict)
    sessions: str = ""
    documents: int | None = None

    @property
    def slug(self) -> str:
        return f"example-{self.name}"


def examples() -> list[Example]:
    """Return all examples."""
    ranked = [_ranked(name, topics) for name, topics in RANKINGS.items()]
    articles = (level for level, number in enumerate(_ARTICLES) for _ in range(number))
    pairs = [
        (first, second)
        for first, row in enumerate(_REJUDGED)
        for second, number in enumerate(row)
        for _ in range(number)
    ]

    versions = [_qrels("1", [pair[side] for pair in pairs]) for side in (0, 1)]
    return [
        *ranked,
        Example("articles", [_qrels("1", articles)], documents=_DATABASE),
        Example("rejudged", versions),
        _table_1(),
        Example("sessions", [_qrels("1", [1])], sessions=_sessions()),
    ]


def _qrels(topic: str, levels: Iterable[int]) -> str:
    return "".join(f"{topic} 0 d{number} {level}\n" for number, level in enumerate(levels, 1))


def _ranked(name: str, topics: dict[str, tuple[str, str]]) -> Example:
    qrels, run = "", ""
    for topic, (ranking, missed) in topics.items():
        # "1023 × 0" means 1023 times level 0.
        expanded = re.sub(
            r"(\d{1,4}) × (\d{1,4})", lambda match: " ".join([match[2]] * int(match[1])), ranking
        )
        levels = [int(level) for level in expanded.split()]
        qrels += _qrels(topic, [*levels, *map(int, missed.split())])
        run += _run(topic, {rank: f"d{rank}" for rank in range(1, len(levels) + 1)}, name)

    return Example(name, [qrels], {name: run})


def _table_1() -> Example:
    qrels, runs = "", dict.fromkeys(_TABLE_1_TAGS, "")
    for topic, line in enumerate(_TABLE_1.splitlines(), 1):
        qrels += _qrels(str(topic), _TABLE_1_LEVELS)
        # All retrieved documents are judged, so that no verdict depends on unjudged ones.
        qrels += "".join(f"{topic} 0 n{rank} 0\n" for rank in range(1, _TABLE_1_DEPTH + 1))
        for tag, ranks in zip(_TABLE_1_TAGS, line.split(" | "), strict=True):
            retrieved = {int(rank): f"d{number}" for number, rank in enumerate(ranks.split(), 1)}
            retrieved.pop(0, None)
            runs[tag] += _run(str(topic), retrieved, tag)

    return Example("table1", [qrels], runs)


def _run(topic: str, retrieved: dict[int, str], tag: str) -> str:
    """Return the lines of a topic to the last retrieved document, with other documents between."""
    return "".join(
        f"{topic} Q0 {retrieved.get(rank, f'n{rank}')} {rank} {-rank} {tag}\n"
        for rank in range(1, max(retrieved, default=0) + 1)
    )


def _sessions() -> str:
    lines = [
        {
            "session_id": f"{system}-{queries}-{number}",
            "topic_id": "1",
            "system": system,
            "queries": [{"documents": ["d1"]}] * queries,
        }
        for system, counts in _SESSION_LENGTHS.items()
        for queries, sessions in enumerate(counts, 1)
        for number in range(sessions)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
