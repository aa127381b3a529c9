"""Blind judgements: worlds that differ in nothing but them answer every address the same (cases A3 and A4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from metrics.models import Evaluation, SessionEvaluation
from runs.models import Collection, Disclosure, Run
from tests.conftest import GOOD, POOR, evaluate_all
from tests.web.access.addresses import ADDRESSES, CONSTANT, Address
from tests.web.access.blind import (
    OUTSIDERS,
    Seen,
    answered,
    masked,
    only,
    run_world_b,
    run_world_c,
    seen,
    values_of,
)
from tests.web.access.bodies import BODIES, file_of
from tests.web.worlds import (
    People,
    add_qrels,
    make_collection,
    make_people,
    make_share,
    run_ids,
    submit_form,
)

# Its addresses are asked on PostgreSQL by test_hostile_requests and test_fuzz.
pytestmark = [pytest.mark.django_db, pytest.mark.words, pytest.mark.slow]

# The first has no judgements, the second several versions and runs in every state.
WORLDS = ("world-c", "world-b")
# What the parameters of an address are asked with, one by one: those that name runs, and others.
OF_RUNS = ("run", "other", "baseline", "beside", "select", "compare", "runs", "draw")
VALUES = {
    "x": "measure:AP",
    "y": "measure:AP",
    "columns": "measure:AP",
    "arrange": "-measure:AP",
    "collection": "{slug}",
    "chart": "means",
    "filter": "measure:AP>0",
    "measure": "AP",
    "measures": "P@3,Judged@10",
    "qrels": "2",
    "statistics": "all",
    "status": "failed",
    "system": "lab/dense",
    "team": "lab",
}
# Together, where an address reads them all: most would tell of judgements.
QUERIES = (
    "sort=AP&order=asc",
    "measure=DCG&depth=3&per_topic=true",
    "statistics=all&baseline={run}",
    "filter=system:dense version:latest",
    "filter=status:failed OR run-1 own:yes",
    "filter=-measure:AP>0.3",
)
# The last one selects one run: several are answered in the order of their ids.
FILTERS = (
    "measure:AP>0", "-measure:AP>0.3", "status:ranked", "status:failed OR own:yes", "foo:x", "own:yes tag:run-1",
)  # fmt: skip
# How long a run has waited, in an answer and on a page.
WAITED = re.compile(r'"seconds":[\d.e-]+|\d+(\.\d+)? (s|seconds?|minutes?|min)\b')
# Drawn anew for every request, from what other addresses answer.
CHARTS = {"run-chart", "collection-chart"}
DIFFER_WHERE_OPEN = {
    "leaderboard", "comparison", "qrels-list", "run-values", "run-curve", "run-evaluations", "runs", "run",
    "collection", "collections", "home", "collection-page", "run-page", "ranking-page", "what-if", "what-if-page",
    "run-chart", "collection-chart",
}  # fmt: skip
Answers = dict[str, Seen]
# Changes of rows of replicates and of replicates.
REPLICATED: tuple[dict[str, Any], ...] = (
    {"replicate": None},
    {"replicate": "more"},
    {"replicate": "run-1"},
    {"description": "Three seeds", "metadata": {"k": 8}},
)


@pytest.fixture(scope="module")
def people(module_data: Path) -> People:
    people = make_people()
    run_world_b(people)
    run_world_c(people)
    return people


def differences(ask: Callable[[str], Iterator[tuple[str, Seen]]]) -> list[str]:
    """Return the requests that the two worlds answer differently."""
    answers: list[Answers] = []
    for slug in WORLDS:
        only(slug)
        answers.append(dict(ask(slug)))
    first, second = answers
    assert first.keys() == second.keys()
    assert len(first) > 5
    return sorted(name for name in first if first[name] != second[name])


def reading(
    people: People,
    slug: str,
    addresses: Iterable[Address],
    roles: tuple[str, ...],
    *,
    with_queries: bool = False,
) -> Iterator[tuple[str, Seen]]:
    """Read addresses as those who are no organisers; as the participant also about another's run,
    and with each parameter."""
    own, foreign = run_ids(slug)[0], run_ids(slug)[2]
    values = {run: values_of(people, slug, run) for run in (own, foreign)}
    for address in addresses:
        path = address.path(values[own])
        refused = False
        for role in roles:
            # Whoever is sent to log in learns nothing, and two who are refused as blind are enough.
            if (role == "anonymous" and address.is_signed_in("GET")) or (
                role == "member" and (refused or {"run", "run_id"} & set(address.parameters))
            ):
                continue
            name = f"{address.name} as {role}"
            answer = answered(people, role, address, "GET", path)
            yield name, answer
            if role != "participant":
                continue

            refused = answer[0] == 403
            if not refused and {"run", "run_id"} & set(address.parameters):
                other = address.path(values[foreign])
                yield f"{name} of another", answered(people, role, address, "GET", other)
            # What is refused is asked once more, with what is refused elsewhere.
            queries = queries_of(address, own, foreign, slug) if with_queries else []
            for query in queries[:1] if refused else queries:
                response = answered(people, role, address, "GET", f"{path}?{query}")
                yield f"{name} {masked(query)}", response


# What has nothing of any collection is left out.
READABLE = [
    address
    for address in ADDRESSES.values()
    if "GET" in address.methods
    and address.name not in CONSTANT
    and not {"webhook", "username", "invited", "share"} & set(address.parameters)
]


def queries_of(address: Address, own: str, foreign: str, slug: str) -> list[str]:
    """Return what is refused elsewhere, each parameter that may ask for judgements, all others at
    once, and those that belong together."""
    reads = set(address.reads())
    refused = ["measures=foo&qrels=2"] if {"measures", "qrels"} <= reads else []
    values = {**VALUES, **dict.fromkeys(OF_RUNS, foreign)}
    single = [f"{name}={values[name].format(slug=slug)}" for name in values if name in reads]
    others = "&".join(f"{name}=1" for name in sorted(reads - {*values}))
    together = [
        query.format(run=own)
        for query in QUERIES
        if {part.split("=")[0] for part in query.split("&")} <= reads
    ]
    return [*refused, *single, *([others] if others else []), *together]


def bodies(address: Address, method: str, slug: str, own: str, other: str) -> list[dict[str, Any]]:
    """What is sent: what would succeed where the judgements are open, and what asks for them."""
    experiment = [{"action": "add", "collection": slug, "filter": text} for text in FILTERS]
    described = [{"filter": text, "metadata": {"seed": 1}, "dry_run": True} for text in FILTERS]
    run = {"kind": "run", "run": own}
    bodies: dict[tuple[str, str], list[dict[str, Any]]] = {
        ("experiment-page", "POST"): [*experiment, {"action": "baseline", "baseline": own}],
        ("experiment", "PATCH"): [{"visibility": "collection"}, {"baseline": own}, {"baseline": other}],
        ("experiment-runs", "POST"): [{"add": [own]}, {"add": [other]}],
        ("experiments-page", "POST"): [{"name": "New", "runs": own}, {"name": "New", "runs": other}],
        ("runs-metadata", "PATCH"): described,
        ("comparison", "POST"): [{"runs": [own, other]}, {"baseline": own, "measures": ["foo"]}, {}],
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
        ("run-parents", "PUT"): [{"parents": []}, {"parents": [{"run": other}]}],
        ("run-evaluations", "POST"): [{"scores": "float32"}, {"scores": "float64"}],
        ("manage-access-page", "POST"): [{"action": "release", "confirm": slug}],
    }  # fmt: skip
    return bodies.get((address.name, method)) or [BODIES.get((address.name, method), dict)()]


def changing(people: People, slug: str) -> Iterator[tuple[str, Seen]]:
    """Every change of every address by the participant: of an own run, and of another's."""
    own, other = run_ids(slug)[0], run_ids(slug)[2]
    for run, foreign in ((own, other), (other, own)):
        values = values_of(people, slug, run)
        for address in ADDRESSES.values():
            about_run = {"run", "run_id", "experiment", "note"} & set(address.parameters)
            if address.name == "logout" or (run == other and not about_run):
                continue
            path = address.path(values)
            for method in address.changes:
                for number, body in enumerate(bodies(address, method, slug, run, foreign)):
                    answer = answered(people, "participant", address, method, path, body)
                    yield f"{method} {address.name} {number}, own run {run == own}", answer


