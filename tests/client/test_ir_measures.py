"""Measures of ir_measures, as objects, wherever the client takes a measure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from evalhub.client import Hub, Means, Values
from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import parse_measure
from tests.client.conftest import raw_run
from tests.reliability.servers import ROOT

ir_measures = pytest.importorskip("ir_measures")
# The first column of the table: names with a cutoff end in @k, the others have none.
TABLE = (
    (ROOT / "docs/integrations/ir-datasets.md").read_text().partition("| measure | instead |")[2]
)
EXCEPTIONS = {
    name
    for names in re.findall(r"^\| (`.+?) \|", TABLE, re.MULTILINE)
    for name in re.findall(r"`(.+?)`", names)
}
# A value of each type that no parameter has by default.
OTHERS = {int: 3, float: 0.25, dict: {1: 1, 2: 10}}


def forms() -> Iterator[Any]:
    """Every registered measure with what it needs, and again with each of its parameters set to another value."""
    for measure in dict.fromkeys(ir_measures.measures.registry.values()):
        known = measure.SUPPORTED_PARAMS
        needed = {
            name: OTHERS[parameter.dtype]
            for name, parameter in known.items()
            if parameter.required and name not in measure.params
        }
        yield measure(**needed)
        for name, parameter in known.items():
            other = OTHERS.get(parameter.dtype, not parameter.default) if name != "min_rel" else 1
            if parameter.dtype is not str or (other := parameter.choices[-1]) != parameter.default:
                yield measure(**({name: other} | needed))


@pytest.mark.parametrize("measure", [str(measure) for measure in dict.fromkeys(forms())])
def test_every_registered_measure_is_known_or_in_the_table_of_exceptions(measure: str) -> None:
    name = measure.partition("(")[0].partition("@")[0] + "@k" * ("@" in measure)
    if name in EXCEPTIONS:
        with pytest.raises(MeasureError):
            parse_measure(measure)
    else:
        assert parse_measure(measure)


def test_the_table_of_exceptions_has_no_other_names() -> None:
    known = {
        str(measure).partition("(")[0].partition("@")[0] + "@k" * ("@" in str(measure))
        for measure in forms()
    }
    assert EXCEPTIONS
    assert known >= EXCEPTIONS


def test_objects_are_sent_by_their_names(hub_of: Callable[..., Hub]) -> None:
    requests: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        requests.append(str(request.url.params) or request.content.decode())
        means = {"nDCG@10": {"mean": 0.5, "topics": 1, "aggregate": "mean"}}
        body = {
            "means": means,
            "topics": [],
            "coverage": {"answered": 1, "judged": 1},
            "results": [],
            "next": None,
        }
        return httpx.Response(200, json={**raw_run("x"), **body, "measures": [], "runs": []})

    measure, other = ir_measures.nDCG @ 10, ir_measures.P(rel=2) @ 5
    hub = hub_of(server)
    collection, run = hub.collection("c"), hub.run(raw_run("x")["id"])
    requests.clear()
    assert run.means(measure)[measure] == 0.5
    run.values(measure, other)
    run.curve(measure)
    collection.leaderboard(measure, sort=measure)
    collection.compare(measures=[measure])
    collection.compare(measures=measure)
    collection.difference(run, run, other)
    hub.create_collection("c", measures=[measure, other])
    for request in requests[:-1]:
        assert "nDCG%4010" in request or "P%28rel%3D2%29%405" in request
    assert '"measures":["nDCG@10","P(rel=2)@5"]' in requests[-1]
    assert Values({"means": {"nDCG@10": {}}, "topics": []}).of(measure) == {}
    assert Means({"means": {"nDCG@10": {"mean": None}}})[measure] is None
