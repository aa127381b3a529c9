"""What is computed from a judged view, and what an upload costs from its compressed bytes to its values."""

from __future__ import annotations

import gzip
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from metrics.engine.curve.curves import curve, curve_measure
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import Judgements
from metrics.engine.measures.grammar import parse_measure, parse_measures
from runs.formats.compression import open_file
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.scanning.warm_up import warm_up
from runs.formats.trec_qrels import read_qrels
from runs.formats.trec_run import check_run, judge_run
from tests.benchmarks.data import SETS

ROUNDS = 25
_DEPTHS = (5, 10, 15, 20, 30, 50, 100, 200, 500)
FIFTY = [
    *(
        parse_measure(f"{name}@{k}")
        for name in ("nDCG", "P", "R", "AP", "Success")
        for k in _DEPTHS
    ),
    *parse_measures("nDCG,RR,Rprec,Bpref,RBP(p=0.8)"),
]
STORED = parse_measures("nDCG@10,nDCG,AP,RR,P@5,P@10,R@100,R@1000,Rprec,Judged@10")
_AS_TREC_EVAL = ("ndcg_cut.10", "ndcg", "map", "recip_rank", "P.5,10", "recall.100,1000", "Rprec")
CURVES = [curve_measure(name) for name in ("CG", "DCG", "nCG", "nDCG")]


def measure_views() -> None:
    """A run in a warm worker, fifty measures more from its stored view, and four curves."""
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("S", "L"):
            judgements, run = _files(name, Path(folder))
            stored = _judge(judgements, run).to_bytes()
            _print(f"{name}: 50 measures more from the stored view", partial(_fifty, stored))
            if name == "S":
                _print(
                    "S: 50 x 1000 run to 10 vectors, judgements cached",
                    partial(_evaluate, judgements, run),
                )
        stored = _judge(*_files("M", Path(folder))).to_bytes()
        _print("M: four curves, ranks 1..1000: means and ideals", partial(_curves, stored))


def judged_view(name: str) -> JudgedRun:
    """Return the judged view of a run of one of the sizes of the data."""
    with tempfile.TemporaryDirectory() as folder:
        return _judge(*_files(name, Path(folder)))


def judge_files(qrels: Path, run: Path) -> JudgedRun:
    """Return the judged view of a file of judgements and a run."""
    return _judge(read_qrels(lambda: open_file(qrels, DEFAULT_LIMITS)).judgements, run)


def _files(name: str, folder: Path) -> tuple[Judgements, Path]:
    qrels, run = SETS[name].files(folder)
    return read_qrels(lambda: open_file(qrels, DEFAULT_LIMITS)).judgements, run


def _judge(judgements: Judgements, run: Path) -> JudgedRun:
    return judge_run(lambda: open_file(run, DEFAULT_LIMITS), judgements)


def _evaluate(judgements: Judgements, run: Path) -> None:
    view = _judge(judgements, run)
    for measure in STORED:
        measure.aggregate(measure.compute(view), view)


def _fifty(stored: bytes) -> None:
    view = JudgedRun.from_bytes(stored)
    for measure in FIFTY:
        measure.aggregate(measure.compute(view), view)


def _curves(stored: bytes) -> None:
    view = JudgedRun.from_bytes(stored)
    for measure in CURVES:
        drawn = curve(view, measure, 1000)
        assert drawn.mean.shape == drawn.ideal_mean.shape == (1000,)


def measure_upload() -> None:
    """A compressed run from its bytes to its values, in process, against `gzip -dc` and then trec_eval."""
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = SETS["upload"].files(Path(folder))
        compressed, plain = run.with_suffix(".gz"), run.with_suffix(".tmp")
        with run.open("rb") as source, gzip.open(compressed, "wb", 6) as target:
            shutil.copyfileobj(source, target)
        judgements = read_qrels(lambda: open_file(qrels, DEFAULT_LIMITS)).judgements
        seconds: dict[str, list[float]] = {"ours": [], "check": [], "peer": []}
        for _ in range(9):
            seconds["ours"].append(_seconds(lambda: _upload(judgements, compressed)))
            seconds["check"].append(
                _seconds(lambda: check_run(lambda: open_file(compressed, DEFAULT_LIMITS)))
            )
            if binary := os.environ.get("TREC_EVAL"):
                seconds["peer"].append(_seconds(lambda: _shell(binary, qrels, compressed, plain)))
        ours = statistics.median(seconds["ours"])
        size, check = compressed.stat().st_size / 1e6, statistics.median(seconds["check"])
        print(f"upload of {size:.1f} MB of gz, checked and evaluated: {1000 * ours:.0f} ms")
        print(f"the check alone: {1000 * check:.0f} ms")
        if seconds["peer"]:
            peer = statistics.median(seconds["peer"])
            print(
                f"gzip -dc, then trec_eval: {1000 * peer:.0f} ms, {peer / ours:.1f} times as long"
            )


def _upload(judgements: Judgements, compressed: Path) -> None:
    """What the web process does with the file, and what the worker does; without HTTP and the database."""
    summary = check_run(lambda: open_file(compressed, DEFAULT_LIMITS))
    summary.report.check()
    _evaluate(judgements, compressed)


def _shell(binary: str, qrels: Path, compressed: Path, plain: Path) -> None:
    with plain.open("wb") as target:
        subprocess.run(["gzip", "-dc", str(compressed)], stdout=target, check=True)
    flags = [argument for measure in _AS_TREC_EVAL for argument in ("-m", measure)]
    subprocess.run(
        [binary, "-q", *flags, str(qrels), str(plain)], stdout=subprocess.DEVNULL, check=True
    )


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _print(what: str, work: Callable[[], None]) -> None:
    work()
    print(
        f"{what}: median {1000 * statistics.median(_seconds(work) for _ in range(ROUNDS)):.1f} ms of {ROUNDS}"
    )
