"""Pools of a collection and of a phase: their documents, freezing, files, statistics, and who sees what."""

from __future__ import annotations

import io
import json
import math
import random
import re
import zipfile
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from evalhub.pools.models import Pool, PoolRun
from evalhub.pools.services.pool_file import read_topics
from runs.models import AuditEvent, Run, User
from runs.services.submissions.sweeping import is_named
from tests.campaigns.shared_data import clock, module_clock, module_data
from tests.campaigns.worlds import (
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    Clock,
    enter,
    make_campaign,
    make_people,
    register,
)
from tests.conftest import client_of, evaluate_all, upload
from tests.pools import naive

__all__ = ["clock", "module_clock", "module_data"]
pytestmark = pytest.mark.django_db
POOLS = "/api/v1/collections/small/pools/"
# Topics of `small`, with documents that its judgements do not name.
TOPICS = ("1", "2", "3")


def random_run(drawn: random.Random, tag: str) -> str:
    """A run with tied scores, a rank column that says the contrary, and ids that differ in case and length."""
    lines = []
    for topic in TOPICS:
        docs = drawn.sample([f"{letter}{number}" for letter in "dDé" for number in range(12)], 20)
        for place, doc in enumerate(docs):
            lines.append(f"{topic} Q0 {doc} {20 - place} {drawn.randint(1, 6)} {tag}")
    return "\n".join(lines) + "\n"


def texts() -> dict[str, str]:
    drawn = random.Random(5)
    return {f"r{number}": random_run(drawn, f"r{number}") for number in range(5)}


@pytest.fixture
def runs(collection: str, api: APIClient) -> dict[str, str]:
    """Five runs in `small`: their texts by tag."""
    for tag, text in texts().items():
        answer = upload(api, "collections/small/runs/", text, tag=tag)
        assert answer.status_code == 202, answer.content
    return texts()


def make(client: APIClient, address: str = POOLS, **recipe: Any) -> Any:
    return client.post(address, {"only_new": False, **recipe}, format="json")


def browser_of(name: str) -> Client:
    browser = Client()
    browser.force_login(User.objects.get(username=name))
    return browser


def pool_of(answer: Any) -> Pool:
    assert answer.status_code == 201, answer.content
    return Pool.objects.get(pk=answer.json()["id"])


def pairs(pool: Pool) -> set[tuple[str, str]]:
    return {(topic, row.doc_id) for topic, rows in read_topics(pool) for row in rows}


def test_documents_are_those_of_a_naive_program(api: APIClient, runs: dict[str, str]) -> None:
    ranked = [naive.rank(text) for text in runs.values()]
    for recipe, expected in (
        ({"method": "depth", "k": 4}, naive.depth(ranked, 4)),
        ({"method": "depth", "k": 9, "budget": 50}, naive.within_budget([ranked], 9, 50)),
        ({"method": "take", "n": 7}, naive.take(ranked, 7, 1000)),
        ({"method": "take", "n": 7, "k": 3, "by": "rbp", "p": 0.9}, naive.take(ranked, 7, 3, 0.9)),
    ):
        pool = pool_of(make(api, **recipe))
        assert pairs(pool) == expected, recipe
        assert pool.documents == len(expected)
        assert [list(row) for row in pool.topics] == [
            [topic, sum(pair[0] == topic for pair in expected)] for topic in TOPICS
        ]
        best = naive.best_ranks(ranked, recipe.get("k", 1000))
        depths = [row.depth or 0 for row in pool.contributors.all()]
        for topic, rows in read_topics(pool):
            assert [row.doc_id.encode() for row in rows] == sorted(
                row.doc_id.encode() for row in rows
            )
            for row in rows:
                have = [
                    row.doc_id in run[topic][:depth]
                    for run, depth in zip(ranked, depths, strict=True)
                ]
                assert row.contributors == sum(1 << place for place, has in enumerate(have) if has)
                assert row.best_rank == best[topic, row.doc_id]
                assert (row.stratum, row.probability) == (1, 1.0)


def test_the_table_has_the_pool_of_the_first_runs_at_each_depth(
    api: APIClient, runs: dict[str, str]
) -> None:
    answer = make(api, method="depth", k=6, dry_run=True)
    assert answer.status_code == 200
    assert not Pool.objects.exists()
    ranked = [naive.rank(text) for text in runs.values()]
    table = answer.json()["depths"]
    assert table["depths"] == [1, 2, 3, 5, 6]
    assert table["documents"] == [
        [len(naive.depth(ranked[: place + 1], k)) for k in table["depths"]] for place in range(5)
    ]
    assert answer.json()["documents"] == table["documents"][-1][-1]


