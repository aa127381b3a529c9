"""Snapshots: the same content has the same hash, wherever it is made, and nothing of it changes afterwards."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from evalhub.campaigns.exports.citations import Cited, ro_crate
from evalhub.local import verify_snapshot
from runs.models import AuditEvent, Collection, Disclosure, Snapshot
from runs.services.collections.collections import disclose
from tests.campaigns.shared_data import clock, module_clock, module_data, people
from tests.campaigns.test_pages import browser, send
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    OPENS,
    PHASE,
    Clients,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
)
from tests.conftest import GOOD, POOR, QRELS, evaluate_all
from tests.web.test_pages import page, text_of

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = pytest.mark.django_db
SNAPSHOTS = f"{CAMPAIGN}snapshots/"
# Of the manifest of the world below, on either database. It changes with the schema, the engine and
# these entries.
EXPECTED = "26e6a5d04f91b697005925cc7f907bfa360c6c395b72dd802eba1ab79177196f"
SECRETS = ("ann@example.org", "typed by ann", "our secret sauce", "olga")
FORM = [
    {"key": "stage", "type": "text", "label": "First stage", "public": True},
    {"key": "hidden", "type": "text", "label": "For organisers", "public": False},
]


@pytest.fixture(scope="module")
def world(people: Clients, module_clock: Clock) -> Clients:
    """Two teams' runs, a baseline, a withdrawn and a late one, evaluated; the phase over, nothing disclosed."""
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga, measures=["P@2", "AP"], form=FORM)
    olga.patch(CAMPAIGN, {"contact": "ann@example.org"}, format="json")
    terms = olga.post(
        f"{CAMPAIGN}agreements/", {"title": "Terms", "text": "Be fair."}, format="json"
    ).json()
    for client, team in ((ann, "apples"), (ben, "berries")):
        register(client, team)
        client.post(
            f"{CAMPAIGN}agreements/{terms['sha256']}/sign/",
            {"typed_name": "typed by ann"},
            format="json",
        )
    module_clock.now = OPENS
    answers = json.dumps({"stage": "BM25", "hidden": "our secret sauce"})
    for client, tag, text in (
        (ann, "a1", GOOD),
        (ann, "a2", POOR),
        (ben, "b1", POOR),
        (ben, "b2", GOOD),
    ):
        answer = enter(client, tag, text.replace("good", tag).replace("poor", tag), answers=answers)
        assert answer.status_code == 201, answer.content
    ben.post(f"{answer.json()['url']}withdraw/", {"reason": "a mistake"}, format="json")
    assert (
        enter(olga, "bm25", GOOD.replace("good", "bm25"), role="baseline", label="BM25").status_code
        == 201
    )
    module_clock.now = CLOSES
    assert enter(ben, "b3", GOOD.replace("good", "b3")).json()["late"]
    return people


@pytest.fixture
def after_end(world: Clients, clock: Clock) -> Clients:
    clock.now = CLOSES + timedelta(days=8)
    return world


def make(client: APIClient, **fields: Any) -> Any:
    return client.post(
        SNAPSHOTS, {"phase": "task", "label": "official results", **fields}, format="json"
    )


def archive_of(path: str) -> bytes:
    snapshot = Snapshot.objects.get(code=path)
    return bytes(snapshot.archive)


