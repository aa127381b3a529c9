"""Suites: versions, who sees them, the leaderboard and the difference of two systems, by SciPy."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from evalhub.suites.exports.suites import comparison_sentences
from evalhub.suites.models import Suite, SuiteVersion
from evalhub.suites.services import values
from evalhub.suites.services.board import Interval
from evalhub.suites.services.comparison import SuiteComparison
from runs.models import AuditEvent, Collection, Membership, Team, TopicAttributes, User
from runs.services.collections.collections import delete_collection
from tests.conftest import client_of, evaluate_all, upload
from tests.kept import recalled_answers
from tests.shared_data import module_data

__all__ = ["module_data"]
pytestmark = pytest.mark.django_db
SUITES = "/api/v1/suites/"
BOARD = f"{SUITES}three/leaderboard/"
# Topics of each collection.
SIZES = {"news": 6, "web": 9, "law": 5}
# The tag and the metadata of the runs of each system; `gone` lacks a collection.
SYSTEMS = ("alpha", "beta", "gamma")


def fill_collection(api: APIClient, slug: str, topics: int, **fields: Any) -> None:
    body = {"slug": slug, "name": slug.title(), "measures": ["AP", "nDCG@10"], **fields}
    assert api.post("/api/v1/collections/", body).status_code == 201
    qrels = "".join(f"{topic} 0 d{doc} {doc % 2}\n" for topic in range(topics) for doc in range(8))
    assert upload(api, f"collections/{slug}/qrels/", qrels).status_code == 201


def submit(api: APIClient, slug: str, tag: str, seed: str, **fields: Any) -> str:
    """Submit a run that orders the documents at random."""
    drawn, lines = random.Random(seed), []
    for topic in range(SIZES.get(slug, 4)):
        docs = drawn.sample(range(8), 8)
        lines += [f"{topic} Q0 d{doc} 0 {8 - place} x\n" for place, doc in enumerate(docs)]
    answer = upload(api, f"collections/{slug}/runs/", "".join(lines), tag=tag, **fields)
    assert answer.status_code == 202, answer.content
    run: str = answer.json()["id"]
    return run


@pytest.fixture(scope="module")
def world(module_data: Path) -> dict[str, Any]:
    """Three collections with the runs of three systems and of one that lacks `law`, and a suite."""
    alice = User.objects.create_user("alice")
    api = client_of(alice)
    runs = {}
    for slug, topics in SIZES.items():
        fill_collection(api, slug, topics)
        for name in SYSTEMS:
            # A version of a system, a name in the metadata, and a tag that is the same everywhere.
            fields = {
                "alpha": {"system": "alpha"},
                "beta": {"tag": f"beta-on-{slug}", "metadata": '{"system": "beta"}'},
                "gamma": {},
            }[name]
            tag = fields.pop("tag", name)
            runs[slug, name] = submit(api, slug, tag, f"{slug} {name}", **fields)
        if slug != "law":
            runs[slug, "gone"] = submit(api, slug, "gone", f"{slug} gone")
    evaluate_all()
    members = [
        {"collection": "news", "measure": "AP", "group": "text"},
        {"collection": "web", "measure": "AP", "weight": 2, "group": "text"},
        {"collection": "law", "measure": "AP", "group": "legal"},
    ]
    answer = api.post(SUITES, {"slug": "three", "name": "Three", "members": members})
    assert answer.status_code == 201, answer.content
    return {"alice": alice, "runs": runs, "members": members}


@pytest.fixture
def api(world: dict[str, Any]) -> APIClient:
    return client_of(world["alice"])


def values_of(api: APIClient, run: str) -> Any:
    """The values of a run on each topic, by the API of runs."""
    topics = api.get(f"/api/v1/runs/{run}/values/?measures=AP").json()["topics"]
    return np.array([row["values"]["AP"] for row in topics], np.float64)


def means_of(api: APIClient, world: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [values_of(api, world["runs"][slug, name]).mean() for slug in SIZES]
        for name in SYSTEMS
    }


def test_the_leaderboard_agrees_with_means_and_tests_of_the_values(
    api: APIClient, world: dict[str, Any]
) -> None:
    board = api.get(BOARD).json()
    weights = np.array([1, 2, 1]) / 4
    means = {name: np.array(row) for name, row in means_of(api, world).items()}
    order = sorted(SYSTEMS, key=lambda name: -(means[name] @ weights))
    ranked = board["systems"][:3]
    assert [row["system"] for row in ranked] == [f"alice/{name}" for name in order]
    assert [row["rank"] for row in ranked] == [1, 2, 3]
    assert [column["weight"] for column in board["columns"]] == weights.tolist()

    ranks = stats.rankdata(-np.array([means[name] for name in order]), axis=0)
    first = [values_of(api, world["runs"][slug, order[0]]) for slug in SIZES]
    for place, (name, row) in enumerate(zip(order, ranked, strict=True)):
        assert row["values"] == pytest.approx(means[name].tolist())
        assert row["mean"] == pytest.approx(means[name] @ weights)
        text, web, law = means[name]
        assert row["group_mean"] == pytest.approx(((text + 2 * web) / 3 + law) / 2)
        assert row["borda"] == pytest.approx((3 - ranks[place]).sum())
        assert row["mean_rank"] == pytest.approx(ranks[place].mean())
        assert row["runs"] == [world["runs"][slug, name] for slug in SIZES]
        if place == 0:
            assert row["other_topics"] is row["other_collections"] is None
            continue

        differences = [
            values_of(api, world["runs"][slug, name]) - values
            for slug, values in zip(SIZES, first, strict=True)
        ]
        variances = [
            weight**2 * stats.sem(d) ** 2 for weight, d in zip(weights, differences, strict=True)
        ]
        freedom = sum(variances) ** 2 / sum(
            v**2 / (len(d) - 1) for v, d in zip(variances, differences, strict=True)
        )
        low, high = stats.t.interval(
            0.95, freedom, row["other_topics"]["difference"], math.sqrt(sum(variances))
        )
        assert (row["other_topics"]["low"], row["other_topics"]["high"]) == pytest.approx(
            (low, high)
        )
        sample = stats.ttest_1samp([d.mean() for d in differences], 0)
        assert row["other_collections"]["p"] == pytest.approx(sample.pvalue)

    friedman = stats.friedmanchisquare(*[means[name] for name in order])
    assert board["friedman"] == pytest.approx(friedman.statistic)
    assert board["critical_difference"] == pytest.approx(
        stats.studentized_range.ppf(0.95, 3, np.inf) / math.sqrt(2) * math.sqrt(3 * 4 / 18)
    )


def test_who_lacks_a_collection_has_no_rank(api: APIClient) -> None:
    board = api.get(BOARD).json()
    last = board["systems"][-1]
    assert (last["system"], last["rank"], last["lacks"]) == ("alice/gone", None, ["law"])
    assert (last["mean"], last["borda"], last["values"][2]) == (None, None, None)
    assert "1 system lacks a collection and has no rank." in board["sentences"]
    # Whoever lacks a collection moves nobody.
    named = "alice/alpha,alice/beta,alice/gamma"
    among = api.get(BOARD, {"systems": named}).json()["systems"]
    assert [row["borda"] for row in among] == [row["borda"] for row in board["systems"][:3]]


@pytest.mark.parametrize("order", ["groups", "borda", "mean_rank"])
def test_other_orders_rank_by_their_own_column(api: APIClient, order: str) -> None:
    column = {"groups": "group_mean", "borda": "borda", "mean_rank": "mean_rank"}[order]
    rows = api.get(BOARD, {"order": order}).json()["systems"][:3]
    values = [row[column] for row in rows]
    assert values == sorted(values, reverse=order != "mean_rank")
    ranks = stats.rankdata(np.array(values) * (1 if order == "mean_rank" else -1), method="min")
    assert [row["rank"] for row in rows] == ranks.tolist()


def test_the_difference_of_two_systems(api: APIClient, world: dict[str, Any]) -> None:
    answer = api.get(f"{SUITES}three/comparison/", {"systems": "alice/alpha,alice/beta"}).json()
    differences = [
        values_of(api, world["runs"][slug, "alpha"]) - values_of(api, world["runs"][slug, "beta"])
        for slug in SIZES
    ]
    for line, d in zip(answer["collections"], differences, strict=True):
        ends = stats.ttest_1samp(d, 0).confidence_interval()
        assert line["topics"] == len(d)
        assert line["difference"]["difference"] == pytest.approx(d.mean())
        assert (line["difference"]["low"], line["difference"]["high"]) == pytest.approx(tuple(ends))

    means = np.array([d.mean() for d in differences])
    errors = np.array([stats.sem(d) for d in differences])
    oracle = combine_effects(means, errors**2, method_re="chi2", use_t=True)
    effects = answer["random_effects"]
    assert effects["mean"] == pytest.approx(oracle.mean_effect_re)
    assert effects["error"] == pytest.approx(oracle.sd_eff_w_re_hksj)
    assert effects["tau_squared"] == pytest.approx(oracle.tau2)

    # A pair is compared where both have values, and what is missing is named.
    partly = api.get(f"{SUITES}three/comparison/", {"systems": "alice/alpha,alice/gone"}).json()
    assert partly["missing"] == ["law"]
    assert [line["weight"] for line in partly["collections"]] == pytest.approx([1 / 3, 2 / 3])
    assert partly["random_effects"]["prediction_low"] is None


def test_files_have_the_figures_of_the_answer(api: APIClient) -> None:
    board = api.get(BOARD).json()
    content = api.get(f"{BOARD}export/csv/").content.decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert [row["system"] for row in rows] == [row["system"] for row in board["systems"]]
    assert [float(row["mean"]) for row in rows[:3]] == [row["mean"] for row in board["systems"][:3]]
    assert rows[3]["mean"] == ""
    assert rows[3]["lacks"] == "law"

    for field in ("other_topics", "other_collections"):
        prefix = field.removeprefix("other_")
        name = "difference" if prefix == "topics" else "collections_difference"
        assert float(rows[1][name]) == board["systems"][1][field]["difference"]
        assert float(rows[1][f"{prefix}_low"]) == board["systems"][1][field]["low"]

    table = api.get(f"{BOARD}export/md/").content.decode()
    assert "| Other topics |" in table
    assert "Differences of the mean from" in table
    query = {"systems": "alice/alpha,alice/beta"}
    content = api.get(f"{SUITES}three/comparison/export/csv/", query).content.decode()
    lines = list(csv.DictReader(io.StringIO(content)))
    assert [line["collection"] for line in lines] == [
        *SIZES, "(other topics)", "(other collections)", "(random effects)",
        "(a further collection)",
    ]  # fmt: skip
    # A team may be left out where one team has a system of that name.
    assert (
        api.get(f"{SUITES}three/comparison/export/csv/", {"systems": "alpha,beta"}).content.decode()
        == content
    )
    tex = api.get(f"{SUITES}three/comparison/export/tex/", query).content.decode()
    assert "Random effects" in tex


def test_limits_of_systems_runs_and_values(api: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of one system count once, and systems that are named are read alone."""
    submit(api, "news", "alpha-again", "later", system="alpha")
    evaluate_all()
    monkeypatch.setattr(f"{values.__name__}.MAX_SYSTEMS", 4)
    assert len(api.get(BOARD).json()["systems"]) == 4
    monkeypatch.setattr(f"{values.__name__}.MAX_SYSTEMS", 2)
    answer = api.get(BOARD)
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_systems")
    assert "4 systems; the limit is 2: name some with systems=" in answer.json()["detail"]
    assert len(api.get(BOARD, {"systems": "alpha,beta"}).json()["systems"]) == 2

    monkeypatch.setattr(f"{values.__name__}.MAX_VALUES", 39)
    assert api.get(BOARD, {"systems": "alpha,beta"}).json()["code"] == "too_many_values"
    monkeypatch.setattr(f"{values.__name__}.MAX_RUNS", 4)
    assert api.get(BOARD).json()["code"] == "too_many_runs"


