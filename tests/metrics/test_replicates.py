"""Runs with replicates: their values, their row on boards, and what happens to their replicates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient
from scipy import stats

from metrics.engine.arrays import Floats
from metrics.engine.significance.replicates import MethodTest, min_f
from metrics.exports.comparisons.methods import method_words
from metrics.models import Evaluation, MetricVector
from metrics.services.upkeep.integrity import find_faults
from runs.models import AuditEvent, Run, User
from runs.services.audit.revisions import raise_revision
from tests.conftest import GOOD, POOR, QRELS, client_of, evaluate_all, upload

RUNS = "collections/small/runs/"
BOARD = "/api/v1/collections/small/leaderboard/"
# Between the other two.
FAIR = POOR.replace("1 Q0 b 1 3.0", "1 Q0 a 1 3.0")
# Its last relevant document is at rank 12.
DEEP = "".join(
    f"1 Q0 {'c' if rank == 12 else f'x{rank}'} {rank} {20 - rank} deep\n" for rank in range(1, 13)
)
MEASURES = ["AP", "nDCG@10", "P@5"]


@pytest.fixture
def board(api: APIClient) -> APIClient:
    """A collection with judgements and a single run."""
    fields = {"slug": "small", "name": "Small", "measures": MEASURES}
    api.post("/api/v1/collections/", fields, format="json")
    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    assert upload(api, RUNS, FAIR, tag="single").status_code == 202
    return api


def test_methods_in_words() -> None:
    nan = float("nan")
    test = MethodTest(0.25, 0.125, 0.375, 12.5, 7.25, 0.00912, 20.0, 33.3)
    assert method_words(test) == (
        "min F'(1, 7.2) = 12.5, p = 0.0091; difference +0.2500 (+0.1250 to +0.3750)"
    )
    without = MethodTest(0.0, 0.0, 0.0, nan, nan, 1.0, nan, nan)
    assert method_words(without) == "no difference and no spread, p = 1.0000"
    assert "no test" in method_words(replace(without, p_value=nan))


def send(client: APIClient, content: str, name: str = "splade", **fields: Any) -> Any:
    answer = upload(client, RUNS, content, replicate=name, **fields)
    assert answer.status_code in (200, 202), answer.data
    return answer.data


def evaluate() -> None:
    """Evaluate all: the end of a replicate's evaluation queues its run."""
    while evaluate_all():
        pass


def rows(client: APIClient, **query: Any) -> dict[str, Any]:
    answer = client.get(BOARD, query)
    assert answer.status_code == 200, answer.data
    return {row["run"]["tag"]: row for row in answer.data["results"]}


def values_of(tag: str, measure: str = "AP") -> Floats:
    return MetricVector.objects.get(evaluation__run__tag=tag, measure=measure).values


def topic_values(client: APIClient, run: Any, measure: str) -> list[float]:
    answer = client.get(f"/api/v1/runs/{run}/values/", {"measures": measure})
    assert answer.status_code == 200, answer.data
    return [row["values"][measure] for row in answer.data["topics"]]


def test_a_run_has_the_means_of_its_replicates(board: APIClient) -> None:
    first, second = send(board, GOOD), send(board, POOR)
    assert [first["tag"], second["tag"]] == ["splade-r1", "splade-r2"]
    evaluate()

    run = Run.objects.get(tag="splade")
    assert str(run.pk) == str(first["replicate_of"]) == str(second["replicate_of"])
    # Stored with the evaluation, and computed on request.
    for name in (*MEASURES, "RR", "R@2", "Bpref"):
        mean, *single = (
            np.array(topic_values(board, pk, name)) for pk in (run.pk, first["id"], second["id"])
        )
        assert mean == pytest.approx((single[0] + single[1]) / 2, abs=1e-15)

    shown = rows(board)
    assert set(shown) == {"single", "splade"}
    means = [values_of(f"splade-r{number}").mean() for number in (1, 2)]
    row = shown["splade"]
    assert row["rank"] == 1
    assert row["values"]["AP"]["mean"] == pytest.approx(np.mean(means))
    assert row["replicates"] == {
        "runs": 2,
        "deviation": pytest.approx(np.std(means, ddof=1)),
        "lowest": min(means),
        "highest": max(means),
    }
    assert "replicates" not in shown["single"]
    # Every replicate answers these.
    assert row["coverage"] == {"answered": 2, "judged": 3}
    assert [*find_faults()] == []