def test_the_same_results_are_one_snapshot_on_either_database(
    after_end: Clients, tmp_path: Path
) -> None:
    olga = after_end["olga"]
    assert code_of(make(olga)) == (409, "evaluations_running")
    evaluate_all()
    assert code_of(make(after_end["ann"])) == (403, "not_allowed")
    first = make(olga)
    assert first.status_code == 201, first.content
    snapshot = first.json()
    again = make(olga)
    assert (again.status_code, again.json()) == (200, snapshot)
    assert snapshot["sha256"] == EXPECTED
    assert snapshot["page"].endswith(f"/s/{snapshot['sha256'][:20]}/")

    content = olga.get(f"/api/v1/snapshots/{snapshot['sha256']}/").json()["manifest"]
    (phase,) = content["phases"]
    entries = {entry["tag"]: entry for entry in phase["entries"]}
    assert {tag: entry.get("rank") for tag, entry in entries.items()} == {
        "a1": 1, "a2": 2, "b1": 2, "b2": None, "bm25": None, "b3": None,
    }  # fmt: skip
    assert entries["a1"]["answers"] == {"stage": "BM25"}
    assert (entries["b2"]["state"], entries["b2"]["reason"], "means" in entries["b2"]) == (
        "withdrawn",
        "a mistake",
        False,
    )
    assert phase["reference"]["sets"] == [{"run_type": "", "runs": 3}]

    file = tmp_path / "x.tar.zst"
    file.write_bytes(archive_of(snapshot["code"]))
    files = verify_snapshot.read_archive(file.read_bytes())
    assert hashlib.sha256(files["manifest.json"]).hexdigest() == snapshot["sha256"]
    everything = b"".join(files.values()).decode()
    assert not [secret for secret in SECRETS if secret in everything]
    values = list(csv.DictReader(files["task/values.tsv"].decode().splitlines(), delimiter="\t"))
    own = olga.get(f"{PHASE}results/?team=apples").json()["entries"][0]
    told_values = [
        float(row["value"]) for row in values if row["tag"] == "a1" and row["measure"] == "AP"
    ]
    assert told_values == own["values"]["AP"]
    assert entries["a1"]["means"]["AP"]["mean"] == own["means"]["AP"]["mean"]
    records = {
        record["model_info"]["id"]: record for record in json.loads(files["every_eval_ever.json"])
    }
    assert set(records) == {"apples/a1", "apples/a2", "berries/b1", "berries/b3", "lab/bm25"}
    first_result = records["apples/a1"]["evaluation_results"][0]
    assert first_result["score_details"]["score"] == entries["a1"]["means"]["P@2"]["mean"]
    assert first_result["score_details"]["details"]["rank"] == "1"
    assert first_result["metric_config"]["max_score"] == 1.0


