"""Round 1 of TREC-COVID replayed as a campaign: entries of its teams, their results, and what NIST published."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import User
from tests.campaigns.shared_data import clock, module_clock, module_data
from tests.campaigns.worlds import CAMPAIGN, CLOSES, OPENS, PHASE, Clock, make_team, register
from tests.conftest import client_of, evaluate_all, upload

__all__ = ["clock", "module_clock", "module_data"]
pytestmark = [pytest.mark.real_data, pytest.mark.django_db, pytest.mark.sqlite]
HALF_A_DIGIT = 0.00005 + 1e-12
# Columns of the published leaderboard.
MEASURES = {"nDCG@10": "ndcg@10", "P@5": "p@5", "AP": "MAP", "RBP(p=0.5)": "RBP(p=.5)"}
Published = dict[str, dict[str, str]]


def slug_of(team: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"team-{team}".lower())


def replay(folder: Path, clock: Clock) -> tuple[Any, Published]:
    """Enter the 40 runs for their teams, those that contributed judgements first; return the organiser and the
    published rows by tag."""
    with (folder / "published/leaderboard.csv").open() as file:
        published = {row["run"]: row for row in csv.DictReader(file)}
    olga = make_team("lab", "olga")["olga"]
    collection_fields = {
        "slug": "covid",
        "name": "Round 1",
        "team": "lab",
        "blind": True,
        "scores": "float32",
    }
    assert olga.post("/api/v1/collections/", collection_fields, format="json").status_code == 201
    assert (
        upload(
            olga, "collections/covid/qrels/", (folder / "qrels/qrels-rnd1.txt").read_text()
        ).status_code
        == 201
    )
    fields = {"slug": "cup", "name": "TREC-COVID", "team": "lab", "registration": "open"}
    assert olga.post("/api/v1/campaigns/", fields, format="json").status_code == 201
    phase = {"slug": "task", "name": "Round 1", "collection": "covid", "measures": list(MEASURES)}
    times = {"opens_at": OPENS.isoformat(), "closes_at": CLOSES.isoformat()}
    answer = olga.post(f"{CAMPAIGN}phases/", {**phase, **times, "slots": 4}, format="json")
    assert answer.status_code == 201, answer.content
    olga.post(f"{CAMPAIGN}publish/")
    clock.now = OPENS
    teams: dict[str, list[str]] = defaultdict(list)
    for tag, row in sorted(
        published.items(), key=lambda pair: pair[1]["contributed judgments"], reverse=True
    ):
        teams[row["team"]].append(tag)
    for name, tags in teams.items():
        slug = slug_of(name)
        owner = make_team(slug, f"of-{slug}")[f"of-{slug}"]
        assert register(owner, slug).status_code == 201
        for tag in tags:
            file = SimpleUploadedFile("run.gz", (folder / f"runs/{tag}.gz").read_bytes())
            answer = owner.post(f"{PHASE}entries/", {"file": file, "tag": tag}, format="multipart")
            assert answer.status_code == 201, answer.content
    clock.now = CLOSES
    assert evaluate_all() == len(published) == 40
    return olga, published


def check_packet(olga: Any, team: str, published: Published) -> str:
    """The packet of a team has the published means of its runs; returns its overview."""
    answer = olga.get(f"{PHASE}packet/", {"team": team})
    assert answer.status_code == 200, answer.content
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packet:
        lines = packet.read("summary.tsv").decode().splitlines()
        rows = list(
            csv.DictReader([line for line in lines if not line.startswith("# ")], delimiter="\t")
        )
        assert rows
        for row in rows:
            own = published[row["tag"]]
            for measure, column in MEASURES.items():
                assert abs(float(row[measure]) - float(own[column])) <= HALF_A_DIGIT, (
                    row["tag"],
                    measure,
                )
            printed = packet.read(f"{row['tag']}.trec_eval").decode()
            theirs = re.search(r"^nDCG@10 +\tall\t(\S+)$", printed, re.MULTILINE)
            # Both are rounded to four digits; binary halves may go either way.
            assert theirs is not None
            assert abs(float(theirs[1]) - float(own["ndcg@10"])) <= 2 * HALF_A_DIGIT
        return packet.read("overview.md").decode()


def ranks_of(rows: list[dict[str, Any]]) -> dict[str, tuple[int, float]]:
    """The rank and the primary mean of each ranked row, by tag."""
    return {
        row["run"]["tag"]: (row["rank"], row["values"]["nDCG@10"]["mean"])
        for row in rows if row["rank"]
    }  # fmt: skip


@pytest.fixture(scope="module")
def world(real_data: Path, module_data: Path, module_clock: Clock) -> tuple[Any, Published]:
    return replay(real_data / "trec-covid-round1", module_clock)


@pytest.fixture
def replayed(world: tuple[Any, Published], clock: Clock) -> tuple[Any, Published]:
    clock.now = CLOSES
    return world


def test_both_leaderboards_agree_at_every_step_of_disclosure(
    real_data: Path, replayed: tuple[Any, Published]
) -> None:
    olga, published = replayed
    entries = {
        row["tag"]: row["id"] for row in olga.get(f"{PHASE}entries/?limit=200").json()["results"]
    }
    best, second = sorted(published, key=lambda tag: -float(published[tag]["ndcg@10"]))[:2]
    for tag, act in ((best, "disqualify"), (second, "withdraw")):
        path = f"/api/v1/entries/{entries[tag]}/{act}/"
        assert olga.post(path, {"reason": "a copy"}, format="json").status_code == 200
    stray = SimpleUploadedFile(
        "run.gz", (real_data / f"trec-covid-round1/runs/{best}.gz").read_bytes()
    )
    sent = olga.post(
        "/api/v1/collections/covid/runs/",
        {"file": stray, "tag": "stray", "team": "lab"},
        format="multipart",
    )
    assert sent.status_code == 202, sent.content
    evaluate_all()
    member = client_of(User.objects.get(username=f"of-{slug_of(published[best]['team'])}"))
    readers = {"organisers": olga, "teams": olga, "participants": member, "public": APIClient()}
    query = {"measures": "nDCG@10", "sort": "nDCG@10", "limit": 200, "statistics": "tiers"}

    for step, reader in readers.items():
        if step != "organisers":
            planned = olga.post(f"{PHASE}releases/", {"audience": step}, format="json").json()
            assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200
        official = reader.get(f"{PHASE}board/", query).json()
        general = reader.get("/api/v1/collections/covid/leaderboard/", query).json()
        assert ranks_of(general["results"]) == ranks_of(official["results"])
        assert general["entries"] == {"shown": "official", "official": 38, "others": 3}
        tiers = [
            {row["run"]["tag"]: row["statistics"]["tier"] for row in answer["results"]}
            for answer in (general, official)
        ]
        assert tiers[0] == tiers[1]
        every = reader.get("/api/v1/collections/covid/leaderboard/", {**query, "entries": "all"})
        of_others = {
            row["run"]["tag"]: (row["entry_status"], bool(row["rank"]))
            for row in every.json()["results"] if row["entry_status"] != "official"
        }  # fmt: skip
        assert of_others == {
            best: ("disqualified", False),
            second: ("withdrawn", False),
            "stray": ("not_entered", True),
        }


def test_the_results_of_round_1_are_the_published_ones(replayed: tuple[Any, Published]) -> None:
    olga, published = replayed
    release = olga.post(f"{PHASE}releases/", {"audience": "participants"}, format="json").json()
    done = olga.post(f"{release['url']}now/", {}, format="json")
    assert (done.status_code, done.json()["entries"]) == (200, 40), done.content
    teams = [row["team"] for row in olga.get(f"{CAMPAIGN}teams/?limit=200").json()["results"]]
    entries = []
    # A packet has charts of each run, which take long; the means of all runs are compared below.
    for team in teams[::6]:
        overview = check_packet(olga, team, published)
    for team in teams:
        answer = olga.get(f"{PHASE}results/", {"team": team})
        assert answer.status_code == 200, answer.content
        entries += answer.json()["entries"]
    assert {entry["tag"] for entry in entries} == set(published)
    for entry in entries:
        for measure, column in MEASURES.items():
            theirs = float(published[entry["tag"]][column])
            assert abs(entry["means"][measure]["mean"] - theirs) <= HALF_A_DIGIT, (
                entry["tag"],
                measure,
            )
    # Judgements were made of the first seven documents of these runs.
    depths = {entry["tag"]: entry["judged_depth"] for entry in entries}
    pooled = {tag for tag, row in published.items() if row["contributed judgments"] == "yes"}
    assert {depths[tag] for tag in pooled} == {7}
    assert len(pooled) == 14
    assert sum(depths[tag] < 2 for tag in depths.keys() - pooled) == 24

    (of_all,) = answer.json()["reference_sets"]
    figures = {name: np.array(row, float) for name, row in of_all["by_topic"]["nDCG@10"].items()}
    assert of_all["runs"] == 40
    assert set(figures["n"]) == {40}
    values = np.array([entry["values"]["nDCG@10"] for entry in entries])
    np.testing.assert_array_equal(figures["median_upper"], np.sort(values, axis=0)[20])
    np.testing.assert_allclose(figures["median"], np.median(values, axis=0), rtol=1e-15)
    snapshot = olga.post(
        f"{CAMPAIGN}snapshots/", {"phase": "task", "label": "official results"}, format="json"
    ).json()
    (frozen,) = olga.get(snapshot["url"]).json()["manifest"]["phases"]
    assert {entry["tag"]: entry["means"]["nDCG@10"]["mean"] for entry in frozen["entries"]} == {
        entry["tag"]: entry["means"]["nDCG@10"]["mean"] for entry in entries
    }
    # The overview of a packet has the tiers of the snapshot.
    lines = [
        line.strip("| ").split(" | ") for line in overview.splitlines() if line.startswith("| ")
    ]
    assert lines[0][-1] == "Tier"
    tiers = {cells[1].partition(": ")[2].replace("\\_", "_"): cells[-1] for cells in lines[2:]}
    assert tiers == {entry["tag"]: str(entry["tier"]) for entry in frozen["entries"]}
    assert len(set(tiers.values())) > 1
    # And its mark of the runs that can be the best, as the page has.
    marked = {entry["tag"] for entry in frozen["entries"] if entry["in_best_set"]}
    best = {
        cells[1].partition(": ")[2].replace("\\_", "_") for cells in lines[2:] if "●" in cells[0]
    }
    assert best == marked
    assert 1 < len(marked) < 40
    sentence = f"With 95% confidence the best of 40 runs is one of these {len(marked)}, marked ●."
    assert sentence in overview.replace("\\", "")
    web = Client()
    web.force_login(User.objects.get(username="olga"))
    for address in (f"/s/{snapshot['code']}/", "/campaigns/cup/phases/task/"):
        html = web.get(address).content.decode()
        assert sentence in html
        assert html.count('aria-label="can be the best"') == len(marked)
    assert frozen["releases"][0]["audience"] == "participants"
    np.testing.assert_allclose(figures["q1"], np.quantile(values, 0.25, axis=0), rtol=1e-12)
    assert np.count_nonzero(figures["median"] != figures["median_upper"]) == 26
