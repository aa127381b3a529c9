"""Pages of parameters: columns of a leaderboard, the keys of a collection, and the form that edits those of a run."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import Collection, ParameterKey, Run, User
from tests.conftest import GOOD, POOR, evaluate_all

pytestmark = pytest.mark.words

PAGE = "/collections/small/"


@pytest.fixture
def runs(api: APIClient, collection: str) -> dict[str, str]:
    """Two evaluated runs of Alice's, their ids by tag."""
    runs = {}
    for content, metadata in (
        (GOOD, '{"bm25.k1": 0.9, "model": "<b>"}'),
        (POOR, '{"bm25.k1": 1.2}'),
    ):
        form = {
            "file": SimpleUploadedFile("run", content.encode()),
            "metadata": metadata,
            "costs": '{"latency_ms": 3}',
        }
        answer = api.post("/api/v1/collections/small/runs/", form, format="multipart").json()
        runs[answer["tag"]] = answer["id"]
    evaluate_all()
    return runs


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def text_of(answer: Any) -> str:
    """What a page says, without markup and in single blanks."""
    text = re.sub(r"(?s)<(script|style|head).*?</\1>|<[^>]+>", " ", answer.content.decode())
    return " ".join(html.unescape(text).split())


def test_a_leaderboard_shows_columns_and_is_arranged_by_them(
    client: Client, runs: dict[str, str]
) -> None:
    plain = client.get(PAGE).content.decode()
    assert '<option value="param:bm25.k1">' in plain
    query = "?columns=param:bm25.k1&columns=cost:latency_ms&arrange=-param:bm25.k1"
    answer = client.get(PAGE + query)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert re.search(r'<th scope="col" aria-sort="descending"><a\s+id="arrange-1"', page)
    assert page.index(">poor</a>") < page.index(">good</a>")
    assert "Sorted by bm25.k1; ranks are unchanged." in text_of(answer)
    assert page.count('aria-sort="') == 1
    assert re.search(r'<td class="number">\s*1\.2</td>', page)
    assert re.search(
        r'href="[^"]*export/csv/\?columns=param%3Abm25.k1%2Ccost%3Alatency_ms[^"]*arrange=-param',
        page,
    )
    assert '<option value="param:bm25.k1">' not in page


def test_a_bad_filter_is_told_above_a_leaderboard_that_stays(
    client: Client, runs: dict[str, str]
) -> None:
    answer = client.get(PAGE, {"filter": "param:bm25.k>1", "columns": "param:zzz"})
    assert answer.status_code == 400
    html = text_of(answer)
    assert (
        "filter, character 1: no run here has a parameter bm25.k; there is bm25.k1. The leaderboard shows all"
        in html
    )
    assert (
        "columns: no run here has a parameter zzz; there are bm25.k1 and model. It is ignored."
        in html
    )
    assert ">poor</a>" in answer.content.decode()
    assert 'value="param:bm25.k&gt;1"' in answer.content.decode()


@pytest.mark.queries
def test_the_page_of_parameters_links_values_to_runs(client: Client, runs: dict[str, str]) -> None:
    page = client.get(f"{PAGE}parameters/").content.decode()
    assert "&lt;b&gt;" in page
    assert "Describe" not in page
    addresses = [
        html.unescape(href)
        for href in re.findall(r'href="(/collections/small/\?filter=[^"]+)#', page)
    ]
    assert len(addresses) == 5
    for address in addresses:
        content = client.get(address).content.decode()
        assert ("row matches" in " ".join(content.split())) == ("latency" not in address), address
    assert "No parameter matches" in client.get(f"{PAGE}parameters/", {"q": "zzz"}).content.decode()
    wrong = client.get(f"{PAGE}parameters/", {"filter": "param:zzz"})
    assert wrong.status_code == 400
    assert "there are bm25.k1 and model. All parameters are shown." in text_of(wrong)
    assert "bm25.k1" in wrong.content.decode()


def test_without_parameters_the_page_says_how_to_give_some(client: Client, collection: str) -> None:
    text = text_of(client.get(f"{PAGE}parameters/"))
    assert "Runs can be filtered and compared by their parameters" in text
    offered = (
        client.get(PAGE).content.decode().split('<datalist id="offered"')[1].split("</datalist>")[0]
    )
    assert re.findall(r'<option value="([^"]*)"', offered) == ["label", "submitted"]


@pytest.mark.queries
def test_organisers_describe_keys_on_the_page(browser: Client, runs: dict[str, str]) -> None:
    address = f"{PAGE}parameters/describe/"
    form = {
        "space": "param",
        "name": "bm25.k1",
        "unit": "x",
        "note": "saturation",
        "role": "ignored",
    }
    answer = browser.post(address, form)
    key = ParameterKey.objects.get(name="bm25.k1")
    assert (answer.status_code, answer["Location"]) == (303, f"{PAGE}parameters/#param%3Abm25.k1")
    assert (key.unit, key.note, key.role) == ("x", "saturation", "ignored")
    refused = browser.post(address, {**form, "unit": "u" * 31})
    assert refused.status_code == 400
    assert "bm25.k1: unit: Ensure this field has no more than 30 characters" in text_of(refused)
    assert "u" * 31 in refused.content.decode()
    assert browser.post(address, {**form, "name": "zzz"}).status_code == 404
    assert browser.get(address)["Location"] == f"{PAGE}parameters/"


