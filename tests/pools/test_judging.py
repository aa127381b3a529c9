"""Judging a pool: assignments, judgements of files, conflicts, agreement, and versions made of them."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from evalhub.pools.models import Assignment, Judgement, Pool
from evalhub.pools.services.assigning import documents_to_judge
from evalhub.pools.services.judging import judge_document, undo_judgement
from evalhub.pools.services.pool_file import documents_of
from evalhub.pools.services.resolving import Rule, resolve
from runs.models import AuditEvent, Qrels, Run, User
from tests.conftest import client_of, evaluate_all
from tests.pools.test_pools import make, pool_of, runs

__all__ = ["runs"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(api: APIClient, runs: dict[str, str]) -> Pool:
    """A frozen pool of `small`, with the documents of five runs at ranks 1 to 6."""
    api.patch(
        "/api/v1/collections/small/",
        {"level_labels": {"0": "no", "1": "somewhat", "2": "yes"}},
        format="json",
    )
    pool = pool_of(make(api, method="depth", k=6, seed=4))
    assert api.post(f"/api/v1/pools/{pool.pk}/freeze/").status_code == 200
    pool.refresh_from_db()
    return pool


@pytest.fixture
def kim(db: None) -> User:
    return User.objects.create_user("kim", password="correct horse")


def address(pool: Pool, name: str = "") -> str:
    return f"/api/v1/pools/{pool.pk}/{name}"


def assign(client: APIClient, pool: Pool, assessor: str, **fields: Any) -> Any:
    body = {"assessor": assessor, **fields}
    return client.post(address(pool, "assignments/"), body, format="json")


def send(client: APIClient, pool: Pool, text: str, **fields: Any) -> Any:
    file = SimpleUploadedFile("judgements", text.encode())
    return client.post(address(pool, "judgements/"), {"file": file, **fields}, format="multipart")


def lines_of(pool: Pool, level_of: Any) -> str:
    return "".join(
        f"{topic} 0 {doc} {level_of(topic, doc)}\n"
        for topic, _ in pool.topics
        for doc in documents_of(pool, topic)
    )


def given(pool: Pool, name: str, topic: str = "1") -> list[str]:
    return documents_to_judge(pool.assignments.get(assessor__name=name, topic_id=topic))


def test_copies_and_overlap_decide_who_judges_what(api: APIClient, pool: Pool, kim: User) -> None:
    User.objects.create_user("lee")
    documents = documents_of(pool, "1")
    first = assign(api, pool, "kim")
    assert first.status_code == 201, first.content
    assert [row["topic_id"] for row in first.json()] == ["1", "2", "3"]
    assert {row["primary"] for row in first.json()} == {True}
    assert set(given(pool, "kim")) == set(documents)
    assert given(pool, "kim") != documents

    (second,) = assign(api, pool, "lee", topics=["1"]).json()
    assert (second["primary"], second["copies"]) == (False, 1)
    halves = given(pool, "kim"), given(pool, "lee")
    assert sorted([*halves[0], *halves[1]]) == sorted(documents)
    assert min(map(len, halves)) >= 2

    assign(api, pool, "lee", topics=["1"], copies=2)
    assert set(given(pool, "kim")) == set(given(pool, "lee")) == set(documents)
    assert given(pool, "kim") != given(pool, "lee")

    assign(api, pool, "lee", topics=["1"], overlap=0.25)
    both = set(given(pool, "kim")) & set(given(pool, "lee"))
    assert len(both) == -(-len(documents) // 4)
    assert {*given(pool, "kim"), *given(pool, "lee")} == set(documents)

    # Who comes later takes documents from others, and moves none between them.
    User.objects.create_user("max")
    assign(api, pool, "kim", topics=["1"], copies=1)
    before = set(given(pool, "kim")), set(given(pool, "lee"))
    assign(api, pool, "max", topics=["1"])
    after = set(given(pool, "kim")), set(given(pool, "lee"))
    assert after[0] <= before[0]
    assert after[1] <= before[1]

    assert api.delete(address(pool, "assignments/kim/1/")).status_code == 204
    assert api.delete(address(pool, "assignments/kim/1/")).status_code == 404
    assert Assignment.objects.get(assessor__name="lee", topic_id="1").primary
    actions = AuditEvent.objects.filter(action__startswith="pool.").values_list("action", flat=True)
    assert {"pool.assigned", "pool.unassigned"} < set(actions)


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"assessor": "nemo"}, "unknown_user", "/assessor"),
        ({"assessor": "kim", "topics": ["9"]}, "unknown_topic", "/topics/0"),
        ({"assessor": "kim", "overlap": 1.5}, "invalid", "/overlap"),
        ({"assessor": "kim", "copies": 0}, "invalid", "/copies"),
    ],
)
def test_an_assignment_that_is_wrong_is_refused(
    api: APIClient, pool: Pool, kim: User, fields: Any, code: str, pointer: str
) -> None:
    answer = api.post(address(pool, "assignments/"), fields, format="json")
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert not Assignment.objects.exists()


def test_only_a_frozen_pool_is_judged(api: APIClient, runs: dict[str, str], kim: User) -> None:
    draft = pool_of(make(api, method="depth", k=3))
    for answer in (assign(api, draft, "kim"), send(api, draft, "1 0 d1 1\n", assessor="kim")):
        assert (answer.status_code, answer.json()["code"]) == (409, "pool_not_frozen")


def test_an_assessor_sees_own_topics_and_nothing_of_runs(
    api: APIClient, pool: Pool, kim: User, bob: User
) -> None:
    assign(api, pool, "kim", topics=["1"])
    assign(api, pool, "bob", topics=["2"])
    client = client_of(kim)
    rows = client.get(address(pool, "assignments/")).json()["results"]
    assert [(row["topic_id"], row["assessor"]) for row in rows] == [("1", "kim")]
    documents = client.get(address(pool, "documents/"), {"topic": "1"}).json()
    assert [row["doc_id"] for row in documents["results"]] == given(pool, "kim")
    assert client.get(address(pool, "documents/"), {"topic": "2"}).status_code == 404
    for name in ("", "statistics/", "files/1.tsv", "conflicts/", "agreement/", "qrels/"):
        assert client.get(address(pool, name)).status_code == 404, name
    for name in ("assignments/", "documents/?topic=1", "judgements/"):
        assert (
            client_of(User.objects.create_user(name[:3])).get(address(pool, name)).status_code
            == 404
        )
        assert APIClient().get(address(pool, name)).status_code == 401
    assert assign(client, pool, "kim").status_code == 403

    foreign = documents_of(pool, "2")[0]
    for text, fields, code in (
        (f"2 0 {foreign} 1\n", {}, "not_assigned"),
        (f"1 0 {given(pool, 'kim')[0]} 1\n", {"assessor": "bob"}, "not_assigned"),
        ("1 0 unpooled 1\n", {"allow_outside": "true"}, "not_assigned"),
    ):
        answer = send(client, pool, text, **fields)
        assert answer.json()["code"] == code
    assert send(client, pool, f"1 0 {given(pool, 'kim')[0]} 1\n").json()["new"] == 1
    send(client_of(bob), pool, f"2 0 {foreign} 2\n")
    assert [row["assessor"] for row in client.get(address(pool, "judgements/")).json()["results"]] \
        == ["kim"]  # fmt: skip
    assert len(api.get(address(pool, "judgements/")).json()["results"]) == 2


def test_formats_of_files_have_the_same_judgements(api: APIClient, pool: Pool) -> None:
    one, two = documents_of(pool, "1")[:2]
    texts = {
        "qrels": f"# judged by hand\n1 0 {one} 2\n1 0 {two} 0\n",
        "tsv": f"# pool\n1\t{one}\t2\n1\t{two}\t0\n",
        "jsonl": f'{{"topic_id": 1, "doc_id": "{one}", "level": 2}}\n'
        f'{{"topic_id": "1", "doc_id": "{two}", "level": 0}}\n',
    }
    for form, text in texts.items():
        answer = send(api, pool, text, format=form, assessor=form)
        assert answer.status_code == 201, answer.content
        assert (answer.json()["new"], answer.json()["assessors"]) == (2, {form: 2})
        stored = Judgement.objects.filter(assessor__name=form).order_by("pk")
        assert [(row.doc_id, row.level) for row in stored] == [(one, 2), (two, 0)]

    table = (
        "doc_id\ttopic_id\tlevel\tassessor\tseconds\tnote\n"
        f"{one}\t1\t0.5\tann\t3.5\ttwo words\n{two}\t1\t\tann\t\t\n{two}\t1\t1\tben\t\t\n"
    )
    answer = send(api, pool, table, format="tsv", scale="0,0.5,1").json()
    assert (answer["assessors"], answer["unjudged"]) == ({"ann": 1, "ben": 1}, 1)
    (row,) = Judgement.objects.filter(assessor__name="ann")
    assert (row.level, row.seconds, row.note) == (1, 3.5, "two words")
    assert Judgement.objects.get(assessor__name="ben").level == 2


def test_the_second_column_is_what_the_request_says(api: APIClient, pool: Pool) -> None:
    one, two = documents_of(pool, "1")[:2]
    text = f"1 0.5 {one} 2\n1 1 {two} 0\n"
    answer = send(api, pool, text, assessor="a").json()
    assert [(row["code"], row["count"]) for row in answer["warnings"]] == [("iteration_ignored", 2)]
    assert set(Judgement.objects.values_list("aspect", "round")) == {("", "")}
    send(api, pool, text, assessor="b", iteration="round")
    rounds = Judgement.objects.filter(assessor__name="b").order_by("pk")
    assert list(rounds.values_list("round", flat=True)) == ["0.5", "1"]
    aspects = f"1 1 {one} 2\n1 2 {one} 0\n"
    refused = send(api, pool, aspects, assessor="c").json()
    assert (refused["code"], refused["errors"][0]["line"]) == ("conflicting_judgement", 2)
    send(api, pool, aspects, assessor="c", iteration="subtopic")
    stored = Judgement.objects.filter(assessor__name="c").order_by("pk")
    assert list(stored.values_list("aspect", "level")) == [("1", 2), ("2", 0)]


def test_errors_of_a_file_name_its_lines_and_nothing_is_stored(api: APIClient, pool: Pool) -> None:
    one, two = documents_of(pool, "1")[:2]
    text = f"1 0 {one} 2\n1 0 unpooled 1\n1 0 {two} 7\n1 0 {one} 1\n9 0 {one} 0\n1 0 {two}\n1 0 {two} x\n"
    answer = send(api, pool, text, assessor="a")
    assert answer.status_code == 422
    assert [(row["line"], row["code"]) for row in answer.json()["errors"]] == [
        (2, "not_in_pool"),
        (3, "bad_level"),
        (4, "conflicting_judgement"),
        (5, "not_in_pool"),
        (6, "too_few_columns"),
        (7, "bad_level"),
    ]
    assert send(api, pool, f"1 0 {one} 2\n").json()["code"] == "missing_assessor"
    assert send(api, pool, "{}\n", format="jsonl", assessor="a").json()["code"] == "bad_value"
    assert send(api, pool, "1 d1\n", format="tsv", assessor="a").json()["code"] == "wrong_columns"
    assert (
        send(api, pool, f"1 0 {one} 0.3\n", scale="0,0.5", assessor="a").json()["code"]
        == "bad_level"
    )
    assert send(api, pool, "", assessor="a").json()["code"] == "empty_qrels"
    checked = send(api, pool, f"1 0 {one} 2\n", assessor="a", dry_run="true")
    assert (checked.status_code, checked.json()["lines"]) == (200, 1)
    assert not Judgement.objects.exists()

    outside = send(api, pool, "1 0 unpooled 1\n", assessor="a", allow_outside="true").json()
    assert [row["code"] for row in outside["warnings"]] == ["not_in_pool"]
    assert Judgement.objects.get().outside


def test_a_judgement_is_superseded_and_never_overwritten(
    api: APIClient, pool: Pool, kim: User
) -> None:
    assign(api, pool, "kim", topics=["1"])
    assignment = pool.assignments.get()
    one, two = given(pool, "kim")[:2]
    for level in (0, 2, 2, 1):
        judge_document(assignment=assignment, doc_id=one, level=level, user=kim, seconds=1.5)
    judge_document(assignment=assignment, doc_id=two, level=0, user=kim)
    rows = list(Judgement.objects.filter(doc_id=one).order_by("pk"))
    assert [(row.level, row.active) for row in rows] == [(0, False), (2, False), (1, True)]
    assert [row.supersedes for row in rows] == [None, *rows[:2]]
    assert undo_judgement(assignment=assignment, user=kim) == two
    assert undo_judgement(assignment=assignment, user=kim) == one
    assert undo_judgement(assignment=assignment, user=kim) is None
    active = Judgement.objects.filter(active=True)
    assert {(row.doc_id, row.level) for row in active} == {(one, -1), (two, -1)}
    judge_document(assignment=assignment, doc_id=two, level=2, user=kim)
    history = api.get(address(pool, "judgements/"), {"history": "true"}).json()["count"]
    assert (history, Judgement.objects.count()) == (7, 7)

    text = f"1 0 {one} 2\n1 0 {two} 2\n"
    answer = send(client_of(kim), pool, text).json()
    assert [answer[name] for name in ("new", "changed", "same")] == [0, 1, 1]
    assert send(client_of(kim), pool, text).json()["same"] == 2


def judged(api: APIClient, pool: Pool) -> dict[str, dict[tuple[str, str], int]]:
    """The judgements of three assessors, of whom the third judges topic 1 alone, that are stored."""
    drawn = random.Random(3)
    levels: dict[str, dict[tuple[str, str], int]] = {}
    for name in ("ann", "ben", "cid"):
        topics = [topic for topic, _ in pool.topics if name != "cid" or topic == "1"]
        levels[name] = {
            (topic, doc): drawn.choice([0, 0, 1, 2])
            for topic in topics
            for doc in documents_of(pool, topic)
        }
        text = "".join(f"{topic} 0 {doc} {level}\n" for (topic, doc), level in levels[name].items())
        assert send(api, pool, text, assessor=name).status_code == 201
    return levels


def by_document(levels: dict[str, dict[tuple[str, str], int]]) -> dict[tuple[str, str], list[int]]:
    documents: dict[tuple[str, str], list[int]] = {}
    for own in levels.values():
        for key, level in own.items():
            documents.setdefault(key, []).append(level)
    return documents


def test_conflicts_are_those_across_the_threshold(api: APIClient, pool: Pool) -> None:
    documents = by_document(judged(api, pool))

    def conflicts(**query: Any) -> set[tuple[str, str]]:
        rows = api.get(address(pool, "conflicts/"), {"limit": 200, **query}).json()["results"]
        for row in rows:
            key = row["topic_id"], row["doc_id"]
            assert [level["level"] for level in row["levels"]] == documents[key]
        return {(row["topic_id"], row["doc_id"]) for row in rows}

    across = {key for key, levels in documents.items() if min(levels) == 0 < max(levels)}
    assert conflicts() == across
    assert conflicts(conflict_at=2) == {
        key for key, levels in documents.items() if max(levels) - min(levels) >= 2
    }
    assert conflicts(conflict_at=1) == {
        key for key, levels in documents.items() if len({*levels}) > 1
    }

    topic, doc = min(across)
    decisions = [{"topic_id": topic, "doc_id": doc, "level": 2, "note": "read again"}]
    answer = api.post(address(pool, "adjudications/"), decisions, format="json")
    assert (answer.status_code, answer.json()[0]["decided_by"]) == (201, "alice")
    assert conflicts() == across - {(topic, doc)}
    assert conflicts(decided="true") == across
    api.post(address(pool, "adjudications/"), [{**decisions[0], "level": 1}], format="json")
    assert list(pool.adjudications.order_by("pk").values_list("level", "active")) == [
        (2, False), (1, True),
    ]  # fmt: skip
    for wrong, code in (({"level": 7}, "bad_level"), ({"doc_id": "unpooled"}, "not_in_pool")):
        refused = api.post(
            address(pool, "adjudications/"), [{**decisions[0], **wrong}], format="json"
        )
        assert (refused.status_code, refused.json()["code"]) == (400, code)


def naive_resolution(rule: str, levels: list[int]) -> int | None:
    """One level of those of assessors, the first being the primary and the last the latest."""
    if rule == "adjudicated" and min(levels) == 0 < max(levels):
        return None
    counts = sorted((-levels.count(level), level) for level in {*levels})
    if rule == "majority" and len(counts) > 1 and counts[0][0] == counts[1][0]:
        return None
    values = {
        "adjudicated": counts[0][1],
        "majority": counts[0][1],
        "max": max(levels),
        "min": min(levels),
        "mean_rounded_down": int(sum(levels) / len(levels)),
        "latest": levels[-1],
        "primary": levels[0],
    }
    return values[rule]


def test_rules_are_those_of_a_naive_program(api: APIClient, pool: Pool) -> None:
    documents = by_document(judged(api, pool))
    for rule in Rule:
        rows = {(row.topic_id, row.doc_id): row.level for row in resolve(pool, rule)}
        assert rows == {
            key: naive_resolution(str(rule), levels) for key, levels in documents.items()
        }, rule

    # An adjudicated level counts under every rule.
    topic, doc = min(documents)
    level = 2 - max(documents[topic, doc])
    decision = [{"topic_id": topic, "doc_id": doc, "level": level}]
    api.post(address(pool, "adjudications/"), decision, format="json")
    for rule in Rule:
        rows = {(row.topic_id, row.doc_id): row.level for row in resolve(pool, rule)}
        assert rows[topic, doc] == level


def test_the_primary_assessor_is_the_first_of_the_topic(
    api: APIClient, pool: Pool, kim: User, bob: User
) -> None:
    for name in ("kim", "bob"):
        assign(api, pool, name, topics=["1"], copies=2)
    doc = documents_of(pool, "1")[0]
    for user, level in ((bob, 0), (kim, 2)):
        send(client_of(user), pool, f"1 0 {doc} {level}\n")
    assert [row.level for row in resolve(pool, Rule.PRIMARY)] == [2]
    assert [row.level for row in resolve(pool, Rule.LATEST)] == [2]
    send(client_of(bob), pool, f"1 0 {doc} 1\n")
    assert [row.level for row in resolve(pool, Rule.PRIMARY)] == [2]
    assert [row.level for row in resolve(pool, Rule.LATEST)] == [1]


def naive_kappa(first: list[int], second: list[int]) -> float:
    """Cohen's kappa of two lists of levels; the engine's is compared with scikit-learn elsewhere."""
    n = len(first)
    same = sum(one == other for one, other in zip(first, second, strict=True)) / n
    chance = sum(first.count(level) * second.count(level) for level in {*first}) / n**2
    return (same - chance) / (1 - chance)


def test_agreement_is_that_of_a_naive_program(api: APIClient, pool: Pool) -> None:
    levels = judged(api, pool)
    answer = api.get(address(pool, "agreement/")).json()
    assert answer["assessors"] == ["ann", "ben", "cid"]
    assert answer["documents"] == len(levels["ann"])
    expected = {}
    for first, second in combinations(levels, 2):
        common = sorted(levels[first].keys() & levels[second].keys())
        sides = [[levels[name][key] for key in common] for name in (first, second)]
        expected[first, second] = naive_kappa(*sides), len(common)
    pairs = {
        (pair["first"], pair["second"]): (pair["kappa"], pair["documents"])
        for pair in answer["pairs"]
    }
    assert pairs.keys() == expected.keys()
    for key, (value, documents) in expected.items():
        assert pairs[key] == (pytest.approx(value), documents)
    mean = sum(value for value, _ in expected.values()) / 3
    assert answer["coefficients"]["kappa"]["value"] == pytest.approx(mean)
    assert answer["coefficients"]["alpha_ordinal"]["low"] is not None
    assert [row["topic_id"] for row in answer["by_topic"]] == ["1", "2", "3"]


def test_agreement_needs_two_assessors_of_a_document(api: APIClient, pool: Pool) -> None:
    one, two = documents_of(pool, "1")[:2]
    for name, doc in (("a", one), ("b", two)):
        refused = api.get(address(pool, "agreement/"))
        assert (refused.status_code, refused.json()["code"]) == (409, "too_few_assessors")
        send(api, pool, f"1 0 {doc} 1\n", assessor=name)
    assert api.get(address(pool, "agreement/")).status_code == 409


def test_judgements_become_a_version_that_evaluates_the_runs(api: APIClient, pool: Pool) -> None:
    levels = judged(api, pool)
    evaluate_all()
    open_documents = api.post(address(pool, "qrels/"), {}, format="json")
    assert (open_documents.status_code, open_documents.json()["code"]) == (409, "open_conflicts")
    board = "/api/v1/collections/small/leaderboard/"
    assert api.get(board).json()["qrels"] == 1

    body = {"resolve": "max", "note": "judged by three"}
    answer = api.post(address(pool, "qrels/"), body, format="json")
    assert answer.status_code == 201, answer.content
    version = answer.json()
    assert version["provenance"]["pools"] == [{"number": pool.number, "sha256": pool.sha256}]
    assert version["provenance"]["assessors"] == [
        {"assessor": name, "judgements": len(own)} for name, own in levels.items()
    ]
    agreement = api.get(address(pool, "agreement/")).json()["coefficients"]
    assert version["provenance"]["agreement"]["kappa"] == agreement["kappa"]["value"]
    assert (version["active"], version["resolve"]) == (True, "max")

    qrels = api.get(version["url"]).json()
    assert (qrels["author_kind"], qrels["note"]) == ("person", "judged by three")
    text = b"".join(api.get(f"{version['url']}file/").streaming_content).decode()
    expected = {
        f"{topic} 0 {doc} {max(values)}" for (topic, doc), values in by_document(levels).items()
    }
    assert set(text.splitlines()) == expected
    evaluate_all()
    answer = api.get(board).json()
    assert answer["qrels"] == version["version"]
    assert [row["state"] for row in answer["results"]] == ["ranked"] * Run.objects.count()

    again = api.post(address(pool, "qrels/"), body, format="json")
    assert (again.status_code, again.json()["version"]) == (200, version["version"])
    listed = api.get(address(pool, "qrels/")).json()["results"]
    assert [row["version"] for row in listed] == [version["version"]]


def test_a_second_version_has_what_the_pool_left_out(api: APIClient, pool: Pool) -> None:
    send(api, pool, lines_of(pool, lambda topic, doc: 1), assessor="ann")
    first = api.post(address(pool, "qrels/"), {}, format="json").json()
    more = pool_of(make(api, method="depth", k=9, only_new=True))
    api.post(address(more, "freeze/"))
    more.refresh_from_db()
    assert more.documents
    nothing = api.post(address(more, "qrels/"), {}, format="json")
    send(api, more, lines_of(more, lambda topic, doc: 2), assessor="ann")
    # A later correction in the first pool counts, too.
    topic, doc = "1", documents_of(pool, "1")[0]
    send(api, pool, f"{topic} 0 {doc} 0\n", assessor="ann")
    second = api.post(address(more, "qrels/"), {"activate": False}, format="json").json()
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_judged")
    assert [row["number"] for row in second["provenance"]["pools"]] == [1, 2]
    assert second["provenance"]["with_version"] == first["version"]
    assert second["levels"] == {"0": 1, "1": pool.documents - 1, "2": more.documents}
    assert not Qrels.objects.get(version=second["version"]).active


def test_only_a_sample_can_be_ignored(api: APIClient, pool: Pool) -> None:
    send(api, pool, lines_of(pool, lambda topic, doc: 1), assessor="ann")
    refused = api.post(address(pool, "qrels/"), {"ignore_sampling": True}, format="json")
    assert refused.status_code == 400
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/ignore_sampling"]
