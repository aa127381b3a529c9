"""A campaign: what it says, its phases and agreements, and the teams that take part."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from .answers import Answer, Listed
from .errors import Ambiguous, NotFound
from .phases import Phase, PhaseInfo
from .sending import Call, Steps
from .sources import read_as_it_is

# The fewest characters of a digest that name an agreement.
_DIGITS = 8


class Phases(Listed):
    """The phases of a campaign, with what holds for the caller's team."""

    def rows(self) -> list[dict[str, Any]]:
        return [row for one in self.raw["results"] for row in PhaseInfo(one).rows()]


class ConfigChanges(Listed):
    """What a file changes: a row for each place in it, with `allowed` and `why` not."""


class Campaign:
    """A campaign by its short name; nothing is asked for before a method is called."""

    def __init__(self, hub: Any, slug: str) -> None:
        self._hub, self.slug = hub, slug
        self.path = f"campaigns/{slug}/"

    def __repr__(self) -> str:
        return f"Campaign({self.slug})"

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/{self.path}"

    def info(self) -> Answer:
        """Return what it says, its phases in brief and the caller's team."""
        return self._hub._run(self._hub._answer(self.path))  # type: ignore[no-any-return]

    def change(self, **fields: Any) -> Answer:
        """Change it, for organisers: `name`, `summary`, `guidelines`, `contact`, `registration`, ..."""
        return self._hub._run(self._hub._told(Call("PATCH", self.path, json=fields)))  # type: ignore[no-any-return]

    def publish(self) -> Answer:
        """Show a draft to everybody, for organisers."""
        return self._hub._run(self._hub._told(Call("POST", f"{self.path}publish/")))  # type: ignore[no-any-return]

    def archive(self) -> Answer:
        """End it, for organisers: it stays readable."""
        return self._hub._run(self._hub._told(Call("POST", f"{self.path}archive/")))  # type: ignore[no-any-return]

    def config(self, form: str = "yaml") -> bytes:
        """Return what its organisers set, as a file in `yaml` or `json`."""
        return self._hub._run(self._hub._bytes(f"{self.path}config/?format={quote(form)}"))  # type: ignore[no-any-return]

    def put_config(self, source: Any, *, dry_run: bool = False) -> ConfigChanges:
        """Make it what a file says, all or nothing; return the changes, with `dry_run` those that there would be.

        `source` is a path, bytes or an open file of YAML or JSON, or a dictionary. Without `dry_run` a change
        that is not allowed is a Refused, whose `errors` have its place in the file.
        """
        return self._hub._run(self._configured(source, dry_run))  # type: ignore[no-any-return]

    def copy(
        self,
        slug: str,
        *,
        name: str = "",
        shift_days: int = 0,
        collections: dict[str, str] | None = None,
        **fields: Any,
    ) -> Campaign:
        """Make a draft with its configuration, forms and agreements, its times moved by so many days, without people
        and runs. `collections` has by short name those that take the place of others; `fields` are as of a new one."""
        sent = {"slug": slug, "name": name or slug, "collections": collections or {}, **fields}
        asked = {"from": self.slug, "shift_days": shift_days}
        return self._hub._run(self._hub._made_campaign(sent, asked))  # type: ignore[no-any-return]

    def phases(self) -> Phases:
        """Return its phases with their times, for the caller's team."""
        return self._hub._run(self._phases())  # type: ignore[no-any-return]

    def phase(self, slug: str) -> Phase:
        """Return a phase by its short name; nothing is asked for."""
        return self._hub.phase_class(self._hub, self.slug, slug)  # type: ignore[no-any-return]

    def create_phase(self, slug: str, **fields: Any) -> PhaseInfo:
        """Add a phase, for organisers: `name`, `collection`, `opens_at`, `closes_at`, `zone`, `slots`, `form`, ..."""
        call = Call("POST", f"{self.path}phases/", json={"slug": slug, "name": slug, **fields})
        return self._hub._run(self._made_phase(call))  # type: ignore[no-any-return]

    def agreements(self) -> Listed:
        """Return its agreements with their texts, and when the caller signed each."""
        return self._hub._run(self._hub._listed(f"{self.path}agreements/"))  # type: ignore[no-any-return]

    def add_agreement(self, title: str, text: str, *, required_of: str = "each_member") -> Answer:
        """Add an agreement, for organisers: it is signed by `each_member`, or by `one_owner` of each team."""
        call = Call(
            "POST",
            f"{self.path}agreements/",
            json={"title": title, "text": text, "required_of": required_of},
        )
        return self._hub._run(self._hub._told(call))  # type: ignore[no-any-return]

    def sign(self, agreement: str, typed_name: str) -> Answer:
        """Sign an agreement, given by its SHA-256 or the first eight characters of it."""
        return self._hub._run(self._signed(agreement, typed_name))  # type: ignore[no-any-return]

    def teams(self) -> Listed:
        """Return the teams that take part: the caller's, of an organiser all."""
        return self._hub._run(self._hub._listed(f"{self.path}teams/"))  # type: ignore[no-any-return]

    def register(
        self,
        team: str | None = None,
        *,
        name: str = "",
        affiliation: str = "",
        agreements: Iterable[str] = (),
        typed_name: str = "",
    ) -> Answer:
        """Register a team that the caller owns, by default the configured one or that of the caller alone.

        `name` is how it is shown; `agreements` are the digests of those that are signed with it, under `typed_name`.
        """
        sent = {"team": team or self._hub.config.team, "name": name, "affiliation": affiliation}
        sent |= {"agreements": list(agreements), "typed_name": typed_name}
        kept = {field: value for field, value in sent.items() if value}
        call = Call("POST", f"{self.path}teams/", json=kept, key=uuid.uuid4().hex)
        return self._hub._run(self._hub._told(call))  # type: ignore[no-any-return]

    def change_team(self, team: str, **fields: Any) -> Answer:
        """Change a team's `name` or `affiliation`, or its `state` with a `reason`: organisers accept, decline and
        remove teams, owners withdraw theirs."""
        call = Call("PATCH", f"{self.path}teams/{team}/", json=fields)
        return self._hub._run(self._hub._told(call))  # type: ignore[no-any-return]

    def members(self, team: str) -> Listed:
        """Return the people who take part in a team."""
        return self._hub._run(self._hub._listed(f"{self.path}teams/{team}/members/"))  # type: ignore[no-any-return]

    def join(self, team: str) -> Answer:
        """Take part in a team of which the caller is a member."""
        call = Call("POST", f"{self.path}teams/{team}/members/")
        return self._hub._run(self._hub._told(call))  # type: ignore[no-any-return]

    def leave(self, team: str, username: str, *, reason: str = "") -> None:
        """Take a person out of a team: oneself, or as its owner or an organiser somebody else. Organisers give a
        `reason` once the team has entries."""
        return self._hub._run(self._left(team, username, reason))  # type: ignore[no-any-return]

    def snapshots(self) -> Listed:
        """Return the snapshots of its results that the caller sees, newest first."""
        return self._hub._run(self._hub._listed(f"{self.path}snapshots/"))  # type: ignore[no-any-return]

    def make_snapshot(self, phase: str | None = None, *, label: str = "results") -> Answer:
        """Make a snapshot of the results of a phase, or of all, for organisers; the same results are one snapshot."""
        sent = {"phase": phase, "label": label}
        call = Call("POST", f"{self.path}snapshots/", json=sent, key=uuid.uuid4().hex)
        return self._hub._run(self._hub._told(call))  # type: ignore[no-any-return]

    def notices(self) -> Listed:
        """Return what the organisers told the teams and everybody, latest first."""
        return self._hub._run(self._hub._listed(f"{self.path}notices/"))  # type: ignore[no-any-return]

    def notify(self, title: str, text: str, *, audience: str = "teams") -> Answer:
        """Post a notice to `teams` or `public`, for organisers; the accepted teams get it by mail."""
        call = Call(
            "POST",
            f"{self.path}notices/",
            json={"title": title, "text": text, "audience": audience},
        )
        return self._hub._run(self._hub._told(call))  # type: ignore[no-any-return]

    def outbox(self, rows: int | None = None) -> Listed:
        """Return its mails, latest first, for organisers: what was sent, waits, or would have been sent."""
        return self._hub._run(self._outbox(rows))  # type: ignore[no-any-return]

    def _outbox(self, rows: int | None) -> Steps[Listed]:
        return Listed(
            (
                yield from self._hub._pages(
                    f"{self.path}outbox/", {"limit": min(rows or 200, 200)}, rows
                )
            )
        )

    def _phases(self) -> Steps[Phases]:
        return Phases((yield from self._hub._pages(f"{self.path}phases/", {"limit": 200})))

    def _configured(self, given: Any, dry_run: bool) -> Steps[ConfigChanges]:
        path, params = f"{self.path}config/", {"dry_run": "true"} if dry_run else {}
        if isinstance(given, dict):
            call = Call("PUT", path, params, json=given)
        else:
            # JSON is YAML, too.
            call = Call(
                "PUT",
                path,
                params,
                content=read_as_it_is(given, "config"),
                content_type="application/yaml",
            )
        return ConfigChanges((yield from self._hub._ask(call)).json(), "changes")

    def _made_phase(self, call: Call) -> Steps[PhaseInfo]:
        return PhaseInfo((yield from self._hub._ask(call)).json())

    def _left(self, team: str, username: str, reason: str) -> Steps[None]:
        query = {"reason": reason} if reason else {}
        yield from self._hub._ask(
            Call("DELETE", f"{self.path}teams/{team}/members/{username}/", query)
        )

    def _signed(self, agreement: str, typed_name: str) -> Steps[Answer]:
        listed = (yield from self._hub._listed(f"{self.path}agreements/")).rows()
        found = [
            one["sha256"]
            for one in listed
            if len(agreement) >= _DIGITS and one["sha256"].startswith(agreement)
        ]
        if len(found) > 1:
            raise Ambiguous(f"several agreements begin with {agreement!r}; give more of the digest")
        if not found:
            detail = f"campaign {self.slug} has no agreement {agreement!r}; give at least 8 characters of its digest"
            raise NotFound(404, {"code": "not_found", "detail": detail})
        call = Call(
            "POST", f"{self.path}agreements/{found[0]}/sign/", json={"typed_name": typed_name}
        )
        return (yield from self._hub._told(call))  # type: ignore[no-any-return]
