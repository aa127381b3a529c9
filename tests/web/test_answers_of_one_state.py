"""A cached answer is that of the state whose tag it has, also if the state changes while it is computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from metrics.models import Comparison
from metrics.questions import answer_cache
from metrics.services.answer_store import forget_all
from metrics.services.comparisons import stored
from metrics.services.snapshots import read_in_snapshot
from runs.models import Run
from runs.services.audit.reading import WRITES
from tests.conftest import GOOD, POOR, QRELS, evaluate_all
from tests.metrics.snapshots import in_a_file, through_another_connection
from tests.web.access.addresses import ADDRESSES, Address
from tests.web.worlds import (
    add_qrels,
    arguments,
    make_collection,
    make_people,
    make_runs,
    run_ids,
    submit_form,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("answers_kept"),
]
# The parameters without which an address refuses or answers nothing of the state.
QUERIES = {
    "agreement": "?with=2",
    "agreement-page": "?with=2",
    "frontier-page": "?x=ms",
    "difference": "?runs={run},{other}",
    "reusability": "?depth=1",
    "reusability-page": "?depth=1",
    "suite-comparison": "?systems=guests/good,guests/poor",
    "suite-comparison-export": "?systems=guests/good,guests/poor",
    "suite-comparison-page": "?systems=guests/good,guests/poor",
    "topic": "?topic=1",
    "undecided": "?runs={run},{other}",
}
# Answers that depend on nothing stored.
# The page of a phase without entries names no version of the judgements; two systems of a suite have
# the same values under both.
CONSTANT = {
    "version", "measures", "measure", "measures-page", "measure-page", "phase-board-page",
    "suite-comparison-export", "suite-comparison-page",
}  # fmt: skip
WRITING = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)


def cached_addresses() -> dict[str, Address]:
    """Every address with a cached answer, by name."""

    def is_cached(address: Address) -> bool:
        return getattr(getattr(address.view, "get", address.callback), "cached", False)

    return {name: address for name, address in ADDRESSES.items() if is_cached(address)}


class World:
    """A collection with two versions of judgements and four runs, in the first or the second state."""

    def __init__(self) -> None:
        self.people = make_people()
        add_qrels(self.people, make_collection(self.people, "one"))
        run = make_runs(self.people, "one")
        first, second = (
            submit_form(self.people.api["other"], "one", content, tag=tag, costs='{"ms": 2}')
            for tag, content in (("early", POOR), ("late", GOOD))
        )
        assert first.status_code == 202, first.content
        self.late = second.json()["id"]
        evaluate_all()
        add_qrels(self.people, "one", QRELS.replace("1 0 a 2", "1 0 a 1").replace("2 0 c", "2 0 e"))
        evaluate_all()
        self.first()
        values, ids = arguments(self.people, "one", run), run_ids("one")
        self.paths = {
            name: address.path(values) + QUERIES.get(name, "").format(run=ids[0], other=ids[1])
            for name, address in cached_addresses().items()
        }

    def first(self) -> None:
        """Activate version 1, with all runs."""
        self._post("collections/one/qrels/1/activate/")
        if Run.objects.get(pk=self.late).deleted_at:
            self._post(f"runs/{self.late}/restore/")

    def second(self) -> None:
        """Activate version 2 and withdraw a run."""
        self._post("collections/one/qrels/2/activate/")
        answer = self.people.api["staff"].delete(f"/api/v1/runs/{self.late}/")
        assert answer.status_code == 204, answer.content

    def _post(self, path: str) -> None:
        answer = self.people.api["staff"].post(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.content

    def ask(self, name: str, **headers: str) -> Any:
        path = self.paths[name]
        client = self.people.api["owner"] if path.startswith("/api/") else self.browser
        return client.get(path, headers=headers)

    @property
    def browser(self) -> Client:
        return self.people.browsers["owner"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World()
    with ExitStack() as stack:
        if connection.vendor == "sqlite":
            stack.enter_context(in_a_file(tmp_path / "copy.sqlite3"))
        yield built


def content(answer: Any) -> bytes:
    """Return the body without what a form contains, which differs each time."""
    assert answer.status_code == 200, (answer.request["PATH_INFO"], answer.content)
    return re.sub(rb'csrfmiddlewaretoken" value="\w+', b"", answer.content)


def test_an_answer_during_a_change_is_never_cached_as_that_of_another_state(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = answer_cache.Question._make

    def change_before_the_view(question: Any, *arguments: Any) -> Any:
        through_another_connection(world.second)
        return make(question, *arguments)

    # A page with a form sets a cookie, which belongs to its tag.
    world.ask("collection-page")
    unlike, constant = set(), set()
    for name in world.paths:
        forget_all()
        before = world.ask(name)
        forget_all()
        with monkeypatch.context() as patch:
            patch.setattr(answer_cache.Question, "_make", change_before_the_view)
            during = world.ask(name)
        between = world.ask(name)
        through_another_connection(world.first)
        after = world.ask(name)

        assert before["ETag"] == after["ETag"], name
        if content(before) != content(after) or (
            before["ETag"] == during["ETag"] and content(before) != content(during)
        ):
            unlike.add(name)
        if content(between) == content(before):
            constant.add(name)
    assert (unlike, constant) == (set(), CONSTANT)


def test_an_answer_is_read_in_its_snapshot_and_written_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a snapshot nothing is written, which PostgreSQL refuses, and after it nothing is read."""
    ended = False

    def check(execute: Any, sql: str, *rest: Any) -> Any:
        assert not ended, f"read after the snapshot: {sql}"
        assert WRITES.get() is None or not WRITING.match(sql), f"written in the snapshot: {sql}"
        return execute(sql, *rest)

    def read_and_end(read: Callable[[], Any]) -> Any:
        nonlocal ended
        answer = read_in_snapshot(read)
        ended = True
        return answer

    monkeypatch.setattr(answer_cache, "read_in_snapshot", read_and_end)
    with connection.execute_wrapper(check):
        for name in set(world.paths) - CONSTANT:
            ended = False
            forget_all()
            assert world.ask(name).status_code == 200, name
            assert ended, name


def test_a_session_that_has_become_invalid_is_deleted_before_the_snapshot(world: World) -> None:
    def check(execute: Any, sql: str, *rest: Any) -> Any:
        assert WRITES.get() is None or not WRITING.match(sql), sql
        return execute(sql, *rest)

    owner = world.people.users["owner"]
    owner.set_password("another password")
    owner.save()
    with connection.execute_wrapper(check):
        page = world.ask("collection-page")
    assert page.status_code == 200
    assert b">owner<" not in page.content
    assert not Session.objects.filter(pk=world.browser.cookies["sessionid"].value).exists()


def test_a_comparison_is_queued_after_the_snapshot_and_has_no_tag(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "fits_a_request", lambda *arguments: False)
    path = "/api/v1/collections/one/comparison/?measures=P@1"
    for _ in range(2):
        answer = world.people.api["owner"].get(path)
        assert (answer.status_code, "ETag" in answer) == (202, False), answer.content
    waiting = Comparison.objects.filter(state=Comparison.State.QUEUED).values_list("pk", flat=True)
    assert [str(pk) for pk in waiting] == [answer.json()["comparison"]["id"]]