def test_a_sample_has_its_strata_and_probabilities(api: APIClient, runs: dict[str, str]) -> None:
    strata = [{"ranks": [1, 2], "rate": 1.0}, {"ranks": [3, 20], "rate": 0.3}]
    extra = [{"topic_id": "2", "doc_id": "added"}]
    recipe = {"method": "sample", "strata": strata, "extra": extra}
    pool = pool_of(make(api, **recipe, seed=7))
    best = naive.best_ranks([naive.rank(text) for text in runs.values()], 20)
    for topic, rows in read_topics(pool):
        deep = [pair for pair, rank in best.items() if pair[0] == topic and rank > 2]
        drawn = [row for row in rows if row.stratum == 2]
        assert len(drawn) == math.ceil(0.3 * len(deep))
        assert all(best[topic, row.doc_id] > 2 for row in drawn)
        assert {row.probability for row in drawn} == {len(drawn) / len(deep)}
        top = {row.doc_id for row in rows if row.stratum == 1}
        assert top == {doc for (of, doc), rank in best.items() if of == topic and rank <= 2}

    (added,) = [row for topic, rows in read_topics(pool) for row in rows if row.stratum == 0]
    assert (added.doc_id, added.contributors, added.best_rank) == ("added", 1 << 5, None)
    assert pool_of(make(api, **recipe, seed=7)).sha256 == pool.sha256
    assert pairs(pool_of(make(api, **recipe, seed=8))) != pairs(pool)


def test_a_second_pool_has_only_new_documents(api: APIClient, runs: dict[str, str]) -> None:
    assert (
        upload(
            api, "collections/small/qrels/", "1 0 d1 1\n1 0 d2 -1\n2 0 D3 0\n3 0 d0 1\n"
        ).status_code
        == 201
    )
    ranked = [naive.rank(text) for text in runs.values()]
    first = pool_of(make(api, method="depth", k=2))
    outdated = make(api, method="depth", k=5, only_new=True).json()
    assert api.post(f"/api/v1/pools/{first.pk}/freeze/").status_code == 200

    second = pool_of(make(api, method="depth", k=5, only_new=True))
    judged = {("1", "d1"), ("2", "D3"), ("3", "d0")}
    assert pairs(second) == naive.depth(ranked, 5) - naive.depth(ranked, 2) - judged
    refused = api.post(f"{outdated['url']}freeze/")
    assert (refused.status_code, refused.json()["code"]) == (409, "pool_outdated")
    residual = [{"collection": "small"}]
    rest = pool_of(make(api, method="depth", k=5, residual_of=residual))
    assert pairs(rest) == naive.depth(ranked, 5) - judged

    assert api.post(f"/api/v1/pools/{second.pk}/freeze/").status_code == 200
    empty = make(api, method="depth", k=5, only_new=True)
    assert (empty.status_code, empty.json()["code"]) == (409, "pool_empty")


def test_a_frozen_pool_stays(api: APIClient, runs: dict[str, str]) -> None:
    draft = make(api, method="depth", k=3)
    pool, url = pool_of(draft), draft.json()["url"]
    assert api.get(f"{url}files/1.tsv").json()["code"] == "pool_not_frozen"
    assert api.patch(url, {"shown": True}, format="json").json()["code"] == "pool_not_frozen"
    assert api.post(f"{url}freeze/").json()["state"] == "frozen"
    assert api.post(f"{url}freeze/").status_code == 200
    refused = api.delete(url)
    assert (refused.status_code, refused.json()["code"]) == (409, "pool_frozen")
    assert is_named(pool.sha256)

    other = make(api, method="depth", k=1).json()
    run = Run.objects.get(tag="r0")
    assert api.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert api.post(f"{other['url']}freeze/").json()["code"] == "pool_outdated"
    assert api.delete(other["url"]).status_code == 204
    assert api.get(url).json()["runs"][0]["tag"] == "r0"
    assert {(topic, row.doc_id) for topic, rows in read_topics(pool) for row in rows}
    actions = AuditEvent.objects.filter(object_type="pool").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == [
        "pool.made", "pool.frozen", "pool.made", "pool.deleted",
    ]  # fmt: skip


def test_files_have_an_order_of_their_own_for_each_assessor(
    api: APIClient, runs: dict[str, str]
) -> None:
    draft = make(api, method="depth", k=9, seed=3)
    pool, url = pool_of(draft), draft.json()["url"]
    api.post(f"{url}freeze/")
    text = api.get(f"{url}files/2.tsv").content.decode()
    head, rows = text.splitlines()[:3], text.splitlines()[3:]
    assert head == [f"# pool {pool.pk}", "# topic 2", f"# sha256 {pool.sha256}"]
    documents = [row.split("\t")[1] for row in rows]
    assert {("2", doc) for doc in documents} == {pair for pair in pairs(pool) if pair[0] == "2"}
    assert documents != sorted(documents)

    def order(assessor: str) -> list[str]:
        lines = api.get(f"{url}files/2.jsonl", {"assessor": assessor}).content.decode().splitlines()
        return [json.loads(line)["doc_id"] for line in lines]

    assert order("kim") == order("kim") != order("lee") != documents
    assert sorted(order("kim")) == sorted(documents)

    packed = b"".join(api.get(f"{url}files.zip", {"form": "trec"}).streaming_content)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.namelist() == [f"{topic}.trec" for topic in TOPICS]
        assert archive.read("2.trec").decode().splitlines() == [f"2 0 {doc}" for doc in documents]
    assert api.get(f"{url}files/9.tsv").status_code == 404


