"""Who awaits has the same names with the same parameters, and true types."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import evalhub.client as evh
from evalhub.client import asynchronous
from evalhub.client.collection import Qrels
from tests.reliability.servers import ROOT

TYPES = ast.parse((ROOT / "evalhub/client/asynchronous.pyi").read_text())
TWINS = {
    "AsyncRun": evh.Run, "AsyncSessionSet": evh.SessionSet, "AsyncSessions": evh.Sessions, "AsyncQrels": Qrels,
    "AsyncCollection": evh.Collection, "AsyncExperiment": evh.Experiment, "AsyncHub": evh.Hub,
    "AsyncCampaign": evh.Campaign, "AsyncPhase": evh.Phase,
}  # fmt: skip
# What asks for nothing is not awaited.
AT_ONCE = {
    "AsyncHub.collection", "AsyncHub.campaign", "AsyncHub.watch", "AsyncCollection.qrels", "AsyncCampaign.phase",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def declared(name: str) -> dict[str, list[Function]]:
    """The public methods of a class of the stub with those that it inherits; several where it is overloaded."""
    (found,) = (node for node in TYPES.body if isinstance(node, ast.ClassDef) and node.name == name)
    methods = declared("AsyncSubmission") if name in ("AsyncRun", "AsyncSessionSet") else {}
    own: dict[str, list[Function]] = {}
    for node in found.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            own.setdefault(node.name, []).append(node)
    return {**methods, **own}


@pytest.mark.parametrize(("name", "twin"), TWINS.items(), ids=list(TWINS))
def test_the_stub_has_every_method_with_its_parameters(name: str, twin: type) -> None:
    stub = declared(name)
    public = {
        one
        for one in dir(twin)
        if not one.startswith("_") and inspect.isfunction(getattr(twin, one))
    }
    public -= {"rows", "source", "to_frame"}
    properties = {
        one for one in dir(twin) if isinstance(inspect.getattr_static(twin, one), property)
    }
    assert set(stub) - properties == public
    for method in public:
        signature = inspect.signature(getattr(twin, method)).parameters.values()
        real = [
            one.name for one in signature if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        ]
        for node in stub[method]:
            written = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
            # An overload may leave out what it has no value of.
            assert written == real or (len(stub[method]) > 1 and written == real[: len(written)]), (
                name,
                method,
            )
            assert isinstance(node, ast.AsyncFunctionDef) or f"{name}.{method}" in AT_ONCE, (
                name,
                method,
            )


def test_the_classes_of_the_stub_are_those_that_there_are() -> None:
    named = {node.name for node in TYPES.body if isinstance(node, ast.ClassDef)}
    real = {
        name
        for name, one in vars(asynchronous).items()
        if getattr(one, "__module__", "") == asynchronous.__name__
    }
    assert named - {"AsyncSubmission", "AsyncQrels"} == real - {"connect_async"}


PROGRAM = """
from typing import assert_type
import evalhub.client as evh

def waits(hub: evh.Hub) -> None:
    c = hub.collection("c")
    run = c.submit("a.run")
    assert_type(run, evh.Run)
    assert_type(c.submit("a.run", dry_run=True), evh.Check)
    assert_type(run.wait().means("AP")["AP"], float | None)
    assert_type(c.submit_all("runs").runs, list[evh.Run])
    assert_type(c.qrels(2).file(), bytes)
    assert_type(c.sessions.submit("log").wait(), evh.SessionSet)

async def awaits(hub: evh.AsyncHub) -> None:
    c = hub.collection("c")
    run = await c.submit("a.run")
    assert_type(run, evh.AsyncRun)
    assert_type(await c.submit("a.run", dry_run=True), evh.Check)
    assert_type((await (await run.wait()).means("AP"))["AP"], float | None)
    assert_type((await c.submit_all("runs")).runs, list[evh.AsyncRun])
    assert_type(await c.qrels(2).file(), bytes)
    assert_type(await c.qrels(), evh.Listed)
    assert_type(await (await c.sessions.submit("log")).wait(), evh.AsyncSessionSet)
    run.means("AP")["AP"]  # not awaited: the only error
"""


@pytest.mark.slow
def test_a_strict_type_checker_reads_the_same(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    program, settings = tmp_path / "program.py", tmp_path / "mypy.ini"
    program.write_text(PROGRAM)
    settings.write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT}\n")
    found, problems, _ = mypy.run(
        ["--config-file", str(settings), "--cache-dir", str(tmp_path), str(program)]
    )
    assert problems == ""
    errors = [line for line in found.splitlines() if "error:" in line]
    assert len(errors) == 1, found
    assert "program.py:" in errors[0]
    assert "not indexable" in errors[0]
