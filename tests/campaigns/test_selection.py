"""Feedback of a phase that does not leak, and the entries of its official board."""

from __future__ import annotations

import re
from datetime import timedelta
from io import BytesIO
from zipfile import ZipFile

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from metrics.services.boards.official_entries import official
from runs.models import (
    AuditEvent,
    Collection,
    Entry,
    Packet,
    Phase,
    User,
    sees_board,
    sees_own_results,
)
from tests.campaigns.test_board import BOARD, PAGE, browser, rows
from tests.campaigns.test_collection_board import release, statuses
from tests.campaigns.test_packets import opened
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    TICK,
    Clients,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
)
from tests.conftest import QRELS, evaluate_all, upload
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.sqlite
TIMES = {"opens_at": OPENS.isoformat(), "closes_at": CLOSES.isoformat()}


def add_phase(client: APIClient, slug: str, collection: str, **fields: object) -> APIClient:
    body = {
        "slug": slug,
        "name": slug,
        "collection": collection,
        "kind": "development",
        **TIMES,
        **fields,
    }
    return client.post(f"{CAMPAIGN}phases/", body, format="json")


def add_collection(client: APIClient, slug: str, qrels: str) -> None:
    client.post(
        "/api/v1/collections/",
        {"slug": slug, "name": slug, "team": "lab", "blind": True},
        format="json",
    )
    assert upload(client, f"collections/{slug}/qrels/", qrels).status_code == 201


def test_feedback_never_tells_what_decides_an_evaluation(people: Clients, clock: Clock) -> None:
    olga, leak = people["olga"], (409, "feedback_would_leak")
    make_campaign(olga)
    register(people["ann"], "apples")
    assert code_of(olga.patch(PHASE, {"feedback": "own"}, format="json"))[0] == 400
    # The same collection, and the same judgements under another name.
    add_collection(olga, "copy", QRELS)
    add_collection(olga, "dev", "1 0 a 1\n")
    for slug in ("dark", "copy"):
        assert code_of(add_phase(olga, f"on-{slug}", slug, feedback="own")) == leak
        assert add_phase(olga, f"on-{slug}", slug).status_code == 201
        assert (
            code_of(
                olga.patch(f"{CAMPAIGN}phases/on-{slug}/", {"feedback": "board"}, format="json")
            )
            == leak
        )
    for slug, feedback in (("mine", "own"), ("ours", "board")):
        assert add_phase(olga, slug, "dev", feedback=feedback).status_code == 201
    assert code_of(add_phase(olga, "final", "dev", kind="evaluation")) == leak
    ann, ben = User.objects.get(username="ann"), User.objects.get(username="ben")
    phases = {phase.slug: phase for phase in Phase.objects.select_related("collection", "campaign")}
    seen = {
        slug: (sees_own_results(ann, phase), sees_board(ann, phase))
        for slug, phase in phases.items()
    }
    nothing = (False, False)
    assert seen == {
        "task": nothing,
        "on-dark": nothing,
        "on-copy": nothing,
        "mine": (True, False),
        "ours": (True, True),
    }
    assert not sees_own_results(ben, phases["ours"])
    # The judgements of the evaluation come to the other collection later: its feedback ends.
    assert upload(olga, "collections/dev/qrels/", QRELS).status_code == 201
    assert not sees_own_results(ann, phases["mine"])
    assert not sees_board(ann, phases["ours"])


def test_a_version_that_is_not_active_leaks_nothing_until_it_is_activated(
    people: Clients, clock: Clock
) -> None:
    olga, leak = people["olga"], (409, "feedback_would_leak")
    make_campaign(olga)
    register(people["ann"], "apples")
    wrong, right = "1 0 a 1\n", "1 0 a 1\n2 0 x 1\n3 0 z 1\n"
    add_collection(olga, "dev", wrong)
    add_collection(olga, "final", wrong)
    assert add_phase(olga, "mine", "dev", feedback="own").status_code == 201
    refused = add_phase(olga, "last", "final", kind="evaluation")
    assert code_of(refused) == leak
    assert "active judgements of final (version 1)" in refused.json()["detail"]

    versions = "collections/final/qrels/"
    assert upload(olga, versions, right, activate="true").status_code == 201
    assert add_phase(olga, "last", "final", kind="evaluation").status_code == 201
    mine = Phase.objects.select_related("collection", "campaign").get(slug="mine")
    ann = User.objects.get(username="ann")
    assert sees_own_results(ann, mine)

    assert code_of(olga.post(f"/api/v1/{versions}1/activate/")) == leak
    assert code_of(upload(olga, versions, wrong, activate="true")) == leak
    assert Collection.objects.get(slug="final").active_qrels.version == 2
    assert sees_own_results(ann, mine)

    # The active version may be one without topics that a phase excludes. Without these it is a file
    # of its own; the whole file leaks it as well.
    def exclude(*topics: str) -> tuple[int, str]:
        fields = {"excluded_topics": topics, "excluded_reason": "broken"}
        return code_of(olga.patch(f"{CAMPAIGN}phases/last/", fields, format="json"))

    assert exclude("2", "3") == leak
    assert exclude("2")[0] == 200
    assert Collection.objects.get(slug="final").active_qrels.reduced_from
    add_collection(olga, "whole", right)
    assert code_of(add_phase(olga, "theirs", "whole", feedback="own")) == leak


