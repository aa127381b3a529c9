"""Connect to a server with `connect()`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import httpx

from .answers import Answer, Listed
from .campaigns import Campaign, create_campaign
from .collection import Collection
from .config import read_config
from .errors import Ambiguous, NotFound
from .experiments import Experiment, find_experiment, ids_of
from .pools import Pool, Pools, pools_of
from .runs import Run, find_run
from .sending import Call, Connection
from .sources import read_file
from .suites import Suite


class Hub(Connection):
    """A server with its collections, runs and campaigns. Nothing is sent before a method is called."""

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def me(self) -> Answer:
        """Return who the token belongs to: `username`, `teams`, `token`."""
        return Answer(self.read("me/"))

    def version(self) -> Answer:
        """Return the version of the server, and what its API has."""
        return Answer(self.read("version/"))

    def teams(self) -> Listed:
        """Return the caller's teams."""
        return Listed(self.pages("teams/"))

    def systems(self, **filters: Any) -> Listed:
        """Return the systems of the caller's teams, and others with a run that the caller sees.

        Filters are `team` and `collection`.
        """
        return Listed(self.pages("systems/", filters))

    def system(self, slug: str, *, team: str | None = None, **parameters: Any) -> Answer:
        """Return a system with its versions, those in a `collection` for instance.

        The system is that of `team`, of the configured team, of one of the caller's teams, or of the
        only team that has it.
        """
        team = team or self.config.team
        if not team:
            teams = [row["team"] for row in self.pages("systems/", {"slug": slug})["results"]]
            own = {row["slug"] for row in self.read("me/")["teams"]}
            # A system of one's own team goes before those of others with the same name.
            teams = [name for name in teams if name in own] or teams

            if len(teams) > 1:
                raise Ambiguous(
                    f"teams {', '.join(teams)} have a system {slug!r}; name one with team="
                )

            if not teams:
                raise NotFound(404, {"code": "not_found", "detail": f"there is no system {slug!r}"})

            team = teams[0]

        return Answer(self.read(f"systems/{team}/{slug}/", parameters))

    def measures(self, search: str = "") -> Answer:
        """Return the measures, or those that match words."""
        return Answer(self.read("measures/", {"search": search} if search else {}))

    def collections(self) -> Listed:
        """Return the collections that the caller may see."""
        return Listed(self.pages("collections/"))

    def collection(self, slug: str | None = None) -> Collection:
        """Return a collection by its short name, or the configured one; nothing is sent.

        Raise Ambiguous if there is neither.
        """
        slug = slug or self.config.collection
        if not slug:
            raise Ambiguous(
                "no collection is named, and none is configured; name one, or set EVH_COLLECTION"
            )
        return Collection(self, slug)

    def create_collection(self, slug: str, *, name: str = "", **fields: Any) -> Collection:
        """Create a collection: `team`, `visibility`, `blind`, `documents`, `measures`, ..."""
        if "measures" in fields:
            fields["measures"] = [str(measure) for measure in fields["measures"]]
        body = {"slug": slug, "name": name or slug, **fields}
        self.send(Call("POST", "collections/", json=body, key=uuid.uuid4().hex))

        return Collection(self, slug)

    def run(self, name: str, collection: str | None = None) -> Run:
        """Return a run by its id or address, or by its tag in a collection."""
        return find_run(self, collection or self.config.collection, name)

    def experiments(self, **filters: Any) -> Listed:
        """Return the experiments that you see: `team`, `slug`, `collection`, `run`, `visibility`."""
        return Listed(self.pages("experiments/", filters))

    def experiment(self, name: str) -> Experiment:
        """Return an experiment with its runs by its id, `slug` or `team/slug`."""
        return find_experiment(self, name)

    def create_experiment(
        self, slug: str, *, runs: Iterable[str | Run] = (), **fields: Any
    ) -> Experiment:
        """Create an experiment of runs: `name`, `goal`, `team`, `visibility`."""
        fields = {"team": self.config.team, "slug": slug, **fields, "runs": ids_of(self, runs)}
        body = {name: value for name, value in fields.items() if value}
        response = self.send(Call("POST", "experiments/", json=body, key=uuid.uuid4().hex))

        return Experiment(self, response.json())

    def campaigns(self) -> Listed:
        """Return the campaigns that the caller sees, newest first."""
        return Listed(self.pages("campaigns/"))

    def campaign(self, slug: str) -> Campaign:
        """Return a campaign by its short name; nothing is sent."""
        return Campaign(self, slug)

    def pool(self, pool: str) -> Pool:
        """Return a pool by its id; nothing is sent."""
        return Pool(self, pool)

    def suite(self, slug: str) -> Suite:
        """Return a suite by its short name; nothing is sent."""
        return Suite(self, slug)

    def pools(self, place: str) -> Pools:
        """Return the pools of a collection, or of a phase as CAMPAIGN/PHASE; nothing is sent."""
        return pools_of(self, place)

    def snapshot(self, code: str) -> Answer:
        """Return a snapshot with its manifest, by 20 digits or more of its SHA-256."""
        return Answer(self.read(f"snapshots/{code}/"))

    def snapshot_archive(self, code: str) -> bytes:
        """Return the archive of a snapshot, which `evalhub verify-snapshot` checks."""
        return self.download(f"snapshots/{code}/archive/")

    def release_now(self, release: str, *, force: bool = False, reason: str = "") -> Answer:
        """Do a planned release of a phase at once and for good, as an organiser.

        With `force` and a `reason` it does not wait for evaluations.
        """
        body = {"force": force, "reason": reason}
        return Answer(self.send(Call("POST", f"releases/{release}/now/", json=body)).json())

    def cancel_release(self, release: str) -> None:
        """Cancel a planned release of a phase, for organisers."""
        self.send(Call("DELETE", f"releases/{release}/"))

    def create_campaign(self, slug: str, *, name: str = "", **fields: Any) -> Campaign:
        """Create a draft of a campaign.

        Fields are `team`, `summary`, `guidelines`, `registration`, `contact`, ...
        """
        return create_campaign(self, {"slug": slug, "name": name or slug, **fields})

    def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: Any = None,
        fields: dict[str, str] | None = None,
        files: dict[str, Any] | None = None,
        key: str = "",
    ) -> httpx.Response:
        """Send any request below `/api/v1/`, with the usual retries, and return the httpx response.

        The body is `json`, or a form of `fields` and `files` (paths, bytes or open files). A POST
        is sent again after a lost answer only where it has a `key` of its own.
        """
        address, mark, query = path.lstrip("/").partition("?")
        # Every address but those of charts ends with a slash; a request without it is redirected.
        if not address.endswith("/") and "." not in address.rpartition("/")[2]:
            address += "/"

        sources = {name: read_file(file) for name, file in (files or {}).items()}
        return self.send(
            Call(
                method.upper(),
                address + mark + query,
                params=params or {},
                json=json,
                fields=fields or {},
                files=sources,
                key=key,
            )
        )


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    profile: str | None = None,
    timeout: float = 30.0,
    retry_for: float = 300.0,
    transport: httpx.BaseTransport | None = None,
) -> Hub:
    """Return the server of the configuration, or that of `url`.

    `timeout` is in seconds and for each answer; what fails for a moment is sent again for at most
    `retry_for` seconds.
    """
    config = read_config(url=url, token=token, profile=profile)
    return Hub(config, timeout=timeout, retry_for=retry_for, transport=transport)