@pytest.mark.words
def test_pages(board: APIClient, client: Client, alice: User) -> None:
    first = send(board, GOOD)
    send(board, POOR)
    evaluate()
    client.force_login(alice)
    page = client.get("/collections/small/").content.decode()
    assert "2 replicates, sd 0.5500" in page
    assert "AP of the replicates: 0.2222 to 1.0000" in page
    assert "splade-r1" not in page
    assert "2 runs" in page

    run = client.get(f"/runs/{first['replicate_of']}/").content.decode()
    assert "splade-r1" in run
    assert "splade-r2" in run
    assert "Their AP is from 0.2222 to 1.0000, with a standard deviation of 0.5500." in run
    assert "Documents ranked" not in run
    assert "Replicate of" in client.get(f"/runs/{first['id']}/").content.decode()
    for part in ("topics", "parameters", "files"):
        assert client.get(f"/runs/{first['replicate_of']}/{part}/").status_code == 200, part

    # What needs a ranking says that there is none.
    for address in ("ranking/?topic=1", "file/"):
        answer = board.get(f"/api/v1/runs/{first['replicate_of']}/{address}")
        assert (answer.status_code, answer.data["code"]) == (404, "has_replicates"), address

    single = Run.objects.get(tag="single")
    query = {"runs": f"{single.pk},{first['replicate_of']}"}
    two = client.get("/collections/small/comparison/", query)
    assert two.status_code == 200
    assert "Rankings of one topic" not in two.content.decode()
    assert "fewer than two replicates" in two.content.decode()


def curves_of(client: APIClient, run: Any, part: str, **query: Any) -> Any:
    answer = client.get(f"/api/v1/runs/{run}/{part}/", query)
    assert answer.status_code == 200, answer.data
    return answer.data["curves"]


def drawn(curve: Any) -> list[Floats]:
    """Return the mean of a curve, its ends, and the curve of every topic."""
    parts = [curve[name] for name in ("mean", "low", "high")]
    return [*parts, np.array([topic["values"] for topic in curve["topics"]])]


def check_mean_curves(
    board: APIClient, row: Any, members: list[str], selected: dict[str, str]
) -> None:
    # Some are stored, the others are computed.
    measures = "nDCG,CG,P,R,F,nCG(norm='average'),IdealDCG"
    query = {"measures": measures, "depth": 12, "per_topic": "true", "readings": "true", **selected}
    single = [curves_of(board, run, "curve", **query) for run in members]
    for number, mean in enumerate(curves_of(board, row, "curve", **query)):
        theirs = [curves[number] for curves in single]
        topics = np.mean([drawn(curve)[-1] for curve in theirs], axis=0)
        mean_curve, low, high, values = drawn(mean)
        assert values == pytest.approx(topics, abs=1e-12)
        assert mean_curve == pytest.approx(np.mean([curve["mean"] for curve in theirs], axis=0))
        assert mean["ideal"] == pytest.approx(theirs[0]["ideal"])
        if "average" not in mean["measure"]:
            assert mean_curve == pytest.approx(topics.mean(axis=0))
            error = topics.std(axis=0, ddof=1) / np.sqrt(len(topics))
            margin = stats.t.ppf(0.975, len(topics) - 1) * error
            assert low == pytest.approx(np.array(mean_curve) - margin, abs=1e-9)
            assert high == pytest.approx(np.array(mean_curve) + margin, abs=1e-9)

        readings = mean["readings"]
        assert readings["missed"] == pytest.approx(np.subtract(mean["ideal"], mean_curve))
        if readings["needed"] is not None:
            # The first rank at which the mean has what the ideal has: none is beyond rank 12.
            reached = [
                next((r for r, own in enumerate(mean_curve, 1) if own >= best - 1e-9), None)
                for best in mean["ideal"]
            ]
            assert readings["needed"] == reached

    query = {"rel": "all", "gains": "linear", "per_topic": "true", **selected}
    single = [curves_of(board, run, "precision-recall", **query) for run in members]
    for number, mean in enumerate(curves_of(board, row, "precision-recall", **query)):
        topics = np.mean([drawn(curves[number])[-1] for curves in single], axis=0)
        assert drawn(mean)[-1] == pytest.approx(topics)
        assert mean["mean"] == pytest.approx(topics.mean(axis=0))