def test_an_archive_is_checked_without_a_server(
    after_end: Clients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_all()
    snapshot = make(after_end["olga"], phase=None).json()
    file = tmp_path / "x.tar.zst"
    content = archive_of(snapshot["code"])

    def verify(content: bytes, *options: str) -> int:
        file.write_bytes(content)
        with pytest.raises(SystemExit) as end:
            verify_snapshot.main(["evalhub", "verify-snapshot", str(file), *options])
        return int(end.value.code or 0)

    assert verify(content) == 0
    assert f"sha256:{snapshot['sha256']}" in capsys.readouterr().out
    assert verify(content, "--sha256", snapshot["code"]) == 0
    assert verify(content, "--sha256", "00") == 1
    assert verify(content[:-40]) == verify(b"nothing") == 1
    capsys.readouterr()
    files = verify_snapshot.read_archive(content)
    for name in files:
        spoilt = {**files, name: files[name].replace(b"1", b"2", 1)}
        assert list(verify_snapshot.problems(spoilt)), name
        assert list(verify_snapshot.problems({key: files[key] for key in files if key != name})), (
            name
        )
    assert list(verify_snapshot.problems({**files, "more.txt": b"x"}))
    assert not list(verify_snapshot.problems(files, snapshot["sha256"]))


@pytest.mark.sqlite
def test_a_snapshot_is_seen_by_those_who_see_its_results(after_end: Clients) -> None:
    evaluate_all()
    snapshot = make(after_end["olga"]).json()
    page, api = f"/s/{snapshot['code']}/", f"/api/v1/snapshots/{snapshot['code']}/"
    archive, content = f"{api}archive/", archive_of(snapshot["code"])
    web = Client()

    def seen() -> dict[str, bool]:
        statuses = {
            name: after_end[name].get(api).status_code == 200 for name in ("olga", "ann", "eve")
        }
        assert after_end["eve"].get(SNAPSHOTS).json()["count"] == int(statuses["eve"])
        for name, sees in statuses.items():
            # Whoever sees the snapshot has its archive, by a token alone; of the others nobody
            # learns that it is there.
            answer = after_end[name].get(archive)
            assert answer.status_code == (200 if sees else 404)
            assert (answer.content == content) == sees
            assert sees or code_of(answer) == code_of(
                after_end[name].get(f"/api/v1/snapshots/{'0' * 20}/archive/")
            )
        assert APIClient().get(archive).status_code == web.get(page).status_code
        return {**statuses, "page": web.get(page).status_code == 200}

    dark = Collection.objects.get(slug="dark")
    assert seen() == {"olga": True, "ann": False, "eve": False, "page": False}
    disclose(collection=dark, to=Disclosure.TEAMS)
    assert seen() == {"olga": True, "ann": False, "eve": False, "page": False}
    disclose(collection=dark, to=Disclosure.PARTICIPANTS)
    assert seen() == {"olga": True, "ann": True, "eve": False, "page": False}
    disclose(collection=dark, to=Disclosure.PUBLIC)
    assert seen() == {"olga": True, "ann": True, "eve": True, "page": True}
    # The judgements are open now, which is a fact of the content.
    assert make(after_end["olga"]).status_code == 201


@pytest.mark.sqlite
def test_the_page_has_every_form(after_end: Clients) -> None:
    olga, web = after_end["olga"], Client()
    evaluate_all()
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.PUBLIC)
    snapshot = make(olga).json()
    page = f"/s/{snapshot['code']}/"
    answer = web.get(page)
    assert answer.status_code == 200
    for text in (snapshot["citation"], snapshot["sha256"], "verify-snapshot", "Rank"):
        assert text in answer.content.decode()
    manifest = web.get(page, headers={"accept": "application/json"})
    assert (
        hashlib.sha256(manifest.content).hexdigest() == snapshot["sha256"] == manifest["X-SHA256"]
    )
    assert manifest.content == web.get(f"{page[:-1]}.json").content
    assert "Accept" in manifest["Vary"]
    archive = web.get(f"{page[:-1]}.tar.zst")
    assert hashlib.sha256(archive.content).hexdigest() == snapshot["archive_sha256"]
    assert web.get(page, headers={"accept": "application/x-bibtex"}).content.startswith(
        b"@misc{evalhub-cup-s1,"
    )
    assert web.get(f"{page[:-1]}.ris").content.startswith(b"TY  - DATA\r\n")
    assert web.get(f"{page[:-1]}.csl.json").json()[0]["URL"].endswith(page)
    cited = web.get(f"{page[:-1]}.datacite.json").json()
    assert (cited["types"]["resourceTypeGeneral"], "doi" in cited) == ("Dataset", False)
    deposit = web.get(f"{page[:-1]}.zenodo.json").json()["metadata"]
    assert (deposit["upload_type"], deposit["creators"], "doi" in deposit) == (
        "dataset",
        [{"name": "lab"}],
        False,
    )
    # Nothing is made up: without a licence none of them names one.
    assert not {"license", "notes"} & set(deposit)
    assert "rightsList" not in cited
    assert code_of(after_end["olga"].patch(CAMPAIGN, {"licence": "CC BY"}, format="json")) == (
        400,
        "invalid",
    )
    fields = {"licence": "CC-BY-4.0", "rights": "Judgements (c) 2027 <the organisers>"}
    campaign = after_end["olga"].patch(CAMPAIGN, fields, format="json").json()
    assert {name: campaign[name] for name in fields} == fields
    deposit = web.get(f"{page[:-1]}.zenodo.json").json()["metadata"]
    assert (deposit["license"], deposit["notes"]) == (
        "cc-by-4.0",
        "Judgements (c) 2027 &lt;the organisers&gt;",
    )
    named, worded = web.get(f"{page[:-1]}.datacite.json").json()["rightsList"]
    assert (named["rightsIdentifier"], named["rightsUri"]) == (
        "CC-BY-4.0", "https://spdx.org/licenses/CC-BY-4.0.html",
    )  # fmt: skip
    assert worded == {"rights": fields["rights"]}
    assert 'license: "CC-BY-4.0"' in web.get(f"{page[:-1]}.cff").content.decode()
    assert "CC-BY-4.0" in web.get(page).content.decode()
    assert 'value: "sha256:' in web.get(f"{page[:-1]}.cff").content.decode()
    assert web.get(f"{page[:-1]}.exe").status_code == web.get(f"/s/{'0' * 20}/").status_code == 404
    assert web.get(f"/s/{snapshot['sha256'][:19]}/").status_code == 404
    assert web.get(f"/s/{snapshot['sha256']}/").status_code == 200


