"""Titles of measures and decimals of a phase in the tables that people read, and papers of entries."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from evalhub.campaigns.services.integrity import find_in_campaigns
from runs.models import AuditEvent, Campaign, Entry, Phase, User
from tests.campaigns.test_collection_board import release
from tests.campaigns.worlds import (
    CAMPAIGN,
    LATE,
    OPENS,
    PHASE,
    Clients,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
)
from tests.conftest import POOR, evaluate_all
from tests.web.test_pages import page, text_of
from tests.web.worlds import body_of

pytestmark = pytest.mark.sqlite
BOARD = f"{PHASE}board/"
TITLES = {"nDCG(gains='exp')@10": "Gain", "AP": "Mean AP"}


@pytest.fixture
def world(people: Clients, clock: Clock) -> Clients:
    make_campaign(
        people["olga"],
        measures=["nDCG(gains='exp')@10", "AP", "NumRet"],
        measure_titles=TITLES,
        decimals=2,
    )
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    clock.now = OPENS
    enter(people["ann"], "dense")
    enter(people["ben"], "poor", POOR)
    evaluate_all()
    clock.now = LATE + timedelta(days=1)
    return people


def test_titles_and_decimals_are_on_pages_and_in_tables_for_papers(world: Clients) -> None:
    release(world, audience="public")
    rows = world["olga"].get(BOARD).json()["results"]
    means = {row["run"]["tag"]: row["values"]["AP"]["mean"] for row in rows}
    assert len(means) == 2

    text = body_of(Client().get("/campaigns/cup/phases/task/")).decode()
    head = text[text.index("<thead") : text.index("</thead")]
    assert "Gain" in head
    assert "Mean AP" in head
    assert "exp" not in text_of(head)
    # The ends of intervals keep four, and those of equal values are the value.
    mean = means["poor"]
    assert f"{mean:.2f}" in text_of(text)
    assert f"{mean:.4f}" not in text_of(text)

    for kind in ("md", "tex"):
        file = body_of(world["ann"].get(f"{BOARD}export/{kind}/")).decode()
        assert re.search(r"Gain.*Mean AP.*NumRet", file), file
        for mean in means.values():
            assert f"{mean:.2f}" in file
            assert f"{mean:.4f}" not in file
        assert "Gain: nDCG(gains=" in file

    # Data has the names of measures and all digits.
    lines = csv.DictReader(io.StringIO(body_of(world["ann"].get(f"{BOARD}export/csv/")).decode()))
    values = {line["tag"]: line for line in lines}
    for tag, mean in means.items():
        assert float(values[tag]["AP"]) == mean
    assert "Gain" not in values["dense"]


def test_the_overview_of_a_packet_has_them(world: Clients) -> None:
    release(world, audience="participants")
    answer = world["ann"].get(f"{PHASE}packet/")
    archive = zipfile.ZipFile(io.BytesIO(body_of(answer)))
    (name,) = [name for name in archive.namelist() if name.endswith("overview.tex")]
    text = archive.read(name).decode()
    assert "Gain" in text
    (mean,) = re.findall(r"apples: dense.*?& .*?& *[^&]*?([0-9]\.[0-9]+)", text)[:1]
    assert len(mean) == len("0.00")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"measure_titles": {"nonsense@": "N"}}, "/measure_titles"),
        ({"measure_titles": {"AP": "x" * 41}}, "/measure_titles"),
        ({"measure_titles": {"AP": ""}}, "/measure_titles"),
        ({"measure_titles": {"AP": "a\nb"}}, "/measure_titles"),
        ({"measure_titles": {"AP": "Same", "RR": "Same"}}, "/measure_titles"),
        ({"measure_titles": ["AP"]}, "/measure_titles"),
        ({"decimals": 0}, "/decimals"),
        ({"decimals": 7}, "/decimals"),
    ],
)
def test_titles_and_decimals_that_do_not_fit_are_refused(
    people: Clients, fields: dict[str, Any], pointer: str
) -> None:
    make_campaign(people["olga"])
    answer = people["olga"].patch(PHASE, fields, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)
    assert Phase.objects.get().measure_titles is None


def test_the_form_of_a_phase_keeps_titles_of_measures(people: Clients) -> None:
    make_campaign(people["olga"], measure_titles={"RBP(p=0.5)": "RBP"}, decimals=3)
    browser = Client()
    browser.force_login(User.objects.get(username="olga"))
    text = page(browser, "/campaigns/cup/desk/phases/task/")
    assert "RBP(p=0.5) = RBP" in text_of(text)
    assert people["olga"].get(PHASE).json()["decimals"] == 3
    config = people["olga"].get(f"{CAMPAIGN}config/").json()
    assert config["phases"][0]["measure_titles"] == {"RBP(p=0.5)": "RBP"}
    assert list(find_in_campaigns()) == []


def test_an_entry_is_linked_to_its_paper_by_its_team_and_organisers(
    world: Clients, clock: Clock
) -> None:
    release(world, audience="public")
    dense = Entry.objects.get(run__tag="dense")
    url = f"/api/v1/entries/{dense.pk}/"
    assert code_of(world["ben"].patch(url, {"paper": "10.1145/1"}, format="json"))[0] in (403, 404)
    for text in ("javascript:alert(1)", "paper", "https://", "10.x", "ftp://x.example/a"):
        assert code_of(world["ann"].patch(url, {"paper": text}, format="json")) == (400, "invalid")

    answer = world["ann"].patch(url, {"paper": "10.1145/3404835"}, format="json")
    assert (answer.status_code, answer.json()["paper"]) == (200, "10.1145/3404835")
    event = AuditEvent.objects.filter(action="entry.changed").latest("pk")
    assert (event.actor, event.after) == ("ann", {"paper": "10.1145/3404835"})
    address = "https://doi.org/10.1145/3404835"
    papers = {
        row["run"]["tag"]: row["entry"]["paper"]
        for row in world["ben"].get(BOARD).json()["results"]
    }
    assert papers == {"dense": address, "poor": ""}
    assert f'href="{address}"' in body_of(Client().get("/campaigns/cup/phases/task/")).decode()
    for file in (f"{BOARD}export/csv/", f"{PHASE}entries/?format=csv"):
        lines = csv.DictReader(io.StringIO(body_of(world["olga"].get(file)).decode()))
        assert {line["tag"]: line["paper"] for line in lines} == papers

    # Organisers correct it; other changes of the entry stay those of the team.
    assert world["olga"].patch(url, {"paper": ""}, format="json").status_code == 200
    other = {"paper": "10.1145/3404835", "run_type": ""}
    assert world["olga"].patch(url, other, format="json").status_code == 403
    assert Entry.objects.get(pk=dense.pk).paper == ""

    browser = Client()
    browser.force_login(User.objects.get(username="ann"))
    path = f"/campaigns/cup/entries/{dense.pk}/"
    answer = browser.post(path, {"action": "paper", "paper": "https://lab.example/p.pdf"})
    assert answer.status_code == 303
    assert "https://lab.example/p.pdf" in page(browser, path)
    assert browser.post(path, {"action": "paper", "paper": "nowhere"}).status_code == 400
    assert list(find_in_campaigns()) == []


def test_a_paper_does_not_name_a_hidden_team(world: Clients) -> None:
    Campaign.objects.update(anonymous_until=LATE + timedelta(days=30))
    dense = Entry.objects.get(run__tag="dense")
    world["ann"].patch(
        f"/api/v1/entries/{dense.pk}/", {"paper": "https://ann.example/"}, format="json"
    )
    release(world, audience="public")
    assert world["ann"].get(BOARD).json()["results"][0]["entry"]["paper"] == "https://ann.example/"
    for reader in (world["ben"], Client()):
        for path in (BOARD, f"{BOARD}export/csv/", "/campaigns/cup/phases/task/"):
            assert "ann.example" not in body_of(reader.get(path)).decode(errors="replace")