def test_curves_are_means_over_replicates(board: APIClient, client: Client, alice: User) -> None:
    first, second, third = send(board, GOOD), send(board, POOR), send(board, DEEP)
    evaluate()
    row = first["replicate_of"]
    members = [answer["id"] for answer in (first, second, third)]

    for selected in ({}, {"topics": "-topic:3"}):
        check_mean_curves(board, row, members, selected)

    # Together with others, as of all runs of the collection.
    for part in ("curves", "precision-recall"):
        answer = board.get(
            f"/api/v1/collections/small/{part}/", {"depth": 12} if part == "curves" else {}
        )
        assert [run["tag"] for run in answer.data["runs"]] == ["single", "splade"]
    single_run = str(Run.objects.get(tag="single").pk)
    filtered = board.get("/api/v1/collections/small/curves/", {"filter": "tag:splade"})
    assert [run["tag"] for run in filtered.data["runs"]] == ["splade"]

    what_if = board.get("/api/v1/collections/small/what-if/")
    assert {run["tag"] for run in what_if.data["runs"]} == {"single", "splade"}

    client.force_login(alice)
    page = client.get(f"/runs/{row}/curves/").content.decode()
    assert "By rank cutoff" in page
    assert "has_replicates" not in page
    for chart in ("curve", "precision-recall"):
        assert board.get(f"/api/v1/runs/{row}/charts/{chart}.svg").status_code == 200
    two = client.get(
        "/collections/small/comparison/", {"runs": f"{single_run},{row}", "curve": "nDCG"}
    )
    assert "/collections/small/charts/curves" in two.content.decode()
    assert "/collections/small/charts/precision-recall" in two.content.decode()


def test_a_late_replicate_changes_the_row(board: APIClient) -> None:
    send(board, GOOD)
    evaluate()
    before = rows(board)["splade"]["values"]["AP"]["mean"]
    key = Evaluation.objects.get(run__tag="splade").pk

    send(board, POOR)
    waiting = rows(board)["splade"]
    assert (waiting["rank"], waiting["state"]) == (None, "queued")
    evaluate()
    row = rows(board)["splade"]
    assert row["values"]["AP"]["mean"] < before
    assert row["replicates"]["runs"] == 2
    # Comparisons and caches know evaluations by their keys.
    assert Evaluation.objects.get(run__tag="splade").pk != key


def test_a_mean_waits_for_all_replicates(board: APIClient) -> None:
    send(board, GOOD)
    send(board, POOR)
    one = Evaluation.objects.get(run__tag="splade-r2")
    Evaluation.objects.filter(pk=one.pk).update(state="failed", error_code="x")
    evaluate()
    row = rows(board)["splade"]
    assert (row["state"], row["code"]) == ("failed", "replicate_failed")
    assert row["reason"] == "1 of 2 replicates are evaluated; splade-r2 failed"

    Evaluation.objects.filter(pk=one.pk).update(state="queued", error_code="")
    evaluate()
    assert rows(board)["splade"]["rank"] == 1

    # While one is evaluated anew the row stays, without a spread.
    Evaluation.objects.filter(pk=one.pk).update(state="queued")
    raise_revision(one.qrels.collection_id)
    row = rows(board)["splade"]
    assert (row["rank"], row["replicates"]["runs"], row["replicates"]["deviation"]) == (1, 2, None)


def test_replicates_are_withdrawn_and_restored(board: APIClient) -> None:
    first, second = send(board, GOOD), send(board, POOR)
    evaluate()
    assert board.delete(f"/api/v1/runs/{second['id']}/").status_code == 204
    evaluate()
    assert rows(board)["splade"]["values"]["AP"]["mean"] == pytest.approx(1.0)

    assert board.post(f"/api/v1/runs/{second['id']}/restore/").status_code == 200
    evaluate()
    assert rows(board)["splade"]["replicates"]["runs"] == 2

    # With the last one the run goes, and with the run all of them.
    run = first["replicate_of"]
    assert board.delete(f"/api/v1/runs/{run}/").status_code == 204
    assert set(rows(board)) == {"single"}
    assert Run.objects.filter(deleted_at=None).count() == 1
    assert board.post(f"/api/v1/runs/{run}/restore/").status_code == 200
    evaluate()
    assert rows(board)["splade"]["replicates"]["runs"] == 2
    for replicate in (first, second):
        assert board.delete(f"/api/v1/runs/{replicate['id']}/").status_code == 204
    assert set(rows(board)) == {"single"}
    assert board.post(f"/api/v1/runs/{first['id']}/restore/").status_code == 200
    evaluate()
    assert rows(board)["splade"]["replicates"]["runs"] == 1


