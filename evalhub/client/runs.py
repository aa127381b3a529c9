"""Runs: their states, values and files."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from .answers import RETRIEVED, Answer, Coverage, Curves, Listed, Means, Values
from .display import Chart
from .errors import Ambiguous, EvaluationFailed, NoEvaluation, NotFound, TimedOut, seconds_of
from .sending import Call, Connection
from .sources import read_as_it_is

LABEL = "label:"
ON_THE_WAY = ("queued", "evaluating")
# Seconds between two requests for the state of a run: at first, at most, and what they grow by.
_FIRST_PAUSE, _MAX_PAUSE, _GROWTH = 0.05, 5.0, 1.5
# Runs that one request asks for.
_IDS_PER_REQUEST = 200
# Seconds until it is said what is waited for, and between two times that it is said.
_SAY_AFTER, _SAY_EVERY = 10.0, 60.0
# Seconds for which a worker may be missing, as where the service starts again.
_WORKER_AWAY = 10.0
_NO_QRELS, _NO_WORKER = "no_active_qrels", "no_worker_alive"
_log = logging.getLogger("evalhub_client")

# The class of the method's own object: `Run.wait` returns a Run.
Same = TypeVar("Same", bound="Submission")


class Submission(Answer):
    """What runs and session sets have in common: a state, a file, and that they can be withdrawn."""

    _kind = ""
    # Whether the server, or the journal of a batch, had it already.
    existed = False

    def __init__(self, hub: Connection, raw: dict[str, Any]) -> None:
        super().__init__(raw, f"{hub.url}/runs/{raw['id']}/")
        self._hub = hub

    @property
    def state(self) -> str:
        """queued, evaluating, evaluated, failed, cancelled, or received if judgements are blind."""
        state: str = self.raw["status"]["state"]
        return state

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/{self._kind}/{self.raw['id']}/"

    def rows(self) -> list[dict[str, Any]]:
        status = self.raw["status"]
        queue = status.get("queue") or {}
        flat = {name: self.raw[name] for name in ("id", "collection", "team", "tag")}
        flat |= {name: status[name] for name in ("state", "since", "code", "reason")}

        return [{**flat, "position": queue.get("position"), "waits_for": queue.get("waits_for")}]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw['team']}/{self.raw['tag']}, {self.state})"

    def refresh(self: Same) -> Same:
        """Read its present state from the server."""
        self.raw = self._hub.read(self._path)
        return self

    def wait(self: Same, timeout: float = 600.0) -> Same:
        """Wait until it is evaluated, or received if the judgements are blind.

        Raise EvaluationFailed, or TimedOut after `timeout` seconds.
        """
        wait_for(self._hub, [self], timeout)
        if self.state in ("failed", "cancelled"):
            raise EvaluationFailed(self)
        return self

    def file(self) -> bytes:
        """Return the submitted file, decompressed."""
        return self._hub.download(f"{self._path}file/")

    def withdraw(self) -> None:
        """Withdraw it: it leaves the leaderboard, and its tag is free again."""
        self._hub.send(Call("DELETE", self._path))

    delete = withdraw

    @property
    def _path(self) -> str:
        return f"{self._kind}/{self.raw['id']}/"


class Run(Submission):
    """A run as the server described it last; `refresh` and `wait` read it again."""

    _kind = "runs"

    def withdraw(self, *, drop_labels: bool = False, reason: str = "") -> None:
        """Withdraw it: it leaves the leaderboard, and its tag is free again.

        The server refuses to withdraw a run with labels unless `drop_labels` deletes them. With a
        `reason`, organisers withdraw a run of any team from their collection.
        """
        params = {"drop_labels": "true"} if drop_labels else {}
        if reason:
            params["reason"] = reason
        self._hub.send(Call("DELETE", self._path, params))

    delete = withdraw

    def make_replicate(self, of: str | None) -> Run:
        """Make it a replicate of the system of this name, or with None a single run again."""
        self.raw = self._hub.send(Call("PATCH", self._path, json={"replicate": of})).json()
        return self

    def means(self, *measures: Any) -> Means:
        """Return the means of measures, or of those that the collection has computed for every run.

        Here and elsewhere a measure is its name, or a measure of ir_measures.
        """
        return Means(self._read_values(measures), self.page)

    def values(self, *measures: Any) -> Values:
        """Return the values by topic."""
        return Values(self._read_values(measures), self.page)

    def coverage(self, *measures: Any) -> Coverage:
        """Return the means over all judged topics, and over answered ones as BEIR prints them."""
        names = [str(measure) for measure in measures] or list(self.means())
        return Coverage(self._read_values([*names, RETRIEVED]), self.tag)

    def _read_values(self, measures: Sequence[Any]) -> dict[str, Any]:
        params = {"measures": list(measures)} if measures else {}
        return self._hub.read(f"{self._path}values/", params)

    def ranking(self, topic: str, **parameters: Any) -> Listed:
        """Return the ranking of a topic as it is evaluated, with levels and gains."""
        body = self._hub.read(f"{self._path}ranking/", {"topic": topic, **parameters})
        return Listed(body, "documents")

    def curve(self, *measures: Any, **parameters: Any) -> Curves:
        """Return measures at every rank: `depth`, `ranks`, `confidence`, `readings`, ..."""
        if measures:
            parameters = {"measures": list(measures), **parameters}
        return Curves(self._hub.read(f"{self._path}curve/", parameters))

    def chart(self, name: str = "curve", form: str = "svg", **parameters: Any) -> Chart:
        """Return a chart, which a notebook shows.

        `name` is `curve`, `precision-recall`, `distribution`, `topics` or `ranking`; `form` is svg,
        png, pdf, csv for its table, or json for Vega-Lite.
        """
        return self._hub.draw(f"{self._path}charts/", name, form, **parameters)

    def known(self) -> bytes:
        """Return the file of the documents that its user knew; raise NotFound without one."""
        return self._hub.download(f"{self._path}known/")

    def attach(self, source: Any, name: str | None = None) -> Answer:
        """Attach a file, such as the configuration or the log of the run.

        It is a path, bytes with a name, or an open file. The same file under the same name is
        attached once.
        """
        call = Call(
            "POST",
            f"{self._path}artifacts/",
            fields={"name": name} if name else {},
            files={"file": read_as_it_is(source, name)},
            key=uuid.uuid4().hex,
        )
        return Answer(self._hub.send(call).json())

    def artifacts(self) -> Listed:
        """Return the attached files: name, size, SHA-256 and address of each."""
        return Listed(self._hub.pages(f"{self._path}artifacts/"))

    def artifact(self, name: str) -> bytes:
        """Return the content of an attached file."""
        return self._hub.download(f"{self._path}artifacts/{quote(name)}/")

    def notes(self) -> Listed:
        """Return the notes about it, latest first."""
        return Listed(self._hub.pages(f"{self._path}notes/"))

    def note(self, text: str) -> Answer:
        """Write a note about it, a run of your team."""
        call = Call("POST", f"{self._path}notes/", json={"text": text}, key=uuid.uuid4().hex)
        return Answer(self._hub.send(call).json())

    def restore(self) -> Run:
        """Bring it back after it was withdrawn, while its file is stored."""
        self.raw = self._hub.send(Call("POST", f"{self._path}restore/")).json()
        return self

    def tree(self) -> Answer:
        """Return the runs that it was made from and those made from it: `nodes`, `edges`."""
        return Answer(self._hub.read(f"{self._path}tree/"))

    def set_parents(self, parents: Sequence[dict[str, Any]]) -> Answer:
        """Replace its parents: [{"run": id, "relation": "fused", "weight": 0.4}]."""
        call = Call("PUT", f"{self._path}parents/", json={"parents": list(parents)})
        return Answer(self._hub.send(call).json())

    def set_links(self, links: Sequence[dict[str, Any]]) -> Answer:
        """Replace its links: [{"kind": "code", "url": "https://...", "commit": "3f2a"}]."""
        call = Call("PUT", f"{self._path}links/", json={"links": list(links)})
        return Answer(self._hub.send(call).json())


def refresh_states(hub: Connection, submissions: Sequence[Submission]) -> float:
    """Read the states of runs, 200 per request, or of session sets one by one.

    Return the seconds after which the server wants to be asked again, or 0. A run that the server
    does not show was withdrawn: its state is `cancelled`.
    """
    hint = 0.0
    for submission in submissions:
        if submission._kind != "runs":
            response = hub.send(Call("GET", submission._path))
            submission.raw = response.json()
            hint = max(hint, seconds_of(response) or 0.0)

    runs = [submission for submission in submissions if submission._kind == "runs"]
    reason = "the run was withdrawn"
    withdrawn = {"state": "cancelled", "code": "run_deleted", "reason": reason, "queue": None}
    for first in range(0, len(runs), _IDS_PER_REQUEST):
        batch = runs[first : first + _IDS_PER_REQUEST]
        ids = ",".join(run.raw["id"] for run in batch)
        response = hub.send(Call("GET", "runs/", {"id": ids}))
        states = {state.pop("id"): state for state in response.json()["runs"]}
        for run in batch:
            run.raw["status"] = {**run.raw["status"], **states.get(run.raw["id"], withdrawn)}

        hint = max(hint, seconds_of(response) or 0.0)

    return hint


def wait_for(hub: Connection, runs: Sequence[Submission], timeout: float) -> None:
    """Read the states of runs until none is on its way.

    Raise TimedOut with those that still are, and NoEvaluation where nothing evaluates them: without
    active judgements at once, without a worker after some seconds. The first pauses are short, as
    most evaluations take a fraction of a second; later ones are as long as the server says. Once a
    minute it is logged what is waited for.
    """
    start, pause, say_after = time.monotonic(), _FIRST_PAUSE, _SAY_AFTER
    waiting = [run for run in runs if run.state in ON_THE_WAY]
    stopped: list[Submission] = []
    while waiting:
        hint = refresh_states(hub, waiting)
        waited = time.monotonic() - start
        waiting = [run for run in waiting if run.state in ON_THE_WAY]
        stopped += [run for run in waiting if is_stopped(run, waited)]
        waiting = [run for run in waiting if run not in stopped]
        if waiting and waited >= say_after:
            say_after = waited + _SAY_EVERY
            _log.warning("waiting for %s (%.0f s)", _describe(waiting), waited)

        # The server's least hint is one second: the run may be evaluated much earlier.
        delay = hint if hint > 1 else pause
        pause = min(_GROWTH * pause, _MAX_PAUSE)
        if waiting and waited + delay > timeout:
            raise TimedOut(waiting, timeout)
        if waiting:
            time.sleep(delay)

    if stopped:
        raise no_evaluation(stopped)


def is_stopped(run: Submission, waited: float) -> bool:
    """Return whether nothing evaluates a run that is on its way, after waiting for some seconds."""
    status = run.raw["status"]
    if run.state != "queued":
        return False
    if status["code"] == _NO_QRELS:
        return True
    return (status["queue"] or {}).get("waits_for") == _NO_WORKER and waited >= _WORKER_AWAY


def no_evaluation(runs: Sequence[Submission]) -> NoEvaluation:
    """Return the error for runs that nothing evaluates, with the server's reason."""
    status = runs[0].raw["status"]
    if status["code"] == _NO_QRELS:
        reason = f"{status['reason']}; runs are evaluated once it has some"
        return NoEvaluation(runs, _NO_QRELS, reason)

    reason = "no worker is alive; tell the operator. Runs stay in the queue"
    return NoEvaluation(runs, _NO_WORKER, reason)


