"""What a lab would use otherwise, beside EvalHub: MLflow's search of runs, and the statistics of PyTerrier.

python -m tests.benchmarks beside

Each is installed into an environment of its own, as for `make integrations`. MLflow gets its runs
straight into its SQLite database and is asked through its own Python client in the same process,
without HTTP; EvalHub is asked over HTTP, on SQLite. Both answer with the 50 best of all runs, 10
values each, and of those with a parameter. Experiments compare the runs of 20 systems with a
baseline by the paired t test and Holm's correction, from rankings in memory.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from metrics.engine import evaluate
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.pairs import Options
from tests.benchmarks.board import MANY, filled_server
from tests.integrations.__main__ import install

SEARCHED, ROUNDS = (1_000, 5_000), 15
SYSTEMS, TOPICS, DEPTH = 20, 50, 1_000
_MLFLOW = r"""
import json, logging, random, sqlite3, statistics, sys, time
logging.disable(logging.CRITICAL)
from mlflow.tracking import MlflowClient
folder, number, rounds, names = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(",")
client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
experiment = client.create_experiment("bench", artifact_location=folder)
# One run by its client has the columns that the others are given.
first = client.create_run(experiment).info.run_id
client.log_param(first, "k1", "0.9")
for name in names:
    client.log_metric(first, name, 0.5)
client.set_terminated(first)
database, draw = sqlite3.connect(f"{folder}/mlflow.db"), random.Random(1)
def copied(table, changes):
    database.row_factory = sqlite3.Row
    rows = [dict(row) for row in database.execute(f"SELECT * FROM {table} WHERE run_uuid = ?", [first])]
    columns = ", ".join(rows[0])
    marks = ", ".join("?" * len(rows[0]))
    made = ([{**row, "run_uuid": f"{n:032x}", **changes(n)}[key] for key in row]
            for n in range(number - 1) for row in rows)
    database.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", made)
copied("runs", lambda n: {"name": f"r{n}"})
copied("params", lambda n: {"value": str(n % 20 / 10)})
for table in ("metrics", "latest_metrics"):
    draw.seed(1)
    copied(table, lambda n: {"value": draw.random()})
copied("tags", lambda n: {})
database.commit()
found = {}
for title, text in (("sorted", ""), ("filtered", "params.k1 = '0.9'")):
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        runs = client.search_runs([experiment], text, max_results=50, order_by=[f"metrics.`{names[0]}` DESC"])
        seconds.append(time.perf_counter() - start)
    assert len(runs) == 50 and len(runs[0].data.metrics) == len(names), len(runs)
    found[title] = 1000 * statistics.median(seconds)
print(json.dumps(found))
"""
_PYTERRIER = r"""
import json, statistics, sys, time
import pandas as pd
import pyterrier as pt
given, rounds = json.load(open(sys.argv[1])), int(sys.argv[2])
topics = pd.DataFrame({"qid": list(given["qrels"]), "query": ["x"] * len(given["qrels"])})
qrels = pd.DataFrame([(q, d, l) for q, docs in given["qrels"].items() for d, l in docs.items()],
                     columns=["qid", "docno", "label"])
frames = [pt.model.add_ranks(pd.DataFrame([(q, d, s) for q, docs in run.items() for d, s in docs.items()],
                                          columns=["qid", "docno", "score"])) for run in given["runs"]]
seconds = []
for _ in range(rounds):
    start = time.perf_counter()
    found = pt.Experiment(frames, topics, qrels, ["map", "ndcg_cut_10"], names=[str(n) for n in range(len(frames))],
                          baseline=0, correction="holm")
    seconds.append(time.perf_counter() - start)
print(json.dumps({"ms": 1000 * statistics.median(seconds), "p": found["map p-value corrected"].tolist()[1:],
                  "means": found["map"].tolist()}))
"""


def measure_beside() -> None:
    """MLflow's search at 1,000 and 5,000 runs, then an experiment of PyTerrier."""
    with tempfile.TemporaryDirectory() as folder:
        pythons = {name: install(name, Path(folder)) for name in ("mlflow", "pyterrier")}
        for number in SEARCHED:
            _measure_search(pythons["mlflow"], number)
        _measure_experiment(pythons["pyterrier"], Path(folder))


def _measure_search(python: Path, number: int) -> None:
    names = MANY[:10]
    with tempfile.TemporaryDirectory() as folder:
        plain = ",".join(name.replace("@", "-") for name in names)
        theirs = _run(python, _MLFLOW, folder, str(number), str(ROUNDS), plain)
    with (
        filled_server("SQLite", number) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        for title, text in (("sorted", ""), ("filtered", "param:k1=0.9")):
            seconds = []
            for name in MANY[:ROUNDS]:
                # Each by another measure, which nobody has asked for.
                query = {"measures": ",".join(names), "sort": name, "filter": text}
                start = time.perf_counter()
                answer = client.get("/api/v1/collections/bench/leaderboard/", params=query)
                seconds.append(time.perf_counter() - start)
                assert len(answer.raise_for_status().json()["results"]) == 50
            ours = 1000 * statistics.median(seconds[1:])
            print(f"50 of {number:,} runs, {title}: MLflow {theirs[title]:.0f} ms, EvalHub {ours:.0f} ms, "
                  f"{theirs[title] / ours:.1f}x", flush=True)  # fmt: skip


def _measure_experiment(python: Path, folder: Path) -> None:
    rng = np.random.default_rng(1)
    topics = [str(topic) for topic in range(TOPICS)]
    qrels = {
        topic: {f"d{n}": int(rng.integers(0, 3)) for n in range(0, 2 * DEPTH, 5)}
        for topic in topics
    }
    runs = [
        {
            topic: {
                f"d{n}": round(
                    float(score) + (0.1 + 0.02 * system) * qrels[topic].get(f"d{n}", 0), 4
                )
                for n, score in zip(
                    rng.permutation(2 * DEPTH)[:DEPTH].tolist(), rng.random(DEPTH), strict=True
                )
            }
            for topic in topics
        }
        for system in range(SYSTEMS)
    ]
    file = folder / "experiment.json"
    file.write_text(json.dumps({"qrels": qrels, "runs": runs}))
    theirs = _run(python, _PYTERRIER, str(file), "3")
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        results = [evaluate(qrels, run, ["AP", "nDCG@10"]) for run in runs]
        p_values = []
        for name in ("AP", "nDCG@10"):
            values = np.array(
                [[result.values[name][topic] for topic in topics] for result in results]
            )
            first, second = np.zeros(SYSTEMS - 1, np.int64), np.arange(1, SYSTEMS)
            p_values.append(TESTS["paired_t"].compare(values, first, second, Options()).p_value)
        seconds.append(time.perf_counter() - start)
    means = [result.means["AP"] for result in results]
    assert np.allclose(means, theirs["means"], atol=1e-12), "the means differ from PyTerrier's"
    adjusted = CORRECTIONS["holm"](p_values[0])
    assert np.allclose(adjusted, theirs["p"], atol=1e-9), (
        "the corrected p values differ from PyTerrier's"
    )
    ours = 1000 * statistics.median(seconds)
    print(f"an experiment of {SYSTEMS} systems x {TOPICS} topics x {DEPTH:,} with a baseline: PyTerrier "
          f"{theirs['ms']:,.0f} ms, EvalHub's library {ours:,.0f}, {theirs['ms'] / ours:.1f}x", flush=True)  # fmt: skip


def _run(python: Path, code: str, *arguments: str) -> Any:
    done = subprocess.run(
        [str(python), "-c", code, *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])