def compare(client: APIClient, slug: str, *runs: Any, **query: Any) -> Any:
    query = {"runs": ",".join(map(str, runs)), **query}
    answer = client.get(f"/api/v1/collections/{slug}/comparison/", query)
    assert answer.status_code == 200, answer.data
    return answer.data["measures"][0]


@pytest.mark.real_data
def test_seeds_of_two_models(api: APIClient, real_data: Path) -> None:
    """ranx#6 and ranx#60: three seeds each on 30 topics, by CG@1."""
    folder = real_data / "field-cases" / "03-seeds"
    api.post("/api/v1/collections/", {"slug": "seeds", "name": "Seeds", "measures": ["CG@1"]})
    qrels = (folder / "qrels.txt").read_text()
    assert upload(api, "collections/seeds/qrels/", qrels).status_code == 201
    for model in "AB":
        for seed in range(3):
            content = (folder / f"{model}-seed{seed}.run").read_text()
            answer = upload(api, "collections/seeds/runs/", content, replicate=model)
            assert answer.status_code == 202, answer.data
    evaluate()

    runs = [Run.objects.get(tag=model).pk for model in "AB"]
    measure = compare(api, "seeds", *runs)
    (pair,) = measure["pairs"]
    test = pair["tests"]["paired_t"]
    values = {
        model: np.stack([values_of(f"{model}-r{seed}", "CG@1") for seed in (1, 2, 3)])
        for model in "AB"
    }
    expected = stats.ttest_rel(values["B"].mean(axis=0), values["A"].mean(axis=0))
    assert abs(pair["difference"]) == pytest.approx(27.0)
    assert abs(test["statistic"]) == pytest.approx(6.2887, abs=5e-5)
    assert test["p_value"] == pytest.approx(7.24e-7, rel=1e-3)
    assert test["p_value"] == pytest.approx(expected.pvalue)

    method = measure["methods"]
    assert (method["replicates_a"], method["replicates_b"]) == (3, 3)
    first, second = (values["B"], values["A"]) if pair["a"] == str(runs[1]) else values.values()
    expected = min_f(first, second, 0.95)
    assert method["test"]["p_value"] == pytest.approx(expected.p_value)
    assert method["test"]["p_value"] > test["p_value"]
    assert "methods" not in compare(
        api, "seeds", *Run.objects.exclude(pk__in=runs).values_list("pk", flat=True)[:2]
    )

    table = api.get("/api/v1/collections/seeds/comparison/export/tex/").getvalue().decode()
    assert "other topics and other replicates (3 and 3): min F'(1, " in table
    csv = api.get("/api/v1/collections/seeds/leaderboard/export/csv/").getvalue().decode()
    assert "CG@1 replicates sd" in csv.splitlines()[0]


def test_names_of_replicates(board: APIClient) -> None:
    assert send(board, GOOD)["tag"] == "splade-r1"
    # The same file again is the same replicate.
    again = upload(board, RUNS, GOOD, replicate="splade")
    assert (again.status_code, again.data["tag"]) == (200, "splade-r1")
    assert send(board, POOR, tag="seed-7")["tag"] == "seed-7"

    refused = [
        ({"replicate": "single"}, 409, "tag_taken"),
        ({"replicate": "splade", "tag": "splade"}, 409, "tag_taken"),
        # Single runs stay what they are.
        ({"replicate": "splade", "tag": "single"}, 409, "tag_taken"),
        ({"replicate": "other", "tag": "single"}, 409, "tag_taken"),
        ({"replicate": "a b"}, 400, "invalid"),
        ({"replicate": "splade", "system": "splade"}, 400, "invalid"),
    ]
    for fields, status, code in refused:
        answer = upload(board, RUNS, FAIR, **fields)
        assert (answer.status_code, answer.data["errors"][0]["code"]) == (status, code), fields

    answer = upload(board, RUNS, FAIR, tag="splade")
    assert (answer.status_code, answer.data["code"]) == (409, "tag_taken")
    assert Run.objects.count() == 4