@pytest.mark.sqlite
def test_citations_name_the_authors_the_paper_and_the_judgements(after_end: Clients) -> None:
    olga, web = after_end["olga"], Client()
    evaluate_all()
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.PUBLIC)
    page = f"/s/{make(olga).json()['code']}/"
    assert code_of(olga.patch(CAMPAIGN, {"paper_doi": "zenodo.1"}, format="json")) == (
        400,
        "invalid",
    )
    citation = {
        "citation_authors": "Lima, Ana; The Lab",
        "paper_doi": "10.1000/paper",
        "judgements_doi": "10.1000/qrels",
    }
    campaign = olga.patch(CAMPAIGN, citation, format="json").json()
    assert {name: campaign[name] for name in citation} == citation
    cited = web.get(f"{page[:-1]}.datacite.json").json()
    assert cited["creators"] == [
        {"name": "Lima, Ana", "nameType": "Personal", "familyName": "Lima", "givenName": "Ana"},
        {"name": "The Lab", "nameType": "Organizational"},
    ]
    relations = {
        identifier["relationType"]: identifier["relatedIdentifier"]
        for identifier in cited["relatedIdentifiers"]
    }
    assert (relations["IsSupplementTo"], relations["IsDerivedFrom"]) == (
        "10.1000/paper",
        "10.1000/qrels",
    )
    deposit = web.get(f"{page[:-1]}.zenodo.json").json()["metadata"]
    assert deposit["creators"] == [{"name": "Lima, Ana"}, {"name": "The Lab"}]
    assert {"identifier": "10.1000/paper", "relation": "isSupplementTo"} in deposit[
        "related_identifiers"
    ]
    assert b"author = {Lima, Ana and {The Lab}}" in web.get(f"{page[:-1]}.bib").content
    assert web.get(f"{page[:-1]}.csl.json").json()[0]["author"] == [
        {"family": "Lima", "given": "Ana"}, {"literal": "The Lab"},
    ]  # fmt: skip
    assert (
        'family-names: "Lima"\n    given-names: "Ana"\n  - name: "The Lab"'
        in web.get(f"{page[:-1]}.cff").content.decode()
    )
    assert "Lima, Ana; The Lab (" in web.get(page).content.decode()


@pytest.mark.parametrize("licence", ["CC-BY-4.0", ""])
def test_an_ro_crate_describes_its_licence(licence: str) -> None:
    site, at = "https://hub.example/", datetime(2027, 6, 1, tzinfo=UTC)
    cited = Cited(
        "Results",
        "lab",
        "Cup",
        f"{site}campaigns/cup/",
        1,
        "ab" * 32,
        f"{site}s/1/",
        site,
        at,
        licence=licence,
    )
    graph = {node["@id"]: node for node in json.loads(ro_crate(cited, {"a.tsv": b""}))["@graph"]}
    licence_node = graph["./"]["license"]
    described = {
        "@id": "https://spdx.org/licenses/CC-BY-4.0",
        "@type": "CreativeWork",
        "name": "CC-BY-4.0",
    }
    assert (
        (graph[licence_node["@id"]] == described)
        if licence
        else licence_node.startswith("Ask the organisers")
    )
    pointed = {
        node["@id"] for node in graph.values() if node["@id"].startswith("https://spdx.org/")
    }
    assert len(pointed) == bool(licence)


