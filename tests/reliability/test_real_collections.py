"""Real collections over HTTP: every figure of these families equals trec_eval's and the official ones."""

from __future__ import annotations

import csv
import gzip
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from metrics.engine.measures.grammar import parse_measure
from tests.reliability.servers import Server

pytestmark = pytest.mark.real_data

CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
TREC_EVAL = {
    parse_measure(name).name: name
    for name in (
        "map", "Rprec", "recip_rank", "ndcg", "num_ret", "num_rel", "num_rel_ret", "success_1", "success_5",
        "success_10", *(f"{name}_{k}" for name in ("P", "recall", "ndcg_cut", "map_cut") for k in CUTOFFS),
    )
}  # fmt: skip
VERSIONS = {"float64": "trec_eval-10.0-rc3", "float32": "trec_eval-9.0.8"}
# Printed with four decimals: half of the last one, and the rounding of a figure that lies just
# between two.
HALF_A_DIGIT = 0.5e-4 + 1e-9


def post_file(client: httpx.Client, path: str, file: Path, method: str = "POST") -> Any:
    headers = {"Content-Type": "application/octet-stream"}
    return (
        client.request(method, path, content=file.read_bytes(), headers=headers)
        .raise_for_status()
        .json()
    )


def wait_for_board(client: httpx.Client, collection: str, runs: int, **query: str) -> Any:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        board = (
            client.get(f"collections/{collection}/leaderboard/", params=query)
            .raise_for_status()
            .json()
        )
        if board["ranked"] == runs:
            return board
        time.sleep(0.1)
    raise TimeoutError(f"{collection}: {board['states']}")


def submit_all(client: httpx.Client, collection: str, runs: list[Path]) -> dict[str, str]:
    """Submit every run and ask for float32 scores as well; returns each run's address by its file's name."""
    urls = {
        file.name: post_file(client, f"collections/{collection}/runs/", file)["url"]
        for file in runs
    }
    client.post(
        f"collections/{collection}/evaluations/", json={"scores": "float32"}
    ).raise_for_status()
    for scores in VERSIONS:
        wait_for_board(client, collection, len(runs), scores=scores)
    return urls


def expected_values(path: Path) -> dict[tuple[str, str], float]:
    names = set(TREC_EVAL.values())
    rows = (line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines())
    return {(name, topic): float(value) for name, topic, value in rows if name in names}


def test_robust_2003_equals_both_versions_of_trec_eval(embedded: Server, real_data: Path) -> None:
    """By topic; what PostgreSQL stores and gives back is tried with the forty runs below."""
    folder = real_data / "robust03"
    with embedded.client() as client:
        client.post(
            "collections/", json={"slug": "robust03", "name": "Robust 2003"}
        ).raise_for_status()
        topics = post_file(
            client, "collections/robust03/topics/", folder / "topics/topics.robust04.txt", "PUT"
        )
        assert (topics["format"], topics["topics"]) == ("trec-sgml", 250)
        qrels = post_file(
            client, "collections/robust03/qrels/", folder / "qrels/robust03_qrels.txt"
        )
        assert (qrels["judgements"], qrels["topics"]) == (128_796, 100)
        urls = submit_all(client, "robust03", sorted((folder / "runs").iterdir()))
        for file, url in urls.items():
            for scores, version in VERSIONS.items():
                expected = expected_values(
                    folder / "expected" / version / file.replace(".gz", ".txt.gz")
                )
                assert_equal(client, url, scores, expected)


def assert_equal(
    client: httpx.Client, url: str, scores: str, expected: dict[tuple[str, str], float]
) -> None:
    query = {"measures": ",".join(TREC_EVAL), "scores": scores}
    answer = client.get(url + "values/", params=query).raise_for_status().json()
    compared = 0
    for measure, name in TREC_EVAL.items():
        values = {topic["topic_id"]: topic["values"][measure] for topic in answer["topics"]}
        for topic, value in [*values.items(), ("all", answer["means"][measure]["mean"])]:
            # trec_eval prints no line for a topic that the run does not answer; here it counts 0.
            theirs = expected.get((name, topic), value if name == "num_rel" else 0.0)
            assert abs(value - theirs) <= HALF_A_DIGIT, (
                f"{url} {scores} {name} {topic}: {value} is not {theirs}"
            )
            compared += (name, topic) in expected
    assert compared == len(expected)


def test_trec_covid_equals_the_official_leaderboard(server: Server, real_data: Path) -> None:
    folder = real_data / "trec-covid-round1"
    official = {
        row["run"]: row
        for row in csv.DictReader((folder / "published/leaderboard.csv").read_text().splitlines())
    }
    measures = {"ndcg@10": "nDCG@10", "p@5": "P@5", "MAP": "AP"}
    with server.client() as client:
        fields = {"slug": "covid1", "name": "TREC-COVID round 1", "scores": "float32"}
        client.post("collections/", json=fields).raise_for_status()
        post_file(client, "collections/covid1/qrels/", folder / "qrels/qrels-rnd1.txt")
        runs = sorted((folder / "runs").iterdir())
        for file in runs:
            post_file(client, "collections/covid1/runs/", file)
        board = wait_for_board(client, "covid1", 40, measures=",".join(measures.values()))
        assert {row["run"]["tag"] for row in board["results"]} == set(official)
        for row in board["results"]:
            for column, measure in measures.items():
                ours = row["values"][measure]["mean"]
                theirs = float(official[row["run"]["tag"]][column])
                assert abs(ours - theirs) <= HALF_A_DIGIT, (
                    row["run"]["tag"],
                    measure,
                    ours,
                    theirs,
                )
