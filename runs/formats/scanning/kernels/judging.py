"""The kernel that evaluates: from the bytes of a run to its judged rows, in one pass that writes little else.

It takes only usual lines: six columns with one space or tab between them, numbers of few digits,
scores in descending order, no comment, and nothing to report. Of any other it says that it could
not: the scan to columns then reads the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.words import (
    CR,
    NONE,
    ONE,
    THREE,
    TWO,
    compiled,
    hash_of,
    inlined,
    is_greater,
    same_bytes,
    same_span,
)
from runs.formats.scanning.kernels.usual_lines import six_columns, usual_number
from runs.formats.scanning.notes import FRACTION, LARGEST_RANK

_LOW = np.uint64(0xFFFFFFFF)
# So many comparisons of ids are made for one group of ties; a larger one is better sorted.
_COMPARISONS = np.uint64(1 << 14)


@compiled
def fill(starts: Any, hashes: Any, table: Any, places: Any, once: Any) -> Any:
    """Put each row into the part of the table that is its topic's: half of its hash, and its number from 1 on. With
    `once`, stop where a topic has a hash twice, and return 0. The rows of a topic are those from
    one of `starts` on."""
    for topic in range(len(starts) - 1):
        begin = places[topic]
        mask = places[topic + 1] - begin - ONE
        for row in range(starts[topic], starts[topic + 1]):
            slot = hashes[row] & mask
            entry = table[begin + slot]
            while entry != NONE:
                if (
                    once
                    and (entry ^ hashes[row]) <= _LOW
                    and hashes[(entry & _LOW) - ONE] == hashes[row]
                ):
                    return NONE
                slot = (slot + ONE) & mask
                entry = table[begin + slot]
            table[begin + slot] = (hashes[row] & ~_LOW) | np.uint64(row + 1)
    return ONE


@inlined
def _find(
    data: Any, start: Any, end: Any, key: Any, table: Any, begin: Any, mask: Any,
    other: Any, other_starts: Any, other_ends: Any,
) -> Any:  # fmt: skip
    """The row of the table whose span of `other` holds the same bytes, or -1."""
    slot = key & mask
    entry = table[begin + slot]
    while entry != NONE:
        if (entry ^ key) <= _LOW:
            at = (entry & _LOW) - ONE
            if same_span(
                data, start, end, other, np.uint64(other_starts[at]), np.uint64(other_ends[at])
            ):
                return np.int64(at)
        slot = (slot + ONE) & mask
        entry = table[begin + slot]
    return np.int64(-1)


@compiled
def _read_topic(
    data: Any, position: Any, size: Any, seed: Any, blanks: Any, strict: Any, id_length: Any, line_length: Any,
    tag: Any, tag_end: Any, starts: Any, ends: Any, hashes: Any, scores: Any, first: Any, ranks: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """How many lines have the topic of the first one, 0 if one of them is not usual; where its id ends, and the next
    line. Scores go to `first` and after it."""
    topic, topic_end, rows = position, NONE, NONE
    while position < size:
        usual, a, b, c, d, e, stop = six_columns(data, position, blanks)
        if not usual:
            return NONE, topic_end, position
        if rows == NONE:
            topic_end = a
        elif not same_bytes(data, topic, topic_end, position, a):
            return rows, topic_end, position
        value, note = usual_number(data, d + ONE, e)
        if note & ~FRACTION:
            return NONE, topic_end, position
        if strict:
            end = stop - np.uint64(data[stop - ONE] == CR)
            rank, note = usual_number(data, c + ONE, d)
            if (
                note
                or rank < 0
                or rank >= LARGEST_RANK
                or not same_bytes(data, tag, tag_end, e + ONE, end)
            ):
                return NONE, topic_end, position
            if a - position > id_length or c - b - ONE > id_length or stop - position > line_length:
                return NONE, topic_end, position
            ranks[rows] = rank
        starts[rows], ends[rows] = b + ONE, c
        hashes[rows] = hash_of(data, b + ONE, c, seed)
        scores[first + rows] = value
        rows += ONE
        position = stop + ONE
    return rows, topic_end, position


@compiled
def _check_topic(rows: Any, hashes: Any, seen: Any, ranks: Any, scores: Any, first: Any) -> Any:
    """How many rows have the score of another one, or -1 if there is something to report: a document twice, or a rank
    that contradicts its score."""
    mask = THREE
    while mask < TWO * rows:
        mask = TWO * mask + ONE
    for place in range(mask + ONE):
        seen[place] = -1
    tied, tying = np.int64(0), np.int64(0)
    for row in range(rows):
        slot = hashes[row] & mask
        while seen[slot] >= 0:
            if hashes[np.uint64(seen[slot])] == hashes[row]:
                return -1
            slot = (slot + ONE) & mask
        seen[slot] = row
        if row > NONE:
            value, before = scores[first + row], scores[first + row - ONE]
            if value > before or (value < before and ranks[row] < ranks[row - ONE]):
                return -1
            equal = np.int64(value == before)
            tied += equal * (2 - tying)
            tying = equal
    return tied


@compiled
def _rank_group(
    data: Any, starts: Any, ends: Any, group: Any, end: Any, first_found: Any, found: Any,
    rank: Any, judgement: Any, score: Any, first: Any, size: Any,
) -> bool:  # fmt: skip
    """Turn the rows of judged documents, which `rank` holds, into ranks, and sort the judged documents of one group of
    ties by them. False for a group that takes too many comparisons."""
    members = end - group
    if members > ONE and members * (found - first_found) > _COMPARISONS:
        return False
    for index in range(first_found, found):
        own, above = np.uint64(rank[index]), np.uint64(0)
        if members > ONE:
            for other in range(group, end):
                above += np.uint64(
                    is_greater(data, starts[other], ends[other], starts[own], ends[own])
                )
        place, row, value = np.uint64(index), judgement[index], score[index]
        at = np.int64(group + above + ONE)
        while place > first_found and rank[place - ONE] > at:
            rank[place], judgement[place], score[place] = (
                rank[place - ONE],
                judgement[place - ONE],
                score[place - ONE],
            )
            place -= ONE
        rank[place], judgement[place], score[place] = at, row, value
        first[index], size[index] = group + ONE, members
    return True


@compiled
def _judge_topic(
    data: Any, rows: Any, known: Any, single: Any, starts: Any, ends: Any, hashes: Any, scores: Any, first_score: Any,
    table: Any, places: Any, judged_data: Any, judged_starts: Any, judged_ends: Any,
    found: Any, rank: Any, judgement: Any, score: Any, first: Any, size: Any,
) -> tuple[bool, Any]:  # fmt: skip
    """Whether scores descend and ties are few, and how many judged documents there are with those of earlier topics."""
    base, mask = NONE, NONE
    if known >= 0:
        base = places[known]
        mask = places[known + 1] - base - ONE
    group, group_found, before = NONE, found, np.inf
    for row in range(rows):
        value = scores[first_score + row]
        own = np.float64(np.float32(value)) if single else value
        if own != before:
            if own > before:
                return False, found
            if found > group_found and not _rank_group(
                data,
                starts,
                ends,
                group,
                row,
                group_found,
                found,
                rank,
                judgement,
                score,
                first,
                size,
            ):
                return False, found
            group, group_found, before = np.uint64(row), found, own
        if known >= 0:
            at = _find(
                data,
                starts[row],
                ends[row],
                hashes[row],
                table,
                base,
                mask,
                judged_data,
                judged_starts,
                judged_ends,
            )
            if at >= 0:
                rank[found], judgement[found], score[found] = row, at, value
                found += ONE
    if found > group_found and not _rank_group(
        data, starts, ends, group, rows, group_found, found, rank, judgement, score, first, size
    ):
        return False, found
    return True, found


@compiled
def judge(
    data: Any, size: Any, seed: Any, single: Any, strict: Any, id_length: Any, line_length: Any,
    topic_table: Any, topic_data: Any, topic_starts: Any, topic_ends: Any,
    table: Any, places: Any, judged_data: Any, judged_starts: Any, judged_ends: Any,
    blanks: Any, starts: Any, ends: Any, hashes: Any, seen: Any, ranks: Any,
    scores: Any, topics: Any, rank: Any, judgement: Any, score: Any, first: Any, tie_size: Any, told: Any,
) -> Any:  # fmt: skip
    """How many topics there are; 0 for lines that are not usual, or of which there is something to report.

    A row of `topics` has start and end of a topic's id, its number among the judged topics (or -1),
    how many rows it has and how many of them are judged. `told` has all rows, all judged ones,
    those that tie, and the tag's start and end.
    """
    position, row, found, topic, tied = NONE, NONE, NONE, NONE, 0
    usual, _, _, _, _, tag, tag_end = six_columns(data, position, blanks)
    if not usual:
        return NONE
    tag, tag_end = tag + ONE, tag_end - np.uint64(data[tag_end - ONE] == CR)
    while position < size:
        begin, found_before = position, found
        rows, end, position = _read_topic(
            data, position, size, seed, blanks, strict, id_length, line_length, tag, tag_end, starts, ends, hashes,
            scores, row, ranks,
        )  # fmt: skip
        if rows == NONE:
            return NONE
        if strict:
            equal = _check_topic(rows, hashes, seen, ranks, scores, row)
            if equal < 0:
                return NONE
            tied += equal
        known = _find(
            data, begin, end, hash_of(data, begin, end, seed), topic_table, NONE, np.uint64(len(topic_table)) - ONE,
            topic_data, topic_starts, topic_ends,
        )  # fmt: skip
        usual, found = _judge_topic(
            data, rows, known, single, starts, ends, hashes, scores, row, table, places, judged_data, judged_starts,
            judged_ends, found, rank, judgement, score, first, tie_size,
        )  # fmt: skip
        if not usual:
            return NONE
        topics[topic, 0], topics[topic, 1], topics[topic, 2] = begin, end, known
        topics[topic, 3], topics[topic, 4] = rows, found - found_before
        topic += ONE
        row += rows
    told[0], told[1], told[2], told[3], told[4] = row, found, tied, tag, tag_end
    return topic