def uploading(people: People, slug: str) -> Iterator[tuple[str, Seen]]:
    """What a participant may send in other ways, and what is refused."""
    guest = people.api["participant"]
    again, more = GOOD.replace("Q0 c", "Q0 cp"), GOOD + "3 Q0 q 2 0.5 good\n"
    for content, fields in (
        (again, {"tag": "run-0"}),
        (POOR, {"tag": "run-0"}),
        (more, {"tag": "new"}),
        (GOOD, {"tag": "dry", "dry_run": "true"}),
        (GOOD.replace("3.0", "x"), {}),
    ):
        answer = submit_form(guest, slug, content, team="guests", **fields)
        yield f"{fields} {content[:9]}", seen(answer)
    for path in ("qrels/1/activate/", "qrels/7/activate/"):
        yield path, seen(guest.post(f"/api/v1/collections/{slug}/{path}"))


def with_replicates(people: People, slug: str) -> Iterator[tuple[str, Seen]]:
    """What the participant reads of rows of replicates and of replicates, own ones and others', and changes there."""
    values = values_of(people, slug, run_ids(slug)[0])
    runs = Run.objects.filter(collection__slug=slug, tag__startswith="seeds")
    for run in runs.select_related("team"):
        of_run = {**values, "run": str(run.pk), "run_id": str(run.pk)}
        name = f"{run.team}/{run.tag}"
        for address in READABLE:
            if {"run", "run_id"} & set(address.parameters):
                path = address.path(of_run)
                answer = answered(people, "participant", address, "GET", path)
                yield f"{address.name} of {name}", answer

        for method, bodies in (("PATCH", REPLICATED), ("DELETE", ({},))):
            address = ADDRESSES["run"]
            for body in bodies:
                path = address.path(of_run)
                answer = answered(people, "participant", address, method, path, body)
                yield f"{method} {body} {name}", answer

    address = ADDRESSES["runs"]
    for content, fields in (
        (GOOD, {}),
        (POOR, {"tag": "run-0"}),
        (GOOD, {"replicate": "run-1"}),
        (GOOD, {"dry_run": "true"}),
    ):
        body = {"team": "guests", "replicate": "seeds", **file_of(content), **fields}
        answer = answered(people, "participant", address, "POST", address.path(values), body)
        yield f"{fields} {content[:9]}", answer


