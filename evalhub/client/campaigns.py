"""A campaign: its description, its phases and agreements, and the teams that take part."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from .answers import Answer, Listed
from .errors import Ambiguous, NotFound
from .phases import Phase, PhaseInfo
from .sending import Call, Connection
from .sources import read_as_it_is

# The fewest characters of a digest that name an agreement.
_DIGITS = 8


class Phases(Listed):
    """The phases of a campaign, with what holds for the caller's team."""

    def rows(self) -> list[dict[str, Any]]:
        return [row for phase in self.raw["results"] for row in PhaseInfo(phase).rows()]


class ConfigChanges(Listed):
    """What a file changes: a row for each place in it, with `allowed` and `why` not."""


class Campaign:
    """A campaign by its short name; no request is sent before a method is called."""

    def __init__(self, hub: Connection, slug: str) -> None:
        self._hub, self.slug = hub, slug
        self.path = f"campaigns/{slug}/"

    def __repr__(self) -> str:
        return f"Campaign({self.slug})"

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"{self._hub.url}/{self.path}"

    def info(self) -> Answer:
        """Return its description, its phases in brief and the caller's team."""
        return Answer(self._hub.read(self.path))

    def change(self, **fields: Any) -> Answer:
        """Change fields as an organiser: `name`, `summary`, `guidelines`, `contact`, ..."""
        return Answer(self._hub.send(Call("PATCH", self.path, json=fields)).json())

    def publish(self) -> Answer:
        """Show a draft to everybody, for organisers."""
        return Answer(self._hub.send(Call("POST", f"{self.path}publish/")).json())

    def archive(self) -> Answer:
        """End it, for organisers: it stays readable."""
        return Answer(self._hub.send(Call("POST", f"{self.path}archive/")).json())

    def config(self, form: str = "yaml") -> bytes:
        """Return what its organisers set, as a file in `yaml` or `json`."""
        return self._hub.download(f"{self.path}config/?format={quote(form)}")

    def put_config(self, source: Any, *, dry_run: bool = False) -> ConfigChanges:
        """Apply a file, all or nothing, and return the changes; with `dry_run` change nothing.

        `source` is a path, bytes or an open file of YAML or JSON, or a dictionary. Without
        `dry_run`, raise Refused for a change that is not allowed; its `errors` have the place in
        the file.
        """
        path = f"{self.path}config/"
        params = {"dry_run": "true"} if dry_run else {}
        if isinstance(source, dict):
            call = Call("PUT", path, params, json=source)
        else:
            call = Call(
                "PUT",
                path,
                params,
                content=read_as_it_is(source, "config"),
                content_type="application/yaml",  # JSON is YAML, too
            )
        return ConfigChanges(self._hub.send(call).json(), "changes")

    def copy(
        self,
        slug: str,
        *,
        name: str = "",
        shift_days: int = 0,
        collections: dict[str, str] | None = None,
        **fields: Any,
    ) -> Campaign:
        """Create a draft with its configuration, forms and agreements, without people and runs.

        Its times move by `shift_days`. `collections` maps short names of collections to those that
        replace them; `fields` are those of a new campaign.
        """
        fields = {
            "slug": slug,
            "name": name or slug,
            "collections": collections or {},
            **fields,
        }
        params = {"from": self.slug, "shift_days": shift_days}
        return create_campaign(self._hub, fields, params)

    def phases(self) -> Phases:
        """Return its phases with their times, for the caller's team."""
        return Phases(self._hub.pages(f"{self.path}phases/"))

    def phase(self, slug: str) -> Phase:
        """Return a phase by its short name, without a request."""
        return Phase(self._hub, self.slug, slug)

    def create_phase(self, slug: str, **fields: Any) -> PhaseInfo:
        """Add a phase as an organiser: `name`, `collection`, `opens_at`, `closes_at`, `zone`, ..."""
        call = Call("POST", f"{self.path}phases/", json={"slug": slug, "name": slug, **fields})
        return PhaseInfo(self._hub.send(call).json())

    def agreements(self) -> Listed:
        """Return its agreements with their texts, and when the caller signed each."""
        return Listed(self._hub.pages(f"{self.path}agreements/"))

    def add_agreement(self, title: str, text: str, *, required_of: str = "each_member") -> Answer:
        """Add an agreement as an organiser; `each_member` or `one_owner` of each team signs it."""
        call = Call(
            "POST",
            f"{self.path}agreements/",
            json={"title": title, "text": text, "required_of": required_of},
        )
        return Answer(self._hub.send(call).json())

    def sign(self, agreement: str, typed_name: str) -> Answer:
        """Sign an agreement, by its SHA-256 or at least the first eight characters of it."""
        digests = [
            row["sha256"]
            for row in self.agreements().rows()
            if len(agreement) >= _DIGITS and row["sha256"].startswith(agreement)
        ]
        if len(digests) > 1:
            raise Ambiguous(f"several agreements begin with {agreement!r}; give more of the digest")

        if not digests:
            detail = (
                f"campaign {self.slug} has no agreement {agreement!r}; "
                "give at least 8 characters of its digest"
            )
            raise NotFound(404, {"code": "not_found", "detail": detail})

        path = f"{self.path}agreements/{digests[0]}/sign/"
        return Answer(self._hub.send(Call("POST", path, json={"typed_name": typed_name})).json())

    def teams(self) -> Listed:
        """Return the teams that take part: all for an organiser, else the caller's."""
        return Listed(self._hub.pages(f"{self.path}teams/"))

    def register(
        self,
        team: str | None = None,
        *,
        name: str = "",
        affiliation: str = "",
        agreements: Iterable[str] = (),
        typed_name: str = "",
    ) -> Answer:
        """Register a team that the caller owns, by default the configured or the personal one.

        `name` is how it is shown; `agreements` are the digests of those to sign under
        `typed_name`.
        """
        fields = {
            "team": team or self._hub.config.team,
            "name": name,
            "affiliation": affiliation,
            "agreements": list(agreements),
            "typed_name": typed_name,
        }
        body = {field: value for field, value in fields.items() if value}
        call = Call("POST", f"{self.path}teams/", json=body, key=uuid.uuid4().hex)
        return Answer(self._hub.send(call).json())

    def change_team(self, team: str, **fields: Any) -> Answer:
        """Change a team's `name` or `affiliation`, or its `state` with a `reason`.

        Organisers accept, decline and remove teams; owners withdraw theirs.
        """
        call = Call("PATCH", f"{self.path}teams/{team}/", json=fields)
        return Answer(self._hub.send(call).json())

    def decide_teams(
        self,
        teams: Iterable[str] = (),
        *,
        state: str,
        all_requested: bool = False,
        reason: str = "",
    ) -> Listed:
        """Accept, decline or remove many teams as an organiser: a row for each, with its state.

        They are named, or with `all_requested` those that wait. A row has a `code` and a `detail`
        if its team could not change; the others change. `removed` needs a `reason`.
        """
        names = list(teams)
        body: dict[str, Any] = {"state": state, "reason": reason}
        body |= {"all_requested": True} if all_requested and not names else {"teams": names}
        call = Call("PATCH", f"{self.path}teams/", json=body)
        return Listed(self._hub.send(call).json(), "decisions")

    def members(self, team: str) -> Listed:
        """Return the people who take part in a team."""
        return Listed(self._hub.pages(f"{self.path}teams/{team}/members/"))

    def join(self, team: str) -> Answer:
        """Take part in a team, as a member of it."""
        call = Call("POST", f"{self.path}teams/{team}/members/")
        return Answer(self._hub.send(call).json())

    def leave(self, team: str, username: str, *, reason: str = "") -> None:
        """Take a person out of a team: oneself, or as its owner or an organiser somebody else.

        Organisers give a `reason` once the team has entries.
        """
        params = {"reason": reason} if reason else {}
        self._hub.send(Call("DELETE", f"{self.path}teams/{team}/members/{username}/", params))

    def links(self) -> Listed:
        """Return the open invitation links of the campaign, newest first, for organisers."""
        return Listed(self._hub.pages(f"{self.path}links/"))

    def create_link(
        self, *, team_name: str = "", days: int = 7, max_uses: int | None = None
    ) -> Answer:
        """Make a link by which people take part, also without an account; its `url` is shown once.

        With `team_name` all who open it are in one team; otherwise each registers one.
        """
        body = {"team_name": team_name, "days": days, "max_uses": max_uses}
        return Answer(self._hub.send(Call("POST", f"{self.path}links/", json=body)).json())

    def revoke_link(self, key: str) -> None:
        """Revoke an invitation link of the campaign."""
        self._hub.send(Call("DELETE", f"{self.path}links/{quote(key, safe='')}/"))

    def snapshots(self) -> Listed:
        """Return the snapshots of its results that the caller sees, newest first."""
        return Listed(self._hub.pages(f"{self.path}snapshots/"))

    def make_snapshot(self, phase: str | None = None, *, label: str = "results") -> Answer:
        """Make a snapshot of the results of a phase, or of all, as an organiser.

        The same results are one snapshot.
        """
        body = {"phase": phase, "label": label}
        call = Call("POST", f"{self.path}snapshots/", json=body, key=uuid.uuid4().hex)
        return Answer(self._hub.send(call).json())

    def notices(self) -> Listed:
        """Return the notices of the organisers to the teams and to everybody, latest first."""
        return Listed(self._hub.pages(f"{self.path}notices/"))

    def notify(
        self, title: str, text: str, *, audience: str = "teams", teams: Iterable[str] = ()
    ) -> Answer:
        """Post a notice as an organiser; the teams that it is for get it by mail.

        The audience is `teams` (accepted ones), `public`, `without_entries`, `without_address` or
        `chosen`, with the short names of the `teams`.
        """
        body: dict[str, Any] = {"title": title, "text": text, "audience": audience}
        if names := list(teams):
            body |= {"audience": "chosen", "teams": names}

        call = Call("POST", f"{self.path}notices/", json=body)
        return Answer(self._hub.send(call).json())

    def outbox(self, rows: int | None = None) -> Listed:
        """Return its mails, latest first, for organisers: sent, waiting, and not sent."""
        return Listed(self._hub.pages(f"{self.path}outbox/", rows=rows))


def create_campaign(
    hub: Connection, fields: dict[str, Any], params: dict[str, Any] | None = None
) -> Campaign:
    """Create a draft of a campaign; `params` name the campaign that it copies."""
    fields = {"team": hub.config.team, **fields}
    body = {name: value for name, value in fields.items() if value not in ("", {})}
    hub.send(Call("POST", "campaigns/", params or {}, json=body, key=uuid.uuid4().hex))
    return Campaign(hub, fields["slug"])
