"""The pages of experiments, of the reader's runs, and of notes: every form, and what each refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from runs.models import Collection, Experiment, Membership, Note, Run, Team, User
from runs.services.tracking.labels import move_label
from tests.conftest import GOOD
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]


@pytest.fixture
def lab(alice: User, bob: User) -> Team:
    """Alice's and Bob's team, which Alice owns."""
    team = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=team, user=alice, role="owner")
    Membership.objects.create(team=team, user=bob)
    return team


@pytest.fixture
def runs(lab: Team) -> list[str]:
    """Four evaluated runs of the lab: r0 to r3."""
    return make_scored("board", lab, simulated(4, 20))


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def page(client: Client, address: str, status: int = 200, **query: Any) -> str:
    answer = client.get(address, query)
    assert answer.status_code == status, (address, answer.status_code)
    return answer.content.decode()


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", html)))


def send(client: Client, address: str, status: int = 303, **form: Any) -> str:
    answer = client.post(address, form)
    assert answer.status_code == status, (
        address,
        answer.status_code,
        text_of(answer.content.decode())[:500],
    )
    return str(answer["Location"]) if status == 303 else answer.content.decode()


def test_runs_are_grouped_from_a_leaderboard(browser: Client, runs: list[str]) -> None:
    chosen = ",".join(runs[:2])
    query = {"select": runs[:2], "group": "runs", "filter": "r"}
    assert (
        browser.get("/collections/board/", query)["Location"]
        == f"/experiments/?runs={'%2C'.join(runs[:2])}"
    )
    assert 'name="group"' in page(browser, "/collections/board/", group="runs")
    assert "Group 2 runs" in text_of(page(browser, "/experiments/", runs=chosen))
    address = send(
        browser, "/experiments/", action="create", name="A study of k1!", team="lab", runs=chosen
    )
    study = Experiment.objects.get()
    assert (study.slug, study.visibility, address) == (
        "a-study-of-k1",
        "team",
        f"/experiments/{study.pk}/",
    )
    html = text_of(page(browser, address))
    assert "Experiment A study of k1! created" in html
    assert [f"r{number}" in html for number in range(3)] == [True, True, False]
    # A second time they are added to one that is there.
    more = ",".join(runs[1:3])
    assert "A study of k1! (lab, 2 runs)" in text_of(page(browser, "/experiments/", runs=more))
    send(browser, "/experiments/", action="add", experiment=str(study.pk), runs=more)
    assert "1 run added; 1 was in it already." in text_of(page(browser, address))
    for form, words in (
        (
            {"action": "create", "name": "A study of k1!", "team": "lab"},
            "has an experiment 'a-study-of-k1' already",
        ),
        ({"action": "create", "name": ""}, "may not be blank"),
        ({"action": "add", "experiment": "x", "runs": more}, "choose an experiment"),
        ({"action": "create", "name": "B", "runs": "x"}, "is not the id of a run"),
    ):
        status = 409 if "already" in words else 400
        assert words.lower() in text_of(send(browser, "/experiments/", status, **form)).lower()
    assert "Log in to make experiments" in text_of(page(Client(), "/experiments/"))


def test_an_experiment_is_changed_on_its_page(
    browser: Client, runs: list[str], lab: Team, bob: User
) -> None:
    study = Experiment.objects.create(team=lab, slug="study", name="Study")
    address = f"/experiments/{study.pk}/"
    assert "No runs yet" in page(browser, address)
    send(browser, address, action="add", collection="board", filter="tag:r0 OR tag:r1 OR tag:r2")
    send(browser, address, action="remove", runs=[runs[2]], collection="board")
    send(browser, address, action="baseline", baseline=runs[0])
    text = text_of(page(browser, address))
    assert "Ranks are among all 4 runs of the collection. Δ: AP minus the baseline’s." in text
    assert (study.runs.count(), "r2" in text) == (2, False)
    lines = re.findall(r"<tr><td class=\"tick\">.*?</tr>", page(browser, address), re.DOTALL)
    ranks = [text_of(line).split()[0] for line in lines]
    board = browser.get("/api/v1/collections/board/leaderboard/").json()["results"]
    means = {row["run"]["tag"]: (row["rank"], row["values"]["AP"]["mean"]) for row in board}
    assert sorted(map(int, ranks)) == sorted(means[tag][0] for tag in ("r0", "r1"))
    difference = f"{means['r1'][1] - means['r0'][1]:+.4f}".replace("-", "−")
    assert difference in text
    send(
        browser,
        address,
        action="describe",
        name="Renamed",
        goal="see https://example.org/x",
        visibility="collection",
    )
    html = page(Client(), address)
    assert '<a href="https://example.org/x" rel="nofollow">' in html
    assert 'name="action"' not in html
    for form, status, words in (
        ({"action": "add", "collection": "board", "filter": ""}, 400, "Write which runs to add"),
        ({"action": "add", "collection": "board", "filter": "zz>1"}, 400, "has a parameter zz"),
        ({"action": "baseline", "baseline": runs[3]}, 400, "is not in experiment"),
        ({"action": "describe", "name": ""}, 400, "may not be blank"), ({"action": "x"}, 400, "Press one of"),
    ):  # fmt: skip
        assert words in text_of(send(browser, address, status, **form)), form
    # Bob is a member, and no organiser of what is shared.
    member = Client()
    member.force_login(bob)
    assert "only organisers of their collections may change it" in text_of(
        send(member, address, 403, action="delete")
    )
    assert send(browser, address, action="delete") == "/experiments/"
    assert (Experiment.objects.count(), Run.objects.filter(deleted_at=None).count()) == (0, 4)


def test_of_many_runs_the_baseline_is_named(
    browser: Client, runs: list[str], lab: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Experiment.objects.create(team=lab, slug="study", name="Study")
    address = f"/experiments/{study.pk}/"
    send(browser, address, action="add", collection="board", filter="tag:r0 OR tag:r1 OR tag:r2")
    assert '<select id="base"' in page(browser, address)
    monkeypatch.setattr("metrics.pages.tracking.experiments._OFFERED", 2)
    for number, name in enumerate(("r0", "board/r1", runs[2])):
        send(browser, address, action="baseline", baseline=name)
        assert str(Experiment.objects.get().baseline_id) == runs[number]
        (field,) = re.findall('<input id="base"[^>]*>', page(browser, address))
        assert f'value="board/r{number}"' in field
    for name in ("r3", "other/r0", "nothing"):
        refused = text_of(send(browser, address, 400, action="baseline", baseline=name))
        assert "None of these runs is called" in refused
    send(browser, address, action="baseline", baseline="")
    assert Experiment.objects.get().baseline is None


def test_an_experiment_of_a_blind_collection_has_no_values(
    browser: Client, runs: list[str], lab: Team, bob: User
) -> None:
    study = Experiment.objects.create(team=lab, slug="study", name="Study")
    study.runs.add(*runs)
    Collection.objects.update(blind=True)
    member = Client()
    member.force_login(bob)
    html = text_of(page(member, f"/experiments/{study.pk}/"))
    assert "Without values: the judgements are blind." in html
    assert "received" in html
    assert "0." not in html.partition("Without values")[2].partition("Add runs")[0]
    assert "Ranks are among all 4 runs" in text_of(page(browser, f"/experiments/{study.pk}/"))


def test_my_runs_are_filtered_grouped_withdrawn_and_restored(
    browser: Client, runs: list[str], lab: Team, alice: User
) -> None:
    make_scored("second", alice.personal_team, simulated(2, 5))
    others = Team.objects.create(slug="others", name="Others")
    make_scored("theirs", others, simulated(1, 5))
    whole = text_of(page(browser, "/runs/"))
    assert ("6 runs" in whole, "Collection second" in whole, "theirs" in whole) == (
        True,
        True,
        False,
    )
    assert "2 runs" in text_of(page(browser, "/runs/?status=evaluated", filter="-team:lab"))
    assert "4 runs" in text_of(page(browser, "/runs/", collection="board"))
    wrong = text_of(page(browser, "/runs/", 400, filter="measure:AP>0.1"))
    assert ("about the leaderboard of one collection" in wrong, "6 runs" in wrong) == (True, True)
    assert send(browser, "/runs/", action="group", runs=runs[:2]).startswith(
        f"/experiments/?runs={runs[0]},{runs[1]}"
    )
    move_label(
        run=Run.objects.select_related("team", "collection").get(pk=runs[1]),
        name="main",
        user=alice,
    )
    refused = send(browser, "/runs/", 409, action="withdraw", runs=runs[:2])
    assert "r1 is labelled main" in text_of(refused)
    assert Run.objects.filter(deleted_at=None).count() == 7
    send(browser, "/runs/", action="withdraw", runs=runs[:2], drop_labels="yes", filter="team:lab")
    assert "2 runs withdrawn" in text_of(page(browser, "/runs/"))
    listed = browser.get("/api/v1/me/runs/withdrawn/").json()["results"]
    assert {(run["tag"], run["withdrawn_at"] is None) for run in listed} == {
        ("r0", False),
        ("r1", False),
    }
    # The stored file of these runs was never there: restoring says so.
    assert "no longer stored" in text_of(
        send(browser, "/runs/", 409, action="restore", runs=[runs[0]])
    )
    for form, words in (
        ({"action": "withdraw"}, "Select runs first"),
        ({"action": "withdraw", "runs": "x"}, "Choose runs"),
    ):
        assert words in text_of(send(browser, "/runs/", 400, **form))
    foreign = str(Run.objects.get(collection__slug="theirs").pk)
    assert "not yours" in text_of(send(browser, "/runs/", 404, action="withdraw", runs=[foreign]))


def test_my_runs_over_rest_know_parameters_of_every_collection(
    api: Any, runs: list[str], alice: User
) -> None:
    make_scored("second", alice.personal_team, simulated(2, 5))
    for run, k1 in (
        (runs[0], 0.9),
        (runs[1], "high"),
        (Run.objects.get(collection__slug="second", tag="r1").pk, 1.2),
    ):
        assert (
            api.patch(f"/api/v1/runs/{run}/", {"metadata": {"k1": k1}}, format="json").status_code
            == 200
        )

    def tags(**query: str) -> list[str]:
        answer = api.get("/api/v1/me/runs/", query)
        assert answer.status_code == 200, answer.content
        return sorted(f"{run['collection']}/{run['tag']}" for run in answer.json()["results"])

    assert tags(filter="param:k1") == ["board/r0", "board/r1", "second/r1"]
    assert tags(filter="param:k1>0.5") == ["board/r0", "second/r1"]
    assert tags(filter="-param:k1", collection="second") == ["second/r0"]
    for text, words in (
        ("param:k2", "none of these runs has param:k2"), ("status:ranked", "use the parameter status="),
        ("measure:AP>0", "filter its leaderboard"), ("k2>1", "none of these runs has param:k2"),
    ):  # fmt: skip
        refused = api.get("/api/v1/me/runs/", {"filter": text}).json()
        assert (refused["code"], words in refused["detail"]) == ("bad_filter", True), refused


def test_notes_are_written_on_their_pages_and_shown_where_they_belong(
    browser: Client, submit: Callable[..., Run], lab: Team, bob: User
) -> None:
    study = Experiment.objects.create(team=lab, slug="study", name="Study")
    run, board = f"/runs/{submit(GOOD).pk}/", "/collections/small/"
    Run.objects.update(team=lab)
    Collection.objects.update(team=lab)
    text = "<b>broken</b> see https://example.org/log"
    assert send(browser, f"{run}notes/", action="write", text=text) == f"{run}notes/"
    files = f"{run}files/"
    html = page(Client(), files)
    assert "&lt;b&gt;broken&lt;/b&gt;" in html
    assert '<a href="https://example.org/log" rel="nofollow">' in html
    assert ("by alice" in html, "Write a note" in html) == (False, False)
    note = Note.objects.get()
    assert f"{run}notes/?edit={note.pk}" in page(browser, files)
    assert "broken" in page(browser, f"{run}notes/", edit=str(note.pk)).partition("</textarea>")[0]
    send(browser, f"{run}notes/", action="save", note=str(note.pk), text="mended")
    assert ("mended" in page(browser, files), "(edited)" in page(browser, files)) == (True, True)
    member = Client()
    member.force_login(bob)
    assert "by alice" in page(member, files)
    refused = send(member, f"{run}notes/", 403, action="save", note=str(note.pk), text="x")
    assert "Only its author" in text_of(refused)
    # A note belongs to the page of what it is about.
    assert send(browser, f"{board}notes/", 404, action="delete", note=str(note.pk))
    assert "may not be blank" in text_of(
        send(browser, f"{run}notes/", 400, action="write", text=" ")
    )
    send(browser, f"{run}notes/", action="delete", note=str(note.pk))
    assert send(member, f"/experiments/{study.pk}/notes/", action="write", text="k1 is all") == (
        f"/experiments/{study.pk}/#notes"
    )
    assert "k1 is all" in page(browser, f"/experiments/{study.pk}/")
    send(browser, f"{board}notes/", action="write", text="topic 7 is odd")
    assert "topic 7 is odd" in page(Client(), f"{board}notes/")
    # What others did is on the home page, and what oneself did is not.
    home = text_of(page(member, "/"))
    assert ("topic 7 is odd" in home, "k1 is all" in home) == (True, False)
    assert "k1 is all" in text_of(page(browser, "/"))


def test_the_submit_form_offers_the_experiments_of_the_reader(
    browser: Client, runs: list[str], lab: Team
) -> None:
    assert 'name="experiment"' not in page(browser, "/collections/board/submit/")
    study = Experiment.objects.create(team=lab, slug="study", name="Study")
    assert "Study (lab)" in text_of(page(browser, "/collections/board/submit/"))
    file = SimpleUploadedFile("good.run", GOOD.encode())
    form = {"action": "submit", "file": file, "experiment": str(study.pk), "team": "alice"}
    assert "Team alice has no experiment" in text_of(
        send(browser, "/collections/board/submit/", 400, **form)
    )
    file.seek(0)
    send(browser, "/collections/board/submit/", **form | {"team": "lab"})
    assert [run.tag for run in study.runs.all()] == ["good"]