def sharing(people: People, slug: str) -> Iterator[tuple[str, Seen]]:
    """A system with versions here, read by its team, and an organiser's link to the leaderboard, opened by nobody."""
    member = Run.objects.filter(collection__slug=slug, team__slug="lab").earliest("created_at").pk
    for query in ("", "measure=AP", "measure=foo", f"collection={slug}&measure=nDCG@10"):
        for name in ("system", "system-page"):
            address = ADDRESSES[name]
            path = f"{reverse(name, args=['lab', 'dense'])}?{query}"
            yield f"{name} {masked(query)}", answered(people, "member", address, "GET", path)
    yield "a version", seen(people.browsers["member"].get(reverse("run-page", args=[member])))
    link, secret = make_share(people, slug)
    nobody = people.browsers["anonymous"]
    opened = nobody.get(f"{reverse('open-share', args=[link.key])}{secret}/")
    yield "a link", seen(opened)
    for name, more in (("shared-page", []), ("shared-file", ["csv"])):
        yield name, seen(nobody.get(reverse(name, args=[link.key, *more])))


def test_worlds_with_different_judgements_read_the_same(people: People) -> None:
    """A3, A4: every address and page, byte by byte but for ids and times."""

    def read(slug: str) -> Iterator[tuple[str, Seen]]:
        return reading(people, slug, READABLE, OUTSIDERS[:3], with_queries=True)

    differ = differences(read)
    assert not differ, "\n".join(differ)


