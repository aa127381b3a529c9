"""103 real sessions through REST: uploaded, judged by session and query by query, analysed."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.conftest import evaluate_all, upload
from tests.engine.test_session_measures import COLUMNS
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

pytestmark = [pytest.mark.real_data, pytest.mark.words]


def labels(folder: Path) -> list[tuple[str, str, str, int]]:
    """Session, query, document and level of every label."""
    root = ET.parse(folder / "sessions.xml").getroot()
    documents = {
        (session.get("num"), query.get("num"), result.get("rank")): str(
            result.findtext("url")
        ).strip()
        for session in root.iter("session")
        for query in session.iter("iteration")
        for result in query.iter("result")
    }
    with (folder / "labels.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    return [
        (name, query, documents[name, query, rank], int(level)) for name, query, rank, level in rows
    ]


@pytest.fixture
def folder(real_data: Path) -> Path:
    return real_data / "sessions-cosobe"


@pytest.fixture
def loaded(api: APIClient, folder: Path) -> str:
    """The set judged by session: of a document's labels in several queries the highest counts. Its path."""
    highest: dict[tuple[str, str], int] = {}
    for name, _, document, level in labels(folder):
        highest[name, document] = max(level, highest.get((name, document), 0))
    qrels = "".join(f"{name} 0 {document} {level}\n" for (name, document), level in highest.items())
    return load(api, folder, qrels, judged_by="session")


def load(api: APIClient, folder: Path, qrels: str, keyed_by: str = "topic", **query: str) -> str:
    assert api.post("/api/v1/collections/", {"slug": "cosobe", "name": "CosoBe"}).status_code == 201
    assert upload(api, "collections/cosobe/qrels/", qrels, keyed_by=keyed_by).status_code == 201
    answer = upload(
        api, "collections/cosobe/sessions/", (folder / "sessions.xml").read_bytes(), **query
    )
    assert answer.status_code == 202, answer.content
    assert evaluate_all() == 1
    return f"/api/v1/session-sets/{answer.json()['id']}/"


def get(api: APIClient, path: str, **query: Any) -> Any:
    answer = api.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_the_values_are_those_expected(api: APIClient, folder: Path, loaded: str) -> None:
    names = list(COLUMNS.values())
    rows = get(api, f"{loaded}values/", measures=" ".join(names))
    with (folder / "expected/cosobe_k10.tsv").open() as file:
        expected = {row["session"]: row for row in csv.DictReader(file, delimiter="\t")}
    assert rows["coverage"] == {"judged": 103, "sessions": 103}
    columns = list(rows["means"])
    assert len(columns) == len(names)
    for row in rows["sessions"]:
        values = [row["values"][name] for name in columns]
        assert values == pytest.approx(
            [float(expected[row["session_id"]][column]) for column in COLUMNS], rel=1e-9, abs=1e-9
        )


def test_the_log_is_described_and_analysed(api: APIClient, loaded: str) -> None:
    answer = get(api, loaded)
    assert (answer["format"], answer["sessions"], answer["queries"], answer["documents"]) == (
        "trec-xml",
        103,
        280,
        2800,
    )
    lengths = get(api, f"{loaded}lengths/")
    assert (
        lengths["all"]["sessions"],
        lengths["all"]["queries"],
        sum(lengths["all"]["counts"]),
    ) == (103, 280, 103)
    queries = get(api, f"{loaded}queries/", measure="sDCG")
    assert [
        queries["curves"][which][0]["queries"] for which in ("last", "others", "best", "all")
    ] == [
        103,
        177,
        103,
        280,
    ]
    assert sum(queries["reformulations"][0][name] for name in ("gained", "lost", "same")) == 177
    curve = get(api, f"{loaded}curves/", measure="sDCG")["curves"][0]
    values = get(api, f"{loaded}values/", measures="sDCG")
    assert curve["values"][-1] == pytest.approx(values["means"]["sDCG(b=2,bq=4)@10"]["mean"])
    assert all(value <= ideal for value, ideal in zip(curve["values"], curve["ideal"], strict=True))


def test_judged_query_by_query(api: APIClient, folder: Path) -> None:
    """The first query's own ideal is that of its ten labels."""
    answer = labels(folder)
    qrels = "".join(
        f"{name} {query} {document} {level}\n" for name, query, document, level in answer
    )
    path = load(api, folder, qrels, keyed_by="query", judged_by="query")
    session = get(api, f"{path}sessions/1/", measure="nsDCG")
    first = session["queries"][0]
    own = {
        document: level for name, query, document, level in answer if (name, query) == ("1", "1")
    }
    assert [document["level"] for document in first["documents"]] == [
        own.get(d["doc_id"]) for d in first["documents"]
    ]
    assert first["text"] == "[java]how to use stringbuffer in java"
    assert (session["searcher"], len(session["queries"])) == ("", 3)
