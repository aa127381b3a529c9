"""One meaning per name: a measure is the same in the API, on the pages, in the exports and for the command."""

from __future__ import annotations

import csv
import html as escapes
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from metrics.engine.analysis.what_if import PRESETS
from metrics.engine.measures.undefined import REASONS
from metrics.services.values.own_measures import own_measures
from runs.models import Collection, Run
from tests.conftest import SESSIONS, evaluate_all, upload
from tests.local import conftest as of_commands
from tests.shared_data import alice, api, collection, module_data, submit
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words

call = of_commands.call
BOARD, WHAT_IF, COLLECTION = (
    f"/api/v1/collections/small/{end}" for end in ("leaderboard/", "what-if/", "")
)
# Levels up to 4; topic 3 has no relevant document, and the second run misses one of topic 1 and
# topic 2.
QRELS = "1 0 a 4\n1 0 b 3\n1 0 c 2\n1 0 n 0\n2 0 x 1\n2 0 y 2\n3 0 n 0\n"
BEST = "".join(f"{topic} Q0 {doc} 1 {score} best\n" for topic, doc, score in
               [(1, "a", 9), (1, "b", 8), (1, "c", 7), (2, "y", 9), (2, "x", 8), (3, "n", 1)])  # fmt: skip
OTHER = "1 Q0 b 1 9 other\n1 Q0 n 1 8 other\n1 Q0 a 1 7 other\n"
PAGE_NAMES = {"linear gains": "linear", "exponential gains": "exponential", "impatient user": "impatient",
              "patient user": "patient", "patient user, binary": "liberal", "RBP, binary": "binary"}  # fmt: skip


@pytest.fixture(scope="module")
def runs(api: APIClient, submit: Callable[..., Run]) -> dict[str, Run]:
    """Two runs of a collection of a hundred documents, judged up to level 4."""
    assert upload(api, "collections/small/qrels/", QRELS).status_code == 201
    assert api.patch(COLLECTION, {"documents": 100}, format="json").status_code == 200
    return {"best": submit(BEST), "other": submit(OTHER)}


def means_of(api: APIClient, measure: str) -> dict[str, float | None]:
    body = api.get(BOARD, {"measures": measure}).json()
    (name,) = body["measures"]
    return {row["run"]["tag"]: row["values"][name]["mean"] for row in body["results"]}


@pytest.mark.parametrize(("words", "preset"), PAGE_NAMES.items())
def test_a_preset_is_the_same_measure_on_page_and_api(
    api: APIClient, runs: dict[str, Run], words: str, preset: str
) -> None:
    shortcuts = {
        name: address
        for address, name in re.findall(
            r'href="(\?family[^"]+)">([^<]+)</a>', page(Client(), WHAT_IF_PAGE)
        )
    }
    assert set(shortcuts) == set(PAGE_NAMES)
    html = Client().get(WHAT_IF_PAGE + escapes.unescape(shortcuts[words])).content.decode()
    (combination,) = api.get(WHAT_IF, {"preset": preset}).json()["combinations"]
    assert (
        escapes.unescape(re.findall(r'role="status"><code>([^<]+)</code>', html)[0])
        == combination["measure"]
    )
    expected = [f"{place['mean']:.4f}" for place in combination["leaderboard"]]
    assert re.findall(r"<strong>([\d.]+)</strong>", html) == expected
    assert combination["leaderboard"][0]["run"] == str(runs["best"].pk)


WHAT_IF_PAGE = "/collections/small/what-if/"


def test_every_preset_is_on_the_page(api: APIClient, runs: dict[str, Run]) -> None:
    assert set(PAGE_NAMES.values()) == set(PRESETS)
    assert [
        c["preset"] for c in api.get(WHAT_IF, {"preset": ",".join(PRESETS)}).json()["combinations"]
    ] == list(PRESETS)


