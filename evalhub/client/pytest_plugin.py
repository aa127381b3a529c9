"""A plugin of pytest: the fixture `evalhub`, with which a test fails when retrieval got worse.

    def test_retrieval(evalhub):
        run = evalhub.submit("robust04", my_search(topics))
        evalhub.assert_no_worse(run, baseline="label:main", measure="nDCG@10", margin=0.01)

Tests with the fixture are skipped where EVH_URL is not set, unless pytest is given
--evalhub-required. Other tests do not notice the plugin.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from .hub import Hub, connect
from .rules import NO_WORSE, Rule
from .runs import Run
from .verdicts import Verdict

_NO_TAG = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 56


class GateUndecided(UserWarning):
    """Too little was measured to tell whether a run is worse."""


class EvalHub:
    """What the fixture gives a test: `hub`, the server of the environment, and what asserts about runs."""

    def __init__(self, hub: Hub, tag: str) -> None:
        self.hub, self.tag = hub, tag

    def submit(
        self, collection: str, source: Any, *, tag: str | None = None, **options: Any
    ) -> Run:
        """Submit a run as `Collection.submit` does. Its tag is that of the test, if none is given; a run of the tag
        with another file gets a number behind it."""
        found: Run = self.hub.collection(collection).submit(
            source, tag=tag or self.tag, **{"if_taken": "suffix", **options}
        )
        return found

    def assert_no_worse(
        self, run: Run, baseline: str | Run, measure: str, margin: float | str, **options: Any
    ) -> Verdict:
        """Fail if a run is worse than a baseline by more than a margin: a number, or a share such as "2%"."""
        return self.assert_gate(run, baseline, f"{measure} {NO_WORSE} {margin}", **options)

    def assert_gate(
        self,
        run: Run,
        baseline: str | Run | None,
        rules: str | Rule | Iterable[str | Rule],
        **options: Any,
    ) -> Verdict:
        """Fail with the table of the verdict if a run is worse under one of the rules; warn where it is undecided."""
        verdict = self.hub.collection(run.collection).gate(run, baseline, rules, **options)
        if verdict.worse:
            pytest.fail(verdict.markdown(), pytrace=False)

        if verdict.undecided:
            warnings.warn("\n".join(verdict.lines()), GateUndecided, stacklevel=3)

        return verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "fail tests with the fixture evalhub where EVH_URL is not set, instead of skipping them"
    parser.getgroup("evalhub").addoption("--evalhub-required", action="store_true", help=text)


@pytest.fixture(scope="session")
def _evalhub_hub(request: pytest.FixtureRequest) -> Iterator[Hub]:
    if not os.environ.get("EVH_URL"):
        if request.config.getoption("--evalhub-required"):
            pytest.fail("EVH_URL is not set, and --evalhub-required was given", pytrace=False)
        pytest.skip("EVH_URL is not set: there is no server to ask")
    with connect() as hub:
        yield hub


@pytest.fixture
def evalhub(request: pytest.FixtureRequest, _evalhub_hub: Hub) -> EvalHub:
    """The server of EVH_URL, with assertions about runs."""
    return EvalHub(
        _evalhub_hub, tag_of_test(request.node.nodeid, os.environ.get("PYTEST_XDIST_WORKER", ""))
    )


def tag_of_test(node: str, worker: str) -> str:
    """Return the tag of a test's run: its node id without its folders, and the worker that runs it under xdist."""
    name = _NO_TAG.sub("-", node.rpartition("/")[2].replace(".py::", "-")).strip("-")
    end = f"-{worker}" if worker else ""
    return name[-(_LONGEST - len(end)) :].strip("-") + end