def test_intervals_of_borda_are_drawn_on_request(api: APIClient) -> None:
    assert {row["borda_low"] for row in api.get(BOARD).json()["systems"]} == {None}
    query = {"resamples": "200", "seed": "3"}
    board = api.get(BOARD, query).json()
    for row in board["systems"][:3]:
        assert 0 <= row["borda_low"] <= row["borda"] <= row["borda_high"] <= 6
    assert board["systems"][3]["borda_low"] is None
    assert board == api.get(BOARD, query).json()
    assert "B = 200, seed 3." in " ".join(board["sentences"])
    rows = list(csv.DictReader(io.StringIO(api.get(f"{BOARD}export/csv/", query).content.decode())))
    assert float(rows[0]["borda_high"]) == board["systems"][0]["borda_high"]
    assert "Borda interval" in Client().get("/suites/three/", query).content.decode()
    assert api.get(BOARD, {"resamples": "10"}).status_code == 400


def test_topics_are_selected_in_every_collection(api: APIClient, world: dict[str, Any]) -> None:
    """Even topics are questions, but in `law`, where no topic has the attribute."""
    for slug in ("news", "web"):
        collection = Collection.objects.get(slug=slug)
        TopicAttributes.objects.bulk_create(
            TopicAttributes(collection=collection, topic_id=str(topic), attributes={"type": kind})
            for topic in range(SIZES[slug])
            for kind in [("question", "keyword")[topic % 2]]
        )
        Collection.objects.filter(pk=collection.pk).update(attribute_keys=["type"])

    query = {"topics": "type:question"}
    board = api.get(BOARD, query).json()
    questions = {
        (slug, name): values_of(api, world["runs"][slug, name])[::2]
        for slug in ("news", "web")
        for name in (*SYSTEMS, "gone")
    }
    assert board["topics_filter"] == "type:question"
    assert board["left_out"] == ["law"]
    assert [row["topics_selected"] for row in board["columns"]] == [3, 5]
    assert [row["weight"] for row in board["columns"]] == [1 / 3, 2 / 3]
    # What lacks `law` alone has a rank now.
    assert sorted(row["rank"] for row in board["systems"]) == [1, 2, 3, 4]
    for row in board["systems"]:
        name = row["system"].partition("/")[2]
        means = [questions[slug, name].mean() for slug in ("news", "web")]
        assert row["values"] == pytest.approx(means)
        assert row["mean"] == pytest.approx(means[0] / 3 + means[1] * 2 / 3)

    compared = api.get(
        f"{SUITES}three/comparison/", {"systems": "alice/alpha,alice/beta", **query}
    ).json()
    differences = [questions[slug, "alpha"] - questions[slug, "beta"] for slug in ("news", "web")]
    assert [row["difference"]["difference"] for row in compared["collections"]] == pytest.approx(
        [difference.mean() for difference in differences]
    )
    assert [row["topics"] for row in compared["collections"]] == [3, 5]
    assert compared["left_out"] == ["law"]

    file = api.get(f"{BOARD}export/csv/", query).content.decode()
    assert {row["topics_filter"] for row in csv.DictReader(io.StringIO(file))} == {"type:question"}
    page = Client().get("/suites/three/", query).content.decode()
    assert "8 of 15 topics count: type:question." in page
    assert "Without law, where no topic is selected." in page
    assert "topics=type%3Aquestion" in page
    assert "only 3 topics selected" in " ".join(row["message"] for row in board["cautions"])


