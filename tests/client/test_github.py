"""The step of the GitHub action, with a fake GitHub and the server of this process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from rest_framework.test import APIClient

from evalhub.client import __version__
from evalhub.client.github import Step, run_step
from runs.models import Label, Run, User
from tests.client.inside import URL, answer, token_of
from tests.conftest import evaluate_all
from tests.reliability.servers import ROOT
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

ACTION = ROOT / "evalhub/client/action/action.yml"
SHA = "3f2a1bc0000000000000000000000000000000aa"
GOOD = "".join(f"{topic} Q0 d{topic} 1 1.0 x\n" for topic in range(12))
QRELS = "".join(f"{topic} 0 d{topic} 1\n{topic} 0 other 0\n" for topic in range(12))
POOR = "".join(f"{topic} Q0 other 1 2.0 x\n{topic} Q0 d{topic} 2 1.0 x\n" for topic in range(12))


class FakeGitHub:
    """Keeps comments; those of others cannot be changed."""

    def __init__(self) -> None:
        self.comments: dict[int, dict[str, Any]] = {}
        self.refuses = False

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer ghs"
        if self.refuses:
            return httpx.Response(403, json={"message": "Resource not accessible by integration"})
        path = request.url.path
        if request.method == "GET":
            page = int(request.url.params["page"])
            return httpx.Response(
                200, json=list(self.comments.values())[100 * (page - 1) : 100 * page]
            )
        body = json.loads(request.content)["body"]
        if request.method == "PATCH":
            number = int(path.rpartition("/")[2])
            if self.comments[number]["own"]:
                self.comments[number]["body"] = body
            return httpx.Response(200 if self.comments[number]["own"] else 403, json={})
        assert path == "/repos/lab/search/issues/7/comments"
        self.add(body, own=True)
        return httpx.Response(201, json={})

    def add(self, body: str, *, own: bool = False) -> None:
        self.comments[len(self.comments) + 1] = {
            "id": len(self.comments) + 1,
            "body": body,
            "own": own,
        }

    @property
    def own(self) -> list[str]:
        return [comment["body"] for comment in self.comments.values() if comment["own"]]


def evaluating(request: httpx.Request) -> httpx.Response:
    """The server with a worker that is done before anybody asks."""
    evaluate_all()
    return answer(request)


@pytest.fixture
def github() -> FakeGitHub:
    return FakeGitHub()


@pytest.fixture
def step(
    api: APIClient, alice: User, tmp_path: Path, github: FakeGitHub, capsys: Any
) -> Callable[..., Any]:
    """Runs the step of a commit; returns its status, its outputs, the summary and the log."""
    answer = api.post(
        "/api/v1/collections/", {"slug": "twelve", "name": "Twelve", "measures": ["RR", "AP"]}
    )
    assert answer.status_code == 201
    path = "/api/v1/collections/twelve/qrels/"
    assert api.post(path, QRELS.encode(), content_type="text/plain").status_code == 201
    token = token_of(alice)
    (tmp_path / "out").mkdir()

    def run(content: str, *, fork: bool = False, pull: bool = True, **inputs: str) -> Any:
        (tmp_path / "out/bm25.run").write_text(content)
        outputs, summary = tmp_path / "outputs", tmp_path / "summary.md"
        for file in (outputs, summary):
            file.write_text("")
        settings = {
            "url": URL, "token": token, "collection": "twelve", "run": f"{tmp_path}/out/*.run", "comment": "true",
            "rules": "RR no-worse-than 0.05\nAP at-least 0.1\n", "baseline": "label:main", "promote": str(not pull),
            "github_token": "ghs", **inputs,
        }  # fmt: skip
        environment = {f"GATE_{name.upper()}": value for name, value in settings.items()}
        environment |= {
            "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_SHA": SHA,
            "GITHUB_REPOSITORY": "lab/search", "GITHUB_ACTOR": "alice", "GITHUB_REF_NAME": "main",
            "EVH_CONFIG": str(tmp_path / "none"),
        }  # fmt: skip
        event: dict[str, Any] = {}
        if pull:
            environment["GITHUB_HEAD_REF"] = "feature/a b"
            head = {"sha": SHA, "repo": {"full_name": "stranger/search" if fork else "lab/search"}}
            event = {
                "pull_request": {
                    "number": 7,
                    "head": head,
                    "base": {"repo": {"full_name": "lab/search"}},
                }
            }
        transports = httpx.MockTransport(evaluating), httpx.MockTransport(github)
        status = run_step(Step(environment, event), *transports)
        output = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        return status, output, summary.read_text(), capsys.readouterr().out

    return run


def test_a_repository_from_its_first_commit(step: Any, github: FakeGitHub) -> None:
    """Main has no baseline and is promoted; a pull request is worse, then mended; its comment stays one."""
    status, outputs, summary, log = step(GOOD, pull=False)
    assert (status, outputs["verdict"]) == (0, "fine")
    assert "there is no baseline label:main yet" in summary.replace("\\", "")
    assert "label main names main-3f2a1bc now" in log
    assert (Label.objects.get().run.tag, github.own) == ("main-3f2a1bc", [])
    run = Run.objects.get()
    assert run.metadata == {
        "commit": SHA,
        "ref": "main",
        "repository": "lab/search",
        "actor": "alice",
    }

    github.add("<!-- evalhub-gate:twelve -->\nwritten by a stranger")
    github.add("another")
    status, outputs, summary, log = step(POOR)
    assert (status, outputs["verdict"], outputs["run"]) == (
        10,
        "worse",
        str(Run.objects.get(tag="feature-a-b-3f2a1bc").pk),
    )
    assert "::error title=EvalHub gate::RR no-worse-than 0.05: worse" in log
    assert outputs["url"].startswith(f"{URL}/collections/twelve/comparison/?runs=")
    (comment,) = github.own
    assert comment == f"<!-- evalhub-gate:twelve -->\n{summary}"
    status, outputs, _, log = step(GOOD)
    assert (status, outputs["verdict"], len(github.own), len(github.comments)) == (0, "fine", 1, 3)
    assert github.own[0].startswith("<!-- evalhub-gate:twelve -->\n### ✅ fine: ")
    assert Label.objects.get().run == run
    assert Run.objects.get(tag="feature-a-b-3f2a1bc-2").metadata["pull_request"] == 7


def test_a_fork_has_no_secrets(step: Any, github: FakeGitHub) -> None:
    status, outputs, summary, log = step(GOOD, fork=True, token="")
    assert (status, outputs["verdict"], "no secrets" in summary, "::notice" in log) == (
        0,
        "skipped",
        True,
        True,
    )
    assert step(GOOD, fork=True, token="", on_fork="fail")[0] == 1
    status, _, _, log = step(GOOD, token="")
    assert (status, "the input token is empty" in log) == (3, True)
    assert (Run.objects.count(), github.comments) == (0, {})


@pytest.mark.parametrize(
    ("inputs", "status", "message"),
    [
        ({"run": "nowhere/*.run"}, 5, "no file matches it"), ({"rules": "RR"}, 2, "needs a margin"),
        ({"rules": ""}, 2, "a gate needs a rule"), ({"collection": "none"}, 4, "no collection"),
        ({"no_baseline": "fail"}, 4, "no label"), ({"url": "ftp://x"}, 3, "not the address"),
        ({"token": "evh_00000000_wrong"}, 3, "token"), ({"timeout": "soon"}, 2, "could not convert"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told_and_is_no_verdict(
    step: Any, inputs: dict[str, str], status: int, message: str
) -> None:
    code, outputs, _, log = step(GOOD, **inputs)
    assert (code, outputs, log.startswith("::error title=EvalHub gate::")) == (status, {}, True)
    assert message in log


def test_undecided_warns_and_a_comment_that_is_refused_fails_nothing(
    step: Any, github: FakeGitHub
) -> None:
    """Four topics of twelve lose half: the interval holds the margin."""
    step(GOOD, pull=False)
    github.refuses = True
    some = GOOD + "".join(f"{topic} Q0 other 0 2.0 x\n" for topic in range(2))
    status, outputs, _, log = step(some)
    assert (status, outputs["verdict"]) == (0, "undecided")
    assert "::warning title=EvalHub gate::RR no-worse-than 0.05: undecided" in log
    assert "the comment was not written" in log
    assert step(some, undecided="fail")[0] == 11
    # Nothing of others begins a line of the log.
    assert all(line.startswith("::") is bool(re.match(r"::(error|warning|notice) title=EvalHub gate::", line))
               for line in log.splitlines())  # fmt: skip


def test_the_action_hands_on_every_input_by_the_environment() -> None:
    action = yaml.safe_load(ACTION.read_text())
    install, gate = action["runs"]["steps"]
    inputs = {
        name: f"GATE_{name.upper().replace('-', '_')}"
        for name in action["inputs"]
        if name != "client"
    }
    assert gate["env"] == {
        variable: f"${{{{ inputs.{name} }}}}" for name, variable in inputs.items()
    }
    assert "${{" not in install["run"] + gate["run"]
    assert action["inputs"]["client"]["default"] == f"evalhub-client=={__version__}"
    source = (ROOT / "evalhub/client/github.py").read_text()
    read = set(re.findall(r'\.(?:input|flag)\("([a-z-]+)"', source))
    assert read == set(inputs)
    assert set(action["outputs"]) == {"verdict", "url", "run"}
