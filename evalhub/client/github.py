"""The step of the GitHub action: submit the run of a commit, gate it, and report to its pull request.

    python -m evalhub_client.github

Everything is read from the environment: inputs as `GATE_...` (action/action.yml), the rest as
GitHub sets it. The exit status is that of `evh gate`; a pull request from a fork, which has no
secrets, is not evaluated.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from .config import read_config
from .errors import BadConfig, BadSource, Conflict, EvalHubError
from .gate import promote
from .gate_commands import status_of
from .hub import Hub
from .runs import LABEL
from .statuses import status_of as status_of_error
from .verdicts import Verdict

_PAGE = 100
_MAX_PAGES = 30
_NOT_IN_TAG = re.compile(r"[^A-Za-z0-9._-]+")
_API = "https://api.github.com"


@dataclass(frozen=True)
class Step:
    """A step of a workflow: its inputs, its environment, the event that started it."""

    environment: Mapping[str, str]
    event: Mapping[str, Any] = field(default_factory=dict)

    def input(self, name: str, default: str = "") -> str:
        return self.environment.get(f"GATE_{name.upper().replace('-', '_')}", "").strip() or default

    def flag(self, name: str) -> bool:
        return self.input(name).lower() == "true"

    @property
    def pull_request(self) -> Mapping[str, Any] | None:
        return self.event.get("pull_request")

    @property
    def from_fork(self) -> bool:
        """Whether the commit is from another repository than the workflow, or a deleted one."""
        if not self.pull_request:
            return False
        head, base = (self.pull_request[side].get("repo") or {} for side in ("head", "base"))
        return bool(head.get("full_name") != base.get("full_name"))

    @property
    def commit(self) -> str:
        """The commit that was pushed, not the temporary merge that GitHub builds."""
        head = (self.pull_request or {}).get("head", {})
        return str(head.get("sha") or self.environment.get("GITHUB_SHA", ""))

    @property
    def ref(self) -> str:
        """The branch or tag of the commit, or ""."""
        names = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME")
        return next((self.environment[name] for name in names if self.environment.get(name)), "")

    @property
    def tag(self) -> str:
        ref = _NOT_IN_TAG.sub("-", self.ref or "run").strip("-")
        return f"{ref[:50] or 'run'}-{self.commit[:7]}"

    @property
    def metadata(self) -> dict[str, Any]:
        fields = {
            "commit": self.commit,
            "ref": self.ref,
            "repository": self.environment.get("GITHUB_REPOSITORY"),
            "actor": self.environment.get("GITHUB_ACTOR"),
            "pull_request": (self.pull_request or {}).get("number"),
            "workflow_run": self.environment.get("GITHUB_RUN_ID"),
        }
        return {name: value for name, value in fields.items() if value}

    def annotate(self, kind: str, text: str) -> None:
        """Show a notice, warning or error with the step."""
        escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        sys.stdout.write(f"::{kind} title=EvalHub gate::{escaped}\n")

    def log(self, text: str) -> None:
        """Write text into the log so that its lines are not run as commands, which begin with ::."""
        sys.stdout.write(text.replace("::", ": :") + "\n")

    def output(self, **values: str) -> None:
        lines = [f"{name}={' '.join(text.split())}\n" for name, text in values.items()]
        self._append("GITHUB_OUTPUT", "".join(lines))

    def summary(self, markdown: str) -> None:
        self._append("GITHUB_STEP_SUMMARY", markdown)

    def _append(self, name: str, text: str) -> None:
        if path := self.environment.get(name):
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)


def run_step(step: Step, transport: Any = None, github: Any = None) -> int:
    """Run the step and return its exit status.

    Tests replace the two servers by `transport` and `github`.
    """
    token = step.input("token")
    if not token and step.from_fork:
        text = "a pull request from a fork has no secrets: nothing was evaluated"
        fails = step.input("on-fork", "skip") == "fail"
        step.annotate("error" if fails else "notice", text)
        step.summary(f"{text}\n")
        step.output(verdict="skipped", url="", run="")

        return 1 if fails else 0

    try:
        if not token:
            raise BadConfig(
                "the input token is empty; give it a secret of the repository that holds a token"
            )

        config = read_config(
            url=step.input("url") or None, token=token, environment=step.environment
        )
        with Hub(config, transport=transport) as hub:
            verdict = _gate(step, hub)
    except (EvalHubError, ValueError) as error:
        step.annotate("error", str(error))
        return status_of_error(error) if isinstance(error, EvalHubError) else 2

    markdown = verdict.markdown()
    step.summary(markdown)
    step.output(verdict=verdict.verdict, url=verdict.url, run=verdict.candidate["id"])
    step.log("\n".join([*verdict.lines(), verdict.url]))
    if step.flag("comment") and step.pull_request:
        _comment(step, f"<!-- evalhub-gate:{verdict.collection} -->", markdown, github)

    status = status_of(verdict, step.input("undecided", "warn"))
    if not verdict.fine:
        reasons = [
            f"{rule['rule']}: {rule['verdict']}, {rule['reason']}"
            for rule in verdict.rules
            if rule["verdict"] != "fine"
        ]
        step.annotate("error" if status else "warning", "; ".join(reasons))

    return status


def _gate(step: Step, hub: Hub) -> Verdict:
    """Submit the run, evaluate the gate, and promote a fine run if the inputs say so."""
    pattern = step.input("run")
    files = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())
    if len(files) != 1:
        matches = f"it matches {len(files)} files: {', '.join(files[:5])}"
        problem = matches if files else "no file matches it"
        raise BadSource(f"run: {pattern!r} is to name one run file; {problem}")

    collection = hub.collection(step.input("collection"))
    team = step.input("team") or None
    run = collection.submit(
        files[0], tag=step.tag, team=team, metadata=step.metadata, if_taken="suffix"
    )
    baseline = step.input("baseline") or None
    rules = [line.strip() for line in step.input("rules").splitlines() if line.strip()]
    verdict: Verdict = collection.gate(
        run,
        baseline,
        rules,
        test=step.input("test", "paired_t"),
        timeout=float(step.input("timeout", "600")),
        no_baseline=step.input("no-baseline", "pass"),
    )

    label = step.input("label") or (baseline or "").removeprefix(LABEL).rpartition("/")[2]
    if step.flag("promote") and verdict.fine and step.pull_request:
        step.annotate("warning", "a pull request is not promoted: its commit may never be merged")
    elif step.flag("promote") and verdict.fine and label:
        try:
            promote(collection, verdict, label, baseline)
            step.annotate("notice", f"label {label} names {verdict.candidate['tag']} now")
        except Conflict as error:
            # A later commit was promoted while this one was evaluated.
            step.annotate("warning", f"label {label} was not moved: {error}")

    return verdict


def _comment(step: Step, marker: str, markdown: str, transport: Any) -> None:
    """Keep one comment on the pull request up to date; warn if that fails."""
    number = (step.pull_request or {})["number"]
    token = step.input("github-token") or step.environment.get("GITHUB_TOKEN", "")
    body = {"body": f"{marker}\n{markdown}"}
    issues = f"/repos/{step.environment.get('GITHUB_REPOSITORY', '')}/issues"
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}

    base = step.environment.get("GITHUB_API_URL") or _API
    try:
        with httpx.Client(
            base_url=base, headers=headers, timeout=30.0, transport=transport
        ) as client:
            for comment_id in _comments(client, f"{issues}/{number}/comments", marker):
                # Others can write the marker into their comments, which cannot be changed here.
                if client.patch(f"{issues}/comments/{comment_id}", json=body).is_success:
                    return
            client.post(f"{issues}/{number}/comments", json=body).raise_for_status()
    except httpx.HTTPError as error:
        step.annotate(
            "warning",
            f"the comment was not written: {error}; it needs the permission pull-requests: write",
        )


def _comments(client: httpx.Client, address: str, marker: str) -> list[int]:
    """Return the ids of the comments that begin with the marker."""
    ids: list[int] = []
    for page in range(1, _MAX_PAGES + 1):
        response = client.get(address, params={"per_page": _PAGE, "page": page})
        comments = response.raise_for_status().json()
        ids += [
            comment["id"] for comment in comments if (comment.get("body") or "").startswith(marker)
        ]
        if len(comments) < _PAGE:
            break

    return ids


def main() -> None:
    """Run the step that the environment describes."""
    path = os.environ.get("GITHUB_EVENT_PATH")
    event = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    sys.exit(run_step(Step(os.environ, event)))


if __name__ == "__main__":
    main()
