"""A phase of a campaign: its times, and the runs that a team enters into it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, overload
from urllib.parse import quote

from .answers import Answer, Board, Check, Listed
from .errors import NotFound
from .metadata import Metadata, metadata_of
from .runs import Run, run_id_in
from .sending import Call, Connection, parameters_of
from .sources import read_source

_SHOWN = (
    "phase",
    "name",
    "kind",
    "collection",
    "state",
    "opens_at",
    "closes_at",
    "late_closes_at",
    "zone",
)
_OF_ENTRY = (
    "number",
    "team",
    "tag",
    "state",
    "late",
    "role",
    "run_type",
    "priority",
    "arrived_at",
    "run_sha256",
    "id",
)
_OF_RELEASE = (
    "audience", "state", "planned_at", "done_at", "waits_for", "qrels", "with_run_files", "entries", "note", "id",
)  # fmt: skip
_LEFT = ("slots_left", "attempts_left_today", "attempts_left", "resets_at")


class PhaseInfo(Answer):
    """A phase as the server described it: `closes` is the end for the caller's team, `countdown()` says what is left."""

    @property
    def closes(self) -> str:
        """When it closes for the caller's team, as the server writes times."""
        own: dict[str, Any] = self.raw["yours"] or self.raw
        return str(own["closes_at"])

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                **{name: self.raw[name] for name in _SHOWN},
                "closes_at": self.closes,
                **self.raw["limits"],
            }
        ]

    def countdown(self) -> str:
        """Say how long an entry is in time yet, by the clock of the server, and what has to arrive until when."""
        now, closes = _instant(self.raw["now"]), _instant(self.closes)
        named, state = f"phase {self.raw['phase']} of {self.raw['campaign']}", self.raw["state"]
        if state == "planned":
            opens = _instant(self.raw["opens_at"])
            return (
                f"{named} opens in {_length(opens - now)}, at {_written(opens)}. Before, nothing "
                "is taken."
            )

        if state == "paused":
            return (
                f"{named} is paused: {self.raw['paused_reason']}. It closes at {_written(closes)} "
                "all the same."
            )

        if state == "late":
            ends = _instant(self.raw["late_closes_at"])
            taken = (
                f"late entries are taken for {_length(ends - now)}, until {_written(ends)}, and "
                "stay marked as late"
            )
            return f"{named} closed at {_written(closes)}; {taken}."

        if state == "closed":
            return f"{named} closed at {_written(closes)}."

        rule = (
            "The last byte has to arrive before that instant, by the server's clock; the instant "
            "itself is late."
        )
        return f"{named} closes in {_length(closes - now)}, at {_written(closes)}. {rule}"


class Releases(Listed):
    """The releases of a phase."""

    def rows(self) -> list[dict[str, Any]]:
        return [{name: release[name] for name in _OF_RELEASE} for release in self.raw["results"]]


class PhaseBoard(Board):
    """The leaderboard of a phase: rows as of a leaderboard, with what the campaign knows of each entry."""

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for row in self.raw["results"]:
            flat, entry = self._row(row), row["entry"]
            first = {"rank": flat.pop("rank"), "team": flat.pop("team"), "name": row["team_name"]}
            of_entry = {name: entry[name] for name in ("number", "role", "run_type", "late")}
            rows.append({**first, "tag": flat.pop("tag"), **flat, **of_entry, "entry": entry["id"]})

        return rows


class Entry(Answer):
    """An entry; that which `enter` returns is the receipt, with what is left to the team."""

    def rows(self) -> list[dict[str, Any]]:
        left = self.raw.get("allowance") or {}
        return [
            {name: self.raw[name] for name in _OF_ENTRY}
            | {name: left[name] for name in _LEFT if name in left}
        ]


class Entries(Listed):
    """Entries of a phase: those of one's team, of organisers all."""

    def rows(self) -> list[dict[str, Any]]:
        return [row for entry in self.raw["results"] for row in Entry(entry).rows()]


