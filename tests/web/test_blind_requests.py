"""Blind judgements: worlds that differ in nothing but them answer every change and every parameter the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse

from runs.models import Run
from runs.web.parameters import parameters_read
from tests.web.test_blind import (
    EVERYWHERE_THE_SAME,
    OUTSIDERS,
    only,
    run_world_a,
    run_world_b,
    run_world_c,
    seen,
)
from tests.web.test_matrix import BODIES, MATRIX, PAGES, parameters_of, patterns
from tests.web.worlds import People, address, arguments, make_share, run_ids

# Its addresses are asked on PostgreSQL by test_hostile_requests and test_fuzz.
pytestmark = pytest.mark.words

WORLDS = {"world-a": run_world_a, "world-b": run_world_b, "world-c": run_world_c}
# What is drawn anew for every object that is made: codes of views, keys and secrets of links,
# tokens and webhooks.
DRAWN = (
    (re.compile(r'"pseudonym":\d+'), '"pseudonym":<drawn>'),
    (re.compile(r"evh_[0-9a-z]{8}_[\w-]+"), "<token>"),
    (re.compile(r"whsec_[\w+/=]+"), "<secret>"),
    (re.compile(r"/s/[0-9a-z]{8}/[\w-]+/"), "/s/<link>/"),
    (re.compile(r'("key":"|name="key" value="|<code>)[0-9a-f]{8}\b'), r"\1<key>"),
    (re.compile(r'("code":"|/views/|/v/|[?&]view=)[2-9a-z]{10}\b'), r"\1<code>"),
)
# Most of these would tell of judgements. The last one selects one run: several are answered in the
# order of their ids.
FILTERS = (
    "measure:AP>0",
    "-measure:AP>0.3",
    "status:ranked",
    "status:failed OR own:yes",
    "foo:x",
    "own:yes tag:run-1",
)
# Everything of systems that is read; the members of their team see their own versions.
OF_SYSTEMS = ("", "measure=AP", "measure=foo", "collection={0}", "collection={0}&measure=nDCG@10")


# What the parameters of an address are asked with, one by one: those that name runs, and the
# others.
OF_RUNS = ("run", "other", "baseline", "beside", "select", "compare", "runs", "draw")
VALUES: dict[str, tuple[str, ...]] = {
    "x": ("param:k", "measure:AP"),
    "y": ("param:k", "measure:AP"),
    "columns": ("param:k", "measure:AP", "best"),
    "arrange": ("-measure:AP", "param:k"),
    "collection": ("{0}", "another"),
    "topic": ("1", "9"),
    "system": ("lab/dense", "dense"),
    "chart": ("means", "ranks"),
    "team": ("guests", "lab"),
}


def bodies(name: str, method: str, slug: str, own: str, other: str) -> list[dict[str, Any]]:
    """What is sent: what would succeed where the judgements are open, and what asks for them."""
    experiment = [{"action": "add", "collection": slug, "filter": text} for text in FILTERS]
    described = [{"filter": text, "metadata": {"seed": 1}, "dry_run": True} for text in FILTERS]
    run = {"kind": "run", "run": own}
    asked: dict[tuple[str, str], list[dict[str, Any]]] = {
        ("experiment-page", "POST"): [*experiment, {"action": "baseline", "baseline": own}],
        ("experiment", "PATCH"): [
            {"visibility": "collection"},
            {"baseline": own},
            {"baseline": other},
        ],
        ("experiment-runs", "POST"): [{"add": [own]}, {"add": [other]}],
        ("experiments-page", "POST"): [
            {"name": "New", "runs": own},
            {"name": "New", "runs": other},
        ],
        ("runs-metadata", "PATCH"): described,
        ("comparison", "POST"): [
            {"runs": [own, other]},
            {"baseline": own, "measures": ["foo"]},
            {},
        ],
        ("queue-comparison", "POST"): [{"baseline": own}],
        ("shares", "POST"): [
            run,
            {"kind": "leaderboard", "collection": slug},
            {**run, "run": other},
            {**run, "query": "measures=foo"},
        ],
        ("shares-page", "POST"): [{"action": "create", "days": "30", **run}],
        ("views", "POST"): [{"name": "New", "query": f"filter={text}"} for text in FILTERS],
        ("label", "PUT"): [{"run": own}, {"run": other}],
        ("my-runs-page", "POST"): [
            {"action": "withdraw", "runs": own},
            {"action": "restore", "runs": own},
        ],
        ("run-parents", "PUT"): [
            {"parents": []},
            {"parents": [{"run": other}]},
            {"parents": [{"run": own}]},
        ],
        ("run-evaluations", "POST"): [{"scores": "float32"}, {"scores": "float64"}],
        ("manage-access-page", "POST"): [{"action": "release", "confirm": slug}],
    }
    return asked.get((name, method)) or [BODIES.get((name, method), dict)()]


def drawn(text: str) -> str:
    for mask, instead in DRAWN:
        text = mask.sub(instead, text)
    return text


def answered(client: Any, name: str, method: str, path: str, body: dict[str, Any]) -> Any:
    """The answer as far as worlds may be told apart by it. Nothing stays done."""
    form = {} if name in PAGES else {"format": "multipart" if "file" in body else "json"}
    # What a page of the world before has said is not said here.
    client.cookies.pop("messages", None)
    with transaction.atomic():
        status, headers, text = seen(getattr(client, method.lower())(path, body, **form))
        transaction.set_rollback(True)
    return status, [(header, drawn(value)) for header, value in headers], drawn(text)


def sent(people: People, slug: str) -> Iterator[tuple[str, Any]]:
    """Every change of every address: of an own run by everybody who is no organiser, and of another's."""
    own, other = run_ids(slug)[0], run_ids(slug)[2]
    for run, foreign in ((own, other), (other, own)):
        values = {**arguments(people, slug, run), "key": "00000000", "share": "00000000"}
        for name, parameters in parameters_of().items():
            if run == other and not {"run", "run_id", "experiment", "note"} & set(parameters):
                continue
            for method in (
                method for method in MATRIX[name] if method not in ("GET", "HEAD", "OPTIONS")
            ):
                # What is asked of another's run is answered to everybody else as to the
                # participant.
                for role in OUTSIDERS if run == own else ("participant",):
                    client: Any = people.browsers[role] if name in PAGES else people.api[role]
                    for number, body in enumerate(bodies(name, method, slug, run, foreign)):
                        if name == "logout":
                            continue
                        asked = f"{method} {name} {number} as {role}, run {run == own}"
                        yield (
                            asked,
                            answered(client, name, method, address(name, parameters, values), body),
                        )


