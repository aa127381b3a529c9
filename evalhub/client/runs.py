"""A run: its state, its values, its file."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from .answers import Answer, Means, Values
from .errors import Ambiguous, EvaluationFailed, NotFound, TimedOut, seconds_of
from .sending import Call, Pause, Steps

ON_THE_WAY = ("queued", "evaluating")
_FIRST_LOOK, _LONGEST_PAUSE = 0.2, 5.0
_AT_ONCE = 200
_SAY_AFTER = 10.0
_log = logging.getLogger("evalhub_client")


class Run(Answer):
    """A run as the server told of it last; `refresh` and `wait` ask again. Of `hub.aio` its methods are awaited."""

    def __init__(self, hub: Any, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self._hub = hub

    @property
    def state(self) -> str:
        """queued, evaluating, evaluated, failed, cancelled; received where the judgements are blind."""
        state: str = self.raw["status"]["state"]
        return state

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/runs/{self.raw['id']}/"

    def rows(self) -> list[dict[str, Any]]:
        status = self.raw["status"]
        queue = status.get("queue") or {}
        flat = {name: self.raw[name] for name in ("id", "collection", "team", "tag")}
        flat |= {name: status[name] for name in ("state", "since", "code", "reason")}
        return [{**flat, "position": queue.get("position"), "waits_for": queue.get("waits_for")}]

    def __repr__(self) -> str:
        return f"Run({self.raw['team']}/{self.raw['tag']}, {self.state})"

    def refresh(self) -> Run:
        """Ask for its state anew."""
        return self._hub._run(self._refreshed())  # type: ignore[no-any-return]

    def wait(self, timeout: float = 600.0) -> Run:
        """Wait until it is evaluated, or received where that is all that is told; EvaluationFailed or TimedOut."""
        return self._hub._run(self._waited(timeout))  # type: ignore[no-any-return]

    def means(self, *measures: str) -> Means:
        """Return the means of measures, or of those that the collection has computed for every run."""
        return self._hub._run(self._means(measures))  # type: ignore[no-any-return]

    def values(self, *measures: str) -> Values:
        """Return the values by topic."""
        return self._hub._run(self._values(measures))  # type: ignore[no-any-return]

    def ranking(self, topic: str, **parameters: Any) -> Answer:
        """Return the ranking of a topic as it is evaluated, with levels and gains."""
        return self._hub._run(self._hub._answer(f"runs/{self.id}/ranking/", {"topic": topic, **parameters}))  # type: ignore[no-any-return]

    def curve(self, *measures: str, **parameters: Any) -> Answer:
        """Return measures at every rank."""
        asked = {"measures": ",".join(measures), **parameters} if measures else parameters
        return self._hub._run(self._hub._answer(f"runs/{self.id}/curve/", asked))  # type: ignore[no-any-return]

    def file(self) -> bytes:
        """Return the submitted file, decompressed."""
        return self._hub._run(self._hub._bytes(f"runs/{self.id}/file/"))  # type: ignore[no-any-return]

    def withdraw(self) -> None:
        """Withdraw it: it leaves the leaderboard, and its tag is free again."""
        self._hub._run(self._hub._ask(Call("DELETE", f"runs/{self.id}/")))

    def _refreshed(self) -> Steps[Run]:
        self.raw = yield from self._hub._json(f"runs/{self.id}/")
        return self

    def _waited(self, timeout: float) -> Steps[Run]:
        yield from wait_for(self._hub, [self], timeout)
        if self.state in ("failed", "cancelled"):
            raise EvaluationFailed(self)
        return self

    def _values(self, measures: Sequence[str]) -> Steps[Values]:
        asked = {"measures": ",".join(measures)} if measures else {}
        return Values((yield from self._hub._json(f"runs/{self.id}/values/", asked)))

    def _means(self, measures: Sequence[str]) -> Steps[Means]:
        return Means((yield from self._values(measures)).raw)


def wait_for(hub: Any, runs: Sequence[Run], timeout: float) -> Steps[None]:
    """Ask for the states of runs until none is on its way, 200 in one request; TimedOut with those that still are.

    The first looks come quickly, as most evaluations are done in a fraction of a second; later ones when the server
    says so. What the server shows no more was withdrawn: its state is `cancelled`.
    """
    start, pause, said = time.monotonic(), _FIRST_LOOK, False
    waiting = [run for run in runs if run.state in ON_THE_WAY]
    while waiting:
        hint = 0.0
        for first in range(0, len(waiting), _AT_ONCE):
            asked = waiting[first : first + _AT_ONCE]
            call = Call("GET", "runs/", {"id": ",".join(run.raw["id"] for run in asked)})
            response = yield from hub._ask(call)
            states = {state.pop("id"): state for state in response.json()["runs"]}
            gone = {"state": "cancelled", "code": "run_deleted", "reason": "the run was withdrawn", "queue": None}
            for run in asked:
                run.raw["status"] = {**run.raw["status"], **states.get(run.raw["id"], gone)}
            hint = max(hint, seconds_of(response) or 0.0)
        waiting = [run for run in waiting if run.state in ON_THE_WAY]
        waited = time.monotonic() - start
        nobody = [run for run in waiting if (run.raw["status"]["queue"] or {}).get("waits_for") == "no_worker_alive"]
        if nobody and waited > _SAY_AFTER and not said:
            _log.warning("no worker is alive to evaluate %s; tell the operator. Still waiting.", nobody[0].tag)
            said = True
        # A hint of one second is the server's least: shorter waits are worth a look.
        delay = hint if hint > 1 else pause
        pause = min(2 * pause, _LONGEST_PAUSE)
        if waiting and waited + delay > timeout:
            raise TimedOut(waiting, timeout)
        if waiting:
            yield Pause(delay)


def find_run(hub: Any, collection: str, name: str, team: str | None = None) -> Steps[Run]:
    """Return the run of an id, an address, `tag` or `team/tag`; Ambiguous where several teams have the tag."""
    found = run_id_in(name)
    if found:
        return Run(hub, (yield from hub._json(f"runs/{found}/")))
    if not collection:
        raise Ambiguous(f"{name!r} is not an id; name the collection whose run has this tag")
    slug, _, tag = name.rpartition("/")
    team = slug or team
    asked = {"tag": tag, "limit": 200, **({"team": team} if team else {})}
    listed = yield from hub._pages(f"collections/{collection}/runs/", asked)
    runs = [Run(hub, raw) for raw in listed["results"] if raw["tag"] == tag]
    if not runs:
        raise NotFound(404, {"code": "not_found", "detail": f"collection {collection} has no run {name!r}"})
    if len(runs) > 1:
        teams = ", ".join(sorted(f"{run.team}/{run.tag}" for run in runs))
        raise Ambiguous(f"several runs are called {tag!r}: {teams}; name one of them so")
    return runs[0]


def run_id_in(name: str) -> str:
    """Return the id of a run in an id or in the address of its page or of the API; "" where there is none."""
    parts = [part for part in name.partition("?")[0].split("/") if part]
    text = parts[parts.index("runs") + 1] if "runs" in parts[:-1] else name
    digits = text.replace("-", "")
    return text if len(text) == 36 and len(digits) == 32 and set(digits.lower()) <= set("0123456789abcdef") else ""
