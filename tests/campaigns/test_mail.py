"""Mail of campaigns: who is told what, the outbox, a server of mail that is away, and kills in between."""

from __future__ import annotations

import smtplib
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.mail.backends.locmem import EmailBackend
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.campaigns.services.moments import note_digests, note_moments, note_waiting
from evalhub.campaigns.services.releasing import release_due
from evalhub.environment import mail_settings
from evalhub.operating.checks import check_mail
from metrics.models import Evaluation
from metrics.services.queue.notices import announce_ended
from runs.models import (
    Campaign,
    CampaignMember,
    Delivery,
    Entry,
    Mail,
    Participation,
    Phase,
    PhaseMoment,
    Signature,
    Team,
    User,
)
from runs.services.mail import sending
from runs.services.mail.outbox import claim_next, reap_mails, sweep_mails
from runs.services.mail.sending import MailSender, send_due
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
    enter,
    make_campaign,
    register,
)
from tests.conftest import QRELS, evaluate_all, upload
from tests.metrics.webhooks import events as events_of
from tests.metrics.webhooks import make_webhook

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture(scope="module")
def world(people: Clients) -> Clients:
    """A campaign in which Ann and Abe of the apples and Ben of the berries take part."""
    User.objects.update(email="")
    for name in ("olga", "ann", "ben", "eve"):
        User.objects.filter(username=name).update(email=f"{name}@example.org")
    make_campaign(people["olga"], slots=1)
    register(people["ann"], "apples")
    register(people["ben"], "berries")
    people["abe"].post(f"{CAMPAIGN}teams/apples/members/")
    Mail.objects.all().delete()
    return people


@pytest.fixture
def cup(world: Clients, clock: Clock, settings: Any) -> Clients:
    """The campaign; mail is set up."""
    settings.EVALHUB_MAIL_URL, settings.DEFAULT_FROM_EMAIL = (
        "smtp://mail.example.org",
        "evalhub@example.org",
    )
    settings.EVALHUB_URL = "https://eval.example.org"
    return world


def send() -> int:
    """Send all that waits, whatever it waits for."""
    Mail.objects.filter(state="due").update(next_at=timezone.now() - timedelta(minutes=1))
    return send_due()


def written_mails() -> list[tuple[str, str, str]]:
    """What was written since the last time: event, recipient and state."""
    rows = Mail.objects.order_by("created_at", "recipient")
    mails = list(rows.values_list("event", "recipient__username", "state"))
    rows.all().delete()
    return mails


def test_a_receipt_is_sent_once_and_says_what_arrived_when(cup: Clients, clock: Clock) -> None:
    clock.now = OPENS
    entered = enter(cup["ann"], "dense").json()
    assert send() == 1
    (sent,) = mail.outbox
    assert (sent.to, sent.from_email) == (["ann@example.org"], "evalhub@example.org")
    assert sent.subject == "[Cup] Task: received entry 1, dense"
    for part in (
        entered["run_sha256"],
        "2027-04-02 12:00:00.000000 UTC",
        "0 slots",
        "https://eval.example.org/campaigns/cup/",
    ):
        assert part in sent.body
    row = Mail.objects.get(recipient__username="ann")
    assert sent.message()["Message-ID"] == f"<{row.pk}@eval.example.org>"
    assert written_mails() == [
        ("entry.received", "ann", "sent"),
        ("entry.received", "abe", "no_address"),
    ]
    # The same file under the same tag is no event.
    enter(cup["ann"], "dense")
    assert (written_mails(), send()) == ([], 0)