@pytest.mark.parametrize(
    ("measure", "code", "words"),
    [
        ("nDCG(gains='0-1-10-100')@10", "gains_completed", "gain as much as level 3"),
        (
            "CG(gains='1:1,2:10,3:100')@10",
            "gain_order",
            "level 4 gains 4, less than level 3 with 100",
        ),
        ("nDCG@10", None, ""),
    ],
)
def test_gains_that_leave_levels_out_are_told_everywhere(
    api: APIClient, runs: dict[str, Run], call: Callable[..., Any], tmp_path: Path, measure: str, code: str | None,
    words: str,
) -> None:  # fmt: skip
    query, expected = {"measures": measure}, [code] if code else []
    values, board = f"/api/v1/runs/{runs['best'].pk}/values/", api.get(BOARD, query).json()
    answers = [api.get(values, query).json(), board, api.get(WHAT_IF, query).json()]
    compared = api.get("/api/v1/collections/small/comparison/", query).json()["measures"]
    for answer in [*answers, *compared]:
        assert [
            caution["code"] for caution in answer["cautions"] if caution["code"].startswith("gain")
        ] == expected
    pages = (f"/runs/{runs['best'].pk}/", "/collections/small/", "/collections/small/comparison/")
    for path in pages:
        assert (words in text_of(page(Client(), path, **query))) is True
    exported = api.get(f"{BOARD}export/md/", query).content.decode()
    assert words in exported
    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r").write_text(BEST)
    status, out, err = call("-c", "-m", measure, "--format", "json", tmp_path / "q", tmp_path / "r")
    assert (status, code is None or f"warning: {code}: {measure}" in err) == (0, True)
    assert ("gain" in err) is (code is not None)
    assert json.loads(out)[0]["value"] == means_of(api, measure)["best"]


@pytest.mark.parametrize(
    ("gains", "codes"), [("0-1-2", ["gains_completed"]), ("1:5", ["gain_order"]), ("tenfold", [])]
)
def test_session_measures_tell_of_gains_too(
    api: APIClient, collection: str, gains: str, codes: list[str]
) -> None:
    answer = upload(api, "collections/small/sessions/", SESSIONS, tag="log").json()
    evaluate_all()
    query = {"measures": f"nsDCG(gains='{gains}')@2"}
    values = api.get(f"/api/v1/session-sets/{answer['id']}/values/", query).json()
    board = api.get("/api/v1/collections/small/session-leaderboard/", query).json()
    for payload in (values, board):
        assert [caution["code"] for caution in payload["cautions"]] == codes
    for path, name in (
        (f"/session-sets/{answer['id']}/", "measures"),
        ("/collections/small/sessions/", "measure"),
    ):
        text = text_of(page(Client(), path, **{name: query["measures"]}))
        assert ("level 2" in text) is bool(codes)


@pytest.mark.parametrize(
    "measure",
    [
        "NormRecall(missing='last')",
        "ASL(missing='last')",
        "ESL(n=2,missing='last')",
        "utility(d=1)",
    ],
)
def test_the_number_of_documents_is_that_of_the_collection(
    api: APIClient, runs: dict[str, Run], call: Callable[..., Any], tmp_path: Path, measure: str
) -> None:
    explicit = measure[:-1] + ",documents=100)"
    values = f"/api/v1/runs/{runs['other'].pk}/values/"
    body = api.get(values, {"measures": measure}).json()
    (name,) = body["means"]
    assert name == explicit
    assert body == api.get(values, {"measures": explicit}).json()
    assert means_of(api, measure) == means_of(api, explicit)
    assert api.get(WHAT_IF, {"measures": measure}).json()["combinations"][0]["measure"] == name
    for path in (f"/runs/{runs['other'].pk}/topics/", "/collections/small/"):
        assert escapes.escape(name).split(",")[0] in page(
            Client(), path, measures=measure, sort=measure
        )
    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r").write_text(OTHER)
    out = call("-N", 100, "-c", "-m", measure, "--format", "json", tmp_path / "q", tmp_path / "r")[
        1
    ]
    (record,) = json.loads(out)
    assert (record["measure"], record["value"]) == (name, body["means"][name]["mean"])
    other = api.get(values, {"measures": measure[:-1] + ",documents=50)"}).json()
    assert other["means"] != body["means"]


