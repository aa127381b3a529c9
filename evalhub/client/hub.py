"""The way to a server: `connect()`. Programs that await have `connect_async()` of `asynchronous.py`."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable
from typing import Any

import httpx

from .answers import Answer, Listed
from .campaigns import Campaign
from .collection import Collection
from .config import Config, read_config
from .display import Chart, check_form
from .errors import Ambiguous, NotFound
from .experiments import Experiment, create_experiment, find_experiment
from .phases import Phase
from .runs import Run, find_run
from .sending import Call, Sender, Steps, Watcher, parameters_of, send
from .sessions import Sessions, SessionSet
from .sources import read_file
from .version import VERSION

_log = logging.getLogger("evalhub_client")

# The server closes what was silent for five seconds; a request must not meet it on the way.
_LIMITS = httpx.Limits(keepalive_expiry=2)


class Hub:
    """A server with all that it is asked for. Nothing is sent before a method is called."""

    # What answers are made into.
    run_class, set_class = Run, SessionSet
    collection_class, sessions_class = Collection, Sessions
    experiment_class = Experiment
    campaign_class, phase_class = Campaign, Phase

    def __init__(
        self,
        config: Config,
        *,
        timeout: float = 30.0,
        retry_for: float = 300.0,
        transport: Any = None,
    ) -> None:
        self.config, self.url, self.retry_for = config, config.url, retry_for
        self._options: dict[str, Any] = {
            "base_url": f"{config.url}/api/v1/",
            "headers": {
                "User-Agent": f"evalhub-client/{VERSION}", "X-Evalhub-Client": VERSION, "Accept": "application/json",
            },
            "timeout": timeout, "limits": _LIMITS, "transport": transport, "follow_redirects": False,
        }  # fmt: skip
        if config.token:
            self._options["headers"]["Authorization"] = f"Bearer {config.token}"
        self._sender = self._made_sender()
        self._warned = False

    def _made_sender(self) -> Any:
        return Sender(lambda: httpx.Client(**self._options))

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url})"

    def close(self) -> Any:
        return self._sender.close()

    def watch(self, watcher: Watcher | None) -> None:
        """Tell somebody of the files that are sent from now on."""
        self._sender.watcher = watcher

    def me(self) -> Answer:
        """Return who the token belongs to: `username`, `teams`, `token`."""
        return self._run(self._answer("me/"))  # type: ignore[no-any-return]

    def version(self) -> Answer:
        """Return which EvalHub answers, and what its API has."""
        return self._run(self._answer("version/"))  # type: ignore[no-any-return]

    def teams(self) -> Listed:
        """Return the caller's teams."""
        return self._run(self._listed("teams/"))  # type: ignore[no-any-return]

    def systems(self, **filters: Any) -> Listed:
        """Return the systems of the caller's teams, and those of which the caller sees a run: `team`, `collection`."""
        return self._run(self._systems(filters))  # type: ignore[no-any-return]

    def system(self, slug: str, *, team: str | None = None, **parameters: Any) -> Answer:
        """Return a system, of `team`, the configured team or your own, with its versions: `collection`."""
        return self._run(self._system(slug, team, parameters))  # type: ignore[no-any-return]

    def measures(self, search: str = "") -> Answer:
        """Return the measures, or those in which words are found."""
        return self._run(self._answer("measures/", {"search": search} if search else {}))  # type: ignore[no-any-return]

    def collections(self) -> Listed:
        """Return the collections that the caller may see."""
        return self._run(self._listed("collections/"))  # type: ignore[no-any-return]

    def collection(self, slug: str | None = None) -> Collection:
        """Return a collection by its short name, or the configured one; nothing is asked for.

        Ambiguous where neither is there.
        """
        named = slug or self.config.collection
        if not named:
            raise Ambiguous(
                "no collection is named, and none is configured; name one, or set EVH_COLLECTION"
            )
        return self.collection_class(self, named)

    def create_collection(self, slug: str, *, name: str = "", **fields: Any) -> Collection:
        """Make a collection: `team`, `visibility`, `blind`, `documents`, `measures`, ..."""
        if "measures" in fields:
            fields["measures"] = [str(measure) for measure in fields["measures"]]
        return self._run(self._created({"slug": slug, "name": name or slug, **fields}))  # type: ignore[no-any-return]

    def run(self, name: str, collection: str | None = None) -> Run:
        """Return a run by its id or address, or by its tag in a collection."""
        return self._run(find_run(self, collection or self.config.collection, name))  # type: ignore[no-any-return]

    def experiments(self, **filters: Any) -> Listed:
        """Return the experiments that you see: `team`, `slug`, `collection`, `run`, `visibility`."""
        return self._run(self._experiments(filters))  # type: ignore[no-any-return]

    def experiment(self, name: str) -> Experiment:
        """Return an experiment with its runs by its id, `slug` or `team/slug`."""
        return self._run(find_experiment(self, name))  # type: ignore[no-any-return]

    def create_experiment(
        self, slug: str, *, runs: Iterable[str | Run] = (), **fields: Any
    ) -> Experiment:
        """Make an experiment of runs: `name`, `goal`, `team`, `visibility`."""
        return self._run(create_experiment(self, {"slug": slug, **fields}, runs))  # type: ignore[no-any-return]

    def campaigns(self) -> Listed:
        """Return the campaigns that the caller sees, newest first."""
        return self._run(self._listed("campaigns/"))  # type: ignore[no-any-return]

    def campaign(self, slug: str) -> Campaign:
        """Return a campaign by its short name; nothing is asked for."""
        return self.campaign_class(self, slug)

    def snapshot(self, code: str) -> Answer:
        """Return a snapshot with its manifest, by 20 digits or more of its SHA-256."""
        return self._run(self._answer(f"snapshots/{code}/"))  # type: ignore[no-any-return]

    def snapshot_archive(self, code: str) -> bytes:
        """Return the archive of a snapshot that the caller sees, which `evalhub verify-snapshot` checks."""
        return self._run(self._bytes(f"snapshots/{code}/archive/"))  # type: ignore[no-any-return]

    def release_now(self, release: str, *, force: bool = False, reason: str = "") -> Answer:
        """Do a planned release of a phase at once, for good, for organisers; with `force` and a `reason` it does not
        wait for evaluations."""
        call = Call("POST", f"releases/{release}/now/", json={"force": force, "reason": reason})
        return self._run(self._told(call))  # type: ignore[no-any-return]

    def cancel_release(self, release: str) -> None:
        """Cancel a planned release of a phase, for organisers."""
        return self._run(self._cancelled(release))  # type: ignore[no-any-return]

    def create_campaign(self, slug: str, *, name: str = "", **fields: Any) -> Campaign:
        """Make a draft of a campaign: `team`, `summary`, `guidelines`, `registration`, `contact`, ..."""
        return self._run(self._made_campaign({"slug": slug, "name": name or slug, **fields}))  # type: ignore[no-any-return]

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
        """Send any request below `/api/v1/`, with the retries of all others; return the answer of httpx.

        The body is `json`, or a form of `fields` and `files` (paths, bytes or open files). A POST is sent again after a
        lost answer only where it has a `key` of its own.
        """
        address, mark, query = path.lstrip("/").partition("?")
        # Every address ends with a slash, but for those of charts; a request without it is redirected.
        if not address.endswith("/") and "." not in address.rpartition("/")[2]:
            address += "/"
        sources = {name: read_file(file) for name, file in (files or {}).items()}
        call = Call(
            method.upper(), address + mark + query, params or {}, json, fields or {}, sources, key
        )
        return self._run(self._ask(call))  # type: ignore[no-any-return]

    def _run(self, steps: Steps[Any]) -> Any:
        return self._sender.run(steps)

    def _ask(self, call: Call) -> Steps[httpx.Response]:
        try:
            return (yield from send(call, self.retry_for, self._heard))
        except NotFound as error:
            # Of the collections that the caller sees, the name that was meant.
            if error.detail.startswith("there is no collection"):
                slugs = [
                    row["slug"]
                    for row in (yield from self._pages("collections/", {"limit": 200}))["results"]
                ]
                raise error.meant(call.path.split("/")[1], slugs) from None
            raise

    def _heard(self, response: httpx.Response, seconds: float) -> None:
        """Log an answer, and say once where the server serves this client no more."""
        request, told_id = response.request, response.headers.get("X-Request-ID")
        told = (request.method, request.url, response.status_code, 1000 * seconds, told_id)
        _log.info("%s %s %s %.0f ms, request %s", *told)
        least = response.headers.get("X-Evalhub-Least-Client", "")
        if not self._warned and _numbers(least) > _numbers(VERSION):
            self._warned = True
            _log.warning(
                "the server at %s serves evalhub-client %s and newer; this is %s",
                self.url,
                least,
                VERSION,
            )

    def _json(self, path: str, params: dict[str, Any] | None = None) -> Steps[dict[str, Any]]:
        body: dict[str, Any] = (
            yield from self._ask(Call("GET", path, parameters_of(params or {})))
        ).json()
        return body

    def _answer(self, path: str, params: dict[str, Any] | None = None) -> Steps[Answer]:
        return Answer((yield from self._json(path, params)))

    def _told(self, call: Call) -> Steps[Answer]:
        return Answer((yield from self._ask(call)).json())

    def _chart(self, path: str, name: str, form: str, parameters: dict[str, Any]) -> Steps[Chart]:
        call = Call("GET", f"{path}{name}.{check_form(form)}", parameters_of(parameters))
        return Chart((yield from self._ask(call)).content, form, f"{path}{name}")

    def _drawn(self, path: str, name: str, form: str = "svg", **parameters: Any) -> Any:
        return self._run(self._chart(path, name, form, parameters))

    def _bytes(self, path: str) -> Steps[bytes]:
        return (yield from self._ask(Call("GET", path))).content

    def _listed(self, path: str) -> Steps[Listed]:
        return Listed((yield from self._pages(path, {"limit": 200})))

    def _experiments(self, filters: dict[str, Any]) -> Steps[Listed]:
        return Listed((yield from self._pages("experiments/", {"limit": 200, **filters})))

    def _pages(
        self, path: str, params: dict[str, Any], rows: int | None = None, of: str = "results"
    ) -> Steps[dict[str, Any]]:
        """Return the first page of a list with the rows of all others, or with the first `rows`."""
        body = yield from self._json(path, params)
        page = body
        while page.get("next") and (rows is None or len(body[of]) < rows):
            page = yield from self._json(path, {**params, "offset": len(body[of])})
            if not page[of]:
                break
            body[of] += page[of]
        body[of] = body[of][:rows]
        return body

    def _systems(self, filters: dict[str, Any]) -> Steps[Listed]:
        return Listed((yield from self._pages("systems/", {"limit": 200, **filters})))

    def _system(self, slug: str, team: str | None, parameters: dict[str, Any]) -> Steps[Answer]:
        of = team or self.config.team
        if not of:
            found = [
                one["team"]
                for one in (yield from self._pages("systems/", {"slug": slug, "limit": 200}))[
                    "results"
                ]
            ]
            own = {one["slug"] for one in (yield from self._json("me/"))["teams"]}
            named = [one for one in found if one in own] or found
            if len(named) > 1:
                raise Ambiguous(
                    f"teams {', '.join(named)} have a system {slug!r}; name one with team="
                )
            if not named:
                raise NotFound(404, {"code": "not_found", "detail": f"there is no system {slug!r}"})
            of = named[0]
        return (yield from self._answer(f"systems/{of}/{slug}/", parameters))

    def _created(self, fields: dict[str, Any]) -> Steps[Collection]:
        yield from self._ask(Call("POST", "collections/", json=fields, key=uuid.uuid4().hex))
        return self.collection_class(self, fields["slug"])

    def _cancelled(self, release: str) -> Steps[None]:
        yield from self._ask(Call("DELETE", f"releases/{release}/"))

    def _made_campaign(
        self, fields: dict[str, Any], asked: dict[str, Any] | None = None
    ) -> Steps[Campaign]:
        sent = {"team": self.config.team, **fields}
        kept = {name: value for name, value in sent.items() if value not in ("", {})}
        yield from self._ask(
            Call("POST", "campaigns/", asked or {}, json=kept, key=uuid.uuid4().hex)
        )
        return self.campaign_class(self, fields["slug"])


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version, to be compared; [] for what is none."""
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


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

    `timeout` is in seconds and for each answer; what fails for a moment is sent again for at most `retry_for` seconds.
    """
    config = read_config(url=url, token=token, profile=profile)
    return Hub(config, timeout=timeout, retry_for=retry_for, transport=transport)
