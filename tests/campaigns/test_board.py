"""The leaderboard of a phase, and the names on it."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from evalhub.campaigns.services.integrity import find_in_campaigns
from metrics.services.answer_store import forget_all
from runs.models import Campaign, Collection, Disclosure, Participation, User
from runs.services.collections.collections import disclose
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
from tests.conftest import POOR, evaluate_all
from tests.kept import recalled_answers
from tests.web.test_pages import page, text_of
from tests.web.worlds import body_of

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
BOARD = f"{PHASE}board/"
GENERAL = "/api/v1/collections/dark/leaderboard/"
PAGE = "/campaigns/cup/phases/task/"
LIFTED = LATE + timedelta(days=30)
_OF_ENTRY = ("entry", "team_name", "role", "label", "run_type", "late", "priority", "entry_state")


@pytest.fixture(scope="module")
def world(people: Clients, module_clock: Clock) -> Clients:
    """The campaign after its end: two equal runs, a poor one, a baseline, and a late one."""
    make_campaign(
        people["olga"],
        run_types=[{"key": "automatic", "label": "A"}, {"key": "manual", "label": "M"}],
    )
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    module_clock.now = OPENS
    for who, tag, kind, content in (
        ("ann", "a1", "manual", POOR.replace("poor", "a1")),
        ("ann", "a2", "automatic", run_of("a2")),
        ("ben", "b1", "automatic", run_of("b1").replace("3.1", "3.2")),
    ):
        assert enter(people[who], tag, content, run_type=kind).status_code == 201
    assert enter(people["olga"], "bm25", role="baseline", label="BM25").status_code == 201
    module_clock.now = CLOSES
    assert enter(people["ben"], "late", run_type="manual").json()["late"]
    evaluate_all()
    return people


@pytest.fixture
def after_end(world: Clients, clock: Clock) -> Clients:
    clock.now = LATE
    return world


def rows(client: APIClient, query: str = "") -> list[tuple[Any, str, str | None]]:
    rows = client.get(f"{BOARD}{query}").json()["results"]
    return [(row["rank"], row["run"]["tag"], row["team_name"]) for row in rows]


def read(client: APIClient, path: str) -> int:
    """The status of a download, which is read to its end."""
    answer = client.get(path)
    body_of(answer)
    return int(answer.status_code)


def step(to: Disclosure) -> None:
    disclose(collection=Collection.objects.get(slug="dark"), to=to)


def test_baselines_have_a_place_and_no_rank(after_end: Clients) -> None:
    olga = after_end["olga"]
    assert sorted(rows(olga)[:3], key=str) == [
        (1, "a2", "apples"),
        (1, "b1", "berries"),
        (None, "bm25", None),
    ]
    assert rows(olga)[3] == (3, "a1", "apples")
    assert rows(olga, "?view=late") == [(None, "late", "berries")]
    # Rows are chosen, and ranks stay.
    assert rows(olga, "?run_type=manual") == [(3, "a1", "apples")]
    assert rows(olga, "?role=baseline") == [(None, "bm25", None)]
    whole = olga.get(BOARD).json()
    assert (whole["ranked"], whole["count"], whole["states"], whole["measures"]) == (
        3,
        4,
        {"evaluated": 4},
        ["nDCG@10"],
    )
    baseline = next(row for row in whole["results"] if row["run"]["tag"] == "bm25")
    assert (baseline["code"], baseline["entry"]["role"], baseline["entry"]["label"]) == (
        "not_competing", "baseline", "BM25",
    )  # fmt: skip
    against = olga.get(f"{BOARD}?baseline={baseline['run']['id']}").json()
    assert against["statistics"]["baseline"]["run"] == baseline["run"]["id"]
    assert against["statistics"]["runs"] == 4
    # Runs are counted and not named: who they are may not be known yet.
    cautions = {
        caution["code"]: caution["message"]
        for caution in against["statistics"]["baseline"]["cautions"]
    }
    assert cautions["few_topics_answered"].startswith("few topics answered (1 run, 67% of them)")
    tiers = f"{BOARD}?statistics=tiers&baseline={baseline['run']['id']}"
    assert code_of(olga.get(tiers)) == (400, "bad_parameter")
    assert olga.get(f"{BOARD}?statistics=tiers").json()["statistics"]["runs"] == 3
    table = list(csv.DictReader(io.StringIO(olga.get(f"{BOARD}export/csv/").content.decode())))
    columns = {row["tag"]: tuple(row[name] for name in _OF_ENTRY) for row in table}
    assert columns == {
        "a1": ("1", "apples", "competing", "", "manual", "false", "1", "entered"),
        "a2": ("2", "apples", "competing", "", "automatic", "false", "2", "entered"),
        "b1": ("3", "berries", "competing", "", "automatic", "false", "1", "entered"),
        "bm25": ("4", "", "baseline", "BM25", "", "false", "", "entered"),
    }


def test_the_leaderboard_opens_with_each_step(after_end: Clients) -> None:
    seen = {}
    for to in (None, *Disclosure):
        if to:
            step(to)
        codes = {name: code_of(after_end[name].get(BOARD)) for name in ("olga", "ann", "eve")}
        seen[to.label if to is not None else ""] = [
            codes[name][0] for name in ("olga", "ann", "eve")
        ]
        closed = [code for code in codes.values() if code[0] != 200]
        assert set(closed) <= {(403, "blind")}
    assert seen == {
        "": [200, 403, 403], "organisers": [200, 403, 403], "teams": [200, 403, 403], "participants": [200, 200, 403],
        "public": [200, 200, 200],
    }  # fmt: skip


def test_names_are_hidden_until_their_instant_wherever_results_are_shown(
    after_end: Clients, clock: Clock
) -> None:
    Campaign.objects.update(anonymous_until=LIFTED)
    step(Disclosure.PUBLIC)
    olga, ann, eve = after_end["olga"], after_end["ann"], after_end["eve"]
    pseudonyms = dict(Participation.objects.values_list("team__slug", "pseudonym"))
    assert len(set(pseudonyms.values())) == 2
    clock.now = LIFTED - TICK
    before = eve.get(BOARD)
    text = before.content.decode() + eve.get(f"{BOARD}export/csv/").content.decode()
    assert not [
        word
        for word in ("apples", "berries", "a1", "a2", "b1")
        if f'"{word}"' in text or f",{word}," in text
    ]
    assert {row["name_hidden"] for row in before.json()["results"] if row["team_name"]} == {True}
    # A team sees itself, organisers all.
    assert {name for _, _, name in rows(ann)} == {
        "apples",
        f"Team {pseudonyms['berries']:02}",
        None,
    }
    assert {name for _, _, name in rows(olga)} == {"apples", "berries", None}
    # The general addresses know no pseudonyms: they stay closed, and other runs are not there.
    run = before.json()["results"][0]["run"]["id"]
    assert [eve.get(path).status_code for path in (GENERAL, f"/api/v1/runs/{run}/")] == [403, 404]
    assert (olga.get(GENERAL).status_code, ann.get(GENERAL).status_code) == (200, 403)
    # The clock lifts it, in what was cached as well.
    same = {"headers": {"If-None-Match": before["ETag"]}}
    assert eve.get(BOARD, **same).status_code == 304
    clock.now = LIFTED
    after = eve.get(BOARD, **same)
    assert (after.status_code, rows(eve)) == (200, rows(olga))
    assert eve.get(GENERAL).status_code == eve.get(f"/api/v1/runs/{run}/").status_code == 200


def test_files_of_runs_are_released_with_their_phase_or_not_at_all(after_end: Clients) -> None:
    olga, ann, ben, eve = (after_end[name] for name in ("olga", "ann", "ben", "eve"))

    def release(audience: str, **fields: Any) -> None:
        planned = olga.post(f"{PHASE}releases/", {"audience": audience, **fields}, format="json")
        assert olga.post(f"{planned.json()['url']}now/").status_code == 200

    release("participants")
    run = next(
        row["run"]["id"] for row in ann.get(BOARD).json()["results"] if row["run"]["tag"] == "b1"
    )
    path = f"/api/v1/runs/{run}/file/"
    assert [read(client, path) for client in (olga, ben, ann, eve)] == [200, 200, 403, 404]
    release("public", with_run_files=True)
    assert [read(client, path) for client in (olga, ben, ann, eve)] == [200] * 4


def test_who_is_disqualified_after_the_public_release_stays_with_the_reason(
    after_end: Clients,
) -> None:
    olga, eve = after_end["olga"], after_end["eve"]

    def disqualify(tag: str) -> None:
        (entry,) = (
            row for row in olga.get(f"{PHASE}entries/").json()["results"] if row["tag"] == tag
        )
        assert (
            olga.post(
                f"{entry['url']}disqualify/", {"reason": f"of {tag}"}, format="json"
            ).status_code
            == 200
        )

    disqualify("b1")
    planned = olga.post(f"{PHASE}releases/", {"audience": "public"}, format="json").json()
    assert olga.post(f"{planned['url']}now/").status_code == 200
    before = eve.get(BOARD)
    assert sorted(rows(eve), key=str) == [
        (1, "a2", "apples"),
        (2, "a1", "apples"),
        (None, "bm25", None),
    ]
    frozen = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json").json()["sha256"]
    disqualify("a2")
    after = eve.get(BOARD, headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert sorted(rows(eve), key=str) == [
        (1, "a1", "apples"),
        (None, "a2", "apples"),
        (None, "bm25", None),
    ]
    entries = {row["run"]["tag"]: row["entry"] for row in after.json()["results"]}
    assert [(entries[tag]["state"], entries[tag]["state_reason"]) for tag in ("a1", "a2")] == [
        ("entered", ""), ("disqualified", "of a2"),
    ]  # fmt: skip
    assert after.json()["ranked"] == 1
    (told_why,) = (row["reason"] for row in after.json()["results"] if row["run"]["tag"] == "a2")
    assert told_why == "disqualified: of a2"
    anybody = browser()
    (line,) = (row for row in page(anybody, PAGE).split("<tr") if "of a2" in row)
    assert "unranked struck" in line
    assert "</s>" in line
    assert "disqualified: of a2" in text_of(line)
    table = list(csv.DictReader(io.StringIO(eve.get(f"{BOARD}export/csv/").content.decode())))
    states = {row["tag"]: (row["entry_state"], row["entry_reason"], row["rank"]) for row in table}
    assert (states["a1"], states["a2"]) == (("entered", "", "1"), ("disqualified", "of a2", ""))
    assert "disqualified: of a2" in eve.get(f"{BOARD}export/md/").content.decode()
    again = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json").json()["sha256"]
    ranks = {}
    for sha256 in (frozen, again):
        (phase,) = eve.get(f"/api/v1/snapshots/{sha256}/").json()["manifest"]["phases"]
        ranks[sha256] = {
            entry["tag"]: entry.get("rank") for entry in phase["entries"] if entry["team"]
        }
    assert (ranks[frozen]["a2"], ranks[frozen]["a1"]) == (1, 2)
    assert (ranks[again]["a2"], ranks[again]["a1"]) == (None, 1)


def test_packets_have_the_names_of_their_release(after_end: Clients, clock: Clock) -> None:
    Campaign.objects.update(anonymous_until=LIFTED)
    planned = (
        after_end["olga"]
        .post(f"{PHASE}releases/", {"audience": "participants"}, format="json")
        .json()
    )
    assert after_end["olga"].post(f"{planned['url']}now/").status_code == 200
    for now in (LATE, LIFTED):
        clock.now = now
        answer = after_end["ann"].get(f"{PHASE}packet/")
        overview = zipfile.ZipFile(io.BytesIO(body_of(answer))).read("overview.md").decode()
        assert "apples: a2" in overview
        assert "berries" not in overview
        assert "b1" not in overview


def test_names_that_wait_for_the_release_are_shown_with_it(
    after_end: Clients, clock: Clock
) -> None:
    Campaign.objects.update(names="hidden_until_release")
    Collection.objects.update(shown_to=Disclosure.TEAMS)
    assert {name for _, _, name in rows(after_end["olga"])} == {"apples", "berries", None}
    step(Disclosure.PARTICIPANTS)
    assert {name for _, _, name in rows(after_end["ann"])} == {"apples", "berries", None}


def test_a_team_shows_its_name_earlier_and_organisers_hide_it_longer_once(
    after_end: Clients, clock: Clock
) -> None:
    olga, ann, ben = after_end["olga"], after_end["ann"], after_end["ben"]
    only_earlier = (409, "anonymity_only_ends_earlier")
    assert (
        olga.patch(CAMPAIGN, {"anonymous_until": LIFTED.isoformat()}, format="json").status_code
        == 200
    )
    step(Disclosure.PUBLIC)

    def move(client: APIClient, team: str, at: Any) -> tuple[int, str]:
        return code_of(
            client.patch(
                f"{CAMPAIGN}teams/{team}/", {"anonymous_until": at.isoformat()}, format="json"
            )
        )

    assert move(ann, "apples", LIFTED - timedelta(days=9)) == (200, "")
    assert move(ann, "apples", LIFTED) == (403, "not_allowed")
    assert move(ben, "apples", LIFTED)[0] == 404
    clock.now = LIFTED - timedelta(days=9)
    assert {name for _, _, name in rows(after_end["eve"])} >= {"apples"}
    # One name is still hidden, and the general addresses would show it.
    assert after_end["eve"].get(GENERAL).status_code == 403
    assert move(olga, "berries", LIFTED + timedelta(days=400)) == only_earlier
    assert move(olga, "berries", LIFTED + timedelta(days=9)) == (200, "")
    assert move(olga, "berries", LIFTED + timedelta(days=10)) == only_earlier
    assert move(olga, "apples", LIFTED) == only_earlier
    later = {"anonymous_until": (LIFTED + timedelta(days=99)).isoformat()}
    assert code_of(olga.patch(CAMPAIGN, later, format="json")) == only_earlier
    clock.now = LIFTED + timedelta(days=9)
    assert after_end["eve"].get(GENERAL).status_code == 200


def test_no_name_is_hidden_for_longer_than_nine_months_after_the_public_release(
    after_end: Clients, clock: Clock
) -> None:
    """Also where it was hidden longer before the release, when nobody knew its day."""
    years = (LATE + timedelta(days=2_000)).isoformat()
    olga, eve = after_end["olga"], after_end["eve"]
    assert (
        olga.patch(CAMPAIGN, {"anonymous_until": LIFTED.isoformat()}, format="json").status_code
        == 200
    )
    moved = olga.patch(f"{CAMPAIGN}teams/apples/", {"anonymous_until": years}, format="json")
    assert moved.status_code == 200
    step(Disclosure.PUBLIC)
    clock.now = LATE + timedelta(days=274) - TICK
    assert {name for _, _, name in rows(eve)} >= {"berries"}
    assert "apples" not in {name for _, _, name in rows(eve)}
    assert eve.get(GENERAL).status_code == 403
    tag = eve.get(BOARD)["ETag"]
    clock.now += TICK
    assert eve.get(BOARD, headers={"If-None-Match": tag}).status_code == 200
    assert {name for _, _, name in rows(eve)} == {"apples", "berries", None}
    assert eve.get(GENERAL).status_code == 200


def browser(name: str = "") -> Client:
    client = Client()
    if name:
        client.force_login(User.objects.get(username=name))
    return client


def row_texts(client: Client, query: str = "") -> list[str]:
    """The rows of the page of the leaderboard, as text."""
    html = page(client, f"{PAGE}{query}")
    return [
        text_of(row)
        for row in html.partition("<tbody>")[2].partition("</tbody>")[0].split("</tr>")[:-1]
    ]


def test_the_page_shows_the_rows_of_the_api_to_the_same_readers(after_end: Clients) -> None:
    olga, ann, anybody = browser("olga"), browser("ann"), browser()
    assert [client.get(PAGE).status_code for client in (ann, anybody)] == [403, 403]
    assert "nDCG@10" not in ann.get(PAGE).content.decode()
    assert anybody.get("/campaigns/cup/phases/other/").status_code == 404
    assert PAGE in page(olga, "/campaigns/cup/desk/")
    assert PAGE not in page(ann, "/campaigns/cup/team/") + page(anybody, "/campaigns/cup/")
    rows = after_end["olga"].get(BOARD).json()["results"]
    lines = row_texts(olga)
    assert len(lines) == len(rows) == 4
    for row, line in zip(rows, lines, strict=True):
        assert line.split()[:2] == [str(row["rank"] or "–"), row["run"]["tag"]]
        assert f"{row['values']['nDCG@10']['mean']:.4f}" in line
        assert (row["team_name"] or "organisers") in line
    assert any("BM25" in line for line in lines)
    (late,) = row_texts(olga, "?view=late")
    assert late.startswith("– late late")
    assert len(row_texts(olga, "?run_type=manual")) == 1
    assert 'class="note refused"' in page(olga, PAGE, 400, view="nonsense")
    step(Disclosure.PARTICIPANTS)
    assert PAGE in page(ann, "/campaigns/cup/team/")
    assert PAGE in page(ann, "/campaigns/cup/")
    assert PAGE not in page(anybody, "/campaigns/cup/")


def test_the_page_hides_names_until_their_instant(after_end: Clients, clock: Clock) -> None:
    Campaign.objects.update(anonymous_until=LIFTED)
    step(Disclosure.PUBLIC)
    eve = browser()
    clock.now = LIFTED - TICK
    before = eve.get(PAGE)
    hidden = ("apples", "berries", "a1", "a2", "b1")
    assert not [word for word in hidden if word in text_of(before.content.decode()).split()]
    assert "/runs/" not in before.content.decode().partition("<tbody>")[2]
    same = {"headers": {"If-None-Match": before["ETag"]}}
    assert eve.get(PAGE, **same).status_code == 304
    assert "apples" in " ".join(row_texts(browser("ann")))
    clock.now = LIFTED
    after = eve.get(PAGE, **same)
    assert after.status_code == 200
    assert set(hidden) <= set(text_of(after.content.decode()).split())


def test_the_page_kept_for_one_reader_is_the_page_of_the_next(
    after_end: Clients, clock: Clock, answers_kept: None
) -> None:
    Campaign.objects.update(anonymous_until=LIFTED)
    step(Disclosure.PUBLIC)
    clock.now = LIFTED - TICK
    readers = {name: browser(name) for name in ("", "ann", "ben", "olga")}

    def read(name: str) -> str:
        # A token belongs to one browser.
        return re.sub(r'csrfmiddlewaretoken" value="\w+', "", page(readers[name], PAGE))

    alone = {}
    for name in readers:
        forget_all()
        alone[name] = read(name)
    assert len(set(alone.values())) == len(readers)
    for name in (*readers, *reversed(readers)):
        assert read(name) == alone[name], name
    # Two who are nobody here get the same page, but for the name of the reader.
    stranger = browser("eve")
    with recalled_answers() as recalled:
        assert row_texts(stranger) == row_texts(readers[""])
    assert len(recalled) == 2


def test_the_page_asks_no_more_for_more_entries(after_end: Clients) -> None:
    olga = browser("olga")
    queries = []
    for query in ("?view=late", "?view=all"):
        with CaptureQueriesContext(connection) as captured:
            row_texts(olga, query)
        queries.append(len(captured))
    assert queries[1] <= queries[0] + 1, queries
    assert queries[1] < 45, queries


@pytest.mark.usefixtures("answers_kept")
def test_the_leaderboard_finds_its_phase_once_and_asks_less_when_it_was_asked_before(
    after_end: Clients,
) -> None:
    step(Disclosure.PUBLIC)
    queries = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            assert browser().get(BOARD).status_code == 200
        queries.append([query["sql"] for query in captured if query["sql"].startswith("SELECT")])
        assert sum('FROM "runs_campaign"' in sql for sql in queries[-1]) == 1
    assert len(queries[1]) <= 11, queries[1]


def test_teams_publish_entries_afterwards(after_end: Clients, clock: Clock) -> None:
    olga, ann, ben = after_end["olga"], after_end["ann"], after_end["ben"]
    step(Disclosure.PARTICIPANTS)
    clock.now += TICK
    times = {
        "opens_at": (clock.now + TICK).isoformat(),
        "closes_at": (clock.now + timedelta(days=9)).isoformat(),
    }
    later = {"slug": "later", "name": "Later", "collection": "dark", "kind": "afterwards", **times}
    assert olga.post(f"{CAMPAIGN}phases/", later, format="json").status_code == 201
    clock.now += timedelta(days=1)
    run = {"file": SimpleUploadedFile("run", run_of("a3").encode()), "tag": "a3"}
    entry = ann.post(f"{CAMPAIGN}phases/later/entries/", run, format="multipart").json()
    evaluate_all()

    def readers() -> list[str]:
        every = {"olga": olga, "ann": ann, "ben": ben}
        seen = {
            name: [tag for _, tag, _ in rows(client, "?view=afterwards")]
            for name, client in every.items()
        }
        # The leaderboard of the phase itself shows the same entries, without ranks too.
        for view in ("official", "all", "afterwards"):
            for name, client in every.items():
                own = client.get(f"{CAMPAIGN}phases/later/board/?view={view}").json()["results"]
                assert ("a3" in [row["run"]["tag"] for row in own]) == ("a3" in seen[name]), (
                    name,
                    view,
                )
                assert {row["rank"] for row in own} <= {None}
        return [name for name, tags in seen.items() if "a3" in tags]

    assert readers() == ["olga", "ann"]
    publish = {"published": True}
    assert code_of(olga.patch(entry["url"], publish, format="json")) == (403, "not_allowed")
    official = ann.get(f"{PHASE}entries/").json()["results"][0]["url"]
    assert (
        ann.patch(official, publish, format="json").json()["errors"][0]["pointer"] == "/published"
    )
    assert ann.patch(entry["url"], {"published": False}, format="json").status_code == 400
    assert "Publish" in page(browser("ann"), f"/campaigns/cup/entries/{entry['id']}/")
    assert not entry["published"]
    assert ann.patch(entry["url"], publish, format="json").json()["published"]
    assert readers() == ["olga", "ann", "ben"]
    assert not list(find_in_campaigns())
    (shown_row,) = (row for row in rows(ben, "?view=afterwards") if row[1] == "a3")
    assert shown_row[0] is None
    statistics = "&statistics=intervals"

    def cautions(query: str) -> list[str]:
        cautions = ann.get(f"{BOARD}?{query}{statistics}").json()["statistics"]["cautions"]
        return [caution["code"] for caution in cautions]

    assert "unpooled_runs" not in cautions("view=afterwards")
    # Of what nobody judged, no relevance is known.
    strange = {
        "file": SimpleUploadedFile(
            "run", b"1 Q0 q1 1 9.0 a4\n2 Q0 q2 1 9.0 a4\n3 Q0 q3 1 9.0 a4\n"
        ),
        "tag": "a4",
    }
    assert (
        ann.post(f"{CAMPAIGN}phases/later/entries/", strange, format="multipart").status_code == 201
    )
    evaluate_all()
    assert "unpooled_runs" in cautions("view=afterwards")
    assert "unpooled_runs" not in cautions("view=official")
    html = text_of(page(browser("ann"), f"{CAMPAIGN[7:]}phases/later/"))
    assert (
        "1 run that came afterwards has fewer judged documents among the first ten than every run before"
        in html
    )


def test_a_name_that_changes_after_results_were_disclosed_has_the_former_one_beside_it(
    after_end: Clients,
) -> None:
    ann, eve, apples = after_end["ann"], after_end["eve"], f"{CAMPAIGN}teams/apples/"

    def rename(name: str) -> str:
        return str(ann.patch(apples, {"name": name}, format="json").json()["former_name"])

    assert rename("Pears") == ""
    step(Disclosure.PUBLIC)
    tag = eve.get(BOARD)["ETag"]
    assert rename("Melons") == "Pears"
    assert eve.get(BOARD, headers={"If-None-Match": tag}).status_code == 200
    assert "Melons (formerly Pears)" in {name for _, _, name in rows(eve)}
    assert "Melons (formerly Pears)" in text_of(page(browser(), PAGE))
    assert rename("Grapes") == "Pears"
    assert not list(find_in_campaigns())
    assert rename("Pears") == ""
    assert "Pears" in {name for _, _, name in rows(eve)}
    assert not list(find_in_campaigns())


def test_rows_are_filtered_for_those_who_see_the_runs(after_end: Clients) -> None:
    olga, ann = after_end["olga"], after_end["ann"]
    assert [(rank, tag) for rank, tag, _ in rows(olga, "?filter=tag:b1")] == [(1, "b1")]
    assert olga.get(f"{BOARD}?filter=tag:b1").json()["ranked"] == 3
    assert (
        olga.get(f"{BOARD}?columns=submitted&arrange=submitted").json()["results"][0]["run"]["tag"]
        == "a1"
    )
    assert "a1" not in " ".join(row_texts(browser("olga"), "?filter=tag:b1"))
    # Of a leaderboard that is shown as feedback, or under pseudonyms, a filter would tell what is
    # hidden there.
    Campaign.objects.update(anonymous_until=LIFTED)
    step(Disclosure.PUBLIC)
    assert ann.get(BOARD).status_code == 200
    for name in ("filter=tag:b1", "columns=submitted", "arrange=submitted"):
        refused = ann.get(f"{BOARD}?{name}")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
            400,
            name.partition("=")[0],
        )