def test_every_act_tells_whom_it_concerns(cup: Clients, clock: Clock) -> None:
    olga, ann = cup["olga"], cup["ann"]
    both = ["ann", "abe", "ben"]
    clock.now = OPENS
    address = enter(ann, "dense").json()["url"]
    written_mails()
    for act, event, whom in (
        (lambda: ann.post(f"{address}withdraw/"), "entry.withdrawn", ["ann", "abe"]),
        (lambda: ann.post(f"{PHASE}entries/", {"run": ann.get(address).json()["run"]}, format="json"), "entry.received",
         ["ann", "abe"]),
        (lambda: olga.post(f"{address}disqualify/", {"reason": "copied"}, format="json"), "entry.disqualified",
         ["ann", "abe"]),
        (lambda: olga.post(f"{PHASE}pause/", {"reason": "x"}, format="json"), "phase.paused", both),
        (lambda: olga.post(f"{PHASE}resume/"), "phase.resumed", both),
        (lambda: olga.post(f"{PHASE}extend/", {"closes_at": (CLOSES + timedelta(hours=1)).isoformat(), "reason": "x",
                                               "team": "berries"}, format="json"), "phase.extended", ["ben"]),
        (lambda: olga.post(f"{CAMPAIGN}notices/", {"title": "x", "text": "y"}, format="json"), "notice.posted",
         ["olga", *both]),
        (lambda: olga.patch(CAMPAIGN, {"registration": "approval"}, format="json"), "", []),
        (lambda: register(cup["eve"], "eves"), "team.requested", ["olga"]),
        (lambda: olga.patch(f"{CAMPAIGN}teams/eves/", {"state": "declined"}, format="json"), "team.declined", ["eve"]),
        (lambda: olga.patch(f"{CAMPAIGN}teams/eves/", {"state": "accepted"}, format="json"), "team.accepted", ["eve"]),
        (lambda: olga.patch(f"{CAMPAIGN}teams/eves/", {"state": "removed"}, format="json"), "team.removed", ["eve"]),
    ):  # fmt: skip
        assert act().status_code in (200, 201), event
        assert sorted(row[:2] for row in written_mails()) == sorted(
            (event, name) for name in whom
        ), event


def test_who_is_invited_into_a_campaign_is_told_where_to_accept(cup: Clients) -> None:
    ann, eve, address = cup["ann"], cup["eve"], f"{CAMPAIGN}teams/apples/invitations/"
    open_one = "/api/v1/teams/apples/invitations/eve/"
    assert ann.post(address, {"username": "eve"}, format="json").status_code == 201
    assert send() == 1
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["eve@example.org"], "[Cup] you are invited to team apples")
    for part in (
        "ann invites you to team",
        "(apples) as member",
        "take part with it in Cup",
        "//eval.example.org/account/",
    ):
        assert part in sent.body
    assert written_mails() == [("member.invited", "eve", "sent")]
    # What is refused tells nobody, and neither do an invitation to the team alone and a link.
    assert ann.post(address, {"username": "eve"}, format="json").status_code == 409
    assert ann.delete(open_one).status_code == 204
    assert (
        ann.post("/api/v1/teams/apples/members/", {"username": "eve"}, format="json").status_code
        == 201
    )
    assert ann.delete(open_one).status_code == 204
    assert ann.post(address, {}, format="json").status_code == 201
    assert written_mails() == []
    # Without a confirmed address there is nowhere to send it; and nobody is told again and again.
    User.objects.filter(username="eve").update(email="")
    for _ in range(6):
        assert ann.post(address, {"username": "eve"}, format="json").status_code == 201
        assert ann.delete(open_one).status_code == 204
    assert written_mails() == [("member.invited", "eve", "no_address")] * 5
    assert ann.post(address, {"username": "eve"}, format="json").status_code == 201
    assert eve.post("/api/v1/invitations/apples/").status_code == 201


def test_without_a_server_of_mail_organisers_read_what_would_have_gone_out(
    cup: Clients, clock: Clock, settings: Any
) -> None:  # fmt: skip
    settings.EVALHUB_MAIL_URL = ""
    clock.now = OPENS
    enter(cup["ann"], "dense")
    rows = cup["olga"].get(f"{CAMPAIGN}outbox/").json()["results"]
    assert {(row["to"], row["means"]) for row in rows} == {
        (name, "not sent: mail is not set up") for name in ("ann", "abe")
    }
    assert "@example.org" not in str([{**row, "text": ""} for row in rows])
    # Nor is it sent when there is one later.
    settings.EVALHUB_MAIL_URL = "smtp://mail.example.org"
    assert (send(), mail.outbox) == (0, [])
    assert cup["ann"].get(f"{CAMPAIGN}outbox/").status_code == 403


