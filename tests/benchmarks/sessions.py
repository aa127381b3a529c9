"""Sessions: reading 10,000 sessions of 3 queries x 100 documents, and scoring them from their stored form."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import zstandard

from metrics.engine.judgement.judging import Judgements
from metrics.engine.sessions.analyses import mean_session_curves
from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.judging import judge_sessions
from metrics.engine.sessions.settings import Setting
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.sessions.reading import SessionsSummary, check_sessions, use_sessions
from runs.formats.trec_qrels import read_qrels
from tests.engine import naive_sessions as naive

SESSIONS, QUERIES, DEPTH, TOPICS, POOL, JUDGED = 10_000, 3, 100, 50, 1000, 300
ROUNDS = 5
SEED = 11
NAMES = (
    "sDCG",
    "nsDCG",
    "sDCG(b=1.5,bq=1.5)@100",
    "nsDCG(b=10,bq=10)@100",
    "nsDCG(gains='0-1-10-100',dup='first')@10",
    "nsDCG(short='asis',figure='avgpos')@10",
    "sDCG(figure='best')@20",
    "nsDCG(ideal='once',dup='first')@10",
    "nsDCG_shifted@10",
    "nsDCG_DD",
)
Ranked = list[list[str]]


def simulated() -> list[Ranked]:
    """Each session's rankings: documents of its topic's pool, in any order."""
    rng = np.random.default_rng(SEED)
    names = [
        [f"clueweb12-{topic:04d}wb-{doc:05d}" for doc in range(POOL)] for topic in range(TOPICS)
    ]
    return [
        [
            [names[n % TOPICS][doc] for doc in rng.permutation(POOL)[:DEPTH].tolist()]
            for _ in range(QUERIES)
        ]
        for n in range(SESSIONS)
    ]


def as_json(sessions: list[Ranked]) -> bytes:
    lines = (
        {
            "session_id": f"s{n}",
            "topic_id": f"{n % TOPICS}",
            "system": "A",
            "queries": [{"documents": q} for q in queries],
        }
        for n, queries in enumerate(sessions)
    )
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def as_columns(sessions: list[Ranked]) -> bytes:
    return "".join(
        f"s{n} {number} {doc} {rank} {100 - rank} A {n % TOPICS}\n"
        for n, queries in enumerate(sessions)
        for number, documents in enumerate(queries, 1)
        for rank, doc in enumerate(documents, 1)
    ).encode()


def as_xml(sessions: list[Ranked]) -> bytes:
    return "".join(
        ["<log>\n", *(_element(n, queries) for n, queries in enumerate(sessions)), "</log>"]
    ).encode()


def _element(number: int, queries: Ranked) -> str:
    lists = [
        "".join(
            f'<result rank="{rank}"><docno>{doc}</docno></result>'
            for rank, doc in enumerate(documents, 1)
        )
        for documents in queries
    ]
    inner = "".join(
        f"<interaction><query>q</query><results>{results}</results></interaction>"
        for results in lists
    )
    return f'<session num="s{number}" topic="{number % TOPICS}">{inner}</session>\n'


def levels() -> list[dict[str, int]]:
    rng = np.random.default_rng(SEED + 1)
    return [
        {
            f"clueweb12-{topic:04d}wb-{doc:05d}": level
            for doc, level in enumerate(rng.choice(4, JUDGED).tolist())
        }
        for topic in range(TOPICS)
    ]


def judgements(levels: list[dict[str, int]]) -> Judgements:
    lines = [
        f"{topic} 0 {doc} {level}\n"
        for topic, judged in enumerate(levels)
        for doc, level in judged.items()
    ]
    return read_qrels(
        lambda: in_memory("".join(lines).encode(), DEFAULT_LIMITS), seed=SEED
    ).judgements


def measure_sessions() -> None:
    """MB/s of each format, size of the stored form, milliseconds of ten measures from it; checked by plain loops."""
    sessions, judged = simulated(), levels()
    qrels = judgements(judged)
    print(f"{SESSIONS:,} sessions of {QUERIES} queries x {DEPTH} documents, medians of {ROUNDS}")
    for name, form in (
        ("JSON lines", as_json),
        ("columns", as_columns),
        ("XML, a tenth of them", as_xml),
    ):
        content = form(sessions[: SESSIONS // 10] if form is as_xml else sessions)
        seconds, _ = _median(lambda content=content: _read(content))
        print(
            f"{name}: {len(content) / 1e6:.0f} MB in {seconds:.2f} s, {len(content) / 1e6 / seconds:.0f} MB/s"
        )
    content = as_json(sessions)
    seconds, view = _median(lambda: _judge(content, qrels))
    stored = zstandard.compress(view.to_bytes())
    print(
        f"reading and judging: {seconds:.2f} s, {len(view.rank):,} judged rows, stored in {len(stored) / 1e6:.2f} MB"
    )
    _measure_scores(stored, sessions, judged)


def _measure_scores(stored: bytes, sessions: list[Ranked], judged: list[dict[str, int]]) -> None:
    seconds, values = _median(lambda: _score(stored))
    print(f"{len(NAMES)} measures from the stored form: {1000 * seconds:.0f} ms")
    for name in NAMES:
        taken, _ = _median(
            lambda name=name: session_values(_load(stored), parse_session_measure(name))
        )
        print(f"  {name}: {1000 * taken:.0f} ms, loading it among them")
    system = np.arange(SESSIONS) % 2
    for depth in (10, 100):
        taken, _ = _median(
            lambda depth=depth: mean_session_curves(_load(stored), Setting(depth=depth), system, 2)
        )
        print(f"mean curves of two systems, X = {depth}: {1000 * taken:.0f} ms")
    choice = naive.Choice(float, 10, 2.0, 4.0, "pad", "every", "fixed")
    for place in range(0, SESSIONS, 997):
        plain = [naive.NaiveQuery(docs, -1, judged[place % TOPICS]) for docs in sessions[place]]
        for ours, norm in ((values[0], None), (values[1], "session")):
            if abs(ours[place] - naive.figure(plain, choice, "final", norm=norm)) > 1e-9:
                raise SystemExit(f"session {place} differs from plain loops")


def _load(stored: bytes) -> JudgedSessions:
    return JudgedSessions.from_bytes(zstandard.decompress(stored))


def _score(stored: bytes) -> list[Any]:
    view = _load(stored)
    return [session_values(view, parse_session_measure(name)) for name in NAMES]


def _read(content: bytes) -> SessionsSummary:
    return check_sessions(lambda: in_memory(content, DEFAULT_LIMITS), seed=SEED)


def _judge(content: bytes, qrels: Judgements) -> JudgedSessions:
    _, view = use_sessions(
        lambda: in_memory(content, DEFAULT_LIMITS),
        lambda blocks: judge_sessions(blocks, qrels),
        seed=SEED,
    )
    return view


def _median(call: Callable[[], Any]) -> tuple[float, Any]:
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), answer
