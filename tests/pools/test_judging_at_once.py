"""Four people judge at once, on both databases: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest
from django.db import close_old_connections, connection, transaction
from rest_framework.test import APIClient

from evalhub.pools.models import Assignment, Judgement, Pool
from evalhub.pools.services.assigning import assign_topics, documents_to_judge
from evalhub.pools.services.judging import judge_document
from runs.models import User
from tests.conftest import client_of, make_collection, upload
from tests.pools.test_pools import make, pool_of, texts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]


class Killed(Exception):
    """What ends a request before or after its commit, as the end of its process does."""


def make_pool() -> tuple[Pool, list[User]]:
    users = [User.objects.create_user(name) for name in ("alice", "kim", "lee", "max", "ann")]
    api: APIClient = client_of(users[0])
    make_collection(api)
    for tag, text in texts().items():
        assert upload(api, "collections/small/runs/", text, tag=tag).status_code == 202
    pool = pool_of(make(api, method="depth", k=9))
    assert api.post(f"/api/v1/pools/{pool.pk}/freeze/").status_code == 200
    pool.refresh_from_db()
    for user in users[1:]:
        assign_topics(pool=pool, user=user, topics=["1", "2"], copies=2, by=users[0])
    return pool, users[1:]


def judge_all(pool: Pool, user: User, seed: int, sent: Counter[tuple[str, str, str]]) -> None:
    """Judge as a browser does: what was killed is sent again, and some clicks come twice."""
    drawn = random.Random(seed)
    for assignment in Assignment.objects.filter(pool=pool, assessor__user=user):
        for doc_id in documents_to_judge(assignment):
            sent[user.username, assignment.topic_id, doc_id] += 1
            kills = drawn.choice([0, 0, 1, 2])
            for attempt in range(kills + 1 + drawn.choice([0, 1])):
                try:
                    with transaction.atomic():
                        judge_document(assignment=assignment, doc_id=doc_id, level=1, user=user)
                        if attempt < kills and drawn.random() < 0.5:
                            raise Killed
                    if attempt < kills:
                        raise Killed
                except Killed:
                    continue


def test_four_people_lose_and_double_nothing() -> None:
    pool, users = make_pool()
    sent: Counter[tuple[str, str, str]] = Counter()
    errors: list[BaseException] = []

    def run(user: User, seed: int) -> None:
        try:
            judge_all(pool, user, seed, sent)
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    # Each person has two windows open.
    threads = [
        threading.Thread(target=run, args=(user, seed))
        for seed, user in enumerate([*users, *users])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close_old_connections()

    assert not errors
    rows = Counter(Judgement.objects.values_list("assessor__name", "topic_id", "doc_id"))
    assert rows.keys() == sent.keys()
    assert set(rows.values()) == {1}
    documents = sum(count for topic, count in pool.topics if topic in ("1", "2"))
    assert len(rows) == 2 * documents
