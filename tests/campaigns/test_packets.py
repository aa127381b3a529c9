"""The packet of a team: its files, the same bytes every time, and the numbers of the API to the last digit."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from datetime import timedelta
from typing import Any

import pytest

from evalhub.local import verify_snapshot
from runs.models import Collection, Disclosure, Packet, Snapshot
from runs.services.collections.collections import disclose
from tests.campaigns.shared_data import clock, module_clock, module_data, people
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    OPENS,
    PHASE,
    Clients,
    Clock,
    enter,
    make_campaign,
    register,
)
from tests.conftest import GOOD, POOR, evaluate_all, upload

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def table(packet: zipfile.ZipFile, name: str) -> list[dict[str, str]]:
    lines = [line for line in packet.read(name).decode().splitlines() if not line.startswith("# ")]
    return list(csv.DictReader(lines, delimiter="\t"))


def opened(answer: Any) -> zipfile.ZipFile:
    assert answer.status_code == 200, answer.content
    assert hashlib.sha256(answer.content).hexdigest() == answer["X-SHA256"]
    return zipfile.ZipFile(io.BytesIO(answer.content))


@pytest.fixture(scope="module")
def world(people: Clients, module_clock: Clock) -> Clients:
    """Six runs of two teams and a baseline, evaluated, the phase over."""
    make_campaign(people["olga"], measures=["nDCG@10", "AP", "NumRet"])
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    module_clock.now = OPENS
    for number in range(3):
        for name, text in (("ann", GOOD), ("ben", POOR)):
            tag = f"{name}{number}"
            content = (
                text.replace("good", tag).replace("poor", tag) + f"2 Q0 y{number} 9 0.5 {tag}\n"
            )
            assert enter(people[name], tag, content).status_code == 201
    content = POOR.replace("poor", "bm25") + "3 Q0 z 1 1.0 bm25\n"
    assert enter(people["olga"], "bm25", content, role="baseline", label="BM25").status_code == 201
    evaluate_all()
    return people


@pytest.fixture
def after_end(world: Clients, clock: Clock) -> Clients:
    clock.now = CLOSES + timedelta(days=8)
    return world


def test_a_packet_has_the_numbers_of_the_api(after_end: Clients) -> None:
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.TEAMS)
    answer = after_end["ann"].get(f"{PHASE}packet/")
    packet = opened(answer)
    own = ("ann0", "ann1", "ann2")
    files = [
        f"{tag}{end}" for tag in own for end in (".trec_eval", ".topics.tsv", ".difference.svg")
    ]
    assert packet.namelist() == [
        "README.txt",
        "summary.tsv",
        "topics.tsv",
        "significance.tsv",
        *files,
    ]
    results = after_end["ann"].get(f"{PHASE}results/").json()
    summary = {row["tag"]: row for row in table(packet, "summary.tsv")}
    for entry in results["entries"]:
        row, mean = summary[entry["tag"]], entry["means"]["nDCG@10"]
        assert [float(row[f"nDCG@10{end}"]) for end in ("", " low", " high")] == [
            mean["mean"],
            mean["low"],
            mean["high"],
        ]
        assert (row["judged_depth"], row["late"]) == (str(entry["judged_depth"]), "no")
        values = [
            float(each["value"])
            for each in table(packet, f"{entry['tag']}.topics.tsv")
            if each["measure"] == "AP"
        ]
        assert values == entry["values"]["AP"]
    numbers = results["reference_sets"][0]["by_topic"]["nDCG@10"]
    rows = [row for row in table(packet, "topics.tsv") if row["measure"] == "nDCG@10"]
    for name in ("min", "median", "median_upper", "max"):
        assert [float(row[name]) for row in rows] == numbers[name]
    # Six runs are enough for medians, and too few for quartiles.
    assert {(row["n"], row["q1"], row["best_tag_is_yours"]) for row in rows} == {("6", "", "yes")}
    significance = table(packet, "significance.tsv")
    assert {(row["tag"], row["against"]) for row in significance} == {
        (tag, other) for tag in own for other in ("median", "bm25")
    }
    readme = packet.read("README.txt").decode()
    assert "Released to teams" in readme
    assert results["qrels_sha256"] in " ".join(readme.split())
    assert b"ben" not in b"".join(packet.read(name) for name in packet.namelist())
    assert "\nrunid                 \tall\tann0\n" in packet.read("ann0.trec_eval").decode()


def test_a_packet_stays_as_it_was_made(after_end: Clients) -> None:
    olga, ann = after_end["olga"], after_end["ann"]
    assert ann.get(f"{PHASE}packet/").json()["code"] == "blind"
    draft = opened(olga.get(f"{PHASE}packet/?team=apples"))
    assert {"overview.tex", "overview.md"} < set(draft.namelist())
    assert "not released" in " ".join(draft.read("README.txt").decode().split())
    assert not Packet.objects.exists()

    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.TEAMS)
    first = ann.get(f"{PHASE}packet/")
    entry = olga.get(f"{PHASE}entries/").json()["results"][1]
    assert entry["tag"] == "ben0"
    assert (
        olga.post(f"{entry['url']}disqualify/", {"reason": "x"}, format="json").status_code == 200
    )
    assert (
        ann.get(f"{PHASE}packet/").content
        == olga.get(f"{PHASE}packet/?team=apples").content
        == first.content
    )
    stored = Packet.objects.get()
    Packet.objects.all().delete()
    packet = opened(olga.get(f"{PHASE}packet/?team=apples"))
    assert {row["n"] for row in table(packet, "topics.tsv")} == {"5"}

    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.PARTICIPANTS)
    later = opened(ann.get(f"{PHASE}packet/"))
    assert b"ben1" in later.read("overview.md")
    assert {
        row["rank"] for row in table(later, "ann0.topics.tsv") if row["measure"] == "nDCG@10"
    } == {"1"}
    stored.content = stored.content[:-1]
    stored.edition = Packet.objects.get(edition__startswith="participants").edition
    Packet.objects.all().delete()
    stored.save(force_insert=True)
    assert ann.get(f"{PHASE}packet/").json()["code"] == "stored_value_corrupt"


def test_the_same_results_give_the_same_bytes(after_end: Clients) -> None:
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.PARTICIPANTS)
    first = after_end["ben"].get(f"{PHASE}packet/")
    Packet.objects.all().delete()
    assert after_end["ben"].get(f"{PHASE}packet/").content == first.content


def test_a_release_decides_what_a_team_is_told(after_end: Clients, clock: Clock) -> None:
    """Judgements that are activated afterwards, and entries that leave, change what is told with the next release."""
    olga, ann = after_end["olga"], after_end["ann"]

    def release(audience: str) -> Any:
        answer = olga.post(f"{PHASE}releases/", {"audience": audience}, format="json")
        assert answer.status_code == 201, answer.content
        assert olga.post(f"{answer.json()['url']}now/", {}, format="json").status_code == 200

    release("teams")
    first, results = ann.get(f"{PHASE}packet/"), ann.get(f"{PHASE}results/").json()
    clock.now += timedelta(days=1)
    entries = olga.get(f"{PHASE}entries/").json()["results"]
    gone = next(entry for entry in entries if entry["tag"] == "ben0")
    assert olga.post(f"{gone['url']}disqualify/", {"reason": "x"}, format="json").status_code == 200
    answer = upload(
        olga, "collections/dark/qrels/", "1 0 a 1\n2 0 y 3\n3 0 z 0\n3 0 q 1\n", activate="true"
    )
    assert answer.status_code == 201, answer.content
    evaluate_all()
    assert ann.get(f"{PHASE}packet/").content == first.content
    assert ann.get(f"{PHASE}results/").json() == results
    assert olga.get(f"{PHASE}results/?team=apples").json()["qrels"] == 2

    release("participants")
    later = ann.get(f"{PHASE}packet/")
    readme = " ".join(opened(later).read("README.txt").decode().split())
    assert "Released to participants" in readme
    assert "version 2 of the judgements" in readme
    before = f"released to teams at 2027-05-10T12:00:00Z, by version 1 of the judgements, SHA-256 {results['qrels_sha256']}"
    assert f"supersedes the packet of this: {before}" in readme
    assert {row["n"] for row in table(opened(later), "topics.tsv")} == {"5"}
    assert ann.get(f"{PHASE}results/").json()["qrels"] == 2


def test_a_removed_team_leaves_with_the_next_release_and_no_packet_before(
    after_end: Clients, clock: Clock
) -> None:
    olga, ann = after_end["olga"], after_end["ann"]

    def release(audience: str) -> None:
        planned = olga.post(f"{PHASE}releases/", {"audience": audience}, format="json").json()
        assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200

    release("teams")
    first = ann.get(f"{PHASE}packet/")
    medians = ann.get(f"{PHASE}results/").json()["reference_sets"]
    clock.now += timedelta(days=1)
    removal = {"state": "removed", "reason": "fraud"}
    assert olga.patch(f"{CAMPAIGN}teams/berries/", removal, format="json").status_code == 200
    ended = {
        row["tag"]: (row["state"], row["state_reason"])
        for row in olga.get(f"{PHASE}entries/").json()["results"]
    }
    assert {ended[f"ben{number}"] for number in range(3)} == {("disqualified", "fraud")}
    assert ended["ann0"] == ("entered", "")
    assert ann.get(f"{PHASE}packet/").content == first.content
    assert ann.get(f"{PHASE}results/").json()["reference_sets"] == medians
    assert after_end["ben"].get(f"{PHASE}packet/").status_code in (403, 404)
    release("participants")
    later = opened(ann.get(f"{PHASE}packet/"))
    assert {row["n"] for row in table(later, "topics.tsv")} == {"3"}
    assert {row["n"] for row in table(opened(first), "topics.tsv")} == {"6"}
    assert b"ben" not in b"".join(later.read(name) for name in later.namelist())


def test_names_are_hidden_in_what_is_given_out(after_end: Clients, clock: Clock) -> None:
    """Until the instant packets and snapshots have pseudonyms; those given out stay so, and later ones have names."""
    olga, ann = after_end["olga"], after_end["ann"]
    until = clock.now + timedelta(days=5)
    changed = olga.patch(CAMPAIGN, {"anonymous_until": until.isoformat()}, format="json")
    assert changed.status_code == 200, changed.content
    planned = olga.post(f"{PHASE}releases/", {"audience": "participants"}, format="json").json()
    assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200
    first = ann.get(f"{PHASE}packet/")
    overview = opened(first).read("overview.md")
    assert b"ann0" in overview
    assert b"Team " in overview
    assert b"ben" not in b"".join(opened(first).read(name) for name in opened(first).namelist())

    def frozen() -> str:
        snapshot = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json")
        assert snapshot.status_code == 201, snapshot.content
        archive = bytes(Snapshot.objects.get(code=snapshot.json()["code"]).archive)
        return b"".join(verify_snapshot.read_archive(archive).values()).decode()

    text = frozen()
    assert "Team " in text
    assert not [name for name in ("ann", "ben", "apples", "berries") if name in text]
    clock.now = until
    assert ann.get(f"{PHASE}packet/").content == first.content
    assert "berries" in frozen()
