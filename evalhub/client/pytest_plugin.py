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

_NOT_IN_TAG = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_TAG = 56


class GateUndecided(UserWarning):
    """Too little was measured to tell whether a run is worse."""


class EvalHub:
    """The value of the fixture: `hub`, the server of the environment, and assertions about runs."""

    def __init__(self, hub: Hub, tag: str) -> None:
        self.hub, self.tag = hub, tag

    def submit(
        self, collection: str, source: Any, *, tag: str | None = None, **options: Any
    ) -> Run:
        """Submit a run with the options of `Collection.submit`, by default under the test's tag.

        If a run with another file has the tag, a number is added to it.
        """
        options = {"if_taken": "suffix", **options}
        target = self.hub.collection(collection)
        run: Run = target.submit(source, tag=tag or self.tag, **options)
        return run

    def assert_no_worse(
        self, run: Run, baseline: str | Run, measure: str, margin: float | str, **options: Any
    ) -> Verdict:
        """Fail if a run is worse than a baseline by more than a margin such as 0.01 or "2%"."""
        return self.assert_gate(run, baseline, f"{measure} {NO_WORSE} {margin}", **options)

    def assert_gate(
        self,
        run: Run,
        baseline: str | Run | None,
        rules: str | Rule | Iterable[str | Rule],
        **options: Any,
    ) -> Verdict:
        """Fail with the table of the verdict if a run is worse under a rule; warn if undecided."""
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
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    return EvalHub(_evalhub_hub, tag_of_test(request.node.nodeid, worker))


def tag_of_test(node: str, worker: str) -> str:
    """Return the tag of a test: its node id without folders, and its worker under xdist."""
    name = _NOT_IN_TAG.sub("-", node.rpartition("/")[2].replace(".py::", "-")).strip("-")
    suffix = f"-{worker}" if worker else ""
    return name[-(_MAX_TAG - len(suffix)) :].strip("-") + suffix
