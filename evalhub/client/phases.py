"""A phase of a campaign: its times, entries, leaderboard and releases."""

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
from .upload_warnings import warn, warn_of_report

_PHASE_FIELDS = (
    "phase", "name", "kind", "collection", "state", "opens_at", "closes_at", "late_closes_at", "zone"
)  # fmt: skip
_ENTRY_FIELDS = (
    "number", "team", "tag", "state", "late", "role", "run_type", "priority", "arrived_at",
    "run_sha256", "id",
)  # fmt: skip
_RELEASE_FIELDS = (
    "audience", "state", "planned_at", "done_at", "waits_for", "qrels", "with_run_files", "entries",
    "note", "id",
)  # fmt: skip
_FIGURES = ("n", "min", "median", "median_upper", "max", "mean")
_ALLOWANCE_FIELDS = ("slots_left", "attempts_left_today", "attempts_left", "resets_at")


class PhaseInfo(Answer):
    """A phase as the server described it.

    `closes` is the end for the caller's team, `countdown()` says how much time there is.
    """

    @property
    def closes(self) -> str:
        """When it closes for the caller's team, as the server writes times."""
        own: dict[str, Any] = self.raw["yours"] or self.raw
        return str(own["closes_at"])

    def rows(self) -> list[dict[str, Any]]:
        row = {name: self.raw[name] for name in _PHASE_FIELDS}
        return [{**row, "closes_at": self.closes, **self.raw["limits"]}]

    def countdown(self) -> str:
        """Say until when an entry is in time, and how long this is by the clock of the server."""
        now, closes = _instant(self.raw["now"]), _instant(self.closes)
        name, state = f"phase {self.raw['phase']} of {self.raw['campaign']}", self.raw["state"]
        if state == "planned":
            opens = _instant(self.raw["opens_at"])
            return (
                f"{name} opens in {_duration(opens - now)}, at {_time(opens)}. Before, nothing "
                "is taken."
            )

        if state == "paused":
            return (
                f"{name} is paused: {self.raw['paused_reason']}. It closes at {_time(closes)} "
                "all the same."
            )

        if state == "late":
            ends = _instant(self.raw["late_closes_at"])
            return (
                f"{name} closed at {_time(closes)}; late entries are taken for "
                f"{_duration(ends - now)}, until {_time(ends)}, and stay marked as late."
            )

        if state == "closed":
            return f"{name} closed at {_time(closes)}."

        return (
            f"{name} closes in {_duration(closes - now)}, at {_time(closes)}. The last byte has to "
            "arrive before that instant, by the server's clock; the instant itself is late."
        )


class Releases(Listed):
    """The releases of a phase."""

    def rows(self) -> list[dict[str, Any]]:
        return [
            {name: release[name] for name in _RELEASE_FIELDS} for release in self.raw["results"]
        ]


class PhaseBoard(Board):
    """The leaderboard of a phase, with fields of each entry in the rows."""

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for row in self.raw["results"]:
            flat, entry = self._row(row), row["entry"]
            first = {"rank": flat.pop("rank"), "team": flat.pop("team"), "name": row["team_name"]}
            last = {name: entry[name] for name in ("number", "role", "run_type", "late")}
            rows.append({**first, "tag": flat.pop("tag"), **flat, **last, "entry": entry["id"]})

        return rows


class Entry(Answer):
    """An entry; that of `enter` is the receipt, with what the team may still enter."""

    def rows(self) -> list[dict[str, Any]]:
        allowance = self.raw.get("allowance") or {}
        row = {name: self.raw[name] for name in _ENTRY_FIELDS}
        return [row | {name: allowance[name] for name in _ALLOWANCE_FIELDS if name in allowance}]


class Entries(Listed):
    """The entries of a phase: those of the caller's team, for organisers all."""

    def rows(self) -> list[dict[str, Any]]:
        return [row for entry in self.raw["results"] for row in Entry(entry).rows()]


class TopicStatistics(Answer):
    """Figures of a phase's entries: a row for each type of run, measure and topic."""

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for runs in self.raw["sets"]:
            for measure, figures in runs["by_topic"].items():
                for index, topic in enumerate(self.raw["topics"]):
                    row = {"run_type": runs["run_type"], "measure": measure, "topic": topic}
                    rows.append(row | {name: figures[name][index] for name in _FIGURES})

        return rows


