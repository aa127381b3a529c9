"""Files to 22 columns per topic: EvalHub against trec_eval, pytrec_eval and ir_measures, in interleaved rounds; and
ranx, where `make integrations ONLY=ranx` has made its environment.

Every contender reads the same files in the same minute; a ratio is trec_eval's median time over the
contender's. Before any time is printed, every value of every topic is compared with the peer's at
four decimals.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import Judgements
from metrics.engine.measures.grammar import parse_measure
from runs.formats.compression import open_file
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.scanning.warm_up import warm_up
from runs.formats.trec_qrels import read_qrels
from runs.formats.trec_run import judge_run
from tests.benchmarks.data import SETS
from tests.integrations.__main__ import python_of

TREC_MEASURES = (
    "ndcg_cut.5,10,20,100", "ndcg", "map", "map_cut.100", "P.5,10,20,100", "recall.10,100,1000", "recip_rank", "Rprec",
    "bpref", "iprec_at_recall.0.00,0.10,0.50", "success.1,10",
)  # fmt: skip
COLUMNS = tuple(
    f"{name}_{parameter}".rstrip("_")
    for name, _, parameters in (measure.partition(".") for measure in TREC_MEASURES)
    for parameter in parameters.split(",")
)
ROUNDS = {"S": 9, "M": 7, "L2": 5, "L": 5}
_PYTREC_EVAL = """
import sys, pytrec_eval
qrels, run = (reader(open(path)) for reader, path in
              ((pytrec_eval.parse_qrel, sys.argv[1]), (pytrec_eval.parse_run, sys.argv[2])))
values = pytrec_eval.RelevanceEvaluator(qrels, set(sys.argv[3:])).evaluate(run)
for topic, row in values.items():
    for name, value in row.items():
        print(name, topic, f"{value:.4f}", sep="\\t")
"""
_IR_MEASURES = """
import sys, ir_measures
measures = [ir_measures.parse_trec_measure(name)[0] for name in sys.argv[3:]]
qrels, run = ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2])
for metric in ir_measures.iter_calc(measures, qrels, run):
    print(metric.measure, metric.query_id, f"{metric.value:.4f}", sep="\\t")
"""
_RANX = """
import sys, ranx
qrels, run = (kind.from_file(path, kind="trec") for kind, path in ((ranx.Qrels, sys.argv[1]), (ranx.Run, sys.argv[2])))
names = sys.argv[3:]
found = ranx.evaluate(qrels, run, names, return_mean=False, make_comparable=True)
for name in names:
    for topic, value in zip(run.keys(), found[name]):
        print(name, topic, f"{value:.4f}", sep="\\t")