def test_a_stored_measure_follows_the_number_of_documents(
    api: APIClient, runs: dict[str, Run]
) -> None:
    stored = ["NormRecall(missing='last')", "AP"]
    assert api.patch(COLLECTION, {"measures": stored}, format="json").json()["measures"] == stored
    evaluate_all()
    before = means_of(api, "NormRecall(missing='last')")
    assert before == means_of(api, "NormRecall(missing='last',documents=100)")
    first = api.get(BOARD)
    assert first.json()["sort"] == "NormRecall(missing='last',documents=100)"
    assert api.patch(COLLECTION, {"documents": 50}, format="json").status_code == 200
    assert api.get(BOARD, headers={"If-None-Match": first["ETag"]}).status_code == 200
    assert api.get(BOARD).json()["sort"] == "NormRecall(missing='last',documents=50)"
    evaluate_all()
    assert means_of(api, "NormRecall(missing='last')")["other"] != before["other"]
    assert Collection.objects.get().measures == stored
    assert upload(api, "collections/small/runs/", BEST, tag="again").status_code == 202
    assert evaluate_all() == 1
    again = Run.objects.get(tag="again").evaluations.get(qrels__active=True)
    assert set(again.vectors.values_list("measure", flat=True)) >= own_measures(
        Collection.objects.get()
    )


def test_a_stored_measure_cannot_lose_its_number_of_documents(
    api: APIClient, runs: dict[str, Run]
) -> None:
    assert api.patch(COLLECTION, {"measures": ["NormRecall"]}, format="json").status_code == 200
    refused = api.patch(COLLECTION, {"documents": None}, format="json")
    assert refused.status_code == 400
    assert "give the collection its number of documents" in refused.content.decode()
    fields = {"slug": "bare", "name": "Bare", "measures": ["NormRecall"]}
    assert api.post("/api/v1/collections/", fields).status_code == 400
    assert api.post("/api/v1/collections/", {**fields, "documents": 7}).status_code == 201


def test_a_figure_that_is_no_mean_says_what_it_is(api: APIClient, runs: dict[str, Run]) -> None:
    kinds = {
        "NumRelRet": "sum", "gm_map": "geometric mean", "nCG(norm='average')@10": "pooled ratio", "AP": "mean",
    }  # fmt: skip
    query = {"measures": ",".join(kinds)}
    means = api.get(f"/api/v1/runs/{runs['best'].pk}/values/", query).json()["means"]
    assert {name: mean["aggregate"] for name, mean in means.items()} == kinds
    assert means["NumRelRet"]["mean"] == 5
    assert api.get(BOARD, query).json()["aggregates"] == kinds
    text = text_of(page(Client(), f"/runs/{runs['best'].pk}/", **query))
    assert [text.count(f"{kind} over topics") for kind in kinds.values() if kind != "mean"] == [
        1,
        1,
        1,
    ]
    caption = api.get(f"{BOARD}export/md/", query).content.decode().replace("\\_", "_")
    board = page(Client(), "/collections/small/", **query)
    for name, kind in kinds.items():
        assert (f"{name}: {kind}s" in caption) is (kind != "mean")
        assert f"{kind}s" in board
    rows = list(csv.DictReader(io.StringIO(api.get(f"{BOARD}export/csv/", query).content.decode())))
    assert {name: rows[0].get(f"{name} aggregate", "mean") for name in kinds} == kinds


def test_a_value_that_is_null_has_its_reason(api: APIClient, runs: dict[str, Run]) -> None:
    measures = "ASL,RHL,Coverage,AP"
    body = api.get(f"/api/v1/runs/{runs['other'].pk}/values/", {"measures": measures}).json()
    rows = {row["topic_id"]: row for row in body["topics"]}
    for row in rows.values():
        assert set(row["undefined"]) == {
            name for name, value in row["values"].items() if value is None
        }
        assert set(row["undefined"].values()) <= set(REASONS)
    lost = "relevant_document_not_retrieved"
    assert rows["1"]["undefined"] == {"ASL": lost, "Coverage": "no_known_documents"}
    assert rows["2"]["undefined"] == {
        "ASL": lost,
        "RHL": "no_gain_retrieved",
        "Coverage": "no_known_documents",
    }
    assert rows["3"]["undefined"]["ASL"] == "no_relevant_document"
