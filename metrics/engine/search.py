"""Compiled search: which rows of a block are judged, and what ties with them, in one pass over the block."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.judging import Found, Judgements
from metrics.engine.machine_words import NONE, ONE, compiled, same_span
from metrics.engine.ranking import Floats, Ints, RankedBlock

_FREE = -1


def search_compiled(block: RankedBlock, scores: Floats, judgements: Judgements, topic_of: Ints) -> Found:
    """Equal to `metrics.engine.judging.search`."""
    table, places = judgements.derived("tables", _tables)
    room = int(np.diff(block.topic_starts)[topic_of >= 0].sum())
    rows, found, first, size = (np.empty(room, np.int64) for _ in range(4))
    matched, descending = _search(
        block.data, block.topic_starts, scores, block.doc_starts, block.doc_ends, block.doc_hashes, topic_of,
        judgements.data, judgements.doc_starts, judgements.doc_ends, judgements.doc_hashes,
        table, places, rows, found, first, size,
    )  # fmt: skip
    # Copies, so that what is kept of a block is as small as its matches.
    rows, found, first, size = (column[:matched].copy() for column in (rows, found, first, size))
    return Found(rows, found, (first, size) if descending else None)


def _tables(judgements: Judgements) -> tuple[Ints, Ints]:
    """A hash table of its judgements for every topic, at most half full, so that one topic's stays in the cache."""
    sizes = np.bincount(judgements.topics, minlength=len(judgements.topic_ids))
    room = 2 ** np.ceil(np.log2(np.maximum(2 * sizes, 2))).astype(np.int64)
    places = np.append(0, np.cumsum(room))
    table = np.full(places[-1], _FREE, np.int64)
    _fill(judgements.topics, judgements.doc_hashes, table, places)
    return table, places


@compiled
def _fill(topics: Any, hashes: Any, table: Any, places: Any) -> None:
    for row in range(len(topics)):
        begin = np.uint64(places[topics[row]])
        mask = np.uint64(places[topics[row] + 1]) - begin - ONE
        slot = hashes[row] & mask
        while table[begin + slot] != _FREE:
            slot = (slot + ONE) & mask
        table[begin + slot] = row


@compiled
def _search(
    data: Any, topic_starts: Any, scores: Any, doc_starts: Any, doc_ends: Any, hashes: Any, topic_of: Any,
    judged_data: Any, judged_starts: Any, judged_ends: Any, judged_hashes: Any,
    table: Any, places: Any, rows: Any, found: Any, first: Any, size: Any,
) -> tuple[Any, bool]:  # fmt: skip
    """How many rows are judged, and whether scores descend within every topic; only then are the ties right."""
    matched: Any = NONE
    descending = True
    for topic in range(len(topic_of)):
        known = topic_of[topic]
        base = np.uint64(places[known]) if known >= 0 else NONE
        mask = np.uint64(places[known + 1]) - base - ONE if known >= 0 else NONE
        begin, end = np.uint64(topic_starts[topic]), np.uint64(topic_starts[topic + 1])
        group: Any = begin
        group_matched = matched
        for row in range(begin, end):
            if row > begin and scores[row] != scores[row - ONE]:
                descending &= scores[row] < scores[row - ONE]
                for index in range(group_matched, matched):
                    first[index], size[index] = group, row - group
                group, group_matched = row, matched
            if known < 0:
                continue
            slot = hashes[row] & mask
            judgement = table[base + slot]
            while judgement != _FREE:
                at = np.uint64(judgement)
                if judged_hashes[at] == hashes[row] and same_span(
                    data, np.uint64(doc_starts[row]), np.uint64(doc_ends[row]),
                    judged_data, np.uint64(judged_starts[at]), np.uint64(judged_ends[at]),
                ):  # fmt: skip
                    rows[matched], found[matched] = row, judgement
                    matched += ONE
                    break
                slot = (slot + ONE) & mask
                judgement = table[base + slot]
        for index in range(group_matched, matched):
            first[index], size[index] = group, end - group
    return matched, descending
