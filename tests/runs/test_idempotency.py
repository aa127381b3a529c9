"""The Idempotency-Key: a request sent twice is done once, whatever happened to the first answer."""

from __future__ import annotations

import gzip
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation
from runs.api.submissions import submissions
from runs.models import Collection, Membership, Qrels, RememberedAnswer, Run, Team, User
from runs.services.storage.stores.chosen import the_store
from runs.services.submissions.sweeping import sweep
from tests.conftest import GOOD, POOR, QRELS, client_of

pytestmark = pytest.mark.words

RUNS, QRELS_PATH = "/api/v1/collections/small/runs/", "/api/v1/collections/small/qrels/"
COLLECTIONS = "/api/v1/collections/"


def send(
    client: APIClient, path: str, content: str | bytes, key: str | None = "one", **query: str
) -> Any:
    body = content.encode() if isinstance(content, str) else content
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(path, body, content_type="text/plain", query_params=query, headers=headers)


@pytest.mark.queries
def test_the_same_request_gets_the_same_answer(api: APIClient, collection: str) -> None:
    first = send(api, RUNS, GOOD)
    again = send(api, RUNS, GOOD)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again["Location"] == first["Location"]
    assert (first.has_header("Idempotent-Replayed"), again["Idempotent-Replayed"]) == (
        False,
        "true",
    )
    assert Run.objects.count() == 1


def test_the_first_answer_stays_even_when_the_run_is_gone(api: APIClient, collection: str) -> None:
    first = send(api, RUNS, GOOD)
    api.delete(f"/api/v1/runs/{first.json()['id']}/")
    assert send(api, RUNS, GOOD).json() == first.json()
    assert send(api, RUNS, GOOD, key="two").json()["id"] != first.json()["id"]


def test_a_form_is_the_same_whatever_its_boundary(api: APIClient, collection: str) -> None:
    def form(boundary: str, tag: str) -> Any:
        parts = {"tag": tag, 'file"; filename="r': GOOD}
        lines = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
            for name, text in parts.items()
        ]
        body = "".join(lines) + f"--{boundary}--\r\n"
        return api.post(
            RUNS,
            body.encode(),
            content_type=f"multipart/form-data; boundary={boundary}",
            headers={"Idempotency-Key": "form"},
        )

    assert form("aaa", "x").json() == form("bbb", "x").json()
    assert (form("aaa", "y").status_code, form("aaa", "y").json()["code"]) == (
        422,
        "idempotency_key_reused",
    )


@pytest.mark.parametrize(
    ("path", "content", "query"),
    [
        (RUNS, POOR, {}),
        (RUNS, GOOD, {"tag": "other"}),
        (RUNS, gzip.compress(GOOD.encode()), {}),
        (QRELS_PATH, GOOD, {}),
    ],
    ids=["content", "field", "bytes", "address"],
)
def test_a_key_that_comes_with_another_request_is_refused(
    api: APIClient, collection: str, path: str, content: str | bytes, query: dict[str, str]
) -> None:
    send(api, RUNS, GOOD)
    answer = send(api, path, content, **query)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert answer.json()["errors"][0]["pointer"] == "Idempotency-Key"
    assert (Run.objects.count(), Qrels.objects.count()) == (1, 1)


def test_a_key_belongs_to_its_user(api: APIClient, bob: User, collection: str) -> None:
    ours, theirs = send(api, RUNS, GOOD), send(client_of(bob), RUNS, POOR)
    assert (ours.status_code, theirs.status_code) == (202, 202)
    assert ours.json()["id"] != theirs.json()["id"]


@pytest.mark.queries
def test_who_may_no_longer_do_it_is_answered_as_without_a_key(
    api: APIClient, bob: User, collection: str
) -> None:
    """Out of the team, or out of sight of the collection: what was remembered is not given out, nor done again."""
    lab = Team.objects.create(slug="lab", name="Lab")
    membership = {"team": lab, "user": bob, "role": "owner"}
    Membership.objects.create(**membership)
    guest, new = client_of(bob), {"slug": "new", "name": "N", "team": "lab"}
    Collection.objects.update(team=lab)
    requests = (
        lambda **key: send(guest, RUNS, GOOD, team="lab", **key),
        lambda **key: send(guest, QRELS_PATH, QRELS + "9 0 a 1\n", **{"key": "two", **key}),
        lambda key="three": guest.post(
            COLLECTIONS, new, headers={"Idempotency-Key": key} if key else {}
        ),
    )
    first = [ask() for ask in requests]
    assert [answer.status_code for answer in first] == [202, 201, 201]
    for visibility, codes in (("public", [400, 403, 400]), ("team", [404, 404, 400])):
        Membership.objects.filter(team=lab).delete()
        Collection.objects.update(visibility=visibility)
        again, without = [ask() for ask in requests], [ask(key=None) for ask in requests]
        assert [answer.status_code for answer in again] == codes
        assert [answer.json() for answer in again] == [answer.json() for answer in without]
        # Back in the team: as if nothing had been.
        Membership.objects.create(**membership)
        assert [ask().json() for ask in requests] == [answer.json() for answer in first]
    assert (Run.objects.count(), Qrels.objects.count(), Collection.objects.count()) == (1, 2, 2)


