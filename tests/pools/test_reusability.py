"""How far the judgements reach: runs without what their own team brought to the pool."""

from __future__ import annotations

import csv
import gzip
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from metrics.engine.evaluation import evaluate
from runs.models import Run
from tests.conftest import evaluate_all, upload

ADDRESS = "/api/v1/collections/covid/reusability/"


def ask(client: APIClient, address: str = ADDRESS, **query: Any) -> dict[str, Any]:
    answer = client.get(address, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.real_data
@pytest.mark.django_db
@pytest.mark.sqlite
def test_the_teams_of_trec_covid_lose_what_they_alone_brought(
    real_data: Path, api: APIClient
) -> None:
    """The figures of round 1, as if these 40 runs were all of it.

    An independent computation on the files gives them: nDCG@10 and AP of a team without what its
    pooled runs have at ranks 1 to 7 and no other pooled run has.
    """
    folder = real_data / "trec-covid-round1"
    with (folder / "published/leaderboard.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (folder / f"runs/{row['run']}.gz").exists()]
    assert len(rows) == 40

    fields = {
        "slug": "covid",
        "name": "Round 1",
        "scores": "float32",
        "measures": ["nDCG@10", "AP"],
    }
    assert api.post("/api/v1/collections/", fields).status_code == 201
    qrels = (folder / "qrels/qrels-rnd1.txt").read_text()
    assert upload(api, "collections/covid/qrels/", qrels).status_code == 201
    for row in rows:
        text = gzip.decompress((folder / f"runs/{row['run']}.gz").read_bytes()).decode()
        answer = upload(api, "collections/covid/runs/", text, tag=row["run"])
        assert answer.status_code == 202, answer.content
        stored = Run.objects.filter(pk=answer.json()["id"])
        stored.update(metadata={"participant": row["team"]})
    evaluate_all()

    ids = {run.tag: str(run.pk) for run in Run.objects.all()}
    contributing = [row["run"] for row in rows if row["contributed judgments"] == "yes"]
    named = ",".join(ids[tag] for tag in contributing)
    answer = ask(api, by="participant", pooled=named, depth=7)
    assert answer["pooled_by"] == "named"

    own = {group["name"]: group for group in answer["groups"]}
    assert (own["BBGhelani"]["judgements"], own["BBGhelani"]["relevant"]) == (109, 83)
    assert len(own) == 14

    ndcg, ap = answer["measures"]
    by_tag = {row["run"]["tag"]: row for row in ndcg["runs"]}
    assert all(by_tag[tag]["judged_depth"] == 7 for tag in contributing)
    best = by_tag["BBGhelani1"]
    assert (round(best["mean"], 4), round(best["left_out"], 4)) == (0.6689, 0.4126)
    assert (best["rank"], best["left_out_rank"]) == (1, 14)
    other = by_tag["CSIROmed_PE"]
    assert (round(other["mean"], 4), round(other["left_out"], 4)) == (0.3789, 0.2312)
    assert (other["rank"], other["left_out_rank"]) == (17, 25)
    assert ap["runs"][0]["run"] == ndcg["runs"][0]["run"]
    of_best = {row["run"]["tag"]: row for row in ap["runs"]}["BBGhelani1"]
    assert (round(of_best["mean"], 4), round(of_best["left_out"], 4)) == (0.3008, 0.2281)

    assert sum(row["left_out"] is not None for row in ndcg["runs"]) == 38
    assert (round(ndcg["mean_change"], 3), round(ap["mean_change"], 3)) == (-0.264, -0.149)

    # Without names, the runs that are judged to depth 7 are taken for the pooled ones.
    inferred = ask(api, by="participant")
    assert (inferred["pooled_by"], inferred["depth"]) == ("inferred", 7)
    pooled = {row["run"]["tag"] for row in inferred["measures"][0]["runs"] if row["pooled"]}
    assert pooled > set(contributing)


QRELS = """\
1 0 a 1
1 0 b 1
1 0 c 0
1 0 d 2
2 0 a 1
2 0 e 1
2 0 f 1
"""
# By tag, topic and rank.
RUNS = {
    "one": {"1": "a b u", "2": "e a"},
    "two": {"1": "a c b", "2": "a v e"},
    "three": {"1": "d a u", "2": "f a e"},
}


def run_text(tag: str) -> str:
    return "".join(
        f"{topic} Q0 {doc_id} {place} {10 - place} {tag}\n"
        for topic, documents in RUNS[tag].items()
        for place, doc_id in enumerate(documents.split(), 1)
    )


def average_precision(ranking: list[str], relevant: set[str]) -> float:
    hits, total = 0, 0.0
    for place, doc_id in enumerate(ranking, 1):
        if doc_id in relevant:
            hits += 1
            total += hits / place
    return total / len(relevant)


@pytest.fixture
def runs(api: APIClient) -> dict[str, str]:
    """Three runs of one team; their ids by tag."""
    fields = {"slug": "covid", "name": "Three", "measures": ["AP", "P@2"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    assert upload(api, "collections/covid/qrels/", QRELS).status_code == 201
    ids = {}
    for tag in RUNS:
        answer = upload(api, "collections/covid/runs/", run_text(tag))
        assert answer.status_code == 202, answer.content
        ids[tag] = answer.json()["id"]
    evaluate_all()
    return ids


@pytest.mark.django_db
def test_a_run_without_its_own_judgements_is_that_of_a_naive_program(
    api: APIClient, runs: dict[str, str]
) -> None:
    answer = ask(api, by="run", pooled=f"{runs['one']},{runs['three']}", depth=1)
    # At rank 1, "one" alone has a of topic 1 and e of topic 2; "three" d and f.
    brought = {"one": {"1": {"a"}, "2": {"e"}}, "three": {"1": {"d"}, "2": {"f"}}}
    relevant = {"1": {"a", "b", "d"}, "2": {"a", "e", "f"}}
    ap = {row["run"]["tag"]: row for row in answer["measures"][0]["runs"]}

    for tag, own in brought.items():
        ranking = {topic: text.split() for topic, text in RUNS[tag].items()}
        for name, judged in (
            ("mean", relevant),
            ("left_out", {topic: relevant[topic] - own[topic] for topic in relevant}),
        ):
            values = [average_precision(ranking[topic], judged[topic]) for topic in judged]
            assert ap[tag][name] == pytest.approx(sum(values) / 2)

    assert ap["two"]["left_out"] is None
    loss = [ap[tag]["mean"] - ap[tag]["left_out"] for tag in brought]
    assert answer["measures"][0]["bias"] == pytest.approx(sum(loss) / 2)
    assert answer["measures"][0]["bias_error"] == pytest.approx(abs(loss[0] - loss[1]))
    assert ap["two"]["corrected"] == pytest.approx(ap["two"]["mean"] + sum(loss) / 2)


@pytest.mark.django_db
def test_recorded_pools_say_who_was_pooled_and_what_was_added(
    api: APIClient, anonymous: APIClient, runs: dict[str, str]
) -> None:
    """A document that organisers added stays judged, and who does not see the pool infers one."""
    recipe = {
        "method": "depth",
        "k": 1,
        "only_new": False,
        "runs": [runs["one"], runs["three"]],
        "extra": [{"topic_id": "1", "doc_id": "a"}],
    }
    pool = api.post("/api/v1/collections/covid/pools/", recipe, format="json").json()
    assert api.post(f"{pool['url']}freeze/").status_code == 200

    answer = ask(api, by="run")
    assert (answer["pooled_by"], answer["pools"], answer["depth"]) == ("recorded", [1], 1)
    own = {group["name"]: group["judgements"] for group in answer["groups"]}
    assert own == {"one": 1, "three": 2}

    # The page says it, and asks for the pooled runs: nothing is wrong with its address.
    assert anonymous.get("/collections/covid/reusability/").status_code == 200
    refused = anonymous.get(ADDRESS)
    assert (refused.status_code, refused.json()["code"]) == (400, "no_pooled_runs")
    assert ask(anonymous, depth=1)["pooled_by"] == "inferred"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"by": "model", "depth": 1}, "bad_columns", "by"),
        ({"depth": 0}, "invalid", "depth"),
        ({}, "no_pooled_runs", "pooled"),
        (
            {"pooled": "00000000-0000-4000-8000-000000000000", "depth": 1},
            "unknown_run",
            "pooled",
        ),
    ],
)
def test_a_question_without_an_answer_is_refused_where_it_is_wrong(
    api: APIClient, runs: dict[str, str], query: dict[str, Any], code: str, pointer: str
) -> None:
    refused = api.get(ADDRESS, query)
    assert refused.status_code == 400, refused.content
    assert (refused.json()["code"], refused.json()["errors"][0]["pointer"]) == (code, pointer)


