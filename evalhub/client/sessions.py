"""Session sets: logs of searchers' sessions, submitted and read as runs are."""

from __future__ import annotations

import json
import uuid
from typing import Any, Literal, overload

from .answers import Check, SessionBoard, SessionValues
from .errors import NotFound
from .metadata import Metadata, metadata_of
from .runs import Submission, run_id_in
from .sending import Call, Steps
from .sources import read_file


class SessionSet(Submission):
    """A session set as the server told of it last; `refresh` and `wait` ask again."""

    _kind = "session-sets"

    def refresh(self) -> SessionSet:
        """Ask for its state anew."""
        return super().refresh()  # type: ignore[no-any-return]

    def wait(self, timeout: float = 600.0) -> SessionSet:
        """Wait until it is evaluated, or received where that is all that is told; EvaluationFailed or TimedOut."""
        return super().wait(timeout)  # type: ignore[no-any-return]

    def values(self, *measures: str, **selection: Any) -> SessionValues:
        """Return the values of every session, and the means: of one `system`, `topic` or `searcher`, or of sessions of
        at `least` so many queries."""
        return self._hub._run(self._values(measures, selection))  # type: ignore[no-any-return]

    def _values(self, measures: tuple[str, ...], selection: dict[str, Any]) -> Steps[SessionValues]:
        asked = {**({"measures": list(measures)} if measures else {}), "limit": 10_000, **selection}
        return SessionValues(
            (yield from self._hub._pages(f"{self._path}values/", asked, None, "sessions"))
        )


class Sessions:
    """The session sets of a collection; nothing is asked for before a method is called."""

    def __init__(self, hub: Any, slug: str) -> None:
        self._hub, self.slug = hub, slug
        self.path = f"collections/{slug}/sessions/"

    @overload
    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        format: str | None = None,
        judged_by: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        dry_run: Literal[False] = False,
        key: str | None = None,
    ) -> SessionSet: ...

    @overload
    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        format: str | None = None,
        judged_by: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        dry_run: Literal[True],
        key: str | None = None,
    ) -> Check: ...

    def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        format: str | None = None,
        judged_by: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        dry_run: bool = False,
        key: str | None = None,
    ) -> Any:
        """Submit a session log (a path, bytes or a file) and return the set as it was received, or a Check with
        `dry_run`. `format` is recognised; `judged_by` is topic, session, query or own."""
        form = {
            "tag": tag,
            "team": team,
            "format": format,
            "judged_by": judged_by,
            "description": description,
        }
        return self._hub._run(self._submitted(source, form, metadata_of(metadata), dry_run, key))

    def all(self, **filters: Any) -> list[SessionSet]:
        """Return the session sets of all pages, newest first: `team`, `tag`, `status`, `judged_by`, ..."""
        return self._hub._run(self._listed(filters))  # type: ignore[no-any-return]

    def get(self, name: str) -> SessionSet:
        """Return a session set by its id, `tag` or `team/tag`."""
        return self._hub._run(self._found(name))  # type: ignore[no-any-return]

    def values(self, name: str, *measures: str, **selection: Any) -> SessionValues:
        """Return the values of a session set by its id, `tag` or `team/tag`."""
        return self._hub._run(self._values_of(name, measures, selection))  # type: ignore[no-any-return]

    def leaderboard(
        self, *measures: str, rows: int | None = None, **parameters: Any
    ) -> SessionBoard:
        """Return the leaderboard of systems: `judged_by`, `statistics`, `baseline`, `sort`, ..."""
        return self._hub._run(self._leaderboard(measures, rows, parameters))  # type: ignore[no-any-return]

    def _submitted(
        self,
        given: Any,
        form: dict[str, Any],
        metadata: dict[str, Any] | None,
        dry_run: bool,
        key: str | None,
    ) -> Steps[Any]:
        fields = {name: str(value) for name, value in form.items() if value}
        fields.setdefault("team", self._hub.config.team)
        if metadata:
            fields["metadata"] = json.dumps(metadata)
        if dry_run:
            fields["dry_run"] = "true"
        kept = {name: value for name, value in fields.items() if value}
        response = yield from self._hub._ask(
            Call(
                "POST",
                self.path,
                fields=kept,
                files={"file": read_file(given)},
                key=key or uuid.uuid4().hex,
            )
        )
        return (
            Check(response.json()) if dry_run else self._hub.set_class(self._hub, response.json())
        )

    def _listed(self, filters: dict[str, Any]) -> Steps[list[SessionSet]]:
        listed = yield from self._hub._pages(self.path, {"limit": 200, **filters})
        return [self._hub.set_class(self._hub, raw) for raw in listed["results"]]

    def _found(self, name: str) -> Steps[SessionSet]:
        if found := run_id_in(name):
            raw = yield from self._hub._json(f"session-sets/{found}/")
            return self._hub.set_class(self._hub, raw)  # type: ignore[no-any-return]
        team, _, tag = name.rpartition("/")
        everything = yield from self._listed({"team": team} if team else {})
        for made in everything:
            if made.tag == tag:
                return made
        missing = NotFound(
            404,
            {"code": "not_found", "detail": f"collection {self.slug} has no session set {name!r}"},
        )
        raise missing.meant(tag, [made.tag for made in everything])

    def _values_of(
        self, name: str, measures: tuple[str, ...], selection: dict[str, Any]
    ) -> Steps[SessionValues]:
        made = yield from self._found(name)
        return (yield from made._values(measures, selection))

    def _leaderboard(
        self, measures: tuple[str, ...], rows: int | None, parameters: dict[str, Any]
    ) -> Steps[SessionBoard]:
        asked = {
            **({"measures": list(measures)} if measures else {}),
            "limit": min(rows or 200, 200),
            **parameters,
        }
        body = yield from self._hub._pages(
            f"collections/{self.slug}/session-leaderboard/", asked, rows
        )
        return SessionBoard(body, f"{self._hub.url}/collections/{self.slug}/sessions/")
