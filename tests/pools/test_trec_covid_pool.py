"""The pool of round 1 of TREC-COVID, made of the 14 runs at hand that contributed judgements."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from evalhub.pools.models import Pool
from evalhub.pools.services.pool_file import read_topics
from runs.models import Run
from tests.conftest import upload
from tests.pools import naive

pytestmark = [pytest.mark.real_data, pytest.mark.django_db, pytest.mark.sqlite]
POOLS = "/api/v1/collections/covid/pools/"


def test_the_pool_of_round_1_has_depth_7(real_data: Path, api: APIClient) -> None:
    """Every document of depth 7 is judged, and at depth 8 each run has one that is not.

    What BBGhelani alone brought are 109 documents, 83 of them relevant.
    """
    folder = real_data / "trec-covid-round1"
    with (folder / "published/leaderboard.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["contributed judgments"] == "yes"]
    tags = sorted(row["run"] for row in rows)
    assert len(tags) == 14

    fields = {"slug": "covid", "name": "Round 1", "scores": "float32"}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    qrels = (folder / "qrels/qrels-rnd1.txt").read_text()
    assert upload(api, "collections/covid/qrels/", qrels).status_code == 201
    ranked = {}
    for tag in tags:
        text = gzip.decompress((folder / f"runs/{tag}.gz").read_bytes()).decode()
        ranked[tag] = naive.rank(text, single=True)
        answer = upload(api, "collections/covid/runs/", text, tag=tag)
        assert answer.status_code == 202, answer.content

    recipe = {"method": "depth", "k": 7, "only_new": False}
    made = api.post(POOLS, recipe, format="json")
    assert made.status_code == 201, made.content
    pool = Pool.objects.get(pk=made.json()["id"])
    pooled = {(topic, row.doc_id) for topic, rows in read_topics(pool) for row in rows}
    assert pooled == naive.depth(list(ranked.values()), 7)

    judged = {(line.split()[0], line.split()[2]) for line in qrels.splitlines()}
    assert pooled <= judged
    for tag, run in ranked.items():
        assert not naive.depth([run], 8) <= judged, tag

    statistics = api.get(f"{made.json()['url']}statistics/").json()
    own = {row["tag"]: row for row in statistics["runs"]}["BBGhelani2"]
    assert (own["unique"], own["unique_relevant"]) == (109, 83)
    assert statistics["judged"] == statistics["documents"] == len(pooled)

    # Judged documents are left out of a pool of new ones.
    fresh = api.post(POOLS, {"method": "depth", "k": 8, "dry_run": True}, format="json").json()
    deeper = naive.depth(list(ranked.values()), 8) - judged
    assert fresh["documents"] == len(deeper) > 0
    assert Run.objects.count() == 14
