"""Session sets: submit logs of searchers' sessions and read their values."""

from __future__ import annotations

import json
import uuid
from typing import Any, Literal, overload

from .answers import Check, SessionBoard, SessionValues
from .errors import NotFound
from .metadata import Metadata, metadata_of
from .runs import Submission, run_id_in
from .sending import Call, Connection
from .sources import read_file
from .upload_warnings import warn_of_report


class SessionSet(Submission):
    """A session set as the server described it last; `refresh` and `wait` read it again."""

    _kind = "session-sets"

    def values(self, *measures: str, **selection: Any) -> SessionValues:
        """Return the values of every session, and the means.

        Select sessions of one `system`, `topic` or `searcher`, or with at `least` so many queries.
        """
        params = {"limit": 10_000, **selection}
        if measures:
            params = {"measures": list(measures), **params}
        return SessionValues(self._hub.pages(f"{self._path}values/", params, of="sessions"))


class Sessions:
    """The session sets of a collection; nothing is sent before a method is called."""

    def __init__(self, hub: Connection, slug: str) -> None:
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
    ) -> SessionSet | Check:
        """Submit a session log and return the set as it was received, or a Check with `dry_run`.

        `source` is a path, bytes or a file. `format` is recognised; `judged_by` is topic, session,
        query or own.
        """
        file, values = read_file(source), metadata_of(metadata)
        fields = {
            "tag": tag,
            "team": team or self._hub.config.team,
            "format": format,
            "judged_by": judged_by,
            "description": description,
            "metadata": json.dumps(values) if values else "",
            "dry_run": "true" if dry_run else "",
        }

        call = Call(
            "POST",
            self.path,
            fields={name: str(value) for name, value in fields.items() if value},
            files={"file": file},
            key=key or uuid.uuid4().hex,
        )

        body = self._hub.send(call).json()
        warn_of_report(file.name, body)
        return Check(body) if dry_run else SessionSet(self._hub, body)

    def all(self, **filters: Any) -> list[SessionSet]:
        """Return the session sets of all pages, newest first.

        Filters are `team`, `tag`, `status`, `judged_by`, ...
        """
        listed = self._hub.pages(self.path, filters)
        return [SessionSet(self._hub, raw) for raw in listed["results"]]

    def get(self, name: str) -> SessionSet:
        """Return a session set by its id, `tag` or `team/tag`."""
        if set_id := run_id_in(name):
            return SessionSet(self._hub, self._hub.read(f"session-sets/{set_id}/"))

        team, _, tag = name.rpartition("/")
        sets = self.all(team=team) if team else self.all()
        for session_set in sets:
            if session_set.tag == tag:
                return session_set

        detail = f"collection {self.slug} has no session set {name!r}"
        missing = NotFound(404, {"code": "not_found", "detail": detail})
        raise missing.with_suggestion(tag, [session_set.tag for session_set in sets])

    def values(self, name: str, *measures: str, **selection: Any) -> SessionValues:
        """Return the values of a session set by its id, `tag` or `team/tag`."""
        return self.get(name).values(*measures, **selection)

    def leaderboard(
        self, *measures: str, rows: int | None = None, **parameters: Any
    ) -> SessionBoard:
        """Return the leaderboard of systems: `judged_by`, `statistics`, `baseline`, `sort`, ..."""
        if measures:
            parameters = {"measures": list(measures), **parameters}
        body = self._hub.pages(f"collections/{self.slug}/session-leaderboard/", parameters, rows)
        return SessionBoard(body, f"{self._hub.url}/collections/{self.slug}/sessions/")
