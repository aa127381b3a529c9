"""The kernels that find the judged rows of a block, and their ties, in one pass over the block."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.words import NONE, ONE, compiled, same_span

_FREE = -1


@compiled
def fill(topics: Any, hashes: Any, table: Any, places: Any) -> None:
    """Put the judgements of each topic into the topic's part of the hash table."""
    for row in range(len(topics)):
        begin = np.uint64(places[topics[row]])
        mask = np.uint64(places[topics[row] + 1]) - begin - ONE
        slot = hashes[row] & mask
        while table[begin + slot] != _FREE:
            slot = (slot + ONE) & mask
        table[begin + slot] = row


@compiled
def search(
    data: Any, topic_starts: Any, scores: Any, doc_starts: Any, doc_ends: Any, hashes: Any,
    topic_of: Any, judged_data: Any, judged_starts: Any, judged_ends: Any, judged_hashes: Any,
    table: Any, places: Any, rows: Any, judgements: Any, first: Any, size: Any, descends: Any,
) -> Any:  # fmt: skip
    """Return how many rows are judged. `descends` gets whether scores descend within every topic:
    only then are the ties right."""
    matched: Any = NONE
    descending = True
    for topic in range(len(topic_of)):
        judged_topic = topic_of[topic]
        base = np.uint64(places[judged_topic]) if judged_topic >= 0 else NONE
        mask = np.uint64(places[judged_topic + 1]) - base - ONE if judged_topic >= 0 else NONE
        begin, end = np.uint64(topic_starts[topic]), np.uint64(topic_starts[topic + 1])
        group: Any = begin
        group_matched = matched

        for row in range(begin, end):
            if row > begin and scores[row] != scores[row - ONE]:
                descending &= scores[row] < scores[row - ONE]
                for index in range(group_matched, matched):
                    first[index], size[index] = group, row - group
                group, group_matched = row, matched

            if judged_topic < 0:
                continue

            slot = hashes[row] & mask
            judgement = table[base + slot]
            while judgement != _FREE:
                at = np.uint64(judgement)
                if judged_hashes[at] == hashes[row] and same_span(
                    data, np.uint64(doc_starts[row]), np.uint64(doc_ends[row]),
                    judged_data, np.uint64(judged_starts[at]), np.uint64(judged_ends[at]),
                ):  # fmt: skip
                    rows[matched], judgements[matched] = row, judgement
                    matched += ONE
                    break

                slot = (slot + ONE) & mask
                judgement = table[base + slot]

        for index in range(group_matched, matched):
            first[index], size[index] = group, end - group

    descends[0] = descending
    return matched
