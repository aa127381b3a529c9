"""Parameters and costs of many runs as one CSV: read line by line, stored for all runs or none."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.errors import InvalidFile
from runs.formats.parameter_table import read_table, write_table
from runs.models import AuditEvent, Collection, Membership, Run, Team, User
from tests.conftest import GOOD, client_of
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

ADDRESS = "/api/v1/collections/small/parameters/csv/"
PAGE = "/collections/small/parameters/edit/"
KEYS = [("param", "k1"), ("param", "tag"), ("param", "a.b"), ("cost", "latency_ms")]


def test_what_is_written_is_read_again() -> None:
    values: dict[Any, Any] = {
        ("param", "k1"): 0.9,
        ("param", "tag"): "=1+1",
        ("param", "a.b"): "a,b",
        ("cost", "latency_ms"): {"value": 2, "low": 1},
    }
    other: dict[Any, Any] = {("param", "k1"): "1", ("param", "a.b"): [1, "x"]}
    text = write_table(KEYS, [("lab", "one", values), ("lab", "two", other)])
    assert text.startswith("team,tag,k1,param:tag,a.b,cost:latency_ms\r\n")
    first, second = read_table(b"\xef\xbb\xbf" + text.encode())
    assert (first.line, first.team, first.tag, first.values) == (2, "lab", "one", values)
    assert second.values == dict.fromkeys(KEYS) | other


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("k1\n1\n", 1, "the names of the columns: tag"),
        ("tag,k1,k1\n", 1, "column k1 is there twice"),
        ("tag,a..b\n", 1, "column 2: the key 'a..b' has an empty part"),
        ("tag,k1\none,1\ntwo\n", 3, "1 cells; the first line has 2 columns"),
        ("tag,k1\none,[1\n", 2, "column k1: '[1' begins like JSON"),
        ('tag,k1\none,"1\n', 2, "this is not CSV"),
        ("tag,k1\n,1\n", 2, "names no run"),
    ],
)
def test_a_problem_has_its_line_and_column(text: str, line: int, message: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_table(text.encode())
    (problem,) = caught.value.report.problems
    assert problem.line == line
    assert message in problem.message


def test_cells_of_spreadsheets_are_read() -> None:
    (row,) = read_table(b"tag\tstop words\tk1\r\n\r\none\tTRUE\t'-x\r\n")
    assert (row.line, row.values) == (
        3,
        {("param", "stop words"): True, ("param", "k1"): "-x"},
    )


@pytest.fixture(scope="module")
def two(api: APIClient, collection: str) -> None:
    for tag in ("one", "two"):
        file = SimpleUploadedFile("run", GOOD.encode())
        form = {"file": file, "tag": tag, "metadata": '{"k1": 1, "model": "BM25"}'}
        answer = api.post("/api/v1/collections/small/runs/", form, format="multipart")
        assert answer.status_code == 202


def upload(api: APIClient, text: str, query: str = "") -> Any:
    return api.post(f"{ADDRESS}{query}", text.encode(), content_type="text/csv")


def metadata() -> dict[str, Any]:
    return dict(Run.objects.values_list("tag", "metadata"))


@pytest.mark.usefixtures("two")
def test_all_runs_are_changed_in_one_transaction(api: APIClient) -> None:
    text = "tag,k1,b,cost:latency_ms\none,0.9,0.4,12\ntwo,,0.7,\n"
    tried = upload(api, text, "?dry_run=true").json()
    assert (tried["dry_run"], tried["runs"], tried["changed"]) == (True, 2, 2)
    assert metadata()["one"] == {"k1": 1, "model": "BM25"}

    stored = upload(api, text).json()
    assert stored["results"] == tried["results"]
    assert metadata() == {
        "one": {"k1": 0.9, "model": "BM25", "b": 0.4},
        "two": {"model": "BM25", "b": 0.7},
    }
    assert Run.objects.get(tag="one").costs == {"latency_ms": 12}
    assert AuditEvent.objects.filter(action="run.changed", actor="alice").count() == 2

    # What is downloaded says the same, and uploading it changes nothing.
    downloaded = api.get(ADDRESS).content.decode()
    assert downloaded == (
        "team,tag,b,k1,model,cost:latency_ms\r\nalice,one,0.4,0.9,BM25,12\r\nalice,two,0.7,,BM25,\r\n"
    )
    assert upload(api, downloaded.replace("12", "12.0")).json()["changed"] == 0
    assert api.get(f"{ADDRESS}?filter=tag:two").content.decode().count("\r\n") == 2


@pytest.mark.usefixtures("two")
def test_a_download_has_the_runs_that_the_reader_sees(bob: User) -> None:
    rows = "alice,one,1,BM25\r\nalice,two,1,BM25\r\n"
    visitor = APIClient()
    assert visitor.get(ADDRESS).content.decode() == f"team,tag,k1,model\r\n{rows}"
    assert client_of(bob).get(ADDRESS).content.decode() == f"team,tag,k1,model\r\n{rows}"
    assert visitor.get(f"{ADDRESS}?filter=tag:two").content.decode().count("\r\n") == 2

    Collection.objects.update(visibility=Collection.Visibility.TEAM)
    assert visitor.get(ADDRESS).status_code == 404


@pytest.mark.usefixtures("two")
def test_one_wrong_row_stores_nothing(api: APIClient, bob: User) -> None:
    before = metadata()
    text = "tag,k1,k1.low,cost:ms\none,2,,1\nthree,2,,\none,3,,\ntwo,,5,-1\n"
    answer = upload(api, text)
    assert answer.status_code == 422
    assert [(error["line"], error["code"]) for error in answer.json()["errors"]] == [
        (3, "unknown_run"),
        (4, "repeated_run"),
    ]
    answer = upload(api, "tag,k1.low,cost:ms\none,2,\ntwo,,-1\n")
    assert [(error["line"], error["code"]) for error in answer.json()["errors"]] == [
        (2, "key_conflict"),
        (3, "bad_cost"),
    ]
    answer = upload(client_of(bob), "tag,k1\none,7\n")
    assert "one belongs to team alice; only its members" in answer.json()["detail"]
    assert upload(api, "tag,k1\n" * 400_000).status_code == 413
    assert metadata() == before


@pytest.mark.usefixtures("two")
def test_cells_of_the_page_change_what_was_edited(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    html = browser.get(PAGE).content.decode()
    assert 'value="BM25" aria-label="model of one"' in html
    before = "team,tag,k1,model\r\nalice,one,1,BM25\r\nalice,two,1,BM25\r\n"
    # Another has changed this meanwhile, and it was not edited here.
    Run.objects.filter(tag="two").update(metadata={"k1": 5, "model": "BM25"})
    table = before.replace("one,1,BM25", "one,0.9,")
    form = {"table": table, "before": before, "file": ""}

    checked = browser.post(PAGE, {**form, "action": "check"}).content.decode()
    assert "1 run would change" in checked
    assert metadata()["one"] == {"k1": 1, "model": "BM25"}
    wrong = browser.post(PAGE, {**form, "table": table.replace("two,1", "two,[")})
    assert wrong.status_code == 422
    assert "Column k1: " in wrong.content.decode()

    assert browser.post(PAGE, {**form, "action": "save"}).status_code == 303
    assert "Parameters of 1 run changed." in browser.get(PAGE).content.decode()
    assert metadata() == {"one": {"k1": 0.9}, "two": {"k1": 5, "model": "BM25"}}


@pytest.mark.usefixtures("two")
def test_a_file_is_uploaded_on_the_page(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    file = SimpleUploadedFile("p.csv", b"tag;k1\none;0.9\n")
    answer = browser.post(PAGE, {"table": "", "before": "", "file": file, "action": "save"})
    assert (answer.status_code, metadata()["one"]["k1"]) == (303, 0.9)


@pytest.mark.usefixtures("two")
def test_a_run_of_two_teams_needs_its_team(api: APIClient, alice: User) -> None:
    lab = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=lab, user=alice)
    run = Run.objects.get(tag="two")
    Run.objects.filter(pk=run.pk).update(team=lab, tag="one")
    assert (
        "one is a run of alice and lab; add a column team"
        in upload(api, "tag,k1\none,2\n").json()["detail"]
    )
    assert upload(api, "tag,team,k1\none,lab,2\n").json()["changed"] == 1
    assert upload(api, f"run,k1\n{run.pk},3\n").json()["changed"] == 1
    assert Run.objects.get(pk=run.pk).metadata["k1"] == 3