@pytest.mark.sqlite
def test_a_doi_is_given_once_and_a_withdrawn_snapshot_stays(after_end: Clients) -> None:
    olga = after_end["olga"]
    evaluate_all()
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.PUBLIC)
    snapshot = make(olga).json()
    api, page = f"/api/v1/snapshots/{snapshot['code']}/", f"/s/{snapshot['code']}"
    assert code_of(after_end["ann"].patch(api, {"doi": "10.5281/zenodo.1"}, format="json")) == (
        403,
        "not_allowed",
    )
    assert olga.patch(api, {"doi": "zenodo.1"}, format="json").status_code == 400
    for _ in range(2):
        assert (
            olga.patch(api, {"doi": "10.5281/zenodo.1"}, format="json").json()["doi"]
            == "10.5281/zenodo.1"
        )
    assert code_of(olga.patch(api, {"doi": "10.5281/zenodo.2"}, format="json")) == (
        409,
        "doi_given",
    )
    assert "https://doi.org/10.5281/zenodo.1" in olga.get(api).json()["citation"]

    later = make(olga, label="corrected results").json()
    assert (later["number"], later["supersedes"]) == (2, snapshot["code"])
    reason = {"reason": "a wrong file of judgements"}
    assert code_of(after_end["ann"].post(f"{api}withdraw/", reason, format="json")) == (
        403,
        "not_allowed",
    )
    assert olga.post(f"{api}withdraw/", reason, format="json").status_code == 200
    assert code_of(olga.post(f"{api}withdraw/", reason, format="json")) == (
        409,
        "already_withdrawn",
    )
    web = Client()
    assert web.get(f"{page}.tar.zst").status_code == 410
    assert code_of(olga.get(f"{api}archive/")) == (410, "snapshot_withdrawn")
    tombstone = web.get(f"{page}.json").json()
    assert tombstone["withdrawn"]["reason"] == reason["reason"]
    assert tombstone["withdrawn"]["successor"] == later["sha256"]
    assert not [
        entry for phase in tombstone["phases"] for entry in phase["entries"] if "means" in entry
    ]
    html = web.get(f"{page}/").content.decode()
    assert reason["reason"] in html
    assert later["code"] in html
    actions = (
        AuditEvent.objects.filter(action__startswith="snapshot.")
        .order_by("pk")
        .values_list("action", flat=True)
    )
    assert list(actions) == [
        "snapshot.made",
        "snapshot.changed",
        "snapshot.made",
        "snapshot.withdrawn",
    ]


@pytest.mark.sqlite
def test_runs_come_with_it_where_everybody_has_them_and_judgements_always(
    after_end: Clients, settings: Any
) -> None:
    olga = after_end["olga"]
    evaluate_all()
    for audience, wanted in (("teams", "not_released"), ("public", "included")):
        release = {"audience": audience, "with_run_files": True}
        planned = olga.post(f"{PHASE}releases/", release, format="json").json()
        assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200
        answer = make(olga, dry_run=True)
        assert (answer.status_code, answer.json()) == (
            200,
            {"phases": [{"phase": "task", "run_files": wanted}], "run_files_limit": 64 * 1024**2},
        )
        snapshot = make(olga).json()
        files = verify_snapshot.read_archive(archive_of(snapshot["code"]))
        assert not list(verify_snapshot.problems(files, snapshot["sha256"]))
        (phase,) = json.loads(files["manifest.json"])["phases"]
        assert phase["run_files"] == wanted
        assert files["task/qrels.txt"].decode() == QRELS
        assert any(name.startswith("task/runs/") for name in files) == (wanted == "included")
    for entry in phase["entries"]:
        if entry["state"] == "entered":
            content = files[f"task/runs/{entry['number']}-{entry['tag']}.txt"]
            assert hashlib.sha256(content).hexdigest() == entry["run"]["sha256"]
    assert "with the files of runs" in text_of(
        page(browser("olga"), "/campaigns/cup/desk/snapshot/")
    )
    settings.EVALHUB_SNAPSHOT_RUN_BYTES = 100
    assert make(olga, dry_run=True).json()["phases"][0]["run_files"] == "too_large"
    assert "larger than" in text_of(page(browser("olga"), "/campaigns/cup/desk/snapshot/"))
    assert Snapshot.objects.count() == 2