def shown(people: People, slug: str) -> Iterator[tuple[str, Any]]:
    """A system with versions here, read by its team, and an organiser's link to the leaderboard, opened by nobody."""
    member = Run.objects.filter(collection__slug=slug, team__slug="lab").earliest("created_at").pk
    for query in OF_SYSTEMS:
        asked = query.format(slug)
        for name in ("system", "system-page"):
            path = f"{reverse(name, args=['lab', 'dense'])}?{asked}"
            client: Any = people.browsers["member"] if name in PAGES else people.api["member"]
            yield f"{name} {query}", seen(client.get(path))
    yield "a version", seen(people.browsers["member"].get(reverse("run-page", args=[member])))
    link, secret = make_share(people, slug)
    nobody: Any = people.browsers["anonymous"]
    yield "a link", seen(nobody.get(reverse("open-share", args=[link.key]) + f"{secret}/"))


def read_by(name: str) -> list[str]:
    """The parameters that an address reads."""
    (callback,) = (pattern.callback for pattern in patterns() if pattern.name == name)
    view = getattr(callback, "cls", None)
    if view is None:
        return sorted(getattr(callback, "reads", ()))
    made = view()
    made.request, made.args, made.kwargs = None, (), {}
    return sorted(parameters_read(made, "GET"))


def asked_one_by_one(people: People, slug: str) -> Iterator[tuple[str, Any]]:
    """Every address that a participant reads, with each of its parameters alone."""
    own, other = run_ids(slug)[0], run_ids(slug)[2]
    values = {**arguments(people, slug, own), "key": "00000000", "share": "00000000"}
    for name, parameters in parameters_of().items():
        if "GET" not in MATRIX[name] or name in EVERYWHERE_THE_SAME:
            continue
        client: Any = people.browsers["participant"] if name in PAGES else people.api["participant"]
        path = address(name, parameters, values)
        if seen(client.get(path))[0] != 200:
            continue
        for parameter in read_by(name):
            texts = (own, other) if parameter in OF_RUNS else VALUES.get(parameter, ("1", "AP"))
            for number, text in enumerate(texts):
                answer = client.get(path, {parameter: text.format(slug)})
                yield f"{name} {parameter} {number}", seen(answer)


@pytest.mark.slow
def test_worlds_with_different_judgements_answer_every_parameter_the_same(people: People) -> None:
    """A3, A4: `tests/web/test_blind.py` asks every address with a few queries only, and a third world, which differs
    less from these two than they do from each other."""
    found = []
    for slug in ("world-b", "world-c"):
        WORLDS[slug](people, 9)
        only(slug)
        found.append(dict(asked_one_by_one(people, slug)))
    first, other = found
    assert len(first) > 300
    assert other.keys() == first.keys()
    assert [asked for asked in first if first[asked] != other[asked]] == []


@pytest.mark.slow
def test_worlds_with_different_judgements_answer_all_changes_the_same(people: People) -> None:
    """A3, A4: also changes that name runs by a condition on their means and states."""
    found = []
    for slug in ("world-b", "world-c"):
        WORLDS[slug](people, 9)
        only(slug)
        found.append(dict([*sent(people, slug), *shown(people, slug)]))
    first, other = found
    assert len(first) > 400
    assert {200, 201, 202, 204, 303, 400, 401, 403, 404} <= {answer[0] for answer in first.values()}
    assert other.keys() == first.keys()
    assert [asked for asked in first if first[asked] != other[asked]] == []