class Phase:
    """A phase by its short name; nothing is asked for before a method is called."""

    def __init__(self, hub: Connection, campaign: str, slug: str) -> None:
        self._hub, self.campaign, self.slug = hub, campaign, slug
        self.path = f"campaigns/{campaign}/phases/{slug}/"

    def __repr__(self) -> str:
        return f"Phase({self.campaign}/{self.slug})"

    def info(self) -> PhaseInfo:
        """Return its times, limits and form, with the time of the server."""
        return PhaseInfo(self._hub.read(self.path))

    def change(self, **fields: Any) -> PhaseInfo:
        """Change it, for organisers."""
        return PhaseInfo(self._hub.send(Call("PATCH", self.path, json=fields)).json())

    def extend(
        self,
        closes_at: str,
        reason: str,
        *,
        zone: str | None = None,
        team: str | None = None,
        confirm: bool = False,
    ) -> PhaseInfo:
        """Let it close later, for all or for one team, for organisers: a time with offset, or a day and its zone. One
        more than 90 days away needs `confirm`."""
        body: dict[str, Any] = {"closes_at": closes_at, "reason": reason, "team": team}
        if zone:
            body["zone"] = zone

        if confirm:
            body["confirm"] = True

        return PhaseInfo(self._hub.send(Call("POST", f"{self.path}extend/", json=body)).json())

    def cancel_extension(self, closes_at: str, reason: str, *, team: str | None = None) -> None:
        """Cancel the last extension, until `closes_at`, for all or for one team, for organisers."""
        params = {"closes_at": closes_at, "reason": reason, **({"team": team} if team else {})}
        self._hub.send(Call("DELETE", f"{self.path}extend/", params))

    def pause(self, reason: str) -> PhaseInfo:
        """Take no entries until it is resumed, for organisers."""
        call = Call("POST", f"{self.path}pause/", json={"reason": reason})
        return PhaseInfo(self._hub.send(call).json())

    def resume(self) -> PhaseInfo:
        """Take entries again, for organisers."""
        return PhaseInfo(self._hub.send(Call("POST", f"{self.path}resume/")).json())

    @overload
    def enter(
        self,
        source: Any,
        *,
        tag: str | None = None,
        run_type: str = "",
        priority: int | None = None,
        answers: dict[str, Any] | None = None,
        description: str = "",
        metadata: Metadata = None,
        on_behalf_of: str | None = None,
        reason: str = "",
        role: str = "",
        label: str = "",
        dry_run: Literal[False] = False,
        key: str | None = None,
    ) -> Entry: ...

    @overload
    def enter(
        self,
        source: Any,
        *,
        tag: str | None = None,
        run_type: str = "",
        priority: int | None = None,
        answers: dict[str, Any] | None = None,
        description: str = "",
        metadata: Metadata = None,
        on_behalf_of: str | None = None,
        reason: str = "",
        role: str = "",
        label: str = "",
        dry_run: Literal[True],
        key: str | None = None,
    ) -> Check: ...

    def enter(
        self,
        source: Any,
        *,
        tag: str | None = None,
        run_type: str = "",
        priority: int | None = None,
        answers: dict[str, Any] | None = None,
        description: str = "",
        metadata: Metadata = None,
        on_behalf_of: str | None = None,
        reason: str = "",
        role: str = "",
        label: str = "",
        dry_run: bool = False,
        key: str | None = None,
    ) -> Entry | Check:
        """Enter a run and return its receipt, or a Check with `dry_run`.

        `source` is what `Collection.submit` takes, or a Run that the team has in the collection.
        `answers` are those to the form of the phase. Organisers name a team with `on_behalf_of` and
        say why in `reason`; their own runs have the `role` baseline, with a `label`, or
        out_of_competition. A request whose answer is lost is sent again with the same key: it is
        entered once, and in time if its first try arrived in time. BadFile lists what is wrong with
        the file, Conflict says why the phase does not take it, QuotaExceeded that no attempt is
        left.
        """
        path, key = f"{self.path}entries/", key or uuid.uuid4().hex
        fields: dict[str, Any] = {
            "run_type": run_type,
            "description": description,
            "on_behalf_of": on_behalf_of,
            "reason": reason,
            "role": role,
            "label": label,
            "priority": priority,
            "answers": answers or {},
        }

        fields = {name: value for name, value in fields.items() if value not in ("", None, {})}
        if isinstance(source, Run):
            fields.pop("description", None)
            call = Call("POST", path, json={"run": source.id, **fields}, key=key)
            return Entry(self._hub.send(call).json())

        file = read_source(source, tag)
        fields |= {
            "tag": file.tag,
            "metadata": metadata_of(metadata),
            "dry_run": dry_run or None,
        }

        form = {
            name: json.dumps(value) if isinstance(value, dict) else value
            for name, value in fields.items()
        }
        call = Call("POST", path, fields=parameters_of(form), files={"file": file}, key=key)
        body = self._hub.send(call).json()

        return Check(body) if dry_run else Entry(body)

    def entries(self) -> Entries:
        """Return the entries of the caller's team, of an organiser those of all teams."""
        return Entries(self._hub.pages(f"{self.path}entries/"))

    def allowance(self, team: str | None = None) -> Answer:
        """Return what the caller's team may still enter, or for organisers a `team`; None is no limit."""
        return Answer(self._hub.read(f"{self.path}allowance/", {"team": team}))

    def prioritise(self, tags: Iterable[str]) -> Answer:
        """Order the entries of the caller's team: all their tags, the most wanted first."""
        call = Call("PUT", f"{self.path}priorities/", json={"order": list(tags)})
        return Answer(self._hub.send(call).json())

    def withdraw(self, entry: str | Entry, reason: str = "") -> Entry:
        """Withdraw an entry, given by its tag, its id or as it was returned."""
        return self._end(entry, "withdraw", reason)

    def disqualify(self, entry: str | Entry, reason: str) -> Entry:
        """Disqualify an entry, for organisers; everybody who sees it reads the reason."""
        return self._end(entry, "disqualify", reason)

    def publish(self, entry: str | Entry) -> Entry:
        """Show an entry of a phase of kind afterwards to all who see the leaderboard; it stays so."""
        call = Call("PATCH", f"entries/{self._id(entry)}/", json={"published": True})
        return Entry(self._hub.send(call).json())

    def leaderboard(self, *measures: Any, rows: int | None = None, **parameters: Any) -> PhaseBoard:
        """Return its leaderboard, all or the first `rows`: `view` (official, all, late, afterwards), `run_type`,
        `role`, and the parameters of a leaderboard: `sort`, `order`, `statistics`, ..."""
        if measures:
            parameters = {"measures": list(measures), **parameters}
        body = self._hub.pages(f"{self.path}board/", parameters, rows)
        return PhaseBoard(body, f"{self._hub.url}/campaigns/{self.campaign}/")

    def releases(self) -> Releases:
        """Return its releases: of an organiser all, of others those that were done for them."""
        return Releases(self._hub.pages(f"{self.path}releases/"))

    def release(self, audience: str, at: str | None = None, **fields: Any) -> Answer:
        """Plan a release to `teams`, `participants` or `public`, for organisers: at a time, or until `release_now`;
        `zone`, `qrels`, `with_run_files`, `note`."""
        call = Call(
            "POST", f"{self.path}releases/", json={"audience": audience, "at": at, **fields}
        )
        return Answer(self._hub.send(call).json())

    def packet(self, team: str | None = None) -> bytes:
        """Return the results of the caller's team as a zip file, or for organisers those of a `team`."""
        query = f"?team={quote(team)}" if team else ""
        return self._hub.download(f"{self.path}packet/{query}")

    def results(self, team: str | None = None, **parameters: Any) -> Answer:
        """Return the values of the caller's team, or for organisers of a `team`, beside the reference set."""
        parameters = {"team": team, **parameters}
        return Answer(self._hub.read(f"{self.path}results/", parameters))

    def _end(self, entry: str | Entry, act: str, reason: str) -> Entry:
        body = {"reason": reason} if reason else {}
        call = Call("POST", f"entries/{self._id(entry)}/{act}/", json=body)
        return Entry(self._hub.send(call).json())

    def _id(self, entry: str | Entry) -> str:
        """Return the id of an entry, which is named by its tag, its id or as it was returned."""
        if isinstance(entry, Entry):
            return str(entry.raw["id"])
        if entry_id := run_id_in(entry):
            return entry_id

        rows = self.entries().raw["results"]
        for row in rows:
            if row["tag"] == entry:
                return str(row["id"])

        missing = NotFound(
            404,
            {"code": "not_found", "detail": f"phase {self.slug} has no entry {entry!r} of yours"},
        )
        raise missing.with_suggestion(entry, [row["tag"] for row in rows])


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # noqa: FURB162, because Python 3.10 reads no Z


def _written(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _length(left: timedelta) -> str:
    """Return a time in words, of its two largest units: 2 d 3 h, 14 min 5 s."""
    seconds = max(0, int(left.total_seconds()))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")

    return " ".join(parts[:2])
