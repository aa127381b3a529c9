"""The way to a server: `connect()` for programs that wait, `connect_async()` for those that await."""

from __future__ import annotations

import uuid
from typing import Any

import httpx

from .answers import Answer, Listed
from .collection import Collection
from .config import Config, read_config
from .runs import Run, find_run
from .sending import AsyncSender, Call, Sender, Steps, send
from .version import VERSION

# The server closes what was silent for five seconds; a request must not meet it on the way.
_LIMITS = httpx.Limits(keepalive_expiry=2)


class Hub:
    """A server with all that it is asked for. Nothing is sent before a method is called."""

    def __init__(
        self, config: Config, *, timeout: float = 30.0, retry_for: float = 300.0, transport: Any = None
    ) -> None:
        self.config, self.url, self.retry_for = config, config.url, retry_for
        self._options: dict[str, Any] = {
            "base_url": f"{config.url}/api/v1/",
            "headers": {"User-Agent": f"evalhub-client/{VERSION}", "Accept": "application/json"},
            "timeout": timeout, "limits": _LIMITS, "transport": transport, "follow_redirects": False,
        }  # fmt: skip
        if config.token:
            self._options["headers"]["Authorization"] = f"Bearer {config.token}"
        self._sender = self._made_sender()

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

    def me(self) -> Answer:
        """Return who the token belongs to: `username`, `teams`, `token`."""
        return self._run(self._answer("me/"))  # type: ignore[no-any-return]

    def version(self) -> Answer:
        """Return which EvalHub answers, and what its API has."""
        return self._run(self._answer("version/"))  # type: ignore[no-any-return]

    def teams(self) -> Listed:
        """Return the caller's teams."""
        return self._run(self._listed("teams/"))  # type: ignore[no-any-return]

    def measures(self, search: str = "") -> Answer:
        """Return the measures, or those in which words are found."""
        return self._run(self._answer("measures/", {"search": search} if search else {}))  # type: ignore[no-any-return]

    def collections(self) -> Listed:
        """Return the collections that the caller may see."""
        return self._run(self._listed("collections/"))  # type: ignore[no-any-return]

    def collection(self, slug: str | None = None) -> Collection:
        """Return a collection by its short name, or the configured one; nothing is asked for."""
        return Collection(self, slug or self.config.collection)

    def create_collection(self, slug: str, *, name: str = "", **fields: Any) -> Collection:
        """Make a collection: `team`, `visibility`, `blind`, `documents`, `measures`, ..."""
        return self._run(self._created({"slug": slug, "name": name or slug, **fields}))  # type: ignore[no-any-return]

    def run(self, name: str, collection: str | None = None) -> Run:
        """Return a run by its id or address, or by its tag in a collection."""
        return self._run(find_run(self, collection or self.config.collection, name))  # type: ignore[no-any-return]

    def request(
        self, method: str, path: str, *, params: Any = None, json: Any = None, key: str = "", **files: Any
    ) -> Any:
        """Send any request below `/api/v1/`, with the retries of all others; return the answer of httpx.

        A POST is sent again after a lost answer only where it has a `key` of its own.
        """
        return self._run(self._ask(Call(method.upper(), path.lstrip("/"), params or {}, json, files=files, key=key)))

    def _run(self, steps: Steps[Any]) -> Any:
        return self._sender.run(steps)

    def _ask(self, call: Call) -> Steps[httpx.Response]:
        return send(call, self.retry_for)

    def _json(self, path: str, params: dict[str, Any] | None = None) -> Steps[dict[str, Any]]:
        asked = {name: _text(value) for name, value in (params or {}).items() if value is not None}
        body: dict[str, Any] = (yield from self._ask(Call("GET", path, asked))).json()
        return body

    def _answer(self, path: str, params: dict[str, Any] | None = None) -> Steps[Answer]:
        return Answer((yield from self._json(path, params)))

    def _bytes(self, path: str) -> Steps[bytes]:
        return (yield from self._ask(Call("GET", path))).content

    def _listed(self, path: str) -> Steps[Listed]:
        return Listed((yield from self._pages(path, {"limit": 200})))

    def _pages(self, path: str, params: dict[str, Any], rows: int | None = None) -> Steps[dict[str, Any]]:
        """Return the first page of a list with the rows of all others, or with the first `rows`."""
        body = yield from self._json(path, params)
        page = body
        while page.get("next") and (rows is None or len(body["results"]) < rows):
            page = yield from self._json(path, {**params, "offset": len(body["results"])})
            if not page["results"]:
                break
            body["results"] += page["results"]
        body["results"] = body["results"][:rows]
        return body

    def _created(self, fields: dict[str, Any]) -> Steps[Collection]:
        yield from self._ask(Call("POST", "collections/", json=fields, key=uuid.uuid4().hex))
        return Collection(self, fields["slug"])


class AsyncHub(Hub):
    """The same names; what asks the server is awaited: `run = await hub.collection("c").submit(path)`."""

    def _made_sender(self) -> Any:
        return AsyncSender(lambda: httpx.AsyncClient(**self._options))

    async def __aenter__(self) -> AsyncHub:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sender.close()


def _text(value: Any) -> Any:
    """Return a parameter as an address has it: lists with commas, truth in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple | set) else value


def connect(url: str | None = None, token: str | None = None, *, profile: str | None = None, **options: Any) -> Hub:
    """Return the server of the configuration, or that of `url`; `timeout`, `retry_for` and `transport` are options."""
    return Hub(read_config(url=url, token=token, profile=profile), **options)


def connect_async(
    url: str | None = None, token: str | None = None, *, profile: str | None = None, **options: Any
) -> AsyncHub:
    """Return the same for programs that await."""
    return AsyncHub(read_config(url=url, token=token, profile=profile), **options)
