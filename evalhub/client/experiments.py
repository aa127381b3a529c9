"""Experiments: named sets of runs, with notes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from .answers import Answer, Listed
from .errors import Ambiguous, NotFound
from .runs import Run, find_run, run_id_in
from .sending import Call, Steps

_SHOWN = ("id", "team", "slug", "name", "visibility", "baseline", "count", "created_at")


class Experiment(Answer):
    """An experiment as the server told of it last."""

    def __init__(self, hub: Any, raw: dict[str, Any]) -> None:
        super().__init__(raw)
        self._hub = hub

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/{self._path}"

    def rows(self) -> list[dict[str, Any]]:
        return [{name: self.raw[name] for name in _SHOWN}]

    def add(self, *runs: str | Run) -> Experiment:
        """Put runs into it: runs, their ids or addresses, or their names in the configured collection."""
        return self._hub._run(self._changed(add=runs))  # type: ignore[no-any-return]

    def remove(self, *runs: str | Run) -> Experiment:
        """Take runs out of it; they stay as they are."""
        return self._hub._run(self._changed(remove=runs))  # type: ignore[no-any-return]

    def change(self, **fields: Any) -> Experiment:
        """Change `name`, `goal`, `visibility` (team or collection) or `baseline` (the id of a run of it, or None)."""
        return self._hub._run(self._patched(fields))  # type: ignore[no-any-return]

    def delete(self) -> None:
        """Delete it with its notes; its runs stay."""
        return self._hub._run(self._deleted())  # type: ignore[no-any-return]

    def notes(self) -> Listed:
        """Return the notes about it, latest first."""
        return self._hub._run(self._hub._listed(f"{self._path}notes/"))  # type: ignore[no-any-return]

    def note(self, text: str) -> Answer:
        """Write a note about it."""
        return self._hub._run(self._noted(text))  # type: ignore[no-any-return]

    @property
    def _path(self) -> str:
        return f"experiments/{self.raw['id']}/"

    def _changed(
        self, add: Iterable[str | Run] = (), remove: Iterable[str | Run] = ()
    ) -> Steps[Experiment]:
        sent = {}
        for name, runs in (("add", add), ("remove", remove)):
            sent[name] = yield from ids_of(self._hub, runs)
        self.raw = (yield from self._hub._ask(Call("POST", f"{self._path}runs/", json=sent))).json()
        return self

    def _patched(self, fields: dict[str, Any]) -> Steps[Experiment]:
        self.raw = (yield from self._hub._ask(Call("PATCH", self._path, json=fields))).json()
        return self

    def _noted(self, text: str) -> Steps[Answer]:
        call = Call("POST", f"{self._path}notes/", json={"text": text}, key=uuid.uuid4().hex)
        return Answer((yield from self._hub._ask(call)).json())

    def _deleted(self) -> Steps[None]:
        yield from self._hub._ask(Call("DELETE", self._path))


def ids_of(hub: Any, runs: Iterable[str | Run], collection: str = "") -> Steps[list[str]]:
    """Return the ids of runs that are named in any way."""
    found = []
    for run in runs:
        if isinstance(run, str):
            run = run_id_in(run) or (
                yield from find_run(hub, collection or hub.config.collection, run)
            )
        found.append(run if isinstance(run, str) else str(run.id))
    return found


def find_experiment(hub: Any, name: str) -> Steps[Experiment]:
    """Return the experiment of an id, `slug` or `team/slug`; Ambiguous where several teams have it."""
    try:
        key = uuid.UUID(name)
    except ValueError:
        pass
    else:
        return hub.experiment_class(hub, (yield from hub._json(f"experiments/{key}/")))  # type: ignore[no-any-return]
    team, _, slug = name.rpartition("/")
    asked = {"slug": slug, "limit": 200, **({"team": team} if team else {})}
    found = (yield from hub._pages("experiments/", asked))["results"]
    if not found:
        listed = yield from hub._pages("experiments/", {"limit": 200}, 200)
        missing = NotFound(404, {"code": "not_found", "detail": f"there is no experiment {name!r}"})
        raise missing.meant(slug, [one["slug"] for one in listed["results"]])
    if len(found) > 1 and hub.config.team:
        found = [one for one in found if one["team"] == hub.config.team] or found
    if len(found) > 1:
        teams = ", ".join(f"{one['team']}/{slug}" for one in found)
        raise Ambiguous(f"several teams have an experiment {slug!r}; name one of {teams}")
    raw = yield from hub._json(f"experiments/{found[0]['id']}/")
    return hub.experiment_class(hub, raw)  # type: ignore[no-any-return]


def create_experiment(
    hub: Any, fields: dict[str, Any], runs: Iterable[str | Run]
) -> Steps[Experiment]:
    """Create an experiment of these runs."""
    sent = {"team": hub.config.team, **fields, "runs": (yield from ids_of(hub, runs))}
    kept = {name: value for name, value in sent.items() if value}
    response = yield from hub._ask(Call("POST", "experiments/", json=kept, key=uuid.uuid4().hex))
    return hub.experiment_class(hub, response.json())  # type: ignore[no-any-return]
