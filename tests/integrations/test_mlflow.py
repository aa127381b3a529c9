"""MLflow: the means of a run as metrics, under names that MLflow takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import evalhub_client as evh
import evalhub_client.mlflow
import mlflow
import pytest

QRELS = {"1": {"a": 1, "b": 0}, "2": {"c": 2}, "3": {"q": 1}}
BM25 = {"1": {"a": 3.0, "b": 2.0}, "2": {"x": 3.0, "c": 2.0}}
MEASURES = ["nDCG@10", "AP(rel=2)", "nDCG(gains='0-1-10',dis='jk',b=2)@5", "IPrec@0.1"]


@pytest.fixture
def run(collection_of: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    return collection_of(QRELS, measures=["AP", "nDCG@10"]).submit(BM25, tag="bm25").wait(60)


def test_means_are_metrics_and_what_identifies_them_are_tags(run: Any) -> None:
    with mlflow.start_run() as active:
        logged = evalhub_client.mlflow.log(run, MEASURES, prefix="test/")
    stored = mlflow.get_run(active.info.run_id).data
    assert stored.metrics == logged
    assert stored.metrics["test/nDCG_at_10"] == pytest.approx(
        run.means("nDCG@10")["nDCG@10"], abs=1e-12
    )
    assert set(stored.metrics) == {
        "test/nDCG_at_10", "test/AP_rel_2", "test/nDCG_gains_0-1-10_dis_jk_at_5", "test/IPrec_at_0.1",
        "test/Judged_at_10", "test/coverage",
    }  # fmt: skip
    assert stored.metrics["test/coverage"] == pytest.approx(2 / 3)
    assert stored.tags["evalhub.measure.test/AP_rel_2"] == "AP(rel=2)"
    assert stored.tags["evalhub.url"] == run.page
    tags = {
        name: stored.tags[f"evalhub.{name}"]
        for name in ("run", "tag", "collection", "qrels", "engine", "sha256")
    }
    assert tags == {
        "run": run.id, "tag": "bm25", "collection": run.collection, "qrels": "1",
        "engine": run.values().engine_version, "sha256": run.sha256,
    }  # fmt: skip


def test_the_measures_of_the_collection_are_logged_unless_others_are_named(run: Any) -> None:
    with mlflow.start_run():
        logged = evalhub_client.mlflow.log(run, step=3)
    assert set(logged) == {"AP", "nDCG_at_10", "Judged_at_10", "coverage"}


def test_a_measure_without_a_mean_is_no_metric(run: Any) -> None:
    with mlflow.start_run() as active:
        logged = evalhub_client.mlflow.log(run, ["AP", "ASL"])
    assert "ASL" not in logged or logged["ASL"] is not None
    if "ASL" not in logged:
        assert "ASL" in mlflow.get_run(active.info.run_id).data.tags["evalhub.undefined"]


def test_names_that_become_one_are_refused_and_nothing_is_logged(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = MetricsOf({"P@5": 0.1, "P_at_5": 0.2})
    monkeypatch.setattr(evalhub_client.mlflow, "read_metrics", lambda run, measures: metrics)
    with (
        mlflow.start_run() as active,
        pytest.raises(evh.BadSource, match="would both be P_at_5 in MLflow"),
    ):
        evalhub_client.mlflow.log(run)
    assert mlflow.get_run(active.info.run_id).data.metrics == {}


class MetricsOf:
    def __init__(self, values: dict[str, float]) -> None:
        self.values, self.tags, self.undefined = values, {}, []


@pytest.mark.parametrize("prefix", ["/", "a//", "../", "x" * 250])
def test_a_prefix_that_mlflow_refuses_is_refused(prefix: str) -> None:
    with pytest.raises(evh.BadSource, match="use another prefix"):
        evalhub_client.mlflow.metric_name("AP", prefix)


def test_every_measure_has_a_name_that_mlflow_takes(hub: evh.Hub) -> None:
    """All measures of the server, with each of their parameters."""
    names = []
    for measure in hub.request("GET", "measures/").json():
        cutoff = "@10" if measure["cutoff"] == "required" else ""
        names += [
            f"{measure['name']}({parameter['name']}={parameter['default']}){cutoff}"
            for parameter in measure["parameters"]
        ]
        names.append(f"{measure['name']}{cutoff}")
    assert len(names) > 100
    metrics = {evalhub_client.mlflow.metric_name(name): 0.5 for name in names}
    for start in range(0, len(metrics), 500):
        with mlflow.start_run():
            mlflow.log_metrics(dict(list(metrics.items())[start : start + 500]))


def test_the_page_shows_what_its_example_prints(check_page: Any, run: Any, hub: evh.Hub) -> None:
    check_page("mlflow", hub.collection(run.collection))