def test_statistics_are_those_of_a_naive_program(api: APIClient, runs: dict[str, str]) -> None:
    ranked = [naive.rank(text) for text in runs.values()]
    tops = [naive.depth([run], 4) for run in ranked]
    alone = [
        top - set().union(*(other for other in tops if other is not top), {("2", "d5")})
        for top in tops
    ]
    levels = {pair: number % 3 for number, pair in enumerate(sorted(naive.depth(ranked, 4)))}
    lines = "".join(f"{topic} 0 {doc} {level}\n" for (topic, doc), level in levels.items())
    assert upload(api, "collections/small/qrels/", lines).status_code == 201
    extra = [{"topic_id": "2", "doc_id": "d5"}]
    url = make(api, method="depth", k=4, extra=extra).json()["url"]
    answer = api.get(f"{url}statistics/").json()
    rows = {row["tag"]: row for row in answer["runs"]}
    for tag, top, own in zip(runs, tops, alone, strict=True):
        assert rows[tag]["contributed"] == len(top)
        assert rows[tag]["unique"] == len(own)
        assert rows[tag]["unique_relevant"] == sum(levels[pair] >= 1 for pair in own)
    assert answer["overlap"] == [[len(one & other) for other in tops] for one in tops]
    assert [row["documents"] for row in answer["growth"]][:3] == [
        len(naive.depth(ranked, k)) for k in (1, 2, 3)
    ]
    assert sum(row["documents"] for row in answer["strata"]) == answer["documents"]
    assert answer["relevant"] == sum(level >= 1 for level in levels.values())

    # Without the row of a run, which is damage, the numbers of the others would be in its place.
    PoolRun.objects.filter(place=0).delete()
    damaged = api.get(f"{url}statistics/")
    assert (damaged.status_code, damaged.json()["code"]) == (500, "stored_value_corrupt")


@pytest.mark.parametrize(
    ("recipe", "pointer"),
    [
        ({"method": "depht"}, "/method"),
        ({"method": "depth"}, "/k"),
        ({"method": "depth", "k": 5, "n": 3}, "/n"),
        ({"method": "take", "n": 5, "p": 0.5}, "/p"),
        ({"method": "sample", "strata": [{"ranks": [1, 5], "rate": 1}, {"ranks": [5, 9], "rate": 1}]}, "/strata/1/ranks"),
        ({"method": "sample", "strata": [{"ranks": [1, 5], "rate": 0}]}, "/strata/0/rate"),
        ({"method": "depth", "k": 5, "priorities": [1]}, "/priorities"),
        ({"method": "depth", "k": 5, "runs": ["00000000-0000-4000-8000-000000000000"]}, "/runs/0"),
        ({"method": "depth", "k": 5, "topics": ["1", "1"], "extra": [{"topic_id": "4", "doc_id": "a"}]}, "/extra/0/topic_id"),
        ({"method": "depth", "k": 5, "residual_of": [{"collection": "none"}]}, "/residual_of/0"),
        ({"method": "depth", "k": 5, "extra": [{"topic_id": "1", "doc_id": "a b"}]}, "/extra/0/doc_id"),
    ],
)  # fmt: skip
def test_a_bad_recipe_is_refused_where_it_is_wrong(
    api: APIClient, collection: str, recipe: dict[str, Any], pointer: str
) -> None:
    assert upload(api, "collections/small/runs/", texts()["r0"]).status_code == 202
    answer = make(api, **recipe)
    assert answer.status_code in (400, 422), answer.content
    pointers = [entry["pointer"] for entry in answer.json().get("errors", [answer.json()])]
    assert pointers == [pointer], answer.content


def test_who_sees_a_pool(
    api: APIClient, bob: User, runs: dict[str, str], anonymous: APIClient
) -> None:
    url = make(api, method="depth", k=3).json()["url"]
    other = client_of(bob)
    assert make(other, method="depth", k=3).status_code == 403
    api.post(f"{url}freeze/")
    for client in (other, anonymous):
        assert client.get(url).status_code == 404
        assert client.get(POOLS).json()["results"] == []
    assert api.patch(url, {"shown": True}, format="json").json()["shown"] is True
    for client in (other, anonymous):
        assert client.get(url).status_code == client.get(f"{url}statistics/").status_code == 200
        assert client.get(f"{url}files/1.tsv").status_code in (401, 403)
    api.patch(url, {"shown": False}, format="json")
    assert other.get(url).status_code == 404


