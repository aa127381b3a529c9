"""A run: its state, its values, its file."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from .answers import RETRIEVED, Answer, Coverage, Curves, Listed, Means, Values
from .display import Chart
from .errors import Ambiguous, EvaluationFailed, NotFound, TimedOut, seconds_of
from .sending import Call, Pause, Steps
from .sources import read_as_it_is

LABEL = "label:"
ON_THE_WAY = ("queued", "evaluating")
_FIRST_LOOK, _LONGEST_PAUSE, _LONGER = 0.05, 5.0, 1.5
_AT_ONCE = 200
_SAY_AFTER = 10.0
_log = logging.getLogger("evalhub_client")


class Submission(Answer):
    """What runs and session sets have in common: a state that changes, a file, an end."""

    _kind = ""
    # Whether the server, or the journal of a batch, had it already.
    there = False

    def __init__(self, hub: Any, raw: dict[str, Any]) -> None:
        super().__init__(raw, f"{hub.url}/runs/{raw['id']}/")
        self._hub = hub

    @property
    def state(self) -> str:
        """queued, evaluating, evaluated, failed, cancelled; received where the judgements are blind."""
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

    def refresh(self) -> Any:
        """Ask for its state anew."""
        return self._hub._run(self._refreshed())

    def wait(self, timeout: float = 600.0) -> Any:
        """Wait until it is evaluated, or received where that is all that is told; EvaluationFailed or TimedOut."""
        return self._hub._run(self._waited(timeout))

    def file(self) -> bytes:
        """Return the submitted file, decompressed."""
        return self._hub._run(self._hub._bytes(f"{self._path}file/"))  # type: ignore[no-any-return]

    def withdraw(self) -> None:
        """Withdraw it: it leaves the leaderboard, and its tag is free again."""
        return self._hub._run(self._withdrawn())  # type: ignore[no-any-return]

    delete = withdraw

    @property
    def _path(self) -> str:
        return f"{self._kind}/{self.raw['id']}/"

    def _refreshed(self) -> Steps[Any]:
        self.raw = yield from self._hub._json(self._path)
        return self

    def _waited(self, timeout: float) -> Steps[Any]:
        yield from wait_for(self._hub, [self], timeout)
        if self.state in ("failed", "cancelled"):
            raise EvaluationFailed(self)
        return self

    def _withdrawn(self, asked: dict[str, Any] | None = None) -> Steps[None]:
        yield from self._hub._ask(Call("DELETE", self._path, asked or {}))


class Run(Submission):
    """A run as the server told of it last; `refresh` and `wait` ask again."""

    _kind = "runs"

    def refresh(self) -> Run:
        """Ask for its state anew."""
        return super().refresh()  # type: ignore[no-any-return]

    def wait(self, timeout: float = 600.0) -> Run:
        """Wait until it is evaluated, or received where that is all that is told; EvaluationFailed or TimedOut."""
        return super().wait(timeout)  # type: ignore[no-any-return]

    def withdraw(self, *, drop_labels: bool = False, reason: str = "") -> None:
        """Withdraw it: it leaves the leaderboard, and its tag is free again. One with labels is refused, unless they
        are to be deleted. With a `reason`, organisers take a run of any team out of their collection."""
        asked = {"drop_labels": "true"} if drop_labels else {}
        return self._hub._run(self._withdrawn({**asked, "reason": reason} if reason else asked))  # type: ignore[no-any-return]

    delete = withdraw

    def means(self, *measures: Any) -> Means:
        """Return the means of measures, or of those that the collection has computed for every run.

        Here and elsewhere a measure is its name, or a measure of ir_measures.
        """
        return self._hub._run(self._means(measures))  # type: ignore[no-any-return]

    def values(self, *measures: Any) -> Values:
        """Return the values by topic."""
        return self._hub._run(self._values(measures))  # type: ignore[no-any-return]

    def coverage(self, *measures: Any) -> Coverage:
        """Return the means beside those that BEIR, MTEB and pytrec_eval print, over the answered topics alone."""
        return self._hub._run(self._covered(measures))  # type: ignore[no-any-return]

    def ranking(self, topic: str, **parameters: Any) -> Listed:
        """Return the ranking of a topic as it is evaluated, with levels and gains."""
        return self._hub._run(self._ranked(topic, parameters))  # type: ignore[no-any-return]

    def curve(self, *measures: Any, **parameters: Any) -> Curves:
        """Return measures at every rank: `depth`, `ranks`, `confidence`, `readings`, ..."""
        return self._hub._run(self._curves(measures, parameters))  # type: ignore[no-any-return]

    def chart(self, name: str = "curve", form: str = "svg", **parameters: Any) -> Chart:
        """Return a chart, which a notebook shows: `curve`, `precision-recall`, `distribution`, `topics`, `ranking`.

        `form` is svg, png, pdf, csv for its table, or json for Vega-Lite.
        """
        return self._hub._run(self._hub._chart(f"{self._path}charts/", name, form, parameters))  # type: ignore[no-any-return]

    def known(self) -> bytes:
        """Return the file of the documents that its user knew; NotFound where it came without one."""
        return self._hub._run(self._hub._bytes(f"{self._path}known/"))  # type: ignore[no-any-return]

    def attach(self, source: Any, name: str | None = None) -> Answer:
        """Attach a file, such as the configuration or the log of the run: a path, bytes with a name, or a file.

        The same file under the same name is attached once.
        """
        return self._hub._run(self._attached(source, name))  # type: ignore[no-any-return]

    def artifacts(self) -> Listed:
        """Return the attached files: name, size, SHA-256 and address of each."""
        return self._hub._run(self._hub._listed(f"{self._path}artifacts/"))  # type: ignore[no-any-return]

    def artifact(self, name: str) -> bytes:
        """Return the content of an attached file."""
        return self._hub._run(self._hub._bytes(f"{self._path}artifacts/{quote(name)}/"))  # type: ignore[no-any-return]

    def _attached(self, given: Any, name: str | None) -> Steps[Answer]:
        source = read_as_it_is(given, name)
        fields = {"name": name} if name else {}
        # What is attached already is not attached again.
        call = Call(
            "POST",
            f"{self._path}artifacts/",
            fields=fields,
            files={"file": source},
            key=uuid.uuid4().hex,
        )
        return Answer((yield from self._hub._ask(call)).json())

    def notes(self) -> Listed:
        """Return the notes about it, latest first."""
        return self._hub._run(self._hub._listed(f"{self._path}notes/"))  # type: ignore[no-any-return]

    def note(self, text: str) -> Answer:
        """Write a note about it, a run of your team."""
        return self._hub._run(self._noted(text))  # type: ignore[no-any-return]

    def restore(self) -> Run:
        """Bring it back after it was withdrawn, while its file is stored."""
        return self._hub._run(self._restored())  # type: ignore[no-any-return]

    def _noted(self, text: str) -> Steps[Answer]:
        call = Call("POST", f"{self._path}notes/", json={"text": text}, key=uuid.uuid4().hex)
        return Answer((yield from self._hub._ask(call)).json())

    def _restored(self) -> Steps[Run]:
        self.raw = (yield from self._hub._ask(Call("POST", f"{self._path}restore/"))).json()
        return self

    def tree(self) -> Answer:
        """Return the runs that it was made from and those made from it: `nodes`, `edges`."""
        return self._hub._run(self._hub._answer(f"{self._path}tree/"))  # type: ignore[no-any-return]

    def set_parents(self, parents: Sequence[dict[str, Any]]) -> Answer:
        """Replace its parents: [{"run": id, "relation": "fused", "weight": 0.4}]."""
        return self._hub._run(self._put("parents", parents))  # type: ignore[no-any-return]

    def set_links(self, links: Sequence[dict[str, Any]]) -> Answer:
        """Replace its links: [{"kind": "code", "url": "https://...", "commit": "3f2a"}]."""
        return self._hub._run(self._put("links", links))  # type: ignore[no-any-return]

    def _put(self, name: str, given: Sequence[dict[str, Any]]) -> Steps[Answer]:
        call = Call("PUT", f"{self._path}{name}/", json={name: list(given)})
        return Answer((yield from self._hub._ask(call)).json())

    def _values(self, measures: Sequence[Any]) -> Steps[Values]:
        asked = {"measures": list(measures)} if measures else {}
        return Values((yield from self._hub._json(f"{self._path}values/", asked)), self.page)

    def _means(self, measures: Sequence[Any]) -> Steps[Means]:
        return Means((yield from self._values(measures)).raw, self.page)

    def _covered(self, measures: Sequence[Any]) -> Steps[Coverage]:
        asked = [str(measure) for measure in measures] or list((yield from self._means(())))
        return Coverage((yield from self._values([*asked, RETRIEVED])).raw, self.tag)

    def _ranked(self, topic: str, parameters: dict[str, Any]) -> Steps[Listed]:
        asked = {"topic": topic, **parameters}
        return Listed((yield from self._hub._json(f"{self._path}ranking/", asked)), "documents")

    def _curves(self, measures: Sequence[Any], parameters: dict[str, Any]) -> Steps[Curves]:
        asked = {**({"measures": list(measures)} if measures else {}), **parameters}
        return Curves((yield from self._hub._json(f"{self._path}curve/", asked)))


def states_of(hub: Any, made: Sequence[Submission]) -> Steps[float]:
    """Ask for the states of runs, 200 in one request, or of session sets one by one; return the server's hint, the
    seconds after which to ask again, or 0. What the server shows no more was withdrawn: its state is `cancelled`.
    """
    hint = 0.0
    for one in made:
        if one._kind != "runs":
            response = yield from hub._ask(Call("GET", one._path))
            one.raw = response.json()
            hint = max(hint, seconds_of(response) or 0.0)
    runs = [one for one in made if one._kind == "runs"]
    for first in range(0, len(runs), _AT_ONCE):
        asked = runs[first : first + _AT_ONCE]
        response = yield from hub._ask(
            Call("GET", "runs/", {"id": ",".join(run.raw["id"] for run in asked)})
        )
        states = {state.pop("id"): state for state in response.json()["runs"]}
        gone = {
            "state": "cancelled",
            "code": "run_deleted",
            "reason": "the run was withdrawn",
            "queue": None,
        }
        for run in asked:
            run.raw["status"] = {**run.raw["status"], **states.get(run.raw["id"], gone)}
        hint = max(hint, seconds_of(response) or 0.0)
    return hint


def wait_for(hub: Any, runs: Sequence[Submission], timeout: float) -> Steps[None]:
    """Ask for the states of runs until none is on its way; TimedOut with those that still are.

    The first looks come quickly, as most evaluations are done in a fraction of a second; later ones when the server
    says so.
    """
    start, pause, said = time.monotonic(), _FIRST_LOOK, False
    waiting = [run for run in runs if run.state in ON_THE_WAY]
    while waiting:
        hint = yield from states_of(hub, waiting)
        waiting = [run for run in waiting if run.state in ON_THE_WAY]
        waited = time.monotonic() - start
        nobody = [
            run
            for run in waiting
            if (run.raw["status"]["queue"] or {}).get("waits_for") == "no_worker_alive"
        ]
        if nobody and waited > _SAY_AFTER and not said:
            _log.warning(
                "no worker is alive to evaluate %s; tell the operator. Still waiting.",
                nobody[0].tag,
            )
            said = True
        # A hint of one second is the server's least: shorter waits are worth a look.
        delay = hint if hint > 1 else pause
        pause = min(_LONGER * pause, _LONGEST_PAUSE)
        if waiting and waited + delay > timeout:
            raise TimedOut(waiting, timeout)
        if waiting:
            yield Pause(delay)


def find_run(hub: Any, collection: str, name: str, team: str | None = None) -> Steps[Run]:
    """Return the run of an id, an address, `tag`, `team/tag`, `label:name` or `label:team/name`; Ambiguous where
    several teams have the tag or the label."""
    found = run_id_in(name)
    if found:
        return hub.run_class(hub, (yield from hub._json(f"runs/{found}/")))  # type: ignore[no-any-return]
    if not collection:
        raise Ambiguous(
            f"{name!r} is not an id; name the collection of this tag, on the command line with -c"
        )
    if name.startswith(LABEL):
        return (yield from _labelled(hub, collection, name.removeprefix(LABEL), team))
    slug, _, tag = name.rpartition("/")
    team = slug or team
    asked = {"tag": tag, "limit": 200, **({"team": team} if team else {})}
    listed = yield from hub._pages(f"collections/{collection}/runs/", asked)
    runs: list[Run] = [hub.run_class(hub, raw) for raw in listed["results"] if raw["tag"] == tag]
    if not runs:
        missing = NotFound(
            404, {"code": "not_found", "detail": f"collection {collection} has no run {name!r}"}
        )
        listed = yield from hub._pages(f"collections/{collection}/runs/", {"limit": 200}, 200)
        raise missing.meant(tag, [raw["tag"] for raw in listed["results"]])
    if len(runs) > 1:
        teams = ", ".join(sorted(f"{run.team}/{run.tag}" for run in runs))
        raise Ambiguous(f"several runs are called {tag!r}: {teams}; name one of them so")
    return runs[0]


def _labelled(hub: Any, collection: str, name: str, team: str | None) -> Steps[Run]:
    """Return the run that a label names: of the team that is said, else of one of the caller's own, else of the only
    team that has it."""
    slug, _, label = name.rpartition("/")
    team = slug or team or hub.config.team
    asked = {"name": label, "limit": 200, **({"team": team} if team else {})}
    found = (yield from hub._pages(f"collections/{collection}/labels/", asked))["results"]
    if len(found) > 1:
        own = {one["slug"] for one in (yield from hub._json("me/"))["teams"]}
        found = [one for one in found if one["team"] in own] or found
    if not found:
        raise NotFound(
            404, {"code": "not_found", "detail": f"collection {collection} has no label {name!r}"}
        )
    if len(found) > 1:
        teams = ", ".join(f"{LABEL}{one['team']}/{label}" for one in found)
        raise Ambiguous(f"several teams have a label {label!r}; name one of {teams}")
    return hub.run_class(hub, (yield from hub._json(f"runs/{found[0]['run']}/")))  # type: ignore[no-any-return]


def run_id_in(name: str) -> str:
    """Return the id of a run in an id or in the address of its page or of the API; "" where there is none."""
    parts = [part for part in name.partition("?")[0].split("/") if part]
    text = parts[parts.index("runs") + 1] if "runs" in parts[:-1] else name
    digits = text.replace("-", "")
    return (
        text
        if len(text) == 36 and len(digits) == 32 and set(digits.lower()) <= set("0123456789abcdef")
        else ""
    )