def _describe(waiting: Sequence[Submission]) -> str:
    """Say in which state the first of some runs is, and how many others are waited for."""
    first = waiting[0]
    queue = first.raw["status"]["queue"] or {}
    state = f"{first.tag}: {first.state}"
    if queue.get("position"):
        state += f", number {queue['position']:,} in the queue"
    if queue.get("waits_for") == "retry":
        state += ", to be tried again"
    if queue.get("waits_for") == _NO_WORKER:
        state += ", no worker is alive"

    others = len(waiting) - 1
    return f"{state}; and {others:,} more" if others else state


def find_run(hub: Connection, collection: str, name: str, team: str | None = None) -> Run:
    """Return the run of an id, an address, `tag`, `team/tag`, `label:name` or `label:team/name`.

    Raise Ambiguous if several teams have the tag or the label.
    """
    if run_id := run_id_in(name):
        return Run(hub, hub.read(f"runs/{run_id}/"))
    if not collection:
        raise Ambiguous(
            f"{name!r} is not an id; name the collection of this tag, on the command line with -c"
        )

    if name.startswith(LABEL):
        return _find_labelled(hub, collection, name.removeprefix(LABEL), team)

    slug, _, tag = name.rpartition("/")
    team = slug or team
    params = {"tag": tag, **({"team": team} if team else {})}
    listed = hub.pages(f"collections/{collection}/runs/", params)

    runs = [Run(hub, raw) for raw in listed["results"] if raw["tag"] == tag]
    if not runs:
        missing = NotFound(
            404, {"code": "not_found", "detail": f"collection {collection} has no run {name!r}"}
        )
        listed = hub.pages(f"collections/{collection}/runs/", rows=200)
        raise missing.with_suggestion(tag, [raw["tag"] for raw in listed["results"]])

    if len(runs) > 1:
        teams = ", ".join(sorted(f"{run.team}/{run.tag}" for run in runs))
        raise Ambiguous(f"several runs are called {tag!r}: {teams}; name one of them so")

    return runs[0]