@pytest.mark.django_db
def test_the_page_and_its_file_have_the_figures_of_the_api(
    api: APIClient, anonymous: APIClient, runs: dict[str, str]
) -> None:
    # All runs are of one team, so that one run is left out at a time.
    query = {"depth": 1, "pooled": f"{runs['one']},{runs['three']}"}
    assert ask(api, **query)["by"] == "run"
    (ap, _) = ask(api, **query)["measures"]
    page = anonymous.get("/collections/covid/reusability/", {**query, "measures": "AP"})
    assert page.status_code == 200
    text = page.content.decode()
    assert all(f"{row['mean']:.4f}" in text for row in ap["runs"])

    file = anonymous.get(f"{ADDRESS}export/csv/", {**query, "measures": "AP"})
    rows = {row["tag"]: row for row in csv.DictReader(file.content.decode().splitlines())}
    for row in ap["runs"]:
        exported = rows[row["run"]["tag"]]["left_out"]
        assert (float(exported) if exported else None) == row["left_out"]


UNDECIDED = "/api/v1/collections/covid/undecided/"


@pytest.mark.django_db
@pytest.mark.parametrize(("measure", "cutoff"), [("P@2", 2), ("DCG@3", 3), ("RBP(rel=1)", 3)])
def test_bounds_are_the_extremes_over_all_levels_of_unjudged_documents(
    api: APIClient, runs: dict[str, str], measure: str, cutoff: int
) -> None:
    """Every level is tried for every unjudged document: no difference is beyond the bounds, and the
    bounds are reached."""
    query = {"runs": f"{runs['one']},{runs['two']}", "measure": measure}
    answer = ask(api, UNDECIDED, **query)

    levels = {
        (topic, doc_id): int(level)
        for topic, _, doc_id, level in (line.split() for line in QRELS.splitlines())
    }
    unjudged = sorted(
        {
            (topic, doc_id)
            for tag in ("one", "two")
            for topic, text in RUNS[tag].items()
            for doc_id in text.split()[:cutoff]
            if (topic, doc_id) not in levels
        }
    )
    differences = []
    for chosen in product(range(3), repeat=len(unjudged)):
        judged = {topic: {} for topic in "12"}
        for (topic, doc_id), level in (levels | dict(zip(unjudged, chosen, strict=True))).items():
            judged[topic][doc_id] = level
        one, two = (
            evaluate(
                judged,
                {
                    topic: {doc: -place for place, doc in enumerate(text.split())}
                    for topic, text in RUNS[tag].items()
                },
                [measure],
            ).means[measure]
            for tag in ("one", "two")
        )
        differences.append(one - two)

    assert answer["low"] == pytest.approx(min(differences))
    assert answer["high"] == pytest.approx(max(differences))
    # A difference of 0 but for rounding is a tie.
    assert answer["holds"] == (min(differences) > 1e-9 or max(differences) < -1e-9)
    assert {(row["topic_id"], row["doc_id"]) for row in answer["documents"]} <= set(unjudged)
    assert answer["sentence"]


