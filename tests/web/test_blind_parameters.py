"""Two blind worlds that differ in the parameters and costs of others look the same to a participant and to nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from tests.conftest import GOOD, POOR
from tests.web.access.blind import only, seen
from tests.web.worlds import People, make_collection, run_ids, submit_form

# Its addresses are asked on PostgreSQL by test_hostile_requests and test_fuzz.
pytestmark = pytest.mark.words

# What the organiser's run says in each world.
OTHERS: dict[str, Any] = {
    "world-a": {"k": "secret", "kind": 1, "zz": {"deep": True}, "kk": 5},
    "world-b": {"k": 99, "kk": 5.5, **{f"n{number}": number for number in range(60)}},
    "world-c": {},
}
QUERIES = (
    "", "q=k", "filter=param:k", "filter=param:k>0", "filter=-param:k=2", "filter=param:kk", "filter=param:zz.deep",
    "filter=param:kind OR tag:run", "filter=cost:price", "filter=cost:pric", "filter=measure:AP>0",
    "filter=status:ranked", "filter=has:parameters", "limit=1&offset=1", "offset=5",
)  # fmt: skip


@pytest.fixture
def worlds(people: People) -> tuple[str, ...]:
    for slug, metadata in OTHERS.items():
        make_collection(people, slug, blind=True)
        own = {
            "team": "guests",
            "metadata": json.dumps({"k": 2, "b": "x"}),
            "costs": '{"latency_ms": 3}',
        }
        assert submit_form(people.api["participant"], slug, GOOD, **own).status_code == 202
        other = {
            "metadata": json.dumps(metadata),
            "costs": json.dumps({"price": len(metadata)} if metadata else {}),
        }
        assert submit_form(people.api["owner"], slug, POOR, **other).status_code == 202
    return tuple(OTHERS)


def views(people: People, slug: str) -> dict[str, Any]:
    """Every answer about parameters, and what comes of edits, to a participant and to nobody."""
    only(slug)
    own, other = run_ids(slug)
    views = {}
    for role in ("participant", "anonymous"):
        for query in QUERIES:
            api = people.api[role].get(f"{reverse('parameters', args=[slug])}?{query}")
            page = people.browsers[role].get(f"{reverse('parameters-page', args=[slug])}?{query}")
            views[role, query] = seen(api), seen(page)
        for run in (own, other):
            for name in ("run-history", "run"):
                views[role, name, run == own] = seen(
                    people.api[role].get(reverse(name, args=[run]))
                )
    guest, many = people.api["participant"], reverse("runs-metadata", args=[slug])
    for body in (
        {"filter": "param:k", "metadata": {"kk": 1}, "dry_run": True},
        {"filter": "param:kind", "metadata": {"kk": 1}},
        {"runs": [own, other], "metadata": {"kk": 1}},
        {"filter": "has:parameters", "rename": {"k": "kind"}, "metadata": {"kk": 1}},
    ):
        views[json.dumps(body).replace(own, "own").replace(other, "other")] = seen(
            guest.patch(many, body)
        )
    views["after"] = seen(guest.get(reverse("parameters", args=[slug])))
    return views


def test_worlds_with_different_parameters_of_others_look_the_same(
    people: People, worlds: tuple[str, ...]
) -> None:
    first, *others = (views(people, slug) for slug in worlds)
    assert {
        answer[0][0] for key, answer in first.items() if key[0] == "participant" and len(key) == 2
    } == {
        200,
        400,
        403,
    }
    for other in others:
        differing = {key: (first[key], other[key]) for key in first if first[key] != other[key]}
        assert not differing, next(iter(differing.items()))
