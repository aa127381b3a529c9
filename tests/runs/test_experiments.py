"""Experiments: sets of runs that a team changes, that filters know, and that others see with all of their runs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from evalhub.operating.backup import saved_models
from runs.models import (
    AuditEvent,
    Collection,
    Experiment,
    ExperimentRun,
    Membership,
    Run,
    Team,
    User,
)
from tests.conftest import GOOD, client_of
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

EXPERIMENTS = "/api/v1/experiments/"
BOARD = "/api/v1/collections/board/"
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def lab(alice: User, bob: User) -> Team:
    """Alice's and Bob's team, which Alice owns."""
    team = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=team, user=alice, role="owner")
    Membership.objects.create(team=team, user=bob)
    return team


@pytest.fixture
def runs(lab: Team) -> list[str]:
    """Four evaluated runs of the lab."""
    return make_scored("board", lab, simulated(4, 20))


def make(client: APIClient, slug: str = "study", **fields: Any) -> Any:
    return client.post(EXPERIMENTS, {"slug": slug, "team": "lab", **fields}, format="json")


def group(client: APIClient, url: str, **fields: Any) -> Any:
    return client.post(f"{url}runs/", fields, format="json")


def tags_of(client: APIClient, text: str) -> list[str]:
    answer = client.get(f"{BOARD}leaderboard/", {"filter": text})
    return sorted(row["run"]["tag"] for row in answer.json()["results"])


def test_an_experiment_is_made_filled_changed_and_deleted(api: APIClient, runs: list[str]) -> None:
    experiment = make(api, name="A study", goal="Which k1?", runs=runs[:2]).json()
    assert (
        experiment["name"],
        experiment["visibility"],
        experiment["count"],
        experiment["baseline"],
    ) == (
        "A study",
        "team",
        2,
        None,
    )
    assert [run["tag"] for run in experiment["runs"]] == ["r0", "r1"]
    changed = group(api, experiment["url"], add=[runs[2], runs[1]], remove=[runs[0]]).json()
    assert [run["tag"] for run in changed["runs"]] == ["r1", "r2"]
    patched = api.patch(
        experiment["url"], {"baseline": runs[1], "goal": "Which b?"}, format="json"
    ).json()
    assert (patched["baseline"], patched["goal"], patched["name"]) == (
        runs[1],
        "Which b?",
        "A study",
    )
    assert [
        row["slug"]
        for row in api.get(EXPERIMENTS, {"run": runs[2], "collection": "board"}).json()["results"]
    ] == ["study"]
    assert api.get(EXPERIMENTS, {"run": runs[0]}).json()["count"] == 0
    # The baseline leaves with its run.
    assert group(api, experiment["url"], remove=[runs[1]]).json()["baseline"] is None
    assert api.delete(experiment["url"]).status_code == 204
    assert (Experiment.objects.count(), ExperimentRun.objects.count(), Run.objects.count()) == (
        0,
        0,
        4,
    )
    events = AuditEvent.objects.filter(object_id="lab/study").order_by("pk")
    assert [event.action.removeprefix("experiment.") for event in events] == [
        "created", "changed", "changed", "changed", "changed", "deleted",
    ]  # fmt: skip
    assert (events[2].before, events[2].after) == ({"removed": [runs[0]]}, {"added": [runs[2]]})


@pytest.mark.parametrize(
    ("path", "fields", "status", "code"),
    [
        ("", {"slug": "Study"}, 400, "invalid"), ("", {"slug": "study"}, 409, "slug_taken"),
        ("", {"slug": "b", "team": "nobodys"}, 400, "does_not_exist"),
        ("", {"slug": "b", "runs": [NOBODY]}, 400, "unknown_run"), ("", {"slug": "b", "goal": "a\x07"}, 400, "invalid"),
        ("{id}/runs/", {"add": [NOBODY]}, 400, "unknown_run"), ("{id}/runs/", {"add": "all"}, 400, "not_a_list"),
        ("{id}/runs/", {"runs": []}, 400, "unknown_field"),
        ("{id}/runs/", {"add": [str(UUID(int=number)) for number in range(1001)]}, 400, "max_length"),
    ],
)  # fmt: skip
def test_a_refused_change_changes_nothing(
    api: APIClient, runs: list[str], path: str, fields: dict[str, Any], status: int, code: str
) -> None:
    experiment = make(api, runs=runs[:1]).json()
    answer = api.post(
        EXPERIMENTS + path.format(id=experiment["id"]),
        {"team": "lab", **fields} if not path else fields,
    )
    payload = answer.json()
    assert (answer.status_code, payload["errors"][0]["code"]) == (status, code), payload
    assert (Experiment.objects.count(), ExperimentRun.objects.count()) == (1, 1)
    assert api.patch(experiment["url"], {"baseline": runs[1]}).json()["code"] == "unknown_run"


def test_an_experiment_has_a_largest_size(
    api: APIClient, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.services.tracking.experiments.MAX_RUNS", 2)
    monkeypatch.setattr("runs.services.tracking.experiments.MAX_EXPERIMENTS", 1)
    experiment = make(api, runs=runs[:2]).json()
    refused = group(api, experiment["url"], add=[runs[2]])
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_runs")
    # A withdrawn run leaves its place; restored, it is there again.
    assert api.delete(f"/api/v1/runs/{runs[0]}/").status_code == 204
    assert group(api, experiment["url"], add=[runs[2]]).json()["count"] == 2
    Run.objects.update(deleted_at=None)
    assert api.get(experiment["url"]).json()["count"] == 3
    assert make(api, "another").json()["code"] == "too_many_experiments"


def test_a_filter_names_experiments(api: APIClient, runs: list[str]) -> None:
    make(api, runs=runs[:2])
    make(api, "other", runs=runs[2:])
    assert tags_of(api, "experiment:study") == tags_of(api, "experiment:lab/study") == ["r0", "r1"]
    assert tags_of(api, "experiment:study,other -tag:r0") == ["r1", "r2", "r3"]
    assert tags_of(api, "-experiment:study") == ["r2", "r3"]
    # Whoever does not see it, and whoever names one that is not there, filters by an empty set.
    assert tags_of(client_of(None), "experiment:study") == tags_of(api, "experiment:none") == []
    assert (
        api.get(f"{BOARD}leaderboard/", {"filter": "experiment:A"}).json()["code"] == "bad_filter"
    )


@pytest.mark.parametrize(
    "filter",
    ["bx OR experiment:study", "a OR -(b (c OR -(d (e OR -experiment:study))))"],
)
def test_an_experiment_may_be_anywhere_in_a_filter(
    api: APIClient, runs: list[str], filter: str
) -> None:
    """The parser of SQLite takes a hundred levels, of which deciding who sees an experiment needs half."""
    make(api, runs=runs[:2])
    for path in ("parameters/", "leaderboard/"):
        assert api.get(f"{BOARD}{path}", {"filter": filter}).status_code == 200


def test_who_sees_and_who_changes(api: APIClient, runs: list[str], bob: User) -> None:
    """The team; a shared one everyone who sees all of its runs, and only organisers change it."""
    member, outsider = client_of(bob), client_of(User.objects.create_user("carol"))
    experiment = make(member, runs=runs[:2]).json()
    assert (
        outsider.get(experiment["url"]).status_code
        == client_of(None).get(experiment["url"]).status_code
        == 404
    )
    assert (
        group(client_of(bob, ["read"]), experiment["url"], add=runs).json()["code"]
        == "missing_scope"
    )
    assert member.patch(experiment["url"], {"visibility": "collection"}).status_code == 403
    assert api.patch(experiment["url"], {"visibility": "collection"}).status_code == 200
    assert (
        outsider.get(EXPERIMENTS).json()["count"]
        == client_of(None).get(EXPERIMENTS).json()["count"]
        == 1
    )
    assert outsider.patch(experiment["url"], {"goal": "mine"}).status_code == 403
    assert group(member, experiment["url"], add=[runs[2]]).status_code == 403
    assert member.delete(experiment["url"]).status_code == 403
    assert tags_of(outsider, "experiment:study") == ["r0", "r1"]
    # A member takes the sharing back.
    assert member.patch(experiment["url"], {"visibility": "team"}).status_code == 200
    assert outsider.get(experiment["url"]).status_code == 404


def test_runs_that_a_reader_does_not_see_leave_no_trace(
    api: APIClient, runs: list[str], bob: User
) -> None:
    """A shared experiment with a run of a blind or hidden collection is not there; a member sees what there is to
    see of it."""
    carol = User.objects.create_user("carol")
    guests = Team.objects.create(slug="guests", name="Guests")
    Membership.objects.create(team=guests, user=carol)
    blind = make_scored("blind", guests, simulated(1, 5))
    Collection.objects.filter(slug="blind").update(team=Team.objects.get(slug="lab"))
    experiment = make(api, runs=[runs[0], *blind], visibility="collection").json()
    api.patch(experiment["url"], {"baseline": blind[0]})
    anonymous, member = client_of(None), client_of(bob)
    assert anonymous.get(experiment["url"]).json()["count"] == 2
    Collection.objects.filter(slug="blind").update(blind=True)
    assert anonymous.get(experiment["url"]).status_code == 404
    assert (anonymous.get(EXPERIMENTS).json()["count"], tags_of(anonymous, "experiment:study")) == (
        0,
        [],
    )
    # Bob is in the lab and no organiser: he sees the experiment, and of the blind run nothing.
    seen = member.get(experiment["url"]).json()
    assert (seen["count"], [run["tag"] for run in seen["runs"]], seen["baseline"]) == (
        1,
        ["r0"],
        None,
    )
    assert member.get(EXPERIMENTS, {"run": blind[0]}).json()["count"] == 0
    assert member.get(EXPERIMENTS, {"collection": "blind"}).json()["count"] == 0
    assert (
        client_of(bob).post(f"{experiment['url']}runs/", {"add": blind}).json()["code"]
        == "unknown_run"
    )
    # Carol's own run is among them, and the other one is public.
    assert client_of(carol).get(experiment["url"]).json()["count"] == 2
    assert api.get(experiment["url"]).json()["count"] == 2


def test_a_run_is_submitted_into_an_experiment(api: APIClient, runs: list[str]) -> None:
    study = make(api).json()

    def submit(**fields: str) -> Any:
        form = {"file": SimpleUploadedFile("run", GOOD.encode()), "team": "lab", **fields}
        return api.post(f"{BOARD}runs/", form, format="multipart")

    refused = submit(experiment="studdy")
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_experiment")
    assert "it has study" in refused.json()["detail"]
    # That of another team is not there.
    assert submit(experiment="study", team="alice").json()["code"] == "unknown_experiment"
    assert submit(experiment="study", dry_run="true").status_code == 200
    assert not ExperimentRun.objects.exists()
    assert submit().status_code == 202
    # The same file again belongs to it, too.
    assert submit(experiment="study").status_code == 200
    assert submit(experiment=study["id"], tag="second").status_code == 202
    assert [run["tag"] for run in api.get(study["url"]).json()["runs"]] == ["good", "second"]


def test_backups_have_experiments() -> None:
    order = [model.__name__ for model in saved_models()]
    assert max(order.index("Run"), order.index("Experiment")) < order.index("ExperimentRun")
