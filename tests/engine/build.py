"""Small rankings and judgements for tests of the engine, straight from dictionaries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import Judgements, ScoreType, Search, judge, search
from metrics.engine.judgement.known import mark_known
from runs.formats.compression import in_memory
from runs.formats.known_documents import read_known
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.trec_qrels import SUBTOPIC, read_qrels
from runs.formats.trec_run import check_run, read_run

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]
# Topic, subtopic, document, level.
SubtopicQrels = Sequence[tuple[str, str, str, int]]
SEED = 97


def judgements_of(qrels: Qrels) -> Judgements:
    return judgements_by_subtopic(
        [(topic, "0", *judged) for topic, docs in qrels.items() for judged in docs.items()]
    )


def judgements_by_subtopic(qrels: SubtopicQrels) -> Judgements:
    lines = "".join(f"{topic} {subtopic} {doc} {level}\n" for topic, subtopic, doc, level in qrels)
    summary = read_qrels(
        lambda: in_memory(lines.encode(), DEFAULT_LIMITS), iteration=SUBTOPIC, seed=SEED
    )
    summary.report.check()
    return summary.judgements


def run_text(run: Run) -> bytes:
    lines = (
        f"{topic} Q0 {doc} 0 {score!r} t\n"
        for topic, docs in run.items()
        for doc, score in docs.items()
    )
    return "".join(lines).encode()


def judged_run(
    qrels: Qrels, run: Run, scores: ScoreType = "float64", search: Search = search
) -> JudgedRun:
    return _judged(judgements_of(qrels), run, scores, search)


def judged_by_subtopic(qrels: SubtopicQrels, run: Run) -> JudgedRun:
    return _judged(judgements_by_subtopic(qrels), run, "float64", search)


def _judged(judgements: Judgements, run: Run, scores: ScoreType, search: Search) -> JudgedRun:
    content = run_text(run)
    summary = check_run(lambda: in_memory(content, DEFAULT_LIMITS), seed=SEED)
    blocks = read_run(
        lambda: in_memory(content, DEFAULT_LIMITS), grouped=summary.grouped, seed=SEED
    )
    return judge(blocks if content else [], judgements, scores, search)


def known_run(
    qrels: Qrels, run: Run, known: Mapping[str, Iterable[str]], expected: Mapping[str, int]
) -> JudgedRun:
    """The view of a run whose user knew these documents and expected these numbers."""
    lines = [f"{topic} {doc}\n" for topic, docs in known.items() for doc in docs]
    lines += [f"{topic} expected {number}\n" for topic, number in expected.items()]
    summary = read_known(lambda: in_memory("".join(lines).encode(), DEFAULT_LIMITS), seed=SEED)
    summary.report.check()
    return mark_known(judged_run(qrels, run), judgements_of(qrels), summary.known)


def ranked(*levels: int, recall_base: Mapping[str, int] | None = None) -> JudgedRun:
    """One topic whose documents at ranks 1, 2, ... have these levels; `recall_base` adds what was not retrieved."""
    qrels = {f"d{rank}": level for rank, level in enumerate(levels, 1)} | dict(recall_base or {})
    return judged_run(
        {"1": qrels}, {"1": {f"d{rank}": -float(rank) for rank in range(1, len(levels) + 1)}}
    )


def first_format(n_topics: int, arrays: Mapping[str, Any]) -> bytes:
    """A stored view as the first format has it: the bytes of each number together."""
    shapes = [(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    header = json.dumps({"format": 1, "n_topics": n_topics, "arrays": shapes}).encode()
    return (
        len(header).to_bytes(8, "little")
        + header
        + b"".join(array.tobytes() for array in arrays.values())
    )
