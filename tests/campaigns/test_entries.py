"""Entries: the deadline, limits, priorities, tags and forms; what is forbidden beside an open phase."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from metrics.models import Evaluation
from runs.models import AuditEvent, Entry, Membership, Run, Team, User
from tests.campaigns.shared_data import clock, module_clock, module_data, people
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
    run_of,
)
from tests.conftest import GOOD, upload

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def open_cup(people: Clients, module_clock: Clock) -> Clients:
    """The campaign with two teams, and three slots for each; the phase is open."""
    make_campaign(people["olga"], slots=3)
    register(people["ann"], "apples")
    register(people["ben"], "berries")
    return people


@pytest.fixture
def cup(open_cup: Clients, clock: Clock) -> Clients:
    clock.now = OPENS
    return open_cup


def priorities(client: APIClient) -> dict[str, int | None]:
    return {row["tag"]: row["priority"] for row in client.get(f"{PHASE}entries/").json()["results"]}


def test_an_entry_is_a_run_with_a_receipt(cup: Clients) -> None:
    answer = enter(cup["ann"], "first")
    receipt = answer.json()
    run = Run.objects.get()
    assert (answer.status_code, receipt["run"], receipt["run_sha256"]) == (
        201,
        str(run.pk),
        run.sha256,
    )
    assert (receipt["number"], receipt["priority"], receipt["late"], receipt["team"]) == (
        1,
        1,
        False,
        "apples",
    )
    assert (receipt["arrived_at"], receipt["status"]["state"]) == (
        "2027-04-02T12:00:00Z",
        "received",
    )
    assert receipt["allowance"]["slots_left"] == 2
    assert Evaluation.objects.filter(run=run).count() == 1
    again = enter(cup["ann"], "first")
    assert (again.status_code, again.json()["id"], Entry.objects.count()) == (200, receipt["id"], 1)
    assert [
        cup[name].get(f"{PHASE}entries/").json()["count"] for name in ("ann", "olga", "ben", "eve")
    ] == [1, 1, 0, 0]
    assert cup["ben"].get(receipt["url"]).status_code == 404
    assert cup["ann"].get(receipt["url"]).json()["tag"] == "first"
    assert cup["abe"].get(receipt["url"]).status_code == 404


@pytest.mark.parametrize(
    ("instant", "answers"),
    [
        (OPENS, ["phase_planned", False, False]),
        (CLOSES, [False, True, True]),
        (LATE, [True, "phase_closed", "phase_closed"]),
    ],
)
def test_a_deadline_is_kept_to_the_microsecond(
    cup: Clients, clock: Clock, instant: datetime, answers: list[Any]
) -> None:
    for step, expected in zip((-TICK, 0 * TICK, TICK), answers, strict=True):
        clock.now = instant + step
        answer = enter(cup["ann"], f"t{answers.index(expected)}{step.microseconds % 7}").json()
        assert answer.get("code", answer.get("late")) == expected, step


def test_who_enters_nothing(cup: Clients, anonymous: APIClient) -> None:
    assert code_of(enter(cup["eve"], "x")) == (403, "not_allowed")
    assert code_of(enter(cup["abe"], "x")) == (403, "not_allowed")
    assert enter(anonymous, "x").status_code == 401
    cup["olga"].patch(
        f"{CAMPAIGN}teams/apples/", {"state": "removed", "reason": "fraud"}, format="json"
    )
    assert code_of(enter(cup["ann"], "x")) == (409, "team_not_accepted")
    cup["olga"].post(f"{PHASE}pause/", {"reason": "wrong topics"}, format="json")
    assert code_of(enter(cup["ben"], "x")) == (409, "phase_paused")
    assert cup["ben"].get(PHASE).json()["paused_reason"] == "wrong topics"
    cup["olga"].post(f"{PHASE}resume/")
    assert enter(cup["ben"], "x").status_code == 201
    assert Run.objects.count() == 1


def test_slots_are_given_back_and_attempts_never(cup: Clients, clock: Clock) -> None:
    cup["olga"].patch(PHASE, {"attempts_daily": 4, "attempts_total": 5}, format="json")
    first = [enter(cup["ann"], f"r{n}").json() for n in range(3)]
    assert code_of(enter(cup["ann"], "r3")) == (409, "no_slot_left")
    assert Run.objects.count() == 3
    cup["ann"].post(f"{first[0]['url']}withdraw/")
    assert priorities(cup["ann"]) == {"r0": None, "r1": 1, "r2": 2}
    fourth = enter(cup["ann"], "r4").json()
    assert fourth["allowance"] == {
        "slots_left": 0, "attempts_left_today": 0, "attempts_left": 1, "resets_at": "2027-04-03T00:00:00Z",
    }  # fmt: skip
    cup["ann"].post(f"{fourth['url']}withdraw/")
    refused = enter(cup["ann"], "r5")
    assert (code_of(refused), int(refused["Retry-After"])) == (
        (429, "attempts_exceeded"),
        12 * 3600 + 1,
    )
    # What was withdrawn comes back without another attempt.
    back = cup["ann"].post(f"{PHASE}entries/", {"run": first[0]["run"]}, format="json")
    assert (back.status_code, back.json()["priority"], back.json()["number"]) == (200, 3, 1)
    clock.now = datetime(2027, 4, 3, tzinfo=UTC)
    cup["ann"].post(f"{back.json()['url']}withdraw/")
    assert enter(cup["ann"], "r5").status_code == 201
    cup["ann"].post(f"{first[1]['url']}withdraw/")
    spent = enter(cup["ann"], "r6")
    assert (code_of(spent), spent.has_header("Retry-After")) == ((429, "attempts_exceeded"), False)
    assert enter(cup["ben"], "other").status_code == 201


def test_an_attempt_that_failed_by_our_fault_does_not_count(cup: Clients) -> None:
    cup["olga"].patch(PHASE, {"attempts_total": 1}, format="json")
    enter(cup["ann"], "first")
    for code, remaining in (("evaluation_crashed", 1), ("run_deleted", 0)):
        Evaluation.objects.update(state="failed", error_code=code)
        assert cup["ann"].get(f"{PHASE}allowance/").json()["attempts_left"] == remaining
    Evaluation.objects.update(state="queued", error_code="")
    assert cup["ann"].get(f"{PHASE}allowance/").json()["attempts_left"] == 0
    assert cup["olga"].get(f"{PHASE}allowance/", {"team": "apples"}).json()["attempts_left"] == 0
    assert cup["ben"].get(f"{PHASE}allowance/", {"team": "apples"}).status_code == 403


def test_priorities_have_no_gaps_and_are_set_at_once(cup: Clients, clock: Clock) -> None:
    for tag in ("a1", "b2", "c3"):
        enter(cup["ann"], tag)
    put = cup["ann"].put(f"{PHASE}priorities/", {"order": ["c3", "a1", "b2"]}, format="json")
    assert put.json() == {"order": ["c3", "a1", "b2"]}
    assert priorities(cup["ann"]) == {"a1": 2, "b2": 3, "c3": 1}
    for order in (["c3", "a1"], ["c3", "a1", "a1"], ["c3", "a1", "b2", "d4"]):
        assert code_of(cup["ann"].put(f"{PHASE}priorities/", {"order": order}, format="json")) == (
            400,
            "invalid",
        )
    assert code_of(enter(cup["ben"], "e5", priority=2)) == (400, "invalid")
    assert enter(cup["ben"], "e5", priority=1).status_code == 201
    assert code_of(enter(cup["ben"], "f6", priority=1)) == (409, "priority_taken")
    clock.now = CLOSES
    late = cup["ann"].put(f"{PHASE}priorities/", {"order": ["a1", "b2", "c3"]}, format="json")
    assert code_of(late) == (409, "phase_closed")


def test_tags_are_the_files_and_unique_in_the_campaign(cup: Clients) -> None:
    assert enter(cup["ann"], "same").status_code == 201
    assert code_of(enter(cup["ben"], "same", run_of("same").replace("3.0", "9.0"))) == (
        409,
        "tag_taken",
    )
    assert code_of(enter(cup["ann"], "apples")) == (409, "tag_is_team_name")
    assert code_of(enter(cup["ann"], "x" * 21)) == (422, "bad_run_tag")
    assert code_of(enter(cup["ann"], "y", run_of("z"))) == (422, "tag_differs")
    assert code_of(enter(cup["olga"], "same", run_of("same").replace("3.0", "8.0"), role="baseline", label="S")) == (
        409, "tag_taken",
    )  # fmt: skip
    assert enter(cup["olga"], "bm25", role="baseline", label="BM25").status_code == 201
    assert code_of(enter(cup["ben"], "bm25", run_of("bm25").replace("3.0", "9.0"))) == (
        409,
        "tag_taken",
    )
    cup["olga"].patch(CAMPAIGN, {"tag_scope": "team"}, format="json")
    assert enter(cup["ben"], "same").status_code == 201
    assert enter(cup["olga"], "same", role="baseline", label="S").status_code == 201


def test_a_form_is_answered(cup: Clients, clock: Clock) -> None:
    form = [
        {"key": "stage", "label": "First stage", "required": True, "max_length": 9},
        {"key": "kind", "type": "choice", "choices": ["dense", "sparse"]},
        {"key": "size", "type": "number"},
        {"key": "code", "type": "url"},
    ]
    types = [{"key": "automatic", "label": "Automatic"}]
    set_up = cup["olga"].patch(PHASE, {"form": form, "run_types": types}, format="json")
    assert set_up.json()["form"][0]["public"] is True
    for answers, code in (
        ("{}", "bad_answer"), ('{"stage": 3}', "bad_answer"), ('{"stage": "0123456789"}', "bad_answer"),
        ('{"stage": "x", "kind": "other"}', "bad_answer"), ('{"stage": "x", "size": true}', "bad_answer"),
        ('{"stage": "x", "code": "javascript:x"}', "bad_answer"), ('{"stage": "x", "nope": 1}', "bad_answer"),
    ):  # fmt: skip
        assert code_of(enter(cup["ann"], "x", run_type="automatic", answers=answers)) == (
            422,
            code,
        ), answers
    assert code_of(enter(cup["ann"], "x", run_type="manual", answers='{"stage": "x"}')) == (
        422,
        "wrong_run_type",
    )
    good = '{"stage": "BM25", "kind": "sparse", "size": 1.5, "code": "https://example.org/"}'
    entry = enter(cup["ann"], "x", run_type="automatic", answers=good).json()
    assert entry["answers"]["kind"] == "sparse"
    changed = cup["ann"].patch(entry["url"], {"answers": {"stage": "DPR"}}, format="json").json()
    assert changed["answers"] == {"stage": "DPR"}
    assert code_of(cup["olga"].patch(PHASE, {"form": []}, format="json")) == (
        409,
        "phase_has_entries",
    )
    clock.now = CLOSES
    refused = cup["ann"].patch(entry["url"], {"answers": {"stage": "x"}}, format="json")
    assert code_of(refused) == (409, "phase_closed")
    for wrong in (
        [{"key": "A"}],
        [{"key": "a"}, {"key": "a"}],
        [{"key": "a", "type": "choice"}],
        {},
        [{"x": 1}],
    ):
        assert cup["olga"].patch(PHASE, {"form": wrong}, format="json").status_code == 400, wrong


def test_all_agreements_are_signed_before_a_run_is_entered(cup: Clients) -> None:
    digests = [
        cup["olga"]
        .post(f"{CAMPAIGN}agreements/", {"title": text, "text": text}, format="json")
        .json()["sha256"]
        for text in ("one", "two")
    ]
    # The last one alone is not enough, and neither is the first.
    for place in (1, 0):
        assert code_of(enter(cup["ann"], "x")) == (409, "agreement_missing")
        signing = f"{CAMPAIGN}agreements/{digests[place]}/sign/"
        assert cup["ann"].post(signing, {"typed_name": "Ann"}, format="json").status_code == 200
    assert enter(cup["ann"], "x").status_code == 201


def test_organisers_enter_late_with_a_reason_and_baselines_of_their_own(
    cup: Clients, clock: Clock
) -> None:
    baseline = enter(cup["olga"], "bm25", role="baseline", label="BM25").json()
    assert (baseline["team"], baseline["priority"], baseline["role"]) == (None, None, "baseline")
    assert code_of(enter(cup["ann"], "mine", role="baseline")) == (403, "not_allowed")
    assert code_of(enter(cup["olga"], "own")) == (403, "not_allowed")
    clock.now = LATE + timedelta(days=1)
    assert code_of(enter(cup["olga"], "for-ann", on_behalf_of="apples")) == (400, "required")
    entry = enter(cup["olga"], "for-ann", on_behalf_of="apples", reason="mail lost").json()
    assert (entry["team"], entry["late"], entry["role"]) == ("apples", True, "competing")
    event = AuditEvent.objects.get(action="entry.made", object_id=entry["id"])
    assert (event.actor, event.after["reason"]) == ("olga", "mail lost")
    assert cup["ann"].get(entry["url"]).status_code == 200


def test_who_withdraws_and_disqualifies(cup: Clients, clock: Clock) -> None:
    cup["abe"].post(f"{CAMPAIGN}teams/apples/members/")
    addresses = [enter(cup["ann"], tag).json()["url"] for tag in ("a", "b", "c")]
    assert cup["abe"].post(f"{addresses[0]}withdraw/").json()["state"] == "withdrawn"
    clock.now = LATE
    assert code_of(cup["abe"].post(f"{addresses[1]}withdraw/")) == (403, "not_allowed")
    assert cup["ann"].post(f"{addresses[1]}withdraw/").status_code == 200
    assert code_of(cup["ann"].post(f"{addresses[1]}withdraw/")) == (409, "not_withdrawable")
    assert code_of(
        cup["ann"].post(f"{addresses[2]}disqualify/", {"reason": "x"}, format="json")
    ) == (
        403,
        "not_allowed",
    )
    entry = (
        cup["olga"]
        .post(f"{addresses[2]}disqualify/", {"reason": "test data"}, format="json")
        .json()
    )
    assert (entry["state"], entry["state_reason"], entry["priority"]) == (
        "disqualified",
        "test data",
        None,
    )


def test_organisers_let_somebody_join_another_team_for_a_reason(cup: Clients) -> None:
    abe, member = cup["abe"], f"{CAMPAIGN}teams/apples/members/abe/"
    abe.post(f"{CAMPAIGN}teams/apples/members/")
    enter(cup["ann"], "x")
    assert abe.delete(member).status_code == 204
    Membership.objects.create(
        team=Team.objects.get(slug="berries"), user=User.objects.get(username="abe")
    )
    berries = f"{CAMPAIGN}teams/berries/members/"
    assert code_of(abe.post(berries)) == (409, "already_in_campaign")
    assert code_of(cup["olga"].delete(member)) == (400, "required")
    assert cup["olga"].delete(f"{member}?reason=a+mistake").status_code == 204
    assert abe.post(berries).status_code == 201
    trail = (
        AuditEvent.objects.filter(action="participant.left")
        .order_by("pk")
        .values_list("actor", "after")
    )
    assert list(trail) == [("abe", {}), ("olga", {"reason": "a mistake"})]


def test_an_entered_run_is_not_withdrawn_and_its_file_stays(cup: Clients) -> None:
    entry = enter(cup["ann"], "x").json()
    run = f"/api/v1/runs/{entry['run']}/"
    assert code_of(cup["ann"].delete(run)) == (409, "entered_in_phase")
    refused = cup["ann"].patch(run, {"replicate": "x"}, format="json")
    assert code_of(refused) == (409, "replicates_not_entered")
    cup["ann"].post(f"{entry['url']}withdraw/")
    assert cup["ann"].delete(run).status_code == 204
    # What was disqualified stays on record, with its run.
    entry = enter(cup["ann"], "y").json()
    assert (
        cup["olga"]
        .post(f"{entry['url']}disqualify/", {"reason": "test data"}, format="json")
        .status_code
        == 200
    )
    refused = cup["ann"].delete(f"/api/v1/runs/{entry['run']}/")
    assert code_of(refused) == (409, "entered_in_phase")
    assert "was disqualified" in refused.json()["detail"]


def test_runs_do_not_go_past_an_open_phase(cup: Clients, clock: Clock) -> None:
    dark = "collections/dark/runs/"
    assert code_of(upload(cup["ann"], dark, GOOD, team="apples")) == (409, "enter_through_phase")
    assert code_of(upload(cup["ann"], dark, GOOD, team="ann", tag="x"))[0] in (400, 409)
    assert code_of(upload(cup["eve"], dark, GOOD, team="eves")) == (409, "enter_through_phase")
    assert code_of(cup["olga"].post("/api/v1/collections/dark/release/")) == (409, "phase_not_over")
    clock.now = CLOSES
    assert upload(cup["ann"], dark, GOOD, team="apples").status_code == 202
    clock.now = LATE
    assert cup["olga"].post("/api/v1/collections/dark/release/").status_code == 200


def test_strangers_cannot_fill_the_collection_of_an_open_phase(cup: Clients, clock: Clock) -> None:
    clock.now = OPENS - TICK
    assert (
        upload(cup["eve"], "collections/dark/runs/", run_of("early"), tag="early").status_code
        == 202
    )
    for now in (OPENS, CLOSES, LATE - TICK):
        clock.now = now
        refused = upload(cup["eve"], "collections/dark/runs/", run_of("e"), tag="e")
        assert code_of(refused) == (409, "enter_through_phase")
        assert "enter the run into the phase" in refused.json()["detail"]
    assert upload(cup["olga"], "collections/dark/runs/", run_of("o"), tag="o").status_code == 202
    clock.now = LATE
    assert upload(cup["eve"], "collections/dark/runs/", run_of("e"), tag="e").status_code == 202


def test_the_quota_of_the_collection_is_none_of_entries(cup: Clients) -> None:
    assert (
        cup["olga"].patch("/api/v1/collections/dark/", {"daily_submissions": 1}).status_code == 200
    )
    assert [enter(cup["ann"], tag).status_code for tag in ("a", "b")] == [201, 201]


def test_a_phase_may_ask_for_all_topics(cup: Clients) -> None:
    upload(cup["olga"], "collections/dark/topics/", "1\tone\n2\ttwo\n3\tthree\n", "put")
    cup["olga"].patch(PHASE, {"must_answer_all": True}, format="json")
    part = "".join(
        line for line in run_of("part").splitlines(keepends=True) if not line.startswith("3")
    )
    assert code_of(enter(cup["ann"], "part", part)) == (422, "topic_missing")
    assert enter(cup["ann"], "whole").status_code == 201


@pytest.mark.sqlite
def test_a_phase_may_limit_the_documents_of_a_topic(
    cup: Clients, clock: Clock, anonymous: APIClient
) -> None:
    lines = [
        "1 Q0 a 1 3.0 deep",
        "2 Q0 a 1 3.0 deep",
        "1 Q0 b 2 2.0 deep",
        "2 Q0 b 2 2.0 deep",
        "1 Q0 c 3 1.0 deep",
    ]
    deep, flat = ("".join(f"{line}\n" for line in some) for some in (lines, lines[:4]))
    clock.now = OPENS - TICK
    stored = upload(
        cup["ann"], "collections/dark/runs/", deep.replace("deep", "before"), team="apples"
    ).json()["id"]
    clock.now = OPENS
    assert code_of(cup["olga"].patch(PHASE, {"max_documents": 0}, format="json")) == (
        400,
        "invalid",
    )
    cup["olga"].patch(PHASE, {"max_documents": 2}, format="json")
    assert anonymous.get(PHASE).json()["max_documents"] == 2
    for refused, pointer in (
        (enter(cup["ann"], "deep", deep), "/file"), (enter(cup["ann"], "deep", deep, dry_run="true"), "/file"),
        (cup["ann"].post(f"{PHASE}entries/", {"run": stored}, format="json"), "/run"),
    ):  # fmt: skip
        assert code_of(refused) == (422, "too_many_documents_per_topic")
        (error,) = refused.json()["errors"]
        assert (error["pointer"], "topic 1 has 3 documents" in str(error)) == (pointer, True)
    assert (Entry.objects.count(), enter(cup["ann"], "deep", flat).status_code) == (0, 201)
    cup["olga"].patch(PHASE, {"max_documents": 3}, format="json")
    assert cup["ann"].post(f"{PHASE}entries/", {"run": stored}, format="json").status_code == 201


@pytest.mark.sqlite
def test_a_phase_may_say_how_tags_are_formed(cup: Clients) -> None:
    form = [
        {"key": "lang", "type": "choice", "choices": ["en", "de"], "required": True},
        {"key": "stage", "type": "text", "required": True},
        {"key": "model", "type": "choice", "choices": ["a b"], "required": True},
    ]
    types = [{"key": "automatic", "label": "Automatic"}, {"key": "manual", "label": "Manual"}]
    cup["olga"].patch(PHASE, {"form": form, "run_types": types}, format="json")
    for wrong in (
        "{team}", "plain", "{team}-{stage}", "{model}-{name}", "{nope}{name}", "{name}-{name}", "{name", "{name} x",
    ):  # fmt: skip
        refused = cup["olga"].patch(PHASE, {"naming": wrong}, format="json")
        assert (code_of(refused), refused.json()["errors"][0]["pointer"]) == (
            (400, "invalid"),
            "/naming",
        ), wrong
    pattern = "{team}-{lang}-{run_type}-{priority}"
    assert cup["olga"].patch(PHASE, {"naming": pattern}, format="json").json()["naming"] == pattern
    # What the pattern names stays in the form.
    assert code_of(cup["olga"].patch(PHASE, {"form": form[1:]}, format="json")) == (400, "invalid")

    def entered(tag: str, **fields: Any) -> Any:
        answers = '{"lang": "en", "stage": "BM25", "model": "a b"}'
        return enter(cup["ann"], tag, run_type="automatic", answers=answers, **fields)

    for tag, priority in (
        ("mine", 1), ("apples-de-automatic-1", 1), ("apples-en-manual-1", 1), ("berries-en-automatic-1", 1),
        ("apples-en-automatic-2", 1), ("apples-en-automatic-x", None),
    ):  # fmt: skip
        refused = entered(tag, **({"priority": priority} if priority else {}))
        assert code_of(refused) == (422, "wrong_tag"), tag
    assert "apples-en-automatic-{priority}" in str(refused.json())
    first = entered("Apples-en-automatic-1", priority=1).json()
    for change in (
        {"run_type": "manual"},
        {"answers": {"lang": "de", "stage": "x", "model": "a b"}},
    ):
        assert code_of(cup["ann"].patch(first["url"], change, format="json")) == (422, "wrong_tag")
    answered_form = {"answers": {"lang": "en", "stage": "DPR", "model": "a b"}}
    assert cup["ann"].patch(first["url"], answered_form, format="json").status_code == 200
    # Priorities close up behind a withdrawn entry, so that the number in a tag may be any.
    assert entered("apples-en-automatic-2").json()["priority"] == 2
    cup["ann"].post(f"{first['url']}withdraw/")
    assert entered("apples-en-automatic-3").json()["priority"] == 2
    assert enter(cup["olga"], "bm25", role="baseline", label="BM25").status_code == 201


def test_a_receipt_that_is_asked_for_again_after_the_end_is_the_same(
    cup: Clients, clock: Clock
) -> None:
    key = str(uuid.uuid4())
    clock.now = CLOSES - TICK
    first = cup["ann"].post(
        f"{PHASE}entries/?tag=x", run_of("x"), content_type="text/plain", HTTP_IDEMPOTENCY_KEY=key
    )
    clock.now = LATE
    again = cup["ann"].post(
        f"{PHASE}entries/?tag=x", run_of("x"), content_type="text/plain", HTTP_IDEMPOTENCY_KEY=key
    )
    assert (first.status_code, again.status_code, again["Idempotent-Replayed"]) == (
        201,
        201,
        "true",
    )
    assert again.json() == first.json()
    checked = enter(cup["ann"], "y", dry_run="true")
    assert (checked.status_code, checked.json()["refusal"]["code"]) == (200, "phase_closed")


def test_a_dry_run_says_that_a_tag_is_taken(cup: Clients) -> None:
    assert enter(cup["ann"], "a1").status_code == 201
    other = run_of("a1").replace("3.0", "2.5").replace("5.0", "4.5")
    for who in ("ann", "ben"):
        answer = enter(cup[who], "a1", other, dry_run="true")
        assert answer.status_code == 200, answer.content
        assert answer.json()["refusal"]["code"] == "tag_taken"
        assert code_of(enter(cup[who], "a1", other)) == (409, "tag_taken")
    assert enter(cup["ben"], "b1", dry_run="true").json()["refusal"] is None
