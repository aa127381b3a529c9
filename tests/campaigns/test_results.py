"""A team's results in a phase: its own values, and figures that give no other run's values away."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from runs.models import Collection, Disclosure
from runs.services.collections.collections import disclose
from tests.campaigns.test_pages import browser
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    Clock,
    enter,
    make_campaign,
    make_team,
    register,
)
from tests.conftest import GOOD, POOR, QRELS, evaluate_all, upload
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.sqlite


def content(tag: str, text: str = GOOD) -> str:
    return text.replace("good", tag).replace("poor", tag)


def figures(answer: Any, place: int = 0) -> Any:
    return answer.json()["reference_sets"][place]["by_topic"]["nDCG@10"]


def test_the_reference_set_has_competing_runs_that_were_in_time(
    people: dict[str, APIClient], clock: Clock
) -> None:
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    types = [{"key": "automatic", "label": "Automatic"}, {"key": "manual", "label": "Manual"}]
    make_campaign(olga, run_types=types)
    register(ann, "apples")
    register(ben, "berries")
    clock.now = OPENS
    for client, tag, text, kind in (
        (ann, "a1", GOOD, "automatic"),
        (ann, "a2", POOR, "automatic"),
        (ann, "a3", POOR, "manual"),
        (ben, "b1", GOOD, "automatic"),
        (ben, "b2", POOR, "automatic"),
    ):
        assert enter(client, tag, content(tag, text), run_type=kind).status_code == 201
    response = enter(
        olga, "bm25", content("bm25"), role="baseline", label="BM25", run_type="automatic"
    )
    assert response.status_code == 201
    clock.now = CLOSES
    assert enter(
        ben, "b3", content("b3", POOR + "9 Q0 q 1 1.0 poor\n"), run_type="automatic"
    ).json()["late"]
    evaluate_all()
    clock.now = LATE + timedelta(days=1)

    answer = olga.get(f"{PHASE}results/?team=apples")
    assert answer.status_code == 200, answer.content
    automatic, manual = answer.json()["reference_sets"]
    assert [
        (reference_set["run_type"], reference_set["runs"], reference_set["withheld"])
        for reference_set in (automatic, manual)
    ] == [
        ("automatic", 4, False),
        ("manual", 1, False),
    ]
    entries = {entry["tag"]: entry for entry in answer.json()["entries"]}
    assert set(entries) == {"a1", "a2", "a3"}
    assert all(entry["in_reference"] for entry in entries.values())
    good, poor = (entries[tag]["values"]["nDCG@10"] for tag in ("a1", "a2"))
    by_topic = automatic["by_topic"]["nDCG@10"]
    assert (by_topic["max"], by_topic["min"], by_topic["median_upper"]) == (good, poor, good)
    assert by_topic["median"] == [(high + low) / 2 for high, low in zip(good, poor, strict=True)]
    assert entries["a1"]["means"]["nDCG@10"]["mean"] == pytest.approx(sum(good) / 3)

    best = olga.get(f"{PHASE}results/?team=apples&reference=best_of_team")
    assert best.json()["reference_sets"][0]["runs"] == 2
    assert figures(best)["min"] == figures(best)["max"] == good
    late = olga.get(f"{PHASE}results/?team=berries").json()["entries"]
    assert [(entry["tag"], entry["late"], entry["in_reference"]) for entry in late][2] == (
        "b3",
        True,
        False,
    )

    # What leaves the phase leaves the set.
    olga.post(
        f"/api/v1/entries/{entries['a1']['entry']}/disqualify/", {"reason": "x"}, format="json"
    )
    assert figures(olga.get(f"{PHASE}results/?team=berries"))["n"] == [3, 3, 3]
    assert olga.get(f"{PHASE}results/?team=eves").status_code == 404
    assert (
        olga.get(f"{PHASE}results/").status_code
        == ann.get(f"{PHASE}results/?team=berries").status_code
        == 403
    )
    blind = ann.get(f"{PHASE}results/")
    assert (blind.status_code, blind.json()["code"]) == (403, "blind")
    assert make_team("x", "xu")["xu"].get(f"{PHASE}results/").json()["code"] == "not_allowed"


def test_at_the_first_step_few_runs_give_nothing_of_others_away(
    people: dict[str, APIClient], clock: Clock
) -> None:
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga)
    register(ann, "apples")
    register(ben, "berries")
    clock.now = OPENS
    for client, tag in ((ann, "a1"), (ben, "b1"), (ben, "b2"), (ben, "b3")):
        assert enter(client, tag, content(tag, POOR if tag == "b1" else GOOD)).status_code == 201
    clock.now = CLOSES + timedelta(days=8)
    evaluate_all()
    dark = Collection.objects.get(slug="dark")
    disclose(collection=dark, to=Disclosure.TEAMS)

    def seen(by: APIClient, path: str = "") -> Any:
        answer = by.get(f"{PHASE}results/{path}")
        assert answer.status_code == 200, answer.content
        return answer.json()["reference_sets"][0]

    nothing = [None, None, None]
    results = seen(ann)
    assert (results["runs"], results["withheld"]) == (4, True)
    assert results["by_topic"]["nDCG@10"] == {
        **dict.fromkeys(("min", "q1", "median", "median_upper", "q3", "max"), nothing),
        "n": [4, 4, 4],
    }
    assert [entry["tag"] for entry in ann.get(f"{PHASE}results/").json()["entries"]] == ["a1"]
    assert None not in seen(olga, "?team=apples")["by_topic"]["nDCG@10"]["min"]
    # It opens no other address, and nobody else's results.
    assert ann.get("/api/v1/collections/dark/leaderboard/").json()["code"] == "blind"
    assert ann.get(f"{PHASE}results/?team=berries").status_code == 403
    assert people["eve"].get(f"{PHASE}results/").status_code == 403

    disclose(collection=dark, to=Disclosure.PARTICIPANTS)
    results = seen(ann)
    assert not results["withheld"]
    assert None not in results["by_topic"]["nDCG@10"]["q1"]


ELSEWHERE = (
    CAMPAIGN, PHASE, f"{PHASE}board/", f"{PHASE}entries/", f"{PHASE}releases/", f"{CAMPAIGN}snapshots/",
    "/api/v1/collections/dark/", "/api/v1/collections/dark/leaderboard/", "/api/v1/collections/dark/runs/",
)  # fmt: skip
# Of requests and of what is done in a world.
TIMES = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9a-f]{32}\b")


def test_worlds_that_differ_in_unretrieved_documents_are_told_apart_by_nothing(
    people: dict[str, APIClient], clock: Clock
) -> None:
    """At the first step a team learns nothing of judgements of documents that no run of the reference set retrieved,
    but the digest of the file, which says nothing that could be guessed. Measures with a recall
    base would tell."""
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga, measures=["P@2", "RR"])
    register(ann, "apples")
    register(ben, "berries")
    clock.now, worlds = OPENS, dict[str, str]()
    for client, tag in ((ann, "a1"), (ann, "a2"), (ann, "a3"), (ben, "b1"), (ben, "b2")):
        text = content(tag, GOOD if tag in ("a1", "b1") else POOR) + f"3 Q0 {tag} 1 0.5 {tag}\n"
        text += f"1 Q0 only 1 99 {tag}\n" if client is ben else ""
        worlds[tag] = enter(client, tag, text).json()["url"]
    clock.now = CLOSES + timedelta(days=8)

    def world(extra: str) -> bytes:
        with transaction.atomic():
            judged = upload(olga, "collections/dark/qrels/", QRELS + extra)
            assert judged.status_code == 201, judged.content
            evaluate_all()
            disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.TEAMS)
            content = ann.get(f"{PHASE}results/").content
            # Everything else is the same to all, whatever is judged.
            others = b"".join(
                client.get(path).content
                for client in (ann, people["eve"], APIClient())
                for path in ELSEWHERE
            )
            with zipfile.ZipFile(io.BytesIO(ann.get(f"{PHASE}packet/").content)) as packet:
                files = [packet.read(name) for name in packet.namelist()]
            transaction.set_rollback(True)
        elsewhere.add(TIMES.sub(b"", others))
        sha256 = judged.json()["sha256"].encode()
        return b"".join([content, *files]).replace(sha256, b"<sha256>")

    elsewhere = set[bytes]()
    first, second = world("1 0 never1 0\n2 0 never2 1\n"), world("1 0 never1 2\n2 0 never2 0\n")
    assert b'"a3"' in first
    times = re.compile(rb"Released to teams at \S+")
    assert times.sub(b"", first) == times.sub(b"", second)
    assert times.sub(b"", first) != times.sub(b"", world("1 0 u 1\n"))
    assert times.sub(b"", first) != times.sub(b"", world("1 0 only 3\n"))
    # Of four runs there are no figures: what others alone have retrieved tells nothing either.
    ann.post(f"{worlds['a3']}withdraw/")
    third, fourth = world("1 0 only 0\n"), world("1 0 only 3\n")
    assert times.sub(b"", third) == times.sub(b"", fourth)
    assert len(elsewhere) == 2


def test_a_member_sees_an_entry_beside_the_medians(
    people: dict[str, APIClient], clock: Clock
) -> None:
    """What the results have, once they are released, and nothing before; of four runs there are no medians."""
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga)
    register(ann, "apples")
    register(ben, "berries")
    clock.now, worlds = OPENS, dict[str, str]()
    for client, tag in ((ann, "a1"), (ann, "a2"), (ben, "b1"), (ben, "b2"), (ben, "b3")):
        worlds[tag] = enter(
            client, tag, content(tag, GOOD if tag in ("a1", "b1") else POOR)
        ).json()["id"]
    clock.now = CLOSES + timedelta(days=8)
    evaluate_all()
    path = f"/campaigns/cup/entries/{worlds['a1']}/"
    assert "Beside the median" not in page(browser("ann"), path)
    planned = olga.post(f"{PHASE}releases/", {"audience": "teams"}, format="json").json()
    assert olga.post(f"{planned['url']}now/").status_code == 200
    html = page(browser("ann"), path)
    text = text_of(html)
    assert "nDCG@10 of a1 minus the median of 5 runs on 3 topics, from " in text
    assert ": higher on 3, lower on 0. Lines go from the lowest" in text
    answer = ann.get(f"{PHASE}results/")
    (own,) = (entry for entry in answer.json()["entries"] if entry["tag"] == "a1")
    for topic, value, median in zip(
        "123", own["values"]["nDCG@10"], figures(answer)["median"], strict=True
    ):
        assert f"{topic} {value:.4f} {median:.4f} {value - median:.4f}" in text
    # Organisers read values elsewhere, which is on record.
    assert "Beside the median" not in page(browser("olga"), path)
    assert browser("ben").get(path).status_code == 404
