"""The plugin of pytest, in a pytest of its own, against the server of this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evalhub.urls  # noqa: F401, what the inner pytest imports first would be imported again after it
from evalhub.client import pytest_plugin
from evalhub.client.pytest_plugin import tag_of_test
from runs.models import Run, User
from tests.client.inside import hub_inside
from tests.metrics.scored import make_scored

pytest_plugins = ["pytester"]
TESTS = """
    import pytest

    def test_retrieval(evalhub):
        run = evalhub.hub.collection("board").run({run!r})
        verdict = evalhub.assert_no_worse(run, baseline="r0", measure="AP", margin=0.01)
        assert verdict.fine

    def test_without_it():
        pass
"""


@pytest.fixture
def inner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, alice: User
) -> Callable[..., Any]:
    """Runs tests with the plugin; the outcome of each, and the lines."""
    rng = np.random.default_rng(5)
    baseline = rng.uniform(0.2, 0.8, 50)
    values = baseline + rng.normal(0, 0.02, (4, 50)) - [[0.0], [0.0], [0.08], [0.01]]
    make_scored("board", alice.personal_team, values)
    monkeypatch.setattr(pytest_plugin, "connect", lambda: hub_inside(alice))
    monkeypatch.setenv("EVH_URL", "http://localhost")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # Two sources of the same length within a second are one to whoever compares the compiled file
    # with its source.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    # Of the tests around it.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def run(source: str, *options: str) -> Any:
        pytester.makepyfile(source)
        return pytester.runpytest_inprocess(
            "-p",
            "evalhub.client.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:django",
            "-W",
            "default",
            *options,
        )

    return run


def test_worse_fails_with_the_table_and_undecided_warns(inner: Any) -> None:
    inner(TESTS.format(run="r1")).assert_outcomes(passed=2)
    worse = inner(TESTS.format(run="r2"))
    worse.assert_outcomes(failed=1, passed=1)
    worse.stdout.fnmatch_lines(
        ["### ❌ worse: *", "| rule | verdict | difference | interval | topics | |"]
    )
    worse.stdout.no_fnmatch_line("*def assert_gate*")
    undecided = inner(TESTS.format(run="r3").replace("verdict.fine", "verdict.undecided"))
    undecided.assert_outcomes(passed=2)
    undecided.stdout.fnmatch_lines(
        ["*GateUndecided: undecided: alice/r3 against alice/r0, qrels v1"]
    )


def test_without_a_server_it_is_skipped_unless_required(
    inner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVH_URL")
    inner(TESTS.format(run="r1")).assert_outcomes(skipped=1, passed=1)
    required = inner(TESTS.format(run="r1"), "--evalhub-required")
    required.assert_outcomes(errors=1, passed=1)
    required.stdout.fnmatch_lines(["*EVH_URL is not set, and --evalhub-required was given*"])


def test_a_run_has_the_name_of_its_test(inner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        def test_it(evalhub):
            evalhub.submit("board", {"1": {"a": 1.0}})
            evalhub.submit("board", {"1": {"b": 1.0}})
            evalhub.submit("board", {"1": {"b": 1.0}}, tag="own")
    """
    inner(source).assert_outcomes(passed=1)
    tags = Run.objects.exclude(tag__startswith="r").values_list("tag", flat=True)
    stem = "test_a_run_has_the_name_of_its_test-test_it"
    assert sorted(tags) == ["own", stem, f"{stem}-2"]


def test_tags_of_tests() -> None:
    assert (
        tag_of_test("tests/a/test_x.py::TestA::test_b[k1=0.9-ä]", "")
        == "test_x-TestA-test_b-k1-0.9"
    )
    assert tag_of_test("test_x.py::test_b", "gw3") == "test_x-test_b-gw3"
    long = tag_of_test(f"test_x.py::test_{'y' * 90}", "gw12")
    assert (len(long), long.endswith("-gw12")) == (56, True)