class Phase:
    """A phase by its short name; nothing is sent before a method is called."""

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
        """Let it close later, for all or for one team, as an organiser.

        `closes_at` is a time with offset, or a day with its `zone`; more than 90 days away it needs
        `confirm`.
        """
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

        `source` is a run as for `Collection.submit`, or a Run of the team in the collection.
        `answers` are those to the form of the phase. Organisers name a team with `on_behalf_of` and
        say why in `reason`; their own runs have the `role` baseline, with a `label`, or
        out_of_competition. A request without an answer is sent again with the same key: the run is
        entered once, and in time if the first try arrived in time. BadFile lists what is wrong with
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
        if file.note:
            warn(file.note)
        fields |= {"tag": file.tag, "metadata": metadata_of(metadata), "dry_run": dry_run or None}

        form = {
            name: json.dumps(value) if isinstance(value, dict) else value
            for name, value in fields.items()
        }
        call = Call("POST", path, fields=parameters_of(form), files={"file": file}, key=key)
        body = self._hub.send(call).json()
        warn_of_report(file.name, body)

        return Check(body) if dry_run else Entry(body)

    def entries(self) -> Entries:
        """Return the entries of the caller's team, for organisers those of all teams."""
        return Entries(self._hub.pages(f"{self.path}entries/"))

    def allowance(self, team: str | None = None) -> Answer:
        """Return what the caller's team, or for organisers a `team`, may enter; None is no limit."""
        return Answer(self._hub.read(f"{self.path}allowance/", {"team": team}))

    def prioritise(self, tags: Iterable[str]) -> Answer:
        """Order the entries of the caller's team: all their tags, the most wanted first."""
        call = Call("PUT", f"{self.path}priorities/", json={"order": list(tags)})
        return Answer(self._hub.send(call).json())

    def withdraw(self, entry: str | Entry, reason: str = "") -> Entry:
        """Withdraw an entry, named by its tag or id, or as it was returned."""
        return self._end(entry, "withdraw", reason)

    def disqualify(self, entry: str | Entry, reason: str) -> Entry:
        """Disqualify an entry, for organisers; everybody who sees it reads the reason."""
        return self._end(entry, "disqualify", reason)

    def publish(self, entry: str | Entry) -> Entry:
        """Show an entry of a phase of kind afterwards to all who see the leaderboard; it stays so."""
        call = Call("PATCH", f"entries/{self._id(entry)}/", json={"published": True})
        return Entry(self._hub.send(call).json())

    def set_paper(self, entry: str | Entry, paper: str) -> Entry:
        """Link an entry to the paper about its run, by address or DOI; an empty text removes it."""
        call = Call("PATCH", f"entries/{self._id(entry)}/", json={"paper": paper})
        return Entry(self._hub.send(call).json())

    def leaderboard(self, *measures: Any, rows: int | None = None, **parameters: Any) -> PhaseBoard:
        """Return its leaderboard, all or the first `rows`.

        Parameters are `view` (official, all, late, afterwards), `run_type`, `role`, and those of a
        leaderboard: `sort`, `order`, `statistics`, ...
        """
        if measures:
            parameters = {"measures": list(measures), **parameters}
        body = self._hub.pages(f"{self.path}board/", parameters, rows)
        return PhaseBoard(body, f"{self._hub.url}/campaigns/{self.campaign}/")

    def releases(self) -> Releases:
        """Return its releases: for organisers all, for others those that were done for them."""
        return Releases(self._hub.pages(f"{self.path}releases/"))

    def release(self, audience: str, at: str | None = None, **fields: Any) -> Answer:
        """Plan a release to `teams`, `participants` or `public`, as an organiser.

        Without a time `at` it waits for `release_now`. Fields are `zone`, `qrels`, `with_run_files`
        and `note`.
        """
        body = {"audience": audience, "at": at, **fields}
        call = Call("POST", f"{self.path}releases/", json=body)
        return Answer(self._hub.send(call).json())

    def packet(self, team: str | None = None) -> bytes:
        """Return the results of the caller's team as a zip file, or for organisers those of a `team`."""
        query = f"?team={quote(team)}" if team else ""
        return self._hub.download(f"{self.path}packet/{query}")

    def packets(self) -> bytes:
        """Return the packets of all teams with entries in one zip file, for organisers."""
        return self._hub.download(f"{self.path}packets/")

    def entries_file(self) -> bytes:
        """Return the entries that the caller sees as CSV, with answers, parameters and times."""
        return self._hub.download(f"{self.path}entries/?format=csv")

    def topics(self, **parameters: Any) -> TopicStatistics:
        """Return the figures of its entries on each topic, for organisers; by `reference`."""
        return TopicStatistics(self._hub.read(f"{self.path}topics/", parameters))

    def results(self, team: str | None = None, **parameters: Any) -> Answer:
        """Return values of the caller's team, or for organisers a `team`, with the reference set."""
        parameters = {"team": team, **parameters}
        return Answer(self._hub.read(f"{self.path}results/", parameters))

    def _end(self, entry: str | Entry, action: str, reason: str) -> Entry:
        body = {"reason": reason} if reason else {}
        call = Call("POST", f"entries/{self._id(entry)}/{action}/", json=body)
        return Entry(self._hub.send(call).json())

    def _id(self, entry: str | Entry) -> str:
        """Return the id of an entry that is named by its tag or id, or as it was returned."""
        if isinstance(entry, Entry):
            return str(entry.raw["id"])
        if entry_id := run_id_in(entry):
            return entry_id

        rows = self.entries().raw["results"]
        for row in rows:
            if row["tag"] == entry:
                return str(row["id"])

        detail = f"phase {self.slug} has no entry {entry!r} of yours"
        missing = NotFound(404, {"code": "not_found", "detail": detail})
        raise missing.with_suggestion(entry, [row["tag"] for row in rows])


def _instant(text: str) -> datetime:
    # Python 3.10 does not read Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # noqa: FURB162


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _duration(time: timedelta) -> str:
    """Return a duration in its two largest units: 2 d 3 h, 14 min 5 s."""
    seconds = max(0, int(time.total_seconds()))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")

    return " ".join(parts[:2])