"""
# What ranx has of the 22 columns, by its names.
_OF_RANX = (
    "ndcg_burges@5", "ndcg_burges@10", "ndcg_burges@20", "ndcg_burges@100", "map", "map@100", "precision@5",
    "precision@10", "precision@20", "precision@100", "recall@10", "recall@100", "recall@1000", "mrr", "r-precision",
    "bpref", "hit_rate@1", "hit_rate@10",
)  # fmt: skip

_MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


@dataclass
class Contender:
    """Somebody who turns two files into values: a command that takes their paths, or a function."""

    name: str
    run: list[str] | Callable[[Path, Path, Path], None]
    after: tuple[str, ...] = ()
    seconds: list[float] = field(default_factory=list)

    def evaluate(self, qrels: Path, run: Path, out: Path) -> None:
        if isinstance(self.run, list):
            with out.open("wb") as file:
                subprocess.run(
                    [*self.run, str(qrels), str(run), *self.after], stdout=file, check=True
                )
        else:
            self.run(qrels, run, out)

    def megabytes(self, qrels: Path, run: Path) -> str:
        """The most memory the command holds, told by a small process in between: a child's figure starts at its
        parent's."""
        if not isinstance(self.run, list):
            return ""
        command = [
            sys.executable,
            "-S",
            "-c",
            _MEMORY,
            *self.run,
            str(qrels),
            str(run),
            *self.after,
        ]
        process = subprocess.run(
            command, check=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        return f", {int(process.stderr.split()[-1]) / 1024:.0f} MB"


def measure_peers() -> None:
    """Medians and ratios on every data set that BENCH_SETS names, all of them where it is unset."""
    warm_up()
    with tempfile.TemporaryDirectory() as scratch:
        for name in os.environ.get("BENCH_SETS", ",".join(ROUNDS)).split(","):
            _measure_set(name, Path(scratch))


def _measure_set(name: str, scratch: Path) -> None:
    qrels, run = SETS[name].files(scratch)
    contenders = _contenders(name)
    for _ in range(ROUNDS[name]):
        for contender in contenders:
            start = time.perf_counter()
            contender.evaluate(qrels, run, scratch / f"{contender.name}.out")
            contender.seconds.append(time.perf_counter() - start)
    _compare(contenders, scratch)
    base = statistics.median(contenders[0].seconds)
    for contender in contenders:
        median = statistics.median(contender.seconds)
        memory = contender.megabytes(qrels, run)
        print(
            f"{name:3}{contender.name:34}{1000 * median:8.0f} ms  {base / median:6.2f}x{memory}",
            flush=True,
        )
    for path in (qrels, run):
        path.unlink()


def _contenders(name: str) -> list[Contender]:
    """The first is the one the others are compared with."""
    known: dict[Path, Judgements] = {}
    binary = os.environ.get("TREC_EVAL")
    flags = [argument for measure in TREC_MEASURES for argument in ("-m", measure)]
    evalhub = [
        str(Path(sys.executable).with_name("evalhub")),
        "eval",
        "--compat",
        "9.0.8",
        "-q",
        *flags,
    ]
    contenders = [Contender("trec_eval", [binary, "-q", *flags])] if binary else []
    if name != "L" or not binary:
        contenders.append(Contender("ir_measures", [sys.executable, "-c", _IR_MEASURES], COLUMNS))
    if (ranx := python_of("ranx")) and name != "L":
        contenders.append(Contender("ranx, 18 of 22 columns", [str(ranx), "-c", _RANX], _OF_RANX))
    contenders.append(Contender("pytrec_eval", [sys.executable, "-c", _PYTREC_EVAL], COLUMNS))
    return [
        *contenders,
        Contender("EvalHub, cold command", evalhub),
        Contender("EvalHub, warm", lambda qrels, run, out: _warm(qrels, run, out, {})),
        Contender(
            "EvalHub, warm, judgements cached",
            lambda qrels, run, out: _warm(qrels, run, out, known),
        ),
    ]


def _warm(qrels: Path, run: Path, out: Path, known: dict[Path, Judgements]) -> None:
    """What a worker does with a run, to 22 vectors and their means; the values are written only for the gate."""
    judgements = known.get(qrels) or read_qrels(lambda: open_file(qrels, DEFAULT_LIMITS)).judgements
    known[qrels] = judgements
    view = judge_run(lambda: open_file(run, DEFAULT_LIMITS), judgements, "float32")
    vectors = {name: _vector(name, view) for name in COLUMNS}
    if not out.exists():
        topics = [topic.decode() for topic in judgements.topic_ids]
        lines = (
            f"{name}\t{topic}\t{value:.4f}\n"
            for name, vector in vectors.items()
            for topic, value in zip(topics, vector, strict=True)
        )
        out.write_text("".join(lines))


def _vector(name: str, view: JudgedRun) -> list[float]:
    # The peers round recall points as trec_eval 9 does.
    recall = name.removeprefix("iprec_at_recall_")
    measure = parse_measure(name if recall == name else f"IPrec(rounding='9')@{recall}")
    values = measure.compute(view)
    measure.aggregate(values, view)
    return values.tolist()


def _compare(contenders: list[Contender], scratch: Path) -> None:
    """The gate: no value of EvalHub may differ from the first peer's at four decimals."""
    peer = _values(scratch / f"{contenders[0].name}.out")
    for contender in contenders:
        if contender.name.startswith("EvalHub"):
            own = _values(scratch / f"{contender.name}.out")
            off = sum(own.get(key) != value for key, value in peer.items())
            print(
                f"   {contender.name}: {off} of {len(peer):,} values differ from {contenders[0].name}'s"
            )
            if off or not peer:
                raise SystemExit("EvalHub's values are wrong: no time is worth printing")
    for contender in contenders:
        (scratch / f"{contender.name}.out").unlink()


def _values(path: Path) -> dict[tuple[str, str], str]:
    rows = (line.split() for line in path.read_text().splitlines())
    return {(name, topic): value for name, topic, value in rows if topic != "all"}
