"""The kernel that judges: from the bytes of a run to its judged rows, in one pass.

It takes only usual lines: six columns with one space or tab between them, numbers of few digits,
scores in descending order, without comments and anything to report. Other lines are refused: then
the scan to columns reads the same bytes.
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
# Comparisons of ids for one group of ties; sorting is faster for a larger group.
_COMPARISONS = np.uint64(1 << 14)


@compiled
def fill(starts: Any, hashes: Any, table: Any, places: Any, only_once: Any) -> Any:
    """Put each row into its topic's part of the table: half of its hash, and its number from 1.

    The rows of a topic begin at one of `starts`. With `only_once`, return 0 if a topic has a hash
    twice, otherwise 1.
    """
    for topic in range(len(starts) - 1):
        begin = places[topic]
        mask = places[topic + 1] - begin - ONE

        for row in range(starts[topic], starts[topic + 1]):
            slot = hashes[row] & mask
            entry = table[begin + slot]
            while entry != NONE:
                if (
                    only_once
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
    """Return the row of the table with the same bytes in its span of `other`, or -1."""
    slot = key & mask
    entry = table[begin + slot]
    while entry != NONE:
        if (entry ^ key) <= _LOW:
            row = (entry & _LOW) - ONE
            if same_span(
                data, start, end, other, np.uint64(other_starts[row]), np.uint64(other_ends[row])
            ):
                return np.int64(row)

        slot = (slot + ONE) & mask
        entry = table[begin + slot]

    return np.int64(-1)


@compiled
def _read_topic(
    data: Any, position: Any, size: Any, seed: Any, blanks: Any,
    strict: Any, id_length: Any, line_length: Any, tag: Any, tag_end: Any,
    starts: Any, ends: Any, hashes: Any, scores: Any, first: Any, ranks: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Read the lines of the first topic. Return their number, where its id ends, and the next line.

    The number is 0 if a line is not usual. Scores are stored from `first` on.
    """
    topic, topic_end, rows = position, NONE, NONE

    while position < size:
        is_usual, a, b, c, d, e, stop = six_columns(data, position, blanks)
        if not is_usual:
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
def _check_topic(rows: Any, hashes: Any, slots: Any, ranks: Any, scores: Any, first: Any) -> Any:
    """Return the number of rows with the score of another one, or -1 if there is a problem.

    This is a repeated document, or a rank that contradicts its score.
    """
    mask = THREE
    while mask < TWO * rows:
        mask = TWO * mask + ONE

    for slot_number in range(mask + ONE):
        slots[slot_number] = -1

    tied, was_tied = np.int64(0), np.int64(0)
    for row in range(rows):
        slot = hashes[row] & mask
        while slots[slot] >= 0:
            if hashes[np.uint64(slots[slot])] == hashes[row]:
                return -1
            slot = (slot + ONE) & mask

        slots[slot] = row
        if row > NONE:
            value, previous = scores[first + row], scores[first + row - ONE]
            if value > previous or (value < previous and ranks[row] < ranks[row - ONE]):
                return -1

            equal = np.int64(value == previous)
            tied += equal * (2 - was_tied)
            was_tied = equal

    return tied


@compiled
def _rank_group(
    data: Any, starts: Any, ends: Any, group: Any, end: Any, first_judged: Any, judged_end: Any,
    rank: Any, judgement: Any, score: Any, first: Any, size: Any,
) -> bool:  # fmt: skip
    """Turn the rows in `rank` into ranks, and sort the judged documents of a group of ties by them.

    Return False for a group that takes too many comparisons.
    """
    members = end - group
    if members > ONE and members * (judged_end - first_judged) > _COMPARISONS:
        return False

    for index in range(first_judged, judged_end):
        row, above = np.uint64(rank[index]), np.uint64(0)
        if members > ONE:
            for other in range(group, end):
                above += np.uint64(
                    is_greater(
                        data,
                        starts[other],
                        ends[other],
                        starts[row],
                        ends[row],
                    )
                )

        target, own_judgement, own_score = np.uint64(index), judgement[index], score[index]
        own_rank = np.int64(group + above + ONE)
        while target > first_judged and rank[target - ONE] > own_rank:
            rank[target], judgement[target], score[target] = (
                rank[target - ONE],
                judgement[target - ONE],
                score[target - ONE],
            )
            target -= ONE

        rank[target], judgement[target], score[target] = own_rank, own_judgement, own_score
        first[index], size[index] = group + ONE, members

    return True