def world(clock: Clock) -> dict[str, APIClient]:
    """Two teams with two entries each in the phase of `cup`, which is over."""
    people = make_people()
    make_campaign(people["olga"])
    clock.now = OPENS
    for person, team in (("ann", "apples"), ("ben", "berries")):
        assert register(people[person], team).status_code == 201
    for number, (tag, text) in enumerate(texts().items()):
        person = ("ann", "ben")[number % 2]
        if number == 4:
            clock.now = CLOSES
        answer = enter(people[person], tag, text)
        assert answer.status_code == 201, answer.content
    return people


def test_a_pool_of_a_phase_has_entries_on_time_by_priority(clock: Clock) -> None:
    people = world(clock)
    olga, address = people["olga"], f"{PHASE}pools/"
    ranked = {tag: naive.rank(text) for tag, text in texts().items()}
    refused = make(olga, address, method="depth", k=3)
    assert (refused.status_code, refused.json()["code"]) == (409, "phase_not_over")
    assert make(olga, address, method="depth", k=3, dry_run=True).status_code == 200

    clock.now = LATE
    first = pool_of(make(olga, address, method="depth", k=3, priorities=[1]))
    assert {row.run.tag for row in first.contributors.all()} == {"r0", "r1"}
    assert pairs(first) == naive.depth([ranked["r0"], ranked["r1"]], 3)
    budget = len(naive.depth([ranked["r0"], ranked["r1"]], 9)) + 10
    both = pool_of(make(olga, address, method="depth", k=9, budget=budget))
    order = [row.run.tag for row in both.contributors.order_by("place")]
    assert set(order[:2]) == {"r0", "r1"}
    assert set(order[2:]) == {"r2", "r3"}
    rounds = [[ranked[tag] for tag in order[:2]], [ranked[tag] for tag in order[2:]]]
    assert pairs(both) == naive.within_budget(rounds, 9, budget)
    depths = [row.depth for row in both.contributors.order_by("place")]
    assert depths[:2] == [9, 9]
    assert 0 < min(depths[2:]) < 9

    def flags() -> set[tuple[str, bool | None]]:
        rows = olga.get(f"{PHASE}board/").json()["results"]
        return {(row["run"]["tag"], row["pooled"]) for row in rows}

    evaluate_all()
    assert {flag for _, flag in flags()} == {None}

    # The pool is an organisers' matter; a team learns nothing of it.
    url = f"/api/v1/pools/{first.pk}/"
    assert olga.post(f"{url}freeze/").status_code == 200
    olga.patch(url, {"shown": True}, format="json")
    assert {tag for tag, flag in flags() if flag} == {"r0", "r1"}
    assert ("r2", False) in flags()
    page = browser_of("olga").get("/campaigns/cup/phases/task/").content.decode()
    assert page.count("not pooled</span>") == len([tag for tag, flag in flags() if flag is False])
    entries = olga.get(f"{PHASE}entries/").json()["results"]
    assert {row["tag"] for row in entries if row["pooled"]} == {"r0", "r1"}
    assert people["ann"].get(f"{PHASE}entries/").json()["results"][0]["pooled"] is None
    for name in ("ann", "ben", "eve"):
        assert people[name].get(url).status_code == 404
        assert people[name].get(address).json()["results"] == []
        assert make(people[name], address, method="depth", k=3).status_code == 403


def test_what_a_team_gets_is_the_same_without_pools(clock: Clock) -> None:
    """Nothing that a team reads of a phase changes with a pool of others' runs."""
    people = world(clock)
    clock.now = LATE
    browser = browser_of("ann")
    addresses = (
        f"{PHASE}pools/",
        PHASE,
        f"{PHASE}entries/",
        "/api/v1/collections/dark/",
        "/api/v1/collections/dark/pools/",
    )
    pages = ("/campaigns/cup/team/", "/campaigns/cup/phases/task/pools/")

    def read() -> list[bytes]:
        answers = [people["ann"].get(address) for address in addresses]
        answers += [browser.get(address) for address in pages]
        assert {answer.status_code for answer in answers} == {200}
        # The token against forged requests is another one in every answer.
        return [re.sub(rb'"csrfmiddlewaretoken" value="\w+"', b"", row.content) for row in answers]

    before = read()
    url = make(people["olga"], f"{PHASE}pools/", method="depth", k=3).json()["url"]
    people["olga"].post(f"{url}freeze/")
    people["olga"].patch(url, {"shown": True}, format="json")
    assert read() == before
