"""Phases that rank by a measure of value tables."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from evalhub.local import verify_snapshot
from runs.models import Phase, Snapshot
from tests.campaigns.shared_data import clock, module_clock, module_data, people
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    OPENS,
    PHASE,
    Clients,
    Clock,
    enter,
    make_campaign,
    register,
)
from tests.conftest import GOOD, POOR, evaluate_all, upload

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = pytest.mark.django_db
DARK = "/api/v1/collections/dark/"


def declare(client: Any, name: str, **fields: Any) -> None:
    body = {"name": name, "direction": "lower", "unit": "ms", **fields}
    assert client.post(f"{DARK}external-measures/", body, format="json").status_code == 201


def test_a_phase_ranks_by_values_of_organisers(people: Clients, clock: Clock) -> None:
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga)
    declare(olga, "ms", low=0, description="From query to answer.")
    declare(olga, "own", source="reported")
    reported = olga.patch(PHASE, {"measures": ["x:own"]}, format="json")
    assert (reported.status_code, "after the deadline" in reported.json()["detail"]) == (400, True)

    # Nor those of the collection, where it has no others.
    own = olga.get(DARK).json()["measures"]
    assert olga.patch(DARK, {"measures": ["x:own"]}, format="json").status_code == 200
    Phase.objects.update(measures=[])
    inherited = olga.patch(PHASE, {"name": "Task"}, format="json")
    assert (inherited.status_code, "after the deadline" in inherited.json()["detail"]) == (
        400,
        True,
    )
    assert olga.patch(DARK, {"measures": own}, format="json").status_code == 200
    assert olga.patch(PHASE, {"measures": ["x:ms", "AP"]}, format="json").status_code == 200
    in_use = olga.delete(f"{DARK}external-measures/ms/")
    assert (in_use.status_code, in_use.json()["code"]) == (409, "measure_in_use")
    register(ann, "apples")
    register(ben, "berries")
    clock.now = OPENS
    assert enter(ann, "a1", GOOD.replace("good", "a1")).status_code == 201
    assert enter(ben, "b1", POOR.replace("poor", "b1")).status_code == 201
    evaluate_all()

    table = "".join(
        f"{run} {topic} ms {ms}\n" for run, ms in (("a1", 30), ("b1", 20)) for topic in (1, 2, 3)
    )
    assert upload(olga, "collections/dark/value-tables/", table).status_code == 201
    # What organisers give is blind, and what a team reports it reads itself.
    assert ann.get(f"{DARK}external-measures/ms/values/").status_code == 403
    assert upload(ann, "collections/dark/value-tables/", "a1 1 own 5\n").status_code == 201
    assert "a1\t1\tx:own\t5.0" in ann.get(f"{DARK}external-measures/own/values/").content.decode()

    clock.now = CLOSES + timedelta(days=8)
    fields = {"phase": "task", "label": "official results"}
    answer = olga.post(f"{CAMPAIGN}snapshots/", fields, format="json")
    assert answer.status_code == 201, answer.content
    content = olga.get(f"/api/v1/snapshots/{answer.json()['sha256']}/").json()["manifest"]
    (phase,) = content["phases"]
    ranks = {
        entry["tag"]: (entry["rank"], entry["means"]["x:ms"]["mean"]) for entry in phase["entries"]
    }
    assert ranks == {"a1": (2, 30.0), "b1": (1, 20.0)}
    declared = phase["collection"]["external_measures"]["x:ms"]
    assert (declared["lower_is_better"], declared["unit"], declared["table"]) == (True, "ms", 1)

    archive = bytes(Snapshot.objects.get(code=answer.json()["code"]).archive)
    files = verify_snapshot.read_archive(archive)
    records = json.loads(files["every_eval_ever.json"])
    results = [result for record in records for result in record["evaluation_results"]]
    configs = [row["metric_config"] for row in results if "x:ms" in row["evaluation_name"]]
    assert [(row["lower_is_better"], row["min_score"]) for row in configs] == [(True, 0.0)] * 2