@pytest.mark.parametrize(
    ("topics", "status", "code"),
    [
        ("kind:question", 400, "bad_filter"),
        ("topic:99", 400, "too_few_topics"),
        ("type", 400, "bad_filter"),
    ],
)
def test_topics_that_no_collection_has(api: APIClient, topics: str, status: int, code: str) -> None:
    answer = api.get(BOARD, {"topics": topics})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["code"], error["pointer"]) == (status, code, "topics")


def test_replicates_are_one_system_and_named(api: APIClient) -> None:
    runs = [
        submit(api, "news", f"delta-{seed}", f"delta {seed}", replicate="delta") for seed in "ab"
    ]
    # The end of the replicates' evaluation queues the row.
    while evaluate_all():
        pass
    body = {"slug": "one", "name": "One", "members": [{"collection": "news", "measure": "AP"}]}
    assert api.post(SUITES, body).status_code == 201
    board = api.get(f"{SUITES}one/leaderboard/").json()
    (row,) = [row for row in board["systems"] if "delta" in row["system"]]
    values = [values_of(api, run) for run in runs]
    assert row["values"] == [pytest.approx(np.mean(values, axis=0).mean())]
    sentence = "Values of delta are means over replicates; no interval is for other replicates."
    assert sentence in board["sentences"]
    assert sentence in Client().get("/suites/one/").content.decode()