def test_worlds_with_different_judgements_answer_changes_the_same(people: People) -> None:
    """A3, A4: also changes that name runs by a condition on their means and states."""
    for ask in (changing, uploading, sharing, with_replicates):
        differ = differences(lambda slug, ask=ask: ask(people, slug))
        assert not differ, "\n".join(differ)


def test_worlds_look_the_same_while_teams_see_their_own_results(people: People) -> None:
    """The general addresses open nothing to the members of a team, of whom the participant is one, but its results; to
    participants they open everything."""
    Collection.objects.update(shown_to=Disclosure.TEAMS)
    computed = [
        address
        for address in READABLE
        if address.callback.__module__.startswith(("metrics.", "evalhub.campaigns."))
    ]
    differ = differences(lambda slug: reading(people, slug, computed, ("participant",)))
    assert differ == ["packet as participant", "phase-results as participant"]
    only("world-b")
    Collection.objects.update(shown_to=Disclosure.PARTICIPANTS)
    board = "/api/v1/collections/world-b/leaderboard/"
    assert {role: people.api[role].get(board).status_code for role in OUTSIDERS} == {
        "anonymous": 403, "participant": 200, "member": 403, "other": 403,
    }  # fmt: skip


def test_the_same_worlds_differ_where_they_are_open(people: People) -> None:
    """The comparison above would see a difference."""
    Collection.objects.update(blind=False, released_at=timezone.now())
    open_ones = [ADDRESSES[name] for name in DIFFER_WHERE_OPEN]
    differ = differences(lambda slug: reading(people, slug, open_ones, ("anonymous",)))
    assert {name.split()[0] for name in differ} == DIFFER_WHERE_OPEN


def test_an_open_collection_tells_nothing_of_what_is_queued_in_a_blind_one(people: People) -> None:
    """Places, counts, tags and waits, before and while everything blind is evaluated anew."""
    add_qrels(people, make_collection(people, "one"))
    for tag, content in (("r0", GOOD), ("r1", POOR), ("r2", GOOD)):
        answer = submit_form(people.api["participant"], "one", content, team="guests", tag=tag)
        assert answer.status_code == 202, answer.content
        if tag != "r2":
            evaluate_all()
    values = values_of(people, "one", run_ids("one")[2])

    def read() -> dict[str, tuple[int, str]]:
        return {
            address.name: (answer[0], WAITED.sub("<waited>", answer[2]))
            for address in READABLE
            if not address.parameters
            or address.name in DIFFER_WHERE_OPEN - CHARTS
            or {"run", "run_id", "session_set"} & {*address.parameters}
            for answer in [answered(people, "participant", address, "GET", address.path(values))]
        }

    # The browser has its cookie from here on.
    people.browsers["participant"].get("/login/")
    before = read()
    assert '"position":1' in before["run"][1]
    add_qrels(people, "world-b", "1 0 b 1\n2 0 a 1\n")
    # Ahead of what waits in the open, and for longer.
    earlier = timezone.now() - timedelta(minutes=5)
    blind = Evaluation.objects.filter(run__collection__slug="world-b", state="queued")
    assert blind.update(created_at=earlier, since=earlier) > 3
    sets = SessionEvaluation.objects.filter(session_set__collection__slug="world-b")
    sets.update(created_at=earlier)
    after = read()
    differ = sorted(name for name in before if before[name] != after[name])
    assert not differ, "\n".join(differ)
