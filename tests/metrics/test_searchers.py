"""What a log says of its searchers: table 1 of ECIR 2008, means and deviations by group."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from runs.errors import InvalidFile
from runs.formats.sessions import jsonl
from tests.conftest import evaluate_all, upload
from tests.runs.session_files import read
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words
LOG = "collections/small/sessions/"
YEARS = {"u1": 21, "u2": 12.5, "u3": 30, "u4": 4}
ROLES = {"u1": "physician", "u2": "physician", "u3": "nurse"}


def log(changed: dict[str, Any] | None = None) -> str:
    """Two sessions of each of four searchers with two systems; the last one's role is not known."""
    lines = []
    for number, searcher in enumerate([*YEARS] * 2):
        attributes = {"years": YEARS[searcher], "role": ROLES.get(searcher)}
        if number == 4:
            attributes |= changed or {}
        line = {
            "session_id": f"s{number}",
            "topic_id": "1",
            "searcher": searcher,
            "system": "AB"[number // 4],
        }
        queries = [{"documents": ["a"]}]
        lines.append(
            json.dumps({**line, "searcher_attributes": attributes, "queries": queries}) + "\n"
        )
    return "".join(lines)


def test_means_and_deviations_are_over_searchers(api: APIClient, collection: str) -> None:
    session_set = upload(api, LOG, log({"years": 22})).json()
    evaluate_all()
    address = f"/api/v1/session-sets/{session_set['id']}/searchers/"
    answer = api.get(address, {"by": "role"}).json()
    years, roles = answer["all"]["features"]
    values = np.array(list(YEARS.values()))
    assert (answer["all"]["searchers"], years["name"], years["known"]) == (4, "years", 4)
    assert (years["mean"], years["deviation"]) == pytest.approx((values.mean(), values.std(ddof=1)))
    assert (years["low"], years["high"], years["texts"]) == (4, 30, None)
    assert (roles["mean"], roles["texts"], roles["known"]) == (
        None,
        {"physician": 2, "nurse": 1},
        3,
    )
    assert answer["differing"] == ["years"]
    nurses, physicians = answer["groups"]
    assert (nurses["group"], nurses["searchers"], nurses["features"][0]["deviation"]) == (
        "nurse",
        1,
        None,
    )
    assert physicians["features"][0]["mean"] == pytest.approx((21 + 12.5) / 2)
    by_system = api.get(address, {"by": "system", "searcher": "u1"}).json()
    assert [(group["group"], group["searchers"]) for group in by_system["groups"]] == [
        ("A", 1),
        ("B", 1),
    ]
    refused = api.get(address, {"by": "age"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "by")
    html = api.get(f"/session-sets/{session_set['id']}/", {"by": "role"}).content.decode()
    assert f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" in html
    assert "physician (N = 2)" in html
    assert "do not agree on years" in html


def test_a_log_without_attributes_has_no_features(api: APIClient, collection: str) -> None:
    line = (
        '{"session_id": "s", "topic_id": "1", "searcher": "u", "queries": [{"documents": ["a"]}]}\n'
    )
    session_set = upload(api, LOG, line, tag="log").json()
    evaluate_all()
    answer = api.get(f"/api/v1/session-sets/{session_set['id']}/searchers/").json()
    assert (answer["all"], answer["groups"], answer["by"]) == (
        {"searchers": 1, "features": []},
        [],
        None,
    )
    assert "Searchers</h2>" not in api.get(f"/session-sets/{session_set['id']}/").content.decode()


def test_attributes_are_written_as_they_were_read() -> None:
    _, blocks = read(log())
    again = b"".join(jsonl.write(iter(blocks)))
    assert json.loads(again.splitlines()[0])["searcher_attributes"] == {
        "years": 21,
        "role": "physician",
    }
    assert b"".join(jsonl.write(iter(read(again)[1]))) == again


@pytest.mark.parametrize(
    "attributes",
    ["[]", '{"a": true}', '{"a": [1]}', '{"": 1}', '{"a": ""}', '{"a": "\\u0000"}', '{"a": 1e300}'],
)
def test_what_is_no_attribute_is_refused(attributes: str) -> None:
    start = f'{{"session_id": "s", "searcher": "u", "searcher_attributes": {attributes}'
    line = start + ', "queries": [{"documents": []}]}\n'
    summary, _ = read(line)
    with pytest.raises(InvalidFile):
        summary.report.check()
    assert [problem.code for problem in summary.report.problems] == ["bad_attributes"]


def test_attributes_need_a_searcher() -> None:
    summary, _ = read(
        '{"session_id": "s", "searcher_attributes": {"a": 1}, "queries": [{"documents": []}]}\n'
    )
    assert [problem.code for problem in summary.report.problems] == ["bad_attributes"]