def test_groups_order_a_suite_that_has_some(api: APIClient) -> None:
    body = {"slug": "plain", "name": "Plain", "members": [{"collection": "news"}]}
    assert api.post(SUITES, body).status_code == 201
    answer = api.get(f"{SUITES}plain/leaderboard/", {"order": "groups"})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (400, "order")
    assert "plain v1 has no groups" in error["detail"]
    page = Client().get("/suites/plain/?order=groups")
    assert (page.status_code, "has no groups" in page.content.decode()) == (400, True)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("leaderboard/?systems=alice/nobody", "unknown_system"),
        ("leaderboard/?order=votes", "invalid"),
        ("comparison/", "too_few_systems"),
        ("comparison/?systems=a,b,c", "too_many_systems"),
        ("comparison/?systems=alice/alpha,alice/nobody", "unknown_system"),
        ("comparison/?systems=alice/alpha,alpha", "too_few_systems"),
    ],
)
def test_questions_without_an_answer(api: APIClient, path: str, code: str) -> None:
    answer = api.get(f"{SUITES}three/{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


@pytest.mark.parametrize(
    ("members", "pointer", "words"),
    [
        ([], "/members", "1 to 100 collections"),
        ([{"collection": "nowhere"}], "/members/0/collection", "you see no collection"),
        ([{"collection": "news"}] * 2, "/members/1/collection", "twice"),
        ([{"collection": "news", "weight": 0}], "/members/0/weight", "above 0"),
        ([{"collection": "news", "measure": "nDGC"}], "/members/0/measure", "nDGC"),
        ([{"collection": "news", "measure": "NumRet"}], "/members/0/measure", "mean over topics"),
        ([{"collection": "news", "measure": "gm_map"}], "/members/0/measure", "mean over topics"),
        ([{"collection": "news", "qrels": 7}], "/members/0/qrels", "version 7"),
        (
            [{"collection": "news", "group": "a"}, {"collection": "web"}],
            "/members/1/group",
            "group",
        ),
    ],
)
def test_members_that_a_suite_cannot_have(
    api: APIClient, members: list[Any], pointer: str, words: str
) -> None:
    answer = api.post(SUITES, {"slug": "wrong", "name": "Wrong", "members": members})
    assert answer.status_code == 400, answer.content
    (error,) = answer.json()["errors"]
    assert error["pointer"].startswith(pointer)
    assert words in error["detail"]
    assert not Suite.objects.filter(slug="wrong").exists()


def test_a_version_never_changes_and_a_new_one_has_its_own_digest(api: APIClient) -> None:
    first = api.get(f"{SUITES}three/").json()["content"]
    members = [{"collection": "web", "qrels": 1}, {"collection": "news"}]
    answer = api.post(f"{SUITES}three/versions/", {"members": members, "note": "without law"})
    assert answer.status_code == 201, answer.content
    assert answer.json()["version"] == 2
    suite = api.get(f"{SUITES}three/").json()
    assert (suite["version"], suite["versions"], suite["collections"]) == (2, [2, 1], 2)
    assert suite["content"]["members"][0]["qrels"] == 1
    assert suite["content"]["digest"] != first["digest"]
    assert suite["content"]["digest"] in suite["content"]["cite"]

    earlier = api.get(f"{SUITES}three/?version=1").json()
    assert earlier["content"] == first
    # By version 2 nobody lacks a collection.
    assert all(row["rank"] for row in api.get(BOARD).json()["systems"])
    assert api.get(f"{BOARD}?version=1").json()["systems"][-1]["rank"] is None
    assert api.get(f"{BOARD}?version=3").status_code == 404

    taken = api.post(SUITES, {"slug": "three", "name": "Three", "members": members})
    assert (taken.status_code, taken.json()["code"]) == (409, "slug_taken")
    events = AuditEvent.objects.filter(action__startswith="suite.").order_by("pk")
    assert [(event.action, event.after["version"]) for event in events] == [
        ("suite.created", 1),
        ("suite.version_created", 2),
    ]


def test_the_latest_version_of_a_system_counts(api: APIClient) -> None:
    run = submit(api, "news", "alpha-again", "later", system="alpha")
    evaluate_all()
    rows = {row["system"]: row for row in api.get(BOARD).json()["systems"]}
    assert rows["alice/alpha"]["runs"][0] == run


def test_only_owners_of_the_team_make_versions_and_delete(api: APIClient, bob: User) -> None:
    body = json.dumps({"members": [{"collection": "news"}]})
    answer = client_of(bob).post(f"{SUITES}three/versions/", body, content_type="application/json")
    assert answer.status_code == 403
    assert client_of(bob).delete(f"{SUITES}three/").status_code == 403
    assert SuiteVersion.objects.count() == 1

    digest = SuiteVersion.objects.get().digest
    assert api.delete(f"{SUITES}three/").status_code == 204
    assert api.get(f"{SUITES}three/").status_code == 404
    assert Collection.objects.filter(slug__in=SIZES).count() == 3
    event = AuditEvent.objects.get(action="suite.deleted")
    assert event.before == {"name": "Three", "team": "alice", "digests": {"1": digest}}


def test_owners_delete_a_suite_of_which_they_see_a_collection_no_more(
    api: APIClient, bob: User
) -> None:
    body = {"slug": "of-bob", "name": "x", "members": [{"collection": "news"}]}
    assert client_of(bob).post(SUITES, body).status_code == 201
    Collection.objects.filter(slug="news").update(visibility="private")
    browser = Client()
    browser.force_login(bob)
    assert browser.get("/suites/of-bob/").status_code == 404
    answer = browser.post("/suites/of-bob/new-version/", {"action": "delete"}, follow=True)
    assert "Suite x deleted. Its collections stay." in answer.content.decode()
    assert not Suite.objects.filter(slug="of-bob").exists()


def test_what_is_blind_is_not_read_and_ranks_nobody(api: APIClient, bob: User) -> None:
    """To others a suite with a blind collection has the columns of the others alone."""
    fill_collection(api, "cup", 4, blind=True)
    runs = [submit(api, "cup", name, f"cup {name}") for name in ("alpha", "secret")]
    evaluate_all()
    members = [{"collection": "news", "measure": "AP"}, {"collection": "cup", "qrels": 1}]
    assert api.post(SUITES, {"slug": "four", "name": "Four", "members": members}).status_code == 201
    own = api.get(f"{SUITES}four/leaderboard/").json()
    assert own["systems"][0]["rank"] == 1

    for reader in (client_of(bob), client_of(None)):
        board = reader.get(f"{SUITES}four/leaderboard/").json()
        text = json.dumps(board)
        assert not any(run in text for run in runs)
        assert "secret" not in text
        assert {row["rank"] for row in board["systems"]} == {None}
        assert {row["mean"] for row in board["systems"]} == {None}
        assert {tuple(row["lacks"]) for row in board["systems"]} == {()}
        assert board["columns"][1]["qrels"] is None
        assert "cup: results are not shown to you." in board["sentences"]
        content = reader.get(f"{SUITES}four/").json()["content"]
        assert (content["digest"], content["cite"]) == (None, None)
        assert [(row["qrels"], row["results_visible"]) for row in content["members"]] == [
            (None, True),
            (None, False),
        ]
        query = {"systems": "alice/alpha,alice/beta"}
        pair = reader.get(f"{SUITES}four/comparison/", query).json()
        assert pair["missing"] == ["cup"]


def test_a_suite_with_a_collection_that_does_not_exist_for_you_does_not_exist(
    api: APIClient, bob: User
) -> None:
    fill_collection(api, "den", 4, visibility="private")
    body = {"slug": "closed", "name": "Closed", "members": [{"collection": "den"}]}
    assert api.post(SUITES, body).status_code == 201
    newer = {"members": [{"collection": "den"}, {"collection": "news"}]}
    assert api.post(f"{SUITES}three/versions/", newer).status_code == 201
    assert api.get(f"{SUITES}three/").json()["version"] == 2

    for reader in (client_of(bob), client_of(None)):
        assert reader.get(f"{SUITES}closed/").status_code == 404
        assert reader.get(f"{SUITES}closed/leaderboard/").status_code == 404
        suites = reader.get(SUITES).json()["results"]
        assert [(suite["slug"], suite["version"]) for suite in suites] == [("three", 1)]
        assert reader.get(f"{SUITES}three/").json()["versions"] == [1]
        assert reader.get(f"{SUITES}three/?version=2").status_code == 404
        answer = reader.get(f"{SUITES}three/versions/").json()
        assert [row["version"] for row in answer["results"]] == [1]


def test_the_form_of_a_version_hides_the_judgements_of_hidden_results(
    api: APIClient, bob: User
) -> None:
    team = {"slug": "lab", "name": "Lab"}
    assert api.post("/api/v1/teams/", team).status_code == 201
    Membership.objects.create(team=Team.objects.get(slug="lab"), user=bob, role="owner")
    fill_collection(api, "cup", 4, blind=True)
    members = [{"collection": "news", "qrels": 1}, {"collection": "cup", "qrels": 1}]
    suite = {"slug": "of-lab", "name": "x", "team": "lab", "members": members}
    assert api.post(SUITES, suite).status_code == 201

    for user, line in ((User.objects.get(username="alice"), "cup@1 AP 1"), (bob, "cup AP 1")):
        browser = Client()
        browser.force_login(user)
        form = browser.get("/suites/of-lab/new-version/").content.decode()
        assert f"news@1 AP 1\n{line}</textarea>" in form


def test_a_suite_keeps_no_empty_collection_from_being_deleted(api: APIClient, bob: User) -> None:
    """Whoever sees it can put it into a suite."""
    body = {"slug": "empty", "name": "Empty"}
    assert api.post("/api/v1/collections/", body).status_code == 201
    suite = {"slug": "of-empty", "name": "x", "members": [{"collection": "empty"}]}
    assert client_of(bob).post(SUITES, suite).status_code == 201
    newer = {"members": [{"collection": "news"}, {"collection": "empty"}]}
    assert api.post(f"{SUITES}three/versions/", newer).status_code == 201
    assert api.get(f"{SUITES}of-empty/leaderboard/").json()["sentences"][0] == (
        "empty: no judgements are active."
    )
    delete_collection(collection=Collection.objects.get(slug="empty"))
    # A version never changes: those with the collection go, and a suite without any other one.
    assert not Suite.objects.filter(slug="of-empty").exists()
    assert api.get(f"{SUITES}three/").json()["versions"] == [1]


def test_measures_of_value_tables(api: APIClient) -> None:
    """They take part as others do. Their declaration stays while the last version has them."""
    path = "/api/v1/collections/law/external-measures/"
    for name, direction in (("vital", "higher"), ("ms", "lower")):
        assert api.post(path, {"name": name, "direction": direction}).status_code == 201
    lines = "".join(f"alpha {topic} x:vital .{topic}\n" for topic in range(5))
    assert upload(api, "collections/law/value-tables/", lines).status_code == 201
    lower = [{"collection": "law", "measure": "x:ms"}]
    assert api.post(f"{SUITES}three/versions/", {"members": lower}).status_code == 400

    members = {"members": [{"collection": "law", "measure": "x:vital"}, {"collection": "news"}]}
    assert api.post(f"{SUITES}three/versions/", members).status_code == 201
    first, *others = api.get(BOARD).json()["systems"]
    assert (first["system"], first["rank"]) == ("alice/alpha", 1)
    assert first["values"][0] == pytest.approx(0.2)
    assert {row["rank"] for row in others} == {None}

    # As many topics are not the same ones: both lack some.
    lines = "alpha 4 x:vital null\ngamma 4 x:vital .5\n" + "".join(
        f"gamma {topic} x:vital .{topic}\n" for topic in range(1, 4)
    )
    assert upload(api, "collections/law/value-tables/", lines).status_code == 201
    rows = {row["system"]: row for row in api.get(BOARD).json()["systems"]}
    for name in ("alice/alpha", "alice/gamma"):
        assert rows[name]["lacks"] == ["law: a mean over 4 of 5 topics"], rows[name]
        assert rows[name]["rank"] is None

    in_use = api.delete(f"{path}vital/")
    assert (in_use.status_code, in_use.json()["code"]) == (409, "measure_in_use")
    assert "suite three" in in_use.json()["detail"]
    without = {"members": members["members"][1:]}
    assert api.post(f"{SUITES}three/versions/", without).status_code == 201
    assert api.delete(f"{path}vital/").status_code == 204
    board = api.get(f"{BOARD}?version=2").json()
    assert "declares no measure x:vital" in board["sentences"][0]
    assert {row["rank"] for row in board["systems"]} == {None}


def test_a_measure_that_does_not_suit_the_sampling_of_the_judgements(api: APIClient) -> None:
    body = {"slug": "drawn", "name": "Drawn", "measures": ["statAP"]}
    assert api.post("/api/v1/collections/", body).status_code == 201
    lines = "1 0 d1 1 0.5\n1 0 d2 0 0.5\n"
    answer = upload(api, "collections/drawn/qrels/", lines, sampling="probabilities")
    assert answer.status_code == 201, answer.content
    for measure, sentences in (("AP", 1), ("statAP", 0)):
        members = [{"collection": "drawn", "measure": measure}, {"collection": "news"}]
        assert api.post(f"{SUITES}three/versions/", {"members": members}).status_code == 201
        said = [text for text in api.get(BOARD).json()["sentences"] if "outside the sample" in text]
        assert len(said) == sentences


def test_pages(world: dict[str, Any]) -> None:
    browser = Client()
    assert "Three" in browser.get("/suites/").content.decode()
    page = browser.get("/suites/three/").content.decode()
    # Of one team only, systems are named without it.
    assert ">alpha<" in page or ">beta<" in page
    assert "alice/alpha</" not in page
    first = re.search(
        r'"best-set">(\w+) has the highest mean\. Significantly behind it: (.*)</p>', page
    )
    board = client_of(world["alice"]).get(BOARD).json()["systems"]
    behind = [
        sum(bool(row[name] and row[name]["p"] < 0.05) for row in board)
        for name in ("other_topics", "other_collections")
    ]
    assert first
    assert first[1] == board[0]["system"].partition("/")[2]
    topics, collections = (number or "none" for number in behind)
    assert first[2] == (
        f"{topics} of 2 on other topics of these collections, "
        f"{collections} on other collections like these."
    )
    assert "1 system lacks a collection and has no rank." in page
    assert SuiteVersion.objects.get().digest in page
    pair = browser.get("/suites/three/comparison/?systems=alice/alpha,alice/beta")
    html = pair.content.decode()
    assert html.count("<svg") == 2
    assert html.count("other collections like these") == 1
    wrong = browser.get("/suites/three/comparison/?systems=alice/alpha")
    assert "name two systems" in wrong.content.decode()


def test_forms(world: dict[str, Any]) -> None:
    browser = Client()
    browser.force_login(world["alice"])
    lines = "news AP 2\n\nweb@v1 AP\nlaw AP 0.08333333333333333"
    fields = {"name": "Two of them", "team": "alice", "members": lines}
    answer = browser.post("/new-suite/", fields)
    assert (answer.status_code, answer["Location"]) == (303, "/suites/two-of-them/")
    page = browser.get("/suites/two-of-them/new-version/").content.decode()
    assert "news AP 2\nweb@1 AP 1\nlaw AP 0.08333333333333333</textarea>" in page

    for lines, words in (
        ("news AP heavy", "ine 1: write a collection"),
        ("news\nweb@two", "ine 2: write a collection"),
        ("news\nnowhere", "ou see no collection"),
        ("", "1 to 100 collections"),
    ):
        refused = browser.post("/suites/two-of-them/new-version/", {"members": lines})
        assert refused.status_code == 400
        assert words in refused.content.decode(), words
    assert SuiteVersion.objects.filter(suite__slug="two-of-them").count() == 1
    done = browser.post("/suites/two-of-them/new-version/", {"members": "law", "note": "new"})
    assert done.status_code == 303


def test_what_two_systems_are_said_to_differ_by() -> None:
    """The means over topics and over collections may differ in who is ahead."""

    def sentences(topics: float, collections: float) -> list[str]:
        comparison = SimpleNamespace(
            values=SimpleNamespace(short_names=["a", "b"], topics=None, with_replicates=[]),
            other_topics=Interval(topics, topics - 0.1, topics + 0.1, 0.2),
            other_collections=Interval(collections, collections - 0.1, collections + 0.1, 0.01),
            effects=None,
            lines=[None],
            missing=[],
        )
        return comparison_sentences(cast(SuiteComparison, comparison))

    assert sentences(0.2, 0.1) == [
        "a is ahead of b by 0.2000 on average: not significantly (p = 0.2000) for other topics of "
        "these collections, and significantly (p = 0.0100) for other collections like these."
    ]
    assert sentences(0.00002, -0.1) == [
        "a is ahead of b by less than 0.0001 on average: not significantly (p = 0.2000) for other "
        "topics of these collections.",
        "b is ahead of a by 0.1000 if each collection counts the same: significantly (p = 0.0100) "
        "for other collections like these.",
    ]
    assert sentences(0, 0) == ["a and b are equal on average."]
    assert sentences(0, 0.1)[0] == "a and b are equal on average."


@pytest.mark.usefixtures("answers_kept")
def test_a_board_is_kept_until_one_of_its_collections_changes(api: APIClient) -> None:
    fill_collection(api, "cup", 4, blind=True)
    members = [{"collection": "news", "measure": "AP"}, {"collection": "cup", "measure": "AP"}]
    assert api.post(SUITES, {"slug": "four", "name": "Four", "members": members}).status_code == 201
    browser, reader = Client(), client_of(None)
    paths = {BOARD: reader, f"{BOARD}export/csv/": reader, "/suites/three/": browser}

    def answers() -> list[bytes]:
        return [client.get(path).content for path, client in paths.items()]

    first = answers()
    with recalled_answers() as recalled:
        assert answers() == first
        assert len(recalled) == len(paths)
        # Others who see all results get the same from the API; who does not see all, nothing kept.
        client_of(User.objects.get(username="alice")).get(BOARD)
        assert len(recalled) == len(paths) + 1
        for _ in range(2):
            reader.get(f"{SUITES}four/leaderboard/")
        assert len(recalled) == len(paths) + 1

    submit(api, "web", "later", "later")
    evaluate_all()
    assert all(b"later" in body for body in answers())
    # A new version of the suite is the newest one, and its page names the other.
    newer = {"members": [{"collection": "news"}]}
    assert api.post(f"{SUITES}three/versions/", newer).status_code == 201
    assert reader.get(BOARD).json()["version"] == 2
    assert b"Version 2" in browser.get("/suites/three/?version=1").content
