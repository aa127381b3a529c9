"""fsck finds what a flipped bit, or a hand in the database, changes of a campaign."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat
from rest_framework.test import APIClient

from evalhub.campaigns.services.integrity import find_in_campaigns
from runs.models import (
    Agreement,
    Campaign,
    Collection,
    Entry,
    Extension,
    Packet,
    Participation,
    Phase,
    Release,
    Run,
    Snapshot,
)
from tests.campaigns.worlds import (
    CAMPAIGN,
    LATE,
    OPENS,
    PHASE,
    TICK,
    Clock,
    enter,
    make_campaign,
    register,
)
from tests.conftest import evaluate_all

Clients = dict[str, APIClient]
SECOND = timedelta(seconds=1)


@pytest.fixture
def done(people: Clients, clock: Clock) -> Clients:
    """A campaign in which everything has happened: an extension, a pause, entries of all states, two releases of which
    one is planned, a packet and a snapshot."""
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga, slots=3, selection="chosen")
    olga.patch(CAMPAIGN, {"summary": "a cup", "guidelines": "Rank."}, format="json")
    olga.patch(CAMPAIGN, {"summary": ""}, format="json")
    olga.post(f"{CAMPAIGN}agreements/", {"title": "Data", "text": "Keep it."}, format="json")
    for client, team in ((ann, "apples"), (ben, "berries")):
        register(client, team)
    ann.patch(f"{CAMPAIGN}teams/apples/", {"affiliation": "Orchard"}, format="json")
    clock.now = OPENS
    olga.post(f"{PHASE}pause/", {"reason": "x"}, format="json")
    olga.post(f"{PHASE}resume/")
    for whom in (None, "apples"):
        later = {"closes_at": (LATE + SECOND).isoformat(), "reason": "x", "team": whom}
        if whom:
            later["closes_at"] = (LATE + 2 * SECOND).isoformat()
        assert olga.post(f"{PHASE}extend/", later, format="json").status_code == 200
    sign = olga.get(f"{CAMPAIGN}agreements/").json()["results"][0]["sha256"]
    for client in (ann, ben):
        client.post(f"{CAMPAIGN}agreements/{sign}/sign/", {"typed_name": "X"}, format="json")
    addresses = [enter(ann, tag).json()["url"] for tag in ("a", "b", "c")]
    assert ann.patch(addresses[1], {"chosen": True}, format="json").status_code == 200
    ann.post(f"{addresses[0]}withdraw/")
    again = {"run": ann.get(addresses[0]).json()["run"]}
    assert ann.post(f"{PHASE}entries/", again, format="json").status_code == 200
    ann.post(f"{addresses[2]}withdraw/")
    assert enter(ben, "other").status_code == 201
    enter(olga, "bm25", role="baseline", label="BM25")
    clock.now = LATE + 2 * SECOND
    evaluate_all()
    for audience in ("teams", "public"):
        assert (
            olga.post(f"{PHASE}releases/", {"audience": audience}, format="json").status_code == 201
        )
    planned = olga.get(f"{PHASE}releases/").json()["results"][0]["url"]
    assert olga.post(f"{planned}now/").status_code == 200
    assert ann.get(f"{PHASE}packet/").status_code == 200
    assert olga.post(f"{CAMPAIGN}snapshots/", {"label": "x"}, format="json").status_code == 201
    return people


def entry(tag: str) -> Callable[..., int]:
    return Entry.objects.filter(run__tag=tag).update


DAMAGES: dict[str, tuple[Callable[[], object], str]] = {
    "the name of a campaign": (lambda: Campaign.objects.update(name="Cuq"), "trail_differs"),
    "what it no longer says": (lambda: Campaign.objects.update(summary="a cuq"), "trail_differs"),
    "its guidelines": (lambda: Campaign.objects.update(guidelines="Tank."), "trail_differs"),
    "its state": (lambda: Campaign.objects.update(state="archived"), "trail_differs"),
    "the kind of a phase": (lambda: Phase.objects.update(kind="training"), "trail_differs"),
    "when it opens": (lambda: Phase.objects.update(opens_at=F("opens_at") - SECOND), "trail_differs"),
    "when it closes": (lambda: Phase.objects.update(closes_at=F("closes_at") - SECOND), "trail_differs"),
    "its slots": (lambda: Phase.objects.update(slots=2), "trail_differs"),
    "its measures": (lambda: Phase.objects.update(measures=["nDCG@11"]), "trail_differs"),
    "a measure that there is not": (lambda: Phase.objects.update(measures=["mDCG@10"]), "measure_unknown"),
    "its pause": (lambda: Phase.objects.update(paused_at=OPENS), "trail_differs"),
    "an extension": (lambda: Extension.objects.update(new=F("new") + SECOND), "trail_differs"),
    "an extension for one": (lambda: Extension.objects.update(participation=None), "trail_differs"),
    "the state of a team": (lambda: Participation.objects.update(state="removed"), "trail_differs"),
    "its name": (lambda: Participation.objects.update(affiliation="Orcharc"), "trail_differs"),
    "an agreement": (lambda: Agreement.objects.update(text="Keep is."), "agreement_altered"),
    "the number of an entry": (lambda: entry("a")(number=99), "trail_differs"),
    "whether it is late": (lambda: entry("a")(late=True), "trail_differs"),
    "when it arrived": (lambda: entry("a")(arrived_at=OPENS + SECOND), "trail_differs"),
    "before the phase": (lambda: entry("a")(arrived_at=OPENS - TICK), "entry_contradicts"),
    "its run": (lambda: Run.objects.filter(tag="a").update(tag="d"), "trail_differs"),
    "its team": (lambda: entry("other")(participation=Participation.objects.get(team__slug="apples"), priority=3),
                 "entry_contradicts"),
    "its state again": (lambda: entry("c")(state="entered"), "trail_differs"),
    "its priority": (lambda: entry("other")(priority=5), "priorities_have_gaps"),
    "what its team chose": (lambda: entry("b")(chosen=False), "trail_differs"),
    "whom a release is for": (lambda: Release.objects.exclude(done_at=None).update(audience=2), "release_contradicts"),
    "its entries": (lambda: Release.objects.update(official=[]), "release_contradicts"),
    "its judgements": (lambda: Release.objects.update(qrels=None), "release_contradicts"),
    "when one is planned": (lambda: Release.objects.filter(done_at=None).update(planned_at=LATE), "trail_differs"),
    "what is not cancelled": (lambda: Release.objects.filter(done_at=None).update(cancelled_at=LATE), "trail_differs"),
    "who sees results": (lambda: Collection.objects.update(shown_to=2), "disclosure_differs"),
    "a snapshot": (lambda: Snapshot.objects.update(manifest=Concat("manifest", Value(" "))), "snapshot_altered"),
    "its archive": (lambda: Snapshot.objects.update(archive=b"x"), "snapshot_altered"),
    "a packet": (lambda: Packet.objects.update(content=b"x"), "packet_altered"),
}  # fmt: skip


def test_fsck_finds_what_is_changed_past_the_trail(done: Clients) -> None:
    assert [str(finding) for finding in find_in_campaigns()] == []
    for what, (damage, code) in DAMAGES.items():
        with transaction.atomic():
            damage()
            codes = {finding.code for finding in find_in_campaigns()}
            transaction.set_rollback(True)
        assert code in codes, (what, codes)