def test_a_run_shows_its_parameters(client: Client, browser: Client, runs: dict[str, str]) -> None:
    page = client.get(f"/runs/{runs['good']}/parameters/").content.decode()
    assert re.search(
        r'href="/collections/small/\?filter=param%3Abm25.k1%3D0.9[^"]*"\s+title="runs with this',
        page,
    )
    assert "Edit parameters" not in page
    assert "Edit parameters" in browser.get(f"/runs/{runs['good']}/parameters/").content.decode()


def test_a_form_edits_the_parameters_of_a_run(browser: Client, runs: dict[str, str]) -> None:
    address = f"/runs/{runs['good']}/parameters/edit/"
    page = browser.get(address).content.decode()
    assert "bm25.k1 = 0.9\nmodel = &lt;b&gt;\n</textarea>" in page
    (read,) = re.findall(r'name="read" value="([^"]+)"', page)
    form = {
        "parameters": "bm25.k1 = 1.5\nstemmer = true\n",
        "costs": "latency_ms = 4",
        "read": html.unescape(read),
    }
    refused = browser.post(address, {**form, "parameters": "bm25.k1 = 1.5\nstemmer\n"})
    assert refused.status_code == 422
    assert (
        "Parameters, line 2: 'stemmer' has no =; write key = value. Nothing was stored."
        in text_of(refused)
    )
    assert "bm25.k1 = 1.5\nstemmer\n</textarea>" in refused.content.decode()
    assert browser.post(address, {**form, "costs": "latency_ms = -1"}).status_code == 422
    saved = browser.post(address, form)
    assert (saved.status_code, saved["Location"]) == (303, f"/runs/{runs['good']}/parameters/")
    run = Run.objects.get(pk=runs["good"])
    assert (run.metadata, run.costs) == ({"bm25": {"k1": 1.5}, "stemmer": True}, {"latency_ms": 4})
    lost = browser.post(address, form)
    assert lost.status_code == 412
    assert "What the run has now bm25.k1 = 1.5 stemmer = true latency_ms = 4" in text_of(lost)
    assert "bm25.k1 0.9 1.5" in text_of(browser.get(address))


def test_only_the_team_edits(bob: User, runs: dict[str, str]) -> None:
    other, address = Client(), f"/runs/{runs['good']}/parameters/edit/"
    assert other.get(address).status_code == 302
    other.force_login(bob)
    assert other.get(address).status_code == 403
    assert other.post(address, {"parameters": "a = 1"}).status_code == 403
    assert Run.objects.get(pk=runs["good"]).metadata == {"bm25": {"k1": 0.9}, "model": "<b>"}


def test_a_blind_page_shows_own_runs_and_no_leaderboard(
    client: Client, bob: User, runs: dict[str, str]
) -> None:
    Collection.objects.update(blind=True)
    other = Client()
    other.force_login(bob)
    for reader in (client, other):
        page = reader.get(f"{PAGE}parameters/")
        assert page.status_code == 200
        assert "bm25.k1" not in text_of(page).partition("No parameters yet")[0]
    Run.objects.filter(pk=runs["good"]).update(team=bob.personal_team)
    page = other.get(f"{PAGE}parameters/").content.decode()
    assert "?filter=" not in page
    assert "0.9" in page
    assert "1.2" not in text_of(other.get(f"{PAGE}parameters/"))


@pytest.mark.queries
def test_a_key_is_renamed_in_many_runs(browser: Client, runs: dict[str, str], bob: User) -> None:
    path = f"{PAGE}parameters/rename/"
    assert f'href="{path}"' in browser.get(f"{PAGE}parameters/").content.decode()
    assert 'value="bm25.k1"' in browser.get(f"{path}?name=bm25.k1").content.decode()
    form = {"filter": "own:yes", "name": "bm25.k1", "new": "k1"}
    checked = browser.post(path, {**form, "action": "check"})
    assert (checked.status_code, "2 runs would change" in text_of(checked)) == (200, True)
    assert set(Run.objects.values_list("metadata__bm25__k1", flat=True)) == {0.9, 1.2}
    for fields, status, says in (
        ({"name": "b"}, 400, "None of the 2 runs of your teams that match has b"),
        ({"new": ""}, 400, "Write the name of a key"),
        ({"new": "model"}, 422, "there is a value at model already"),
        ({"filter": "("}, 400, "ilter"),
    ):
        refused = browser.post(path, {**form, **fields, "action": "rename"})
        assert (refused.status_code, says in text_of(refused)) == (status, True), text_of(refused)
    other = Client()
    other.force_login(bob)
    assert other.post(path, {**form, "action": "rename", "filter": "tag:*"}).status_code == 400
    done = browser.post(path, {**form, "action": "rename"})
    assert (done.status_code, done["Location"]) == (303, path)
    assert "bm25.k1 renamed to k1 in 2 runs." in text_of(browser.get(path))
    assert set(Run.objects.values_list("metadata__k1", flat=True)) == {0.9, 1.2}
    assert ParameterKey.objects.filter(name="k1").exists()