def _find_labelled(hub: Connection, collection: str, name: str, team: str | None) -> Run:
    """Return the run with a label of `team`, of the caller's teams, or of the only team with it."""
    slug, _, label = name.rpartition("/")
    team = slug or team or hub.config.team
    params = {"name": label, **({"team": team} if team else {})}
    labels = hub.pages(f"collections/{collection}/labels/", params)["results"]

    if len(labels) > 1:
        own = {row["slug"] for row in hub.read("me/")["teams"]}
        labels = [row for row in labels if row["team"] in own] or labels

    if not labels:
        raise NotFound(
            404, {"code": "not_found", "detail": f"collection {collection} has no label {name!r}"}
        )
    if len(labels) > 1:
        teams = ", ".join(f"{LABEL}{row['team']}/{label}" for row in labels)
        raise Ambiguous(f"several teams have a label {label!r}; name one of {teams}")

    return Run(hub, hub.read(f"runs/{labels[0]['run']}/"))


def run_id_in(name: str) -> str:
    """Return the id of a run in an id or in the address of its page or of the API, or ""."""
    parts = [part for part in name.partition("?")[0].split("/") if part]
    text = parts[parts.index("runs") + 1] if "runs" in parts[:-1] else name
    digits = text.replace("-", "")
    if len(text) != 36 or len(digits) != 32 or set(digits.lower()) - set("0123456789abcdef"):
        return ""
    return text
