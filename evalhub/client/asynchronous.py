"""The same names for programs that await: what asks the server returns an awaitable.

Nothing is written twice: an operation is a generator, and these classes give it to a sender that awaits. Type checkers
and editors read their types in `asynchronous.pyi`.
"""

from __future__ import annotations

from typing import Any

import httpx

from .campaigns import Campaign
from .collection import Collection
from .config import read_config
from .experiments import Experiment
from .hub import Hub
from .phases import Phase
from .runs import Run
from .sending import AsyncSender
from .sessions import Sessions, SessionSet


class AsyncRun(Run):
    """A run whose methods are awaited."""


class AsyncExperiment(Experiment):
    """An experiment whose methods are awaited."""


class AsyncSessionSet(SessionSet):
    """A session set whose methods are awaited."""


class AsyncSessions(Sessions):
    """The session sets of a collection; what asks the server is awaited."""


class AsyncCollection(Collection):
    """A collection whose methods are awaited: `run = await collection.submit(path)`."""


class AsyncCampaign(Campaign):
    """A campaign whose methods are awaited; `campaign.phase("task")` asks for nothing and is not."""


class AsyncPhase(Phase):
    """A phase whose methods are awaited."""


class AsyncHub(Hub):
    """A server to be awaited: `await hub.me()`; `hub.collection("c")` asks for nothing and is not."""

    run_class, set_class = AsyncRun, AsyncSessionSet
    collection_class, sessions_class = AsyncCollection, AsyncSessions
    experiment_class = AsyncExperiment
    campaign_class, phase_class = AsyncCampaign, AsyncPhase

    def _made_sender(self) -> Any:
        return AsyncSender(lambda: httpx.AsyncClient(**self._options))

    async def __aenter__(self) -> AsyncHub:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sender.close()


def connect_async(
    url: str | None = None, token: str | None = None, *, profile: str | None = None, **options: Any
) -> AsyncHub:
    """Return the server of the configuration, or that of `url`, for programs that await."""
    return AsyncHub(read_config(url=url, token=token, profile=profile), **options)