def test_who_sees_a_board_with_pseudonyms_sees_its_snapshot(after_end: Clients) -> None:
    olga, nobody = after_end["olga"], APIClient()
    until = {"anonymous_until": "2028-01-01T00:00:00Z"}
    assert olga.patch(CAMPAIGN, until, format="json").status_code == 200
    evaluate_all()
    snapshot = make(olga).json()
    readers = {"participants": (after_end["ann"], browser("ann")), "public": (nobody, Client())}
    pages = (f"/s/{snapshot['code']}/", f"/s/{snapshot['code']}.json")
    addresses = (snapshot["url"], f"{snapshot['url']}archive/")
    for audience, (reader, visitor) in readers.items():
        assert {visitor.get(path).status_code for path in pages} == {404}
        assert {reader.get(path).status_code for path in addresses} == {404}
        planned = olga.post(f"{PHASE}releases/", {"audience": audience}, format="json").json()
        assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200
        assert reader.get(f"{PHASE}board/").status_code == 200
        answers = [*map(visitor.get, pages), *map(reader.get, addresses)]
        assert {answer.status_code for answer in answers} == {200}
        assert reader.get(SNAPSHOTS).json()["count"] == 1
        for answer in answers[:3]:
            for name in ("apples", "berries", "a1", "b1"):
                assert f'"{name}"' not in answer.content.decode()
        # The general addresses stay closed: they have the names.
        assert reader.get("/api/v1/collections/dark/leaderboard/").status_code == 403


@pytest.mark.sqlite
def test_organisers_make_one_on_the_desk(after_end: Clients) -> None:
    olga, path = browser("olga"), "/campaigns/cup/desk/snapshot/"
    wanted = {"phase": "task", "label": "official results"}
    assert path in page(olga, "/campaigns/cup/desk/")
    assert "Task: 5 entries, 5 evaluations still to be done, judgements of version 1" in text_of(
        page(olga, path)
    ).replace(" : ", ": ")
    assert "still being evaluated" in send(olga, path, 409, **wanted)
    evaluate_all()
    assert browser("ann").post(path, wanted).status_code == 403
    assert "has no phase" in send(olga, path, 400, **{**wanted, "phase": "other"})
    assert not Snapshot.objects.exists()
    html = send(olga, path, **wanted)
    assert "Snapshot 1 made." in html
    assert "official results" in html
    # What the API makes of the same results.
    assert Snapshot.objects.get().sha256 == EXPECTED
    assert "Snapshot 1 has the same results already." in send(olga, path, **wanted)


def test_runs_are_counted_as_they_are_stored(after_end: Clients, settings: Any) -> None:
    content = "".join(f"1 Q0 d{n} 1 {9999 - n} long\n" for n in range(5000))
    file = SimpleUploadedFile("run.gz", gzip.compress(content.encode()))
    baseline = {"file": file, "tag": "long", "role": "baseline", "label": "Long"}
    sent = after_end["olga"].post(f"{PHASE}entries/", baseline, format="multipart")
    assert sent.status_code == 201, sent.content
    evaluate_all()
    release = {"audience": "public", "with_run_files": True}
    planned = after_end["olga"].post(f"{PHASE}releases/", release, format="json").json()
    assert after_end["olga"].post(f"{planned['url']}now/", {}, format="json").status_code == 200
    settings.EVALHUB_SNAPSHOT_RUN_BYTES = len(content) // 2
    preview = make(after_end["olga"], dry_run=True).json()
    assert preview["phases"][0]["run_files"] == "included"