def test_notices_are_for_whom_they_are_meant(cup: Clients, anonymous: APIClient) -> None:
    for audience in ("teams", "public"):
        notice = {"title": f"To {audience}", "text": "x", "audience": audience}
        assert cup["olga"].post(f"{CAMPAIGN}notices/", notice, format="json").status_code == 201
    Participation.objects.filter(team__slug="berries").update(state="removed")
    seen = {
        name: cup[name].get(f"{CAMPAIGN}notices/").json()["count"]
        for name in ("olga", "abe", "ben", "eve")
    }
    assert (seen, anonymous.get(f"{CAMPAIGN}notices/").json()["count"]) == (
        {"olga": 2, "abe": 2, "ben": 1, "eve": 1},
        1,
    )
    assert (
        cup["ann"]
        .post(f"{CAMPAIGN}notices/", {"title": "x", "text": "x"}, format="json")
        .status_code
        == 403
    )


class Away(EmailBackend):
    """A server of mail that fails as often as it is told to, and takes everything afterwards."""

    errors: ClassVar[list[Exception]] = []

    def send_messages(self, messages: Any) -> int:
        if self.errors:
            raise self.errors.pop(0)
        return super().send_messages(messages)


def test_nothing_is_lost_while_the_server_of_mail_is_away(
    cup: Clients, clock: Clock, settings: Any
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.Away"
    clock.now = OPENS
    for client, tag in ((cup["ann"], "dense"), (cup["ben"], "sparse")):
        enter(client, tag)
    Away.errors = [
        ConnectionRefusedError("refused"),
        smtplib.SMTPServerDisconnected("gone"),
        TimeoutError(),
    ]
    for attempts in (1, 2, 3):
        # One try, and the others wait: the dispatcher comes again.
        assert send() == 0
        waiting = Mail.objects.filter(state="due", recipient__email__gt="").order_by("-attempts")
        assert (len(waiting), sum(row.attempts for row in waiting)) == (2, attempts)
        assert max(row.next_at for row in waiting) > timezone.now() + timedelta(seconds=20)
    assert (send(), len(mail.outbox)) == (2, 2)
    assert set(Mail.objects.values_list("state", flat=True)) == {"sent", "no_address"}


def test_an_address_that_is_refused_is_given_up_and_the_others_go_on(
    cup: Clients, clock: Clock, settings: Any
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.Away"
    cup["olga"].post(f"{CAMPAIGN}notices/", {"title": "x", "text": "y"}, format="json")
    refused = {"a": (550, b"no such user")}
    Away.errors = [
        smtplib.SMTPRecipientsRefused(refused),
        smtplib.SMTPRecipientsRefused({"a": (451, b"later")}),
    ]
    send()
    states = list(
        Mail.objects.exclude(state="no_address").values_list("state", flat=True).order_by("state")
    )
    assert states == ["due", "given_up", "sent"]
    assert "no such user" in Mail.objects.get(state="given_up").last_error


def test_a_mail_whose_sender_was_killed_is_sent_again_under_its_id(
    cup: Clients, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The kill comes after the server of mail has taken it and before that is recorded."""
    clock.now = OPENS
    enter(cup["ben"], "sparse")

    def killed(claimed: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sending, "settle_sent", killed)
        with pytest.raises(KeyboardInterrupt):
            send()
    assert (Mail.objects.get().state, reap_mails(), send()) == ("sending", 0, 0)
    Mail.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert (reap_mails(), send()) == (1, 1)
    first, second = (message.message()["Message-ID"] for message in mail.outbox)
    assert first == second
    assert Mail.objects.get().attempts == 2


def test_an_event_that_is_rolled_back_is_not_told(cup: Clients, clock: Clock) -> None:
    """Nothing is written without its cause, and no cause without what is told of it."""
    clock.now = OPENS
    with transaction.atomic():
        enter(cup["ann"], "dense")
        transaction.set_rollback(True)
    assert (written_mails(), Entry.objects.count()) == ([], 0)


def test_no_name_writes_a_header(cup: Clients, clock: Clock) -> None:
    Campaign.objects.update(name="Cup\r\nBcc: all@example.org")
    Participation.objects.update(name="x\nTo: other@example.org")
    clock.now = OPENS
    enter(cup["ben"], "sparse")
    assert send() == 1
    message = mail.outbox[0].message()
    assert (message["Bcc"], message["To"]) == (None, "ben@example.org")
    assert "\n" not in mail.outbox[0].subject
    # An address that breaks a header is refused for good, and nothing after it waits.
    User.objects.filter(username="ben").update(email="ben@example.org\nBcc: all@example.org")
    cup["olga"].post(f"{CAMPAIGN}notices/", {"title": "x", "text": "y"}, format="json")
    send()
    assert (
        Mail.objects.filter(state="given_up").values_list("recipient__username", flat=True).get()
        == "ben"
    )
    assert all(len(sent.recipients()) == 1 for sent in mail.outbox)


def test_the_clock_is_told_once_and_to_those_who_can_still_enter(
    cup: Clients, clock: Clock
) -> None:
    apart = timedelta(seconds=1)
    clock.now = OPENS - apart
    assert note_moments() == 0
    seen = []
    for now, who_enters in (
        (OPENS, "ann"), (CLOSES - timedelta(hours=72) - apart, ""), (CLOSES - timedelta(hours=72), ""),
        (CLOSES - timedelta(hours=24), ""), (CLOSES - timedelta(hours=2), ""), (CLOSES - apart, ""), (CLOSES, ""),
        (CLOSES + timedelta(days=3), ""),
    ):  # fmt: skip
        clock.now = now
        note_moments()
        assert note_moments() == 0
        seen.append(sorted({row[:2] for row in written_mails()}))
        if who_enters:
            enter(cup[who_enters], "dense")
            written_mails()
    everybody = ["abe", "ann", "ben"]
    # The apples have their only slot filled.
    assert seen == [
        [("phase.opened", name) for name in everybody], [], [("phase.closing", "ben")], [("phase.closing", "ben")],
        [("phase.closing", "ben")], [], [("phase.closed", name) for name in everybody], [],
    ]  # fmt: skip


def test_a_team_with_more_time_is_told_of_its_own_end(cup: Clients, clock: Clock) -> None:
    clock.now = OPENS
    later = {
        "closes_at": (CLOSES + timedelta(days=1)).isoformat(),
        "reason": "storm",
        "team": "apples",
    }
    assert cup["olga"].post(f"{PHASE}extend/", later, format="json").status_code == 200
    note_moments()
    written_mails()
    clock.now = CLOSES
    # After a pause of two days of the dispatcher, of several reminders only the last comes.
    assert note_moments() == 2
    assert sorted(row[:2] for row in written_mails()) == [
        ("phase.closed", "ben"), ("phase.closing", "abe"), ("phase.closing", "ann"),
    ]  # fmt: skip
    assert set(PhaseMoment.objects.values_list("kind", flat=True)) == {
        "opened",
        "closed",
        "closing_24",
    }


def test_that_something_is_evaluated_is_told_where_the_phase_gives_feedback(
    cup: Clients, clock: Clock
) -> None:
    clock.now = OPENS
    enter(cup["ann"], "dense")
    written_mails()
    ended = Evaluation.objects.filter(run__tag="dense")
    for feedback, kind, state, events in (
        ("none", "evaluation", "evaluated", []), ("none", "evaluation", "failed", [("entry.failed", "olga")]),
        ("own", "training", "evaluated", [("entry.evaluated", "abe"), ("entry.evaluated", "ann")]),
        ("own", "training", "failed", [("entry.failed", name) for name in ("abe", "ann", "olga")]),
    ):  # fmt: skip
        Phase.objects.update(feedback=feedback, kind=kind)
        ended.update(state=state)
        with transaction.atomic():
            announce_ended(Evaluation, ended.values_list("pk", flat=True))
        assert sorted(row[:2] for row in written_mails()) == events, (feedback, state)


def test_a_failure_counts_as_an_attempt_unless_it_is_the_servers_fault(
    cup: Clients, clock: Clock
) -> None:
    clock.now = OPENS
    enter(cup["ann"], "dense")
    enter(cup["olga"], "bm25", role="baseline", label="BM25")
    for tag, code, message in (
        ("dense", "evaluation_crashed", "does not count as an attempt"),
        ("dense", "run_deleted", "It counts as an attempt"),
        ("bm25", "evaluation_crashed", None),
    ):  # fmt: skip
        Mail.objects.all().delete()
        ended = Evaluation.objects.filter(run__tag=tag)
        ended.update(state="failed", error_code=code)
        with transaction.atomic():
            announce_ended(Evaluation, ended.values_list("pk", flat=True))
        text = Mail.objects.get(event="entry.failed").text
        assert message in text if message else "attempt" not in text, (tag, code)


def test_releases_are_told_when_they_are_done_and_once_when_they_wait(
    cup: Clients, clock: Clock
) -> None:
    olga, at = cup["olga"], LATE + timedelta(days=1)
    clock.now = OPENS
    enter(cup["ann"], "dense")
    clock.now = LATE
    assert (
        olga.post(
            f"{PHASE}releases/", {"audience": "teams", "at": at.isoformat()}, format="json"
        ).status_code
        == 201
    )
    written_mails()
    clock.now = at
    assert release_due() == 0
    assert (note_waiting(), written_mails()) == (0, [])
    clock.now = at + timedelta(minutes=30)
    assert (note_waiting(), note_waiting()) == (1, 0)
    assert written_mails() == [("release.waiting", "olga", "due")]
    evaluate_all()
    written_mails()
    assert release_due() == 1
    assert sorted(row[:2] for row in written_mails()) == [
        ("release.done", name) for name in ("abe", "ann", "ben", "olga")
    ]
    assert (release_due(), note_waiting(), written_mails()) == (0, 0, [])
    # Judgements that become active are told where results were released by others.
    assert upload(olga, "collections/dark/qrels/", QRELS).status_code == 200
    assert written_mails() == []
    assert upload(olga, "collections/dark/qrels/", f"{QRELS}1 0 u 1\n").status_code == 201
    text = Mail.objects.filter(event="qrels.superseded").first()
    assert text
    assert "Version 2 is active now" in text.text
    assert sorted(row[:2] for row in written_mails()) == [
        ("qrels.superseded", name) for name in ("abe", "ann", "ben", "olga")
    ]


def test_organisers_get_the_entries_of_a_day_once(cup: Clients, clock: Clock) -> None:
    clock.now = OPENS
    entry = enter(cup["ann"], "dense").json()
    assert enter(cup["ben"], "sparse").status_code == 201
    cup["ann"].post(f"{entry['url']}withdraw/", {"reason": "x"}, format="json")
    written_mails()
    assert (note_digests(), written_mails()) == (0, [])
    midnight = OPENS.replace(hour=0) + timedelta(days=1)
    clock.now = midnight - TICK
    assert note_digests() == 0
    clock.now = midnight
    assert (note_digests(), note_digests()) == (1, 0)
    text = Mail.objects.get(event="entries.digest").text
    assert written_mails() == [("entries.digest", "olga", "due")]
    assert "Task, entry 1: dense of apples, arrived at 2027-04-02 12:00:00 UTC; withdrawn" in text
    assert "Task, entry 2: sparse of berries" in text
    clock.now = midnight + timedelta(days=1)
    assert note_digests() == 0


def test_webhooks_of_teams_and_organisers_get_the_events_of_the_campaign(
    cup: Clients, clock: Clock, settings: Any
) -> None:  # fmt: skip
    settings.EVALHUB_WEBHOOKS = True
    events = ["entry.received", "phase.paused"]
    hooks = {
        slug: make_webhook(*events, team=Team.objects.get(slug=slug))
        for slug in ("lab", "apples", "berries")
    }
    clock.now = OPENS
    enter(cup["ann"], "dense")
    cup["olga"].post(f"{PHASE}pause/", {"reason": "x"}, format="json")
    got = {slug: events_of(hook) for slug, hook in hooks.items()}
    assert got == {"lab": events, "apples": events, "berries": ["phase.paused"]}
    body = Delivery.objects.filter(event="entry.received").values_list("body", flat=True)[0]
    assert '"campaign":"cup","phase":"task","entry":"' in body


def test_a_forgotten_person_leaves_the_agreement_and_the_date(cup: Clients) -> None:
    cup["olga"].post(f"{CAMPAIGN}agreements/", {"title": "Data", "text": "No."}, format="json")
    digest = cup["ben"].get(f"{CAMPAIGN}agreements/").json()["results"][0]["sha256"]
    cup["ben"].post(f"{CAMPAIGN}agreements/{digest}/sign/", {"typed_name": "Ben B."}, format="json")
    signed = Signature.objects.get()
    person = User.objects.get(username="ben")
    person.memberships.all().delete()
    person.delete()
    signature = Signature.objects.get()
    assert (signature.user, signature.typed_name) == (None, "former member")
    assert (signature.signed_at, signature.agreement, signature.participation) == (
        signed.signed_at, signed.agreement, signed.participation,
    )  # fmt: skip
    assert not CampaignMember.objects.filter(participation__team__slug="berries").exists()


def test_the_sender_is_one_thread_and_old_mails_are_swept(cup: Clients, clock: Clock) -> None:
    started: list[Any] = []
    sender = MailSender(start=started.append)
    sender.send_due()
    sender.send_due()
    assert len(started) == 1
    started[0]()
    sender.send_due()
    assert len(started) == 2
    cup["olga"].post(f"{CAMPAIGN}notices/", {"title": "x", "text": "y"}, format="json")
    Mail.objects.update(created_at=F("created_at") - timedelta(days=91))
    due = Mail.objects.filter(state="due").count()
    assert (sweep_mails(), Mail.objects.count()) == (1, due)
    assert claim_next()


def test_settings_of_mail_are_read_from_one_address(settings: Any) -> None:
    settings.EVALHUB_MAIL_URL, settings.EVALHUB_URL = "smtp://mail.example.org", ""
    assert [message.id for message in check_mail()] == ["evalhub.W013"]
    settings.EVALHUB_URL = "https://eval.example.org"
    assert check_mail() == []
    read = mail_settings("smtp+tls://me:p%40ss@mail.example.org", "evalhub@example.org")
    assert read == ("mail.example.org", 587, "me", "p@ss", True, False)
    assert mail_settings("smtps://mail.example.org", "a@b")[1:] == (465, "", "", False, True)
    for url, sender, complaint in (
        ("http://x", "a@b", "EVALHUB_MAIL_URL"), ("smtp://x:port", "a@b", "EVALHUB_MAIL_URL"),
        ("smtp://", "a@b", "host"),
        ("smtp://x", "", "EVALHUB_MAIL_FROM"), ("smtp://x", "a@b\nBcc: c@d", "EVALHUB_MAIL_FROM"),
    ):  # fmt: skip
        with pytest.raises(ImproperlyConfigured, match=complaint):
            mail_settings(url, sender)


def test_mails_of_two_worlds_that_differ_in_judgements_are_the_same(
    cup: Clients, clock: Clock
) -> None:
    """Participants of a blind evaluation are told the same, when something is evaluated, judged anew and fails, too."""
    worlds = []
    for judgements in (QRELS, "1 0 nowhere 1\n"):
        with transaction.atomic():
            clock.now = OPENS
            assert upload(cup["olga"], "collections/dark/qrels/", judgements).status_code in (
                200,
                201,
            )
            address = enter(cup["ann"], "dense").json()["url"]
            evaluate_all()
            Evaluation.objects.filter(run__tag="dense").update(state="failed")
            with transaction.atomic():
                announce_ended(Evaluation, Evaluation.objects.values_list("pk", flat=True))
            for now in (OPENS, CLOSES - timedelta(hours=1), CLOSES):
                clock.now = now
                note_moments()
            cup["ann"].post(f"{address}withdraw/")
            rows = Mail.objects.exclude(recipient__username="olga").order_by(
                "event", "recipient", "subject"
            )
            worlds.append(
                list(rows.values_list("event", "recipient__username", "subject", "text", "state"))
            )
            transaction.set_rollback(True)
    assert worlds[0] == worlds[1]
    assert {row[0] for row in worlds[0]} == {
        "entry.received", "entry.withdrawn", "phase.opened", "phase.closing", "phase.closed",
    }  # fmt: skip