def test_the_run_has_what_the_metadata_have_alike(board: APIClient) -> None:
    send(board, GOOD, metadata='{"model": "splade", "seed": 1}')
    send(board, POOR, metadata='{"model": "splade", "seed": 2}')
    row = Run.objects.get(tag="splade")
    assert row.metadata == {"model": "splade"}
    evaluate()
    assert set(rows(board, filter="param:model=splade")) == {"splade"}

    # It is changed as that of any run, and what was set there stays.
    address = f"/api/v1/runs/{row.pk}/"
    changes = {
        "description": "Three seeds",
        "metadata": {"tuned": True, "seed": [1, 2, 3]},
        "costs": {"latency_ms": 12.5},
    }
    answer = board.patch(address, changes, format="json")
    assert (answer.status_code, answer.data["description"]) == (200, "Three seeds")
    table = "team,tag,index\nalice,splade,flat\n"
    assert upload(board, "collections/small/parameters/csv/", table).status_code == 200
    assert board.post(f"{address}notes/", {"text": "x"}, format="json").status_code == 201
    link = [{"kind": "code", "url": "https://example.org/splade"}]
    assert board.put(f"{address}links/", {"links": link}, format="json").status_code == 200
    assert set(rows(board, filter="param:tuned=true cost:latency_ms>12")) == {"splade"}
    frontier = board.get("/api/v1/collections/small/frontier/", {"x": "latency_ms"})
    assert [row["run"]["tag"] for row in frontier.data["results"]] == ["splade"]

    third = send(board, FAIR, metadata='{"model": "other", "seed": 3}')
    row.refresh_from_db()
    assert row.metadata == {"tuned": True, "seed": [1, 2, 3], "index": "flat"}
    assert (row.description, row.costs) == ("Three seeds", {"latency_ms": 12.5})
    assert Run.objects.get(pk=third["id"]).metadata == {"model": "other", "seed": 3}
    whole = board.put(f"{address}metadata/", {"metadata": {"model": "v2"}}, format="json")
    assert (whole.status_code, Run.objects.get(pk=row.pk).metadata) == (200, {"model": "v2"})


def test_changed_measures_and_judgements(board: APIClient) -> None:
    send(board, GOOD)
    send(board, POOR)
    evaluate()
    board.patch("/api/v1/collections/small/", {"measures": [*MEASURES, "R@2"]}, format="json")
    evaluate()
    both = (values_of("splade-r1", "R@2") + values_of("splade-r2", "R@2")) / 2
    assert values_of("splade", "R@2") == pytest.approx(both)

    assert upload(board, "collections/small/qrels/", QRELS + "3 0 y 1\n").status_code == 201
    evaluate()
    assert rows(board)["splade"]["replicates"]["runs"] == 2


def test_values_of_tables(board: APIClient) -> None:
    send(board, GOOD)
    send(board, POOR)
    evaluate()
    measure = {"name": "score", "direction": "higher"}
    board.post("/api/v1/collections/small/external-measures/", measure, format="json")
    table = "".join(
        f"splade-r{number}\t{topic}\tx:score\t{value}\n"
        for number, values in ((1, [1, 2, 3]), (2, [2, 2, 8]))
        for topic, value in zip((1, 2, 3), values, strict=True)
    )
    answer = upload(board, "collections/small/value-tables/", table)
    assert answer.status_code == 201, answer.data
    assert values_of("splade", "x:score").tolist() == [1.5, 2.0, 5.5]
    row = rows(board, measures="x:score")["splade"]
    assert (row["values"]["x:score"]["mean"], row["replicates"]["lowest"]) == (3.0, 2.0)

    # A third one has no values, so that their mean has none.
    send(board, FAIR)
    evaluate()
    assert rows(board, measures="x:score")["splade"]["values"]["x:score"]["mean"] is None


def adopt(client: APIClient, run: Any, name: str | None) -> Any:
    return client.patch(f"/api/v1/runs/{run}/", {"replicate": name}, format="json")


def test_a_single_run_becomes_a_replicate_and_single_again(board: APIClient) -> None:
    first = send(board, GOOD)
    evaluate()
    single = Run.objects.get(tag="single")
    etag = board.get(f"/api/v1/runs/{single.pk}/")["ETag"]

    answer = adopt(board, single.pk, "splade")
    assert (answer.status_code, answer.data["tag"]) == (200, "single")
    assert answer.data["replicate_of"] == first["replicate_of"]
    assert answer["ETag"] != etag
    assert rows(board)["splade"]["rank"] is None
    evaluate()
    row = rows(board)
    means = [values_of(tag).mean() for tag in ("splade-r1", "single")]
    assert set(row) == {"splade"}
    assert row["splade"]["values"]["AP"]["mean"] == pytest.approx(np.mean(means))
    assert row["splade"]["replicates"]["deviation"] == pytest.approx(np.std(means, ddof=1))

    # Submitted again it is the replicate that has the file; saying the same again changes nothing.
    assert send(board, FAIR)["tag"] == "single"
    events = AuditEvent.objects.filter(action="run.changed")
    assert adopt(board, single.pk, "splade").status_code == 200
    assert [(event.before, event.after) for event in events] == [
        ({"tag": "single", "replicate": None}, {"tag": "single", "replicate": "splade"})
    ]

    assert adopt(board, single.pk, None).data["replicate_of"] is None
    evaluate()
    row = rows(board)
    assert set(row) == {"splade", "single"}
    assert row["splade"]["values"]["AP"]["mean"] == pytest.approx(1.0)
    assert [*find_faults()] == []


