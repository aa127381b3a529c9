"""Curves are computed by workers and stored; curves, charts and readings of them come from the
store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import zstandard
from rest_framework.test import APIClient

from metrics.engine.compiled.packing import pack
from metrics.models import (
    Evaluation,
    JudgedView,
    MetricVector,
    SessionEvaluation,
    StoredCurves,
    StoredSessionCurves,
)
from metrics.services.answer_store import forget_all
from metrics.services.sessions.curves import arrays_of
from metrics.services.upkeep.integrity import find_faults
from metrics.services.values.evaluate import unpack_curves
from runs.models import Run
from tests.conftest import POOR, SESSIONS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

QUERY = {"measures": "CG,DCG,nCG,nDCG,nDCG(norm='average')", "depth": "7"}
READINGS = {**QUERY, "readings": "true", "per_topic": "true"}


@pytest.fixture(scope="module")
def run(submit: Callable[..., Run]) -> Run:
    return submit(POOR)


def read(api: APIClient, run: Run, query: dict[str, str]) -> Any:
    forget_all()
    response = api.get(f"/api/v1/runs/{run.pk}/curve/", query)
    assert response.status_code == 200, response.content
    return response.json()["curves"]


def test_only_a_worker_computes_vectors_and_curves(api: APIClient, collection: str) -> None:
    assert upload(api, f"collections/{collection}/runs/", POOR).status_code == 202
    assert not MetricVector.objects.exists()
    assert not StoredCurves.objects.exists()

    evaluate_all()
    assert MetricVector.objects.count() == 3
    row = StoredCurves.objects.get()
    stored = unpack_curves(row)
    assert (row.measure, row.depth, stored.means.shape) == ("nDCG", 100, (4, 100))
    # Of three topics, it finds a document of level 1 for two: at ranks 3 and 2.
    assert stored.means[0, :4].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])
    assert stored.retrieved.rank.tolist() == [3, 2]


@pytest.mark.parametrize("query", [QUERY, READINGS])
def test_stored_curves_are_read_without_the_view_and_equal(
    api: APIClient,
    run: Run,
    query: dict[str, str],
) -> None:
    stored = read(api, run, query)
    StoredCurves.objects.all().delete()
    assert read(api, run, query) == stored

    evaluation = Evaluation.objects.get()
    Evaluation.objects.filter(pk=evaluation.pk).update(state="queued")
    evaluate_all()
    JudgedView.objects.all().delete()
    assert read(api, run, query) == stored


def test_charts_and_several_runs_read_the_store(api: APIClient, run: Run, collection: str) -> None:
    JudgedView.objects.all().delete()
    for address in (
        f"/api/v1/runs/{run.pk}/charts/curve.svg?measure=nDCG&depth=7",
        f"/api/v1/collections/{collection}/curves/?runs={run.pk}&measures=nDCG&depth=7",
    ):
        assert api.get(address).status_code == 200, address


def _with_another_byte(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("column", ["means", "content", "digest", "measure", "depth"])
def test_damaged_curves_are_computed_again(api: APIClient, run: Run, column: str) -> None:
    sound, row = read(api, run, READINGS), StoredCurves.objects.get()
    value = getattr(row, column)
    other = {
        "measure": "nDCH",
        "depth": row.depth + 1,
        "digest": row.digest ^ 1,
    }.get(column) or _with_another_byte(bytes(value))
    StoredCurves.objects.update(**{column: other})

    assert read(api, run, READINGS) == sound
    renewed = StoredCurves.objects.get()
    assert [renewed.measure, renewed.depth, renewed.digest] == [row.measure, row.depth, row.digest]
    assert bytes(renewed.means) == bytes(row.means)


def test_fsck_finds_and_repairs_curves(run: Run) -> None:
    assert not [f for f in find_faults() if "curves" in f.code]
    row = StoredCurves.objects.get()
    # Sound by its digest, and not what the judged view gives.
    means = np.frombuffer(row.means, "<f8") + 0.1
    row.means = means.tobytes()
    row.seal(Evaluation.objects.get().qrels_id).save()

    (finding,) = [f for f in find_faults() if "curves" in f.code]
    assert finding.code == "curves_altered"
    assert finding.repair
    finding.repair()
    assert not [f for f in find_faults() if "curves" in f.code]


@pytest.fixture(scope="module")
def session_set(api: APIClient, collection: str) -> str:
    answer = upload(api, f"collections/{collection}/sessions/", SESSIONS, tag="log")
    assert answer.status_code == 202, answer.content
    return str(answer.json()["id"])


@pytest.mark.parametrize("measure", ["sDCG", "nsDCG"])
@pytest.mark.parametrize("length", ["", "3"])
def test_workers_store_curves_of_session_sets(
    api: APIClient, session_set: str, measure: str, length: str
) -> None:
    assert not StoredSessionCurves.objects.exists()
    evaluate_all()
    row = StoredSessionCurves.objects.get()
    address = f"/api/v1/session-sets/{session_set}/curves/"
    query = {"measure": measure, "per_session": "true"} | ({"length": length} if length else {})

    stored = api.get(address, query).json()
    forget_all()
    StoredSessionCurves.objects.all().delete()
    assert api.get(address, query).json() == stored

    # Read from the row, and not computed again.
    (name,) = {"mean"} & {key.split()[1] for key in arrays_of(row)}
    altered = {key: value + 1 if name in key else value for key, value in arrays_of(row).items()}
    row.content = zstandard.compress(pack({}, altered.items()))
    row.seal(SessionEvaluation.objects.get().qrels_id).save()
    forget_all()
    assert api.get(address, query).json() != stored
    assert "session_means_altered" in [finding.code for finding in find_faults()]


def test_damaged_curves_of_sessions_are_computed_again(api: APIClient, session_set: str) -> None:
    evaluate_all()
    address = f"/api/v1/session-sets/{session_set}/curves/"
    sound = api.get(address).json()
    content = bytes(StoredSessionCurves.objects.get().content)
    StoredSessionCurves.objects.update(content=content[:-1] + bytes([content[-1] ^ 1]))
    forget_all()
    answer = api.get(address)
    assert answer.json()["code"] == "stored_value_corrupt"
    evaluate_all()
    forget_all()
    assert api.get(address).json() == sound
