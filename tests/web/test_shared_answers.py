"""Which answers are kept for others, and which changes leave them as they are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest
from django.db import transaction

from metrics.services.answer_store import forget_all
from runs.models import Collection, Run, View
from runs.services.audit.revisions import read_revision
from runs.services.tracking.labels import move_label
from tests.conftest import POOR, evaluate_all
from tests.kept import recalled_answers
from tests.web.access.addresses import ADDRESSES, Address
from tests.web.access.bodies import BODIES
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.test_answers_of_one_state import QUERIES, cached_addresses
from tests.web.worlds import People, body_of, run_ids, submit_form

__all__ = ["module_data", "module_people", "people", "run"]

pytestmark = [pytest.mark.words, pytest.mark.slow, pytest.mark.usefixtures("answers_kept")]
# What two readers mean differently, one by one.
MEANT = {
    "baseline": "label:main",
    "family": "label:main",
    "filter": "own:yes",
    "other": "label:main",
    "run": "label:main",
    "runs": "label:main,{run}",
    "view": "named",
}
# Values of other parameters, all at once.
ASKED = {
    "columns": "param:k1,label",
    "limit": "9",
    "measures": "nDCG,DCG",
    "seed": "1",
    "statistics": "all",
    "y": "AP",
}
READERS = ("participant", "other")
# What shows most beside values.
PERSONAL = ("run-page", "collection-page", "comparison-page", "phase-board-page")


@pytest.fixture
def labelled(people: People, run: str) -> None:
    """The teams of both readers have a label `main` for a run of their own, and the collection a
    view with it."""
    move_label(run=Run.objects.get(pk=run), name="main", user=None)
    late = submit_form(
        people.api["other"], "one", POOR, tag="late", metadata='{"k1": 1}', costs='{"ms": 2}'
    )
    evaluate_all()
    move_label(run=Run.objects.get(pk=late.json()["id"]), name="main", user=None)
    query = "filter=own%3Ayes&baseline=label%3Amain"
    collection = Collection.objects.get(slug="one")
    View.objects.create(
        collection=collection, code="named", query=query, scope=View.Scope.COLLECTION
    )


def asked_of(address: Address) -> Iterator[str]:
    """Nothing, each parameter of an address that readers mean differently, and the others."""
    reads = address.reads()
    yield ""
    yield from (f"{name}={MEANT[name]}" for name in reads if name in MEANT)
    if others := [f"{name}={ASKED[name]}" for name in reads if name in ASKED]:
        yield "&".join(others)


def ask(people: People, role: str, path: str) -> tuple[int, bytes]:
    client = (people.api if path.startswith("/api/") else people.browsers)[role]
    answer = client.get(path)
    # A token is another one each time.
    body = re.sub(rb'csrfmiddlewaretoken" value="\w+', b"", body_of(answer))
    return answer.status_code, body


def test_nobody_gets_the_answer_of_somebody_else(
    people: People, values: dict[str, Any], run: str, labelled: None
) -> None:
    """A view that says nothing shares nothing. Either reader asks first, by turns."""
    turns = itertools.cycle([READERS, READERS[::-1]])
    mistaken, unsaid, readable = set(), set(), 0
    for name, address in cached_addresses().items():
        shares = getattr(address.view, "get", address.callback).shared_by is not None
        plain = address.path(values)
        needed = QUERIES.get(name, "?").format(run=run, other=run_ids("one")[1])

        for query, readers in zip(asked_of(address), turns, strict=False):
            path = f"{plain}{needed}&{query.format(run=run)}".replace("?&", "?")
            forget_all()
            first = ask(people, readers[0], path)
            with recalled_answers() as recalled:
                second = ask(people, readers[1], path)
            readable += (first[0] == 200) + (second[0] == 200)
            if not recalled:
                continue

            forget_all()
            if ask(people, readers[1], path) != second:
                mistaken.add(path)
            if not shares:
                unsaid.add(path)
    assert (mistaken, unsaid) == (set(), set())
    assert readable > 190


def test_no_change_leaves_a_kept_answer_that_it_alters(
    people: People, values: dict[str, Any], run: str
) -> None:
    """Every address that changes something, asked by somebody who may: the revision moves, or what
    is kept stays as right as it was."""
    collection = Collection.objects.get(slug="one").pk
    paths = [ADDRESSES[name].path(values) for name in PERSONAL]

    def answers() -> dict[tuple[str, str], tuple[int, bytes]]:
        return {(role, path): ask(people, role, path) for role in READERS for path in paths}

    revision, moved, quiet = read_revision(collection), 0, []
    changes = [(name, method) for name, address in ADDRESSES.items() for method in address.changes]
    for name, method in changes:
        with transaction.atomic():
            if not change(people, name, method, values):
                pass
            elif read_revision(collection) != revision:
                moved += 1
            else:
                quiet.append((name, method))
            transaction.set_rollback(True)
    assert moved > 60

    # One after another, as far as each still can be made; the others from the beginning.
    while quiet:
        forget_all()
        answers()
        with transaction.atomic():
            batch = [
                (name, method) for name, method in quiet if change(people, name, method, values)
            ]
            # A change that nobody can make twice would be tried for ever.
            assert batch, quiet
            assert read_revision(collection) == revision
            stored = answers()
            forget_all()
            assert stored == answers(), batch
            transaction.set_rollback(True)
        quiet = [pair for pair in quiet if pair not in batch]
    forget_all()


def change(people: People, name: str, method: str, values: dict[str, Any]) -> bool:
    """Make the request as whoever may, and return whether anybody may."""
    path = ADDRESSES[name].path(values)
    for role in ("staff", "participant", "owner", "other", "member"):
        body = BODIES.get((name, method), dict)()
        if ADDRESSES[name].is_page:
            browser = people.browsers[role]
            cookies = copy(browser.cookies)
            answer = browser.post(path, body)
            # Who logged out is to be logged in for the next change.
            browser.cookies = cookies
        else:
            form = "multipart" if "file" in body else "json"
            answer = getattr(people.api[role], method.lower())(path, body, format=form)
        if answer.status_code < 400:
            return True
    return False