def test_a_run_makes_the_row_of_its_own_name_and_the_last_one_takes_it_along(
    board: APIClient,
) -> None:
    single = Run.objects.get(tag="single")
    study = {"slug": "study", "name": "Study", "runs": [str(single.pk)]}
    experiment = board.post("/api/v1/experiments/", study, format="json")
    assert experiment.status_code == 201, experiment.data

    answer = adopt(board, single.pk, "single")
    assert (answer.status_code, answer.data["tag"]) == (200, "single-r1")
    row = Run.objects.get(tag="single")
    assert (answer.data["replicate_of"], row.has_replicates) == (row.pk, True)
    evaluate()
    assert rows(board, filter="experiment:study")["single"]["replicates"]["runs"] == 1

    # From one row to another, which leaves the first one empty.
    assert adopt(board, single.pk, "other").status_code == 200
    evaluate()
    assert set(rows(board, filter="experiment:study")) == {"other"}
    answer = board.post(f"/api/v1/runs/{row.pk}/restore/")
    assert (answer.status_code, "no replicates any more" in answer.data["detail"]) == (409, True)

    assert adopt(board, single.pk, None).data["tag"] == "single-r1"
    evaluate()
    assert set(rows(board, filter="experiment:study")) == {"single-r1"}
    assert adopt(board, single.pk, "other").status_code == 200
    evaluate()
    assert set(rows(board)) == {"other"}


def test_runs_that_stay_single(board: APIClient, alice: User, bob: User, client: Client) -> None:
    single, row = Run.objects.get(tag="single"), send(board, GOOD)["replicate_of"]
    label = "/api/v1/collections/small/labels/main/"

    def refused(run: Any, name: str | None, status: int, code: str, words: str) -> None:
        answer = adopt(board, run, name)
        assert (answer.status_code, answer.data["errors"][0]["code"]) == (status, code)
        assert words in str(answer.data)

    refused(single.pk, "a b", 400, "invalid", "the name of replicates")
    refused(row, "other", 409, "conflict", "has replicates of its own")
    send(board, POOR, "other", tag="taken")
    refused(single.pk, "taken", 409, "tag_taken", "is the tag of a single run")

    assert board.put(label, {"run": str(single.pk)}, format="json").status_code in (200, 201)
    refused(single.pk, "splade", 409, "run_is_labelled", "leaderboards would no longer show it")
    assert board.put(label, {"run": str(row)}, format="json").status_code == 200
    last = Run.objects.get(tag="splade-r1")
    refused(last.pk, None, 409, "run_is_labelled", "it would go with its last replicate")
    assert Run.objects.get(pk=last.pk).replicate_of_id == row

    add = {"add": [str(single.pk)]}
    board.post("/api/v1/systems/", {"slug": "bm25"}, format="json")
    system = "/api/v1/systems/alice/bm25/"
    assert board.patch(system, add, format="json").status_code == 200
    refused(single.pk, "splade", 409, "conflict", "take it out of the system first")
    answer = board.patch(system, {"add": [str(last.pk)]}, format="json")
    assert (answer.status_code, "has no version" in answer.data["detail"]) == (409, True)
    assert board.patch(system, {"remove": add["add"]}, format="json").status_code == 200

    assert adopt(client_of(bob), single.pk, "splade").status_code == 403

    # The same on the page.
    client.force_login(alice)
    page = f"/runs/{single.pk}/change/"
    answer = client.post(page, {"action": "replicate", "replicate": "taken"})
    assert (answer.status_code, "single run of team" in answer.content.decode()) == (409, True)
    for name, words in (("splade", "is a replicate of splade now"), ("", "is a single run now")):
        assert client.post(page, {"action": "replicate", "replicate": name}).status_code == 303
        assert words in client.get(page).content.decode()
