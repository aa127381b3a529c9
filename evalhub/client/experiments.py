"""Experiments: named sets of runs, with notes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from .answers import Answer, Listed
from .errors import Ambiguous, NotFound
from .runs import Run, find_run, run_id_in
from .sending import Call, Connection

_FIELDS = ("id", "team", "slug", "name", "visibility", "baseline", "count", "created_at")


class Experiment(Answer):
    """An experiment as the server described it last."""

    def __init__(self, hub: Connection, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self._hub = hub

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/{self._path}"

    def rows(self) -> list[dict[str, Any]]:
        return [{name: self.raw[name] for name in _FIELDS}]

    def add(self, *runs: str | Run) -> Experiment:
        """Put runs into it, named by ids, addresses, or tags in the configured collection."""
        return self._change_runs(add=ids_of(self._hub, runs), remove=[])

    def remove(self, *runs: str | Run) -> Experiment:
        """Take runs out of it; they stay as they are."""
        return self._change_runs(add=[], remove=ids_of(self._hub, runs))

    def change(self, **fields: Any) -> Experiment:
        """Change `name`, `goal`, `visibility` or `baseline`.

        The visibility is team or collection; the baseline is the id of one of its runs, or None.
        """
        self.raw = self._hub.send(Call("PATCH", self._path, json=fields)).json()
        return self

    def delete(self) -> None:
        """Delete it with its notes; its runs stay."""
        self._hub.send(Call("DELETE", self._path))

    def notes(self) -> Listed:
        """Return the notes about it, latest first."""
        return Listed(self._hub.pages(f"{self._path}notes/"))

    def note(self, text: str) -> Answer:
        """Write a note about it."""
        call = Call("POST", f"{self._path}notes/", json={"text": text}, key=uuid.uuid4().hex)
        return Answer(self._hub.send(call).json())

    @property
    def _path(self) -> str:
        return f"experiments/{self.raw['id']}/"

    def _change_runs(self, **ids: list[str]) -> Experiment:
        self.raw = self._hub.send(Call("POST", f"{self._path}runs/", json=ids)).json()
        return self


def ids_of(hub: Connection, runs: Iterable[str | Run], collection: str = "") -> list[str]:
    """Return the ids of runs that are named in any way."""
    ids = []
    for run in runs:
        if isinstance(run, str):
            run = run_id_in(run) or find_run(hub, collection or hub.config.collection, run)
        ids.append(run if isinstance(run, str) else str(run.id))

    return ids


def find_experiment(hub: Connection, name: str) -> Experiment:
    """Return the experiment with an id, `slug` or `team/slug`; raise Ambiguous for several."""
    try:
        key = uuid.UUID(name)
    except ValueError:
        pass
    else:
        return Experiment(hub, hub.read(f"experiments/{key}/"))

    team, _, slug = name.rpartition("/")
    params = {"slug": slug, **({"team": team} if team else {})}
    rows = hub.pages("experiments/", params)["results"]
    if not rows:
        listed = hub.pages("experiments/", rows=200)
        missing = NotFound(404, {"code": "not_found", "detail": f"there is no experiment {name!r}"})
        raise missing.with_suggestion(slug, [row["slug"] for row in listed["results"]])

    if len(rows) > 1 and hub.config.team:
        rows = [row for row in rows if row["team"] == hub.config.team] or rows

    if len(rows) > 1:
        teams = ", ".join(f"{row['team']}/{slug}" for row in rows)
        raise Ambiguous(f"several teams have an experiment {slug!r}; name one of {teams}")

    return Experiment(hub, hub.read(f"experiments/{rows[0]['id']}/"))