def test_an_error_is_not_remembered(api: APIClient, collection: str) -> None:
    assert send(api, RUNS, "1 Q0 a 1 high x\n").status_code == 422
    assert send(api, RUNS, GOOD).status_code == 202


@pytest.mark.parametrize("key", ["", "two words", "\u00e9", "x" * 256])
def test_an_odd_key_is_refused(api: APIClient, collection: str, key: str) -> None:
    answer = api.post(RUNS, GOOD.encode(), content_type="text/plain", HTTP_IDEMPOTENCY_KEY=key)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")


def test_without_a_key_the_run_that_is_there_answers(api: APIClient, collection: str) -> None:
    first, again = send(api, RUNS, GOOD, key=None), send(api, RUNS, GOOD, key=None)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["id"] == first.json()["id"]
    assert send(api, RUNS, GOOD).status_code == 200
    assert send(api, RUNS, GOOD)["Idempotent-Replayed"] == "true"


@pytest.mark.queries
def test_judgements_and_collections_are_made_once(api: APIClient, collection: str) -> None:
    qrels = QRELS + "9 0 a 1\n"
    first = send(api, QRELS_PATH, qrels, activate="false")
    again = send(api, QRELS_PATH, qrels, activate="false")
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    answers = [
        api.post(
            "/api/v1/collections/", {"slug": "new", "name": "N"}, headers={"Idempotency-Key": "c"}
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert (Qrels.objects.count(), Collection.objects.count()) == (2, 2)


@pytest.mark.queries
def test_keys_are_forgotten_after_a_day(api: APIClient, collection: str) -> None:
    send(api, RUNS, GOOD)
    send(api, RUNS, POOR, key="two")
    RememberedAnswer.objects.filter(key="one").update(
        created_at=timezone.now() - timedelta(hours=25)
    )
    assert sweep().answers == 1
    assert list(RememberedAnswer.objects.values_list("key", flat=True)) == ["two"]


class Killed(BaseException):
    """What a process that is killed does not survive."""


@pytest.mark.queries
def test_a_crash_before_the_commit_leaves_nothing_and_the_client_tries_again(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(run: Run) -> None:
        raise Killed

    files = len(list(the_store().entries()))
    with monkeypatch.context() as patch:
        patch.setattr(submissions, "queue_submitted", die)
        with pytest.raises(Killed):
            send(api, RUNS, GOOD)
    # The file is in the store, without a row: the sweeper's work.
    assert (Run.objects.count(), RememberedAnswer.objects.count()) == (0, 0)
    assert len(list(the_store().entries())) == files + 1
    assert send(api, RUNS, GOOD).status_code == 202
    assert (Run.objects.count(), Evaluation.objects.count()) == (1, 1)


def test_a_crash_after_the_commit_costs_only_the_answer(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = submissions.submit

    def submit_and_die(**arguments: Any) -> None:
        submit(**arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(submissions, "submit", submit_and_die)
        with pytest.raises(Killed):
            send(api, RUNS, GOOD)
    answer = send(api, RUNS, GOOD)
    assert (answer.status_code, answer["Idempotent-Replayed"]) == (202, "true")
    assert answer.json()["id"] == str(Run.objects.get().pk)


@pytest.mark.queries
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bodies", [(GOOD,) * 6, (GOOD, POOR) * 3], ids=["same", "different"])
def test_of_many_at_once_one_is_done(
    api: APIClient, collection: str, bodies: tuple[str, ...]
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip(
            "the tests' SQLite is in memory, where tables are locked; test_flow submits at once to a real one"
        )
    clients = [client_of(User.objects.get(username="alice")) for _ in bodies]
    answers: list[Any] = []

    def submit(client: APIClient, body: str) -> None:
        answers.append(send(client, RUNS, body))
        connections.close_all()

    threads = [
        threading.Thread(target=submit, args=pair) for pair in zip(clients, bodies, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted = [answer for answer in answers if answer.status_code == 202]
    assert len({answer.json()["id"] for answer in accepted}) == Run.objects.count() == 1
    assert len(accepted) == bodies.count(bodies[0]) or len(accepted) == len(bodies) - bodies.count(
        bodies[0]
    )
    assert {answer.json()["code"] for answer in answers if answer.status_code != 202} <= {
        "idempotency_key_reused"
    }