def test_each_rule_takes_its_entries(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"], selection="chosen", chosen_max=2)
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    clock.now = OPENS
    urls = {}
    for tag, who in (
        ("a1", "ann"),
        ("b1", "ben"),
        ("a2", "ann"),
        ("a3", "ann"),
        ("b2", "ben"),
        ("gone", "ann"),
    ):
        clock.now += timedelta(0) if tag == "b2" else timedelta(hours=1)
        urls[tag] = enter(people[who], tag).json()["url"]
    # Its last two arrived at one instant: the later number is the later one.
    Entry.objects.filter(run__tag="a3").update(
        arrived_at=Entry.objects.get(run__tag="a2").arrived_at
    )
    for tag, status in (("a1", 200), ("a2", 200), ("a3", 409)):
        assert people["ann"].patch(urls[tag], {"chosen": True}, format="json").status_code == status
    people["ann"].post(f"{urls['gone']}withdraw/")
    clock.now = CLOSES
    assert enter(people["ann"], "late").json()["late"]
    assert code_of(people["ann"].patch(urls["a1"], {"chosen": False}, format="json")) == (
        409,
        "phase_closed",
    )
    means = {entry.run_id: {"a1": 0.5, "a2": 0.7, "a3": 0.7, "late": 1.0}.get(entry.run.tag) for entry in
             Entry.objects.select_related("run")}  # fmt: skip
    placed = {run: mean for run, mean in means.items() if mean is not None}
    expected = {"all": "a1 a2 a3 b1 b2", "latest": "a3 b2", "chosen": "a1 a2 b2", "best": "a2 b2"}
    phase = Phase.objects.get()
    for rule, tags in expected.items():
        phase.selection = rule
        entries = Entry.objects.filter(
            pk__in=[entry.pk for entry in official(phase, lambda runs: placed)]
        )
        assert sorted(entries.values_list("run__tag", flat=True)) == tags.split(), rule
    assert Collection.objects.get(slug="dark").blind


def test_only_a_phase_that_lets_teams_choose_has_something_to_choose(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    register(people["ann"], "apples")
    clock.now = OPENS
    url = enter(people["ann"], "a1").json()["url"]
    assert code_of(people["ann"].patch(url, {"chosen": True}, format="json")) == (
        409,
        "nothing_to_choose",
    )
    assert code_of(people["olga"].patch(PHASE, {"selection": "best"}, format="json")) == (
        409,
        "campaign_published",
    )


def test_the_best_of_a_team_that_cannot_be_ranked_is_its_latest_entry(
    people: Clients, clock: Clock
) -> None:
    olga = people["olga"]
    make_campaign(olga, selection="best", slots=2, measures=["SearchLength", "RR"])
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    clock.now = OPENS
    # A search length is defined where something relevant is found: on one topic of three, and on
    # none.
    some, nothing = "2 Q0 x 1 1.0 some\n", "1 Q0 q 1 1.0 none\n"
    for name, tag, content in (
        ("ann", "whole", None),
        ("ben", "some", some),
        ("ben", "none", nothing),
    ):
        clock.now += timedelta(hours=1)
        entered = enter(people[name], tag, content)
        assert entered.status_code == 201, entered.content
    evaluate_all()

    def board() -> list[tuple[str, int | None, str]]:
        rows = olga.get(f"{PHASE}board/").json()["results"]
        return [(row["run"]["tag"], row["rank"], row["reason"]) for row in rows]

    assert board() == [("whole", 1, ""), ("none", None, "no topic has a value")]
    assert people["ben"].post(f"{entered.json()['url']}withdraw/").status_code == 200
    expected = [("whole", 1, ""), ("some", None, "mean of 1 of 3 topics")]
    assert board() == expected
    # As with the rule latest.
    Phase.objects.update(selection="latest")
    assert board() == expected
    Phase.objects.update(selection="best")
    clock.now = CLOSES + timedelta(days=8)
    planned = olga.post(f"{PHASE}releases/", {"audience": "participants"}, format="json").json()
    assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200
    assert board() == expected
    results = people["ben"].get(f"{PHASE}results/").json()
    assert [entry["tag"] for entry in results["entries"]] == ["some"]
    packet = people["ben"].get(f"{PHASE}packet/")
    with ZipFile(BytesIO(packet.content)) as files:
        overview = files.read("overview.md").decode()
    lines = re.findall(r"^\| +(\S+) +\| \S+: (\w+)", overview, re.MULTILINE)
    assert lines == [("1", "whole"), ("–", "some")]


def test_nothing_takes_the_place_of_an_official_entry_that_is_disqualified(
    people: Clients, clock: Clock
) -> None:
    """The leaderboard and a snapshot made afterwards have the list of the release, without it."""
    olga, ann = people["olga"], people["ann"]
    make_campaign(olga, selection="latest")
    register(ann, "apples")
    clock.now = OPENS
    for tag in ("a1", "a2"):
        entry = enter(ann, tag).json()
        clock.now += TICK
    clock.now = LATE
    evaluate_all()
    planned = olga.post(f"{PHASE}releases/", {"audience": "public"}, format="json").json()
    assert olga.post(f"{planned['url']}now/").status_code == 200
    assert rows(olga) == [(1, "a2", "apples")]
    assert (
        olga.post(f"{entry['url']}disqualify/", {"reason": "by hand"}, format="json").status_code
        == 200
    )
    assert rows(olga) == [(None, "a2", "apples")]
    frozen = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json").json()["sha256"]
    (phase,) = olga.get(f"/api/v1/snapshots/{frozen}/").json()["manifest"]["phases"]
    assert {entry["tag"]: (entry["state"], entry.get("rank")) for entry in phase["entries"]} == {
        "a1": ("entered", None), "a2": ("disqualified", None),
    }  # fmt: skip


def test_a_frozen_leaderboard_shows_no_later_entry_of_others(people: Clients, clock: Clock) -> None:
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    frozen = CLOSES - timedelta(days=3)
    make_campaign(
        olga,
        kind="development",
        feedback="board",
        selection="latest",
        freeze_board_at=frozen.isoformat(),
    )
    assert olga.get(PHASE).json()["freeze_board_at"] == frozen.isoformat().replace("+00:00", "Z")
    for client, team in ((ann, "apples"), (ben, "berries")):
        register(client, team)
    for clock.now, tag in ((OPENS, "early"), (frozen - TICK, "before"), (frozen, "after")):
        assert enter(ann, tag).status_code == 201
    evaluate_all()
    ann_seen, ben_seen, olga_seen = (
        [[tag for _, tag, _ in rows(client, query)] for query in ("", "?view=all")]
        for client in (ann, ben, olga)
    )
    assert ann_seen == olga_seen
    # Teams read what they may: only organisers are on record.
    read_by = AuditEvent.objects.filter(action="values.read").values_list("actor", "object_id")
    assert list(read_by) == [("olga", "cup/task")]
    assert ann_seen[0] == ["after"]
    assert ben_seen[0] == ["before"]
    assert sorted(ben_seen[1]) == ["before", "early"]
    # Who tries often finds a run that was lucky.
    attempts = {
        row["run"]["tag"]: row["attempts"]
        for client in (ann, ben)
        for row in client.get(BOARD).json()["results"]
    }
    assert attempts == {"after": 3, "before": 2}
    html = page(browser("ben"), PAGE)
    assert "2 attempts" in text_of(html)
    assert "Selection effect" in text_of(html)
    assert "attempts" in ben.get(f"{BOARD}export/csv/").content.decode().splitlines()[0]
    tag = ben.get(BOARD)["ETag"]
    clock.now = frozen - TICK
    assert ben.get(BOARD, headers={"If-None-Match": tag}).status_code == 200
    assert code_of(olga.patch(PHASE, {"feedback": "own"}, format="json"))[0] == 400


def test_feedback_shows_no_overview(people: Clients, clock: Clock) -> None:
    """A team that sees its own values at once gets a draft of its own, which is not kept."""
    make_campaign(people["olga"], kind="development", feedback="own")
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    clock.now = OPENS
    for name in ("ann", "ben"):
        assert enter(people[name], f"{name}0").status_code == 201
    assert people["ann"].get(f"{PHASE}packet/").json()["code"] == "evaluations_running"
    evaluate_all()
    draft = opened(people["ann"].get(f"{PHASE}packet/"))
    assert b"ben" not in b"".join(draft.read(name) for name in draft.namelist())
    assert "overview.md" not in draft.namelist()
    # Numbers over all runs would change with every run of others, and tell its values and that it
    # came.
    (reference_set,) = people["ann"].get(f"{PHASE}results/").json()["reference_sets"]
    assert (
        reference_set["runs"],
        reference_set["withheld"],
        set(reference_set["by_topic"]["nDCG@10"]["n"]),
    ) == (0, True, {0})
    assert not Packet.objects.exists()


def test_the_leaderboard_of_the_collection_has_what_the_rule_of_the_phase_selects(
    people: Clients, clock: Clock
) -> None:
    olga = people["olga"]
    make_campaign(olga)
    register(people["ann"], "apples")
    clock.now = OPENS
    for tag, content in (("a1", None), ("a2", "1 Q0 z 1 1 a2\n")):
        assert enter(people["ann"], tag, content).status_code == 201
    clock.now = LATE
    evaluate_all()
    for rule, expected, other in (
        ("best", "a1", "a2"),
        ("latest", "a2", "a1"),
        ("chosen", "a2", "a1"),
    ):
        with transaction.atomic():
            Phase.objects.update(selection=rule)
            for step in ("organisers", "public"):
                if step == "public":
                    release(people)
                listed = statuses(olga)
                assert listed == {expected: ("official", 1)}, (rule, step)
                assert [tag for rank, tag, _ in rows(olga) if rank] == [expected], (rule, step)
            assert statuses(olga, entries="all")[other][0] == "not_selected"
            transaction.set_rollback(True)