@compiled
def _judge_topic(
    data: Any, rows: Any, judged_topic: Any, single: Any,
    starts: Any, ends: Any, hashes: Any, scores: Any, first_score: Any,
    table: Any, places: Any, judged_data: Any, judged_starts: Any, judged_ends: Any,
    judged_count: Any, rank: Any, judgement: Any, score: Any, first: Any, size: Any,
) -> tuple[bool, Any]:  # fmt: skip
    """Find the judged documents of a topic.

    Return whether scores descend and ties are few, and the number of judged documents so far.
    """
    base, mask = NONE, NONE

    if judged_topic >= 0:
        base = places[judged_topic]
        mask = places[judged_topic + 1] - base - ONE

    group, group_judged, previous = NONE, judged_count, np.inf
    for row in range(rows):
        value = scores[first_score + row]
        own_score = np.float64(np.float32(value)) if single else value
        if own_score != previous:
            if own_score > previous:
                return False, judged_count

            if judged_count > group_judged and not _rank_group(
                data,
                starts,
                ends,
                group,
                row,
                group_judged,
                judged_count,
                rank,
                judgement,
                score,
                first,
                size,
            ):
                return False, judged_count

            group, group_judged, previous = np.uint64(row), judged_count, own_score

        if judged_topic >= 0:
            judged_row = _find(
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
            if judged_row >= 0:
                rank[judged_count], judgement[judged_count], score[judged_count] = (
                    row,
                    judged_row,
                    value,
                )
                judged_count += ONE

    if judged_count > group_judged and not _rank_group(
        data,
        starts,
        ends,
        group,
        rows,
        group_judged,
        judged_count,
        rank,
        judgement,
        score,
        first,
        size,
    ):
        return False, judged_count

    return True, judged_count


@compiled
def judge(
    data: Any, size: Any, seed: Any, single: Any, strict: Any, id_length: Any, line_length: Any,
    topic_table: Any, topic_data: Any, topic_starts: Any, topic_ends: Any,
    table: Any, places: Any, judged_data: Any, judged_starts: Any, judged_ends: Any,
    blanks: Any, starts: Any, ends: Any, hashes: Any, slots: Any, ranks: Any,
    scores: Any, topics: Any, rank: Any, judgement: Any, score: Any,
    first: Any, tie_size: Any, totals: Any,
) -> Any:  # fmt: skip
    """Return the number of topics, or 0 if a line is not usual or there is anything to report.

    A row of `topics` has start and end of a topic's id, its number among the judged topics (or -1),
    and the numbers of its rows and of its judged rows. `totals` has the numbers of all rows, of
    judged rows and of tied ones, and the tag's start and end.
    """
    position, row, judged_count, topic, tied = NONE, NONE, NONE, NONE, 0
    is_usual, _, _, _, _, tag, tag_end = six_columns(data, position, blanks)
    if not is_usual:
        return NONE

    tag, tag_end = tag + ONE, tag_end - np.uint64(data[tag_end - ONE] == CR)
    while position < size:
        begin, previous_count = position, judged_count
        rows, end, position = _read_topic(
            data, position, size, seed, blanks, strict, id_length, line_length, tag, tag_end,
            starts, ends, hashes, scores, row, ranks,
        )  # fmt: skip

        if rows == NONE:
            return NONE

        if strict:
            equal = _check_topic(rows, hashes, slots, ranks, scores, row)
            if equal < 0:
                return NONE
            tied += equal

        judged_topic = _find(
            data, begin, end, hash_of(data, begin, end, seed),
            topic_table, NONE, np.uint64(len(topic_table)) - ONE,
            topic_data, topic_starts, topic_ends,
        )  # fmt: skip

        is_usual, judged_count = _judge_topic(
            data, rows, judged_topic, single, starts, ends, hashes, scores, row,
            table, places, judged_data, judged_starts, judged_ends,
            judged_count, rank, judgement, score, first, tie_size,
        )  # fmt: skip

        if not is_usual:
            return NONE

        topics[topic, 0], topics[topic, 1], topics[topic, 2] = begin, end, judged_topic
        topics[topic, 3], topics[topic, 4] = rows, judged_count - previous_count
        topic += ONE
        row += rows

    totals[0], totals[1], totals[2], totals[3], totals[4] = row, judged_count, tied, tag, tag_end
    return topic