@pytest.mark.django_db
def test_a_measure_without_bounds_is_refused(api: APIClient, runs: dict[str, str]) -> None:
    refused = api.get(UNDECIDED, {"runs": f"{runs['one']},{runs['two']}", "measure": "nDCG@10"})
    assert (refused.status_code, refused.json()["code"]) == (400, "no_bounds")


# By document, the level on every topic.
ROWS = (("r", 1), ("n", 0))


@pytest.mark.django_db
def test_a_bound_of_zero_is_a_tie(api: APIClient) -> None:
    """One run is ahead by the relevant documents of three topics, and as many unjudged ones of the
    other can make up for them, in sums that are not exactly 0."""
    fields = {"slug": "covid", "name": "Five", "measures": ["P@5"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    qrels = "".join(f"{topic} 0 {doc} {level}\n" for topic in range(5) for doc, level in ROWS)
    assert upload(api, "collections/covid/qrels/", qrels).status_code == 201
    ahead = "".join(f"{topic} Q0 {'r' if topic < 3 else 'n'} 1 1 ahead\n" for topic in range(5))
    behind = "".join(f"{topic} Q0 {'u' if topic < 3 else 'n'} 1 1 behind\n" for topic in range(5))
    ids = [upload(api, "collections/covid/runs/", text).json()["id"] for text in (ahead, behind)]
    evaluate_all()

    answer = ask(api, UNDECIDED, runs=",".join(ids), measure="P@5")
    assert answer["difference"] == pytest.approx(3 / 25)
    assert answer["low"] == pytest.approx(0, abs=1e-12)
    assert answer["holds"] is False
    assert answer["sentence"].startswith("Unjudged documents decide")
