"""The types of the classes that await: those of the others, with an awaitable in place of each answer."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, overload

import httpx

from .answers import (
    Answer,
    Board,
    Check,
    Comparison,
    Coverage,
    Curves,
    Difference,
    Listed,
    Means,
    SessionBoard,
    SessionValues,
    Values,
)
from .batches import Batch
from .config import Config
from .display import Chart
from .metadata import Metadata
from .rules import Rule
from .sending import Watcher
from .verdicts import Verdict

class AsyncSubmission(Answer):
    def __init__(self, hub: AsyncHub, raw: dict[str, Any]) -> None: ...
    @property
    def state(self) -> str: ...
    @property
    def page(self) -> str: ...
    async def file(self) -> bytes: ...
    async def withdraw(self) -> None: ...
    async def delete(self) -> None: ...

class AsyncRun(AsyncSubmission):
    async def refresh(self) -> AsyncRun: ...
    async def wait(self, timeout: float = 600.0) -> AsyncRun: ...
    async def means(self, *measures: Any) -> Means: ...
    async def values(self, *measures: Any) -> Values: ...
    async def coverage(self, *measures: Any) -> Coverage: ...
    async def ranking(self, topic: str, **parameters: Any) -> Listed: ...
    async def curve(self, *measures: Any, **parameters: Any) -> Curves: ...
    async def chart(self, name: str = "curve", form: str = "svg", **parameters: Any) -> Chart: ...
    async def known(self) -> bytes: ...
    async def attach(self, source: Any, name: str | None = None) -> Answer: ...
    async def artifacts(self) -> Listed: ...
    async def artifact(self, name: str) -> bytes: ...
    async def withdraw(self, *, drop_labels: bool = False) -> None: ...
    async def delete(self, *, drop_labels: bool = False) -> None: ...

class AsyncSessionSet(AsyncSubmission):
    async def refresh(self) -> AsyncSessionSet: ...
    async def wait(self, timeout: float = 600.0) -> AsyncSessionSet: ...
    async def values(self, *measures: str, **selection: Any) -> SessionValues: ...

class AsyncSessions:
    slug: str
    path: str
    def __init__(self, hub: AsyncHub, slug: str) -> None: ...
    @overload
    async def submit(
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
    ) -> AsyncSessionSet: ...
    @overload
    async def submit(
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
    async def all(self, **filters: Any) -> list[AsyncSessionSet]: ...
    async def get(self, name: str) -> AsyncSessionSet: ...
    async def values(self, name: str, *measures: str, **selection: Any) -> SessionValues: ...
    async def leaderboard(self, *measures: str, rows: int | None = None, **parameters: Any) -> SessionBoard: ...

class AsyncQrels:
    version: int
    async def info(self) -> Answer: ...
    async def file(self) -> bytes: ...
    async def activate(self) -> Answer: ...

class AsyncCollection:
    slug: str
    path: str
    sessions: AsyncSessions
    def __init__(self, hub: AsyncHub, slug: str) -> None: ...
    @property
    def page(self) -> str: ...
    async def info(self) -> Answer: ...
    @overload
    async def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        known: Any = None,
        dry_run: Literal[False] = False,
        key: str | None = None,
        if_taken: str = "fail",
        wait_for_quota: bool = False,
        drop_identical: bool = False,
    ) -> AsyncRun: ...
    @overload
    async def submit(
        self,
        source: Any,
        *,
        tag: str | None = None,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        known: Any = None,
        dry_run: Literal[True],
        key: str | None = None,
        if_taken: str = "fail",
        wait_for_quota: bool = False,
        drop_identical: bool = False,
    ) -> Check: ...
    async def submit_all(
        self,
        sources: str | Path | Iterable[str | Path],
        *,
        team: str | None = None,
        description: str = "",
        metadata: Metadata = None,
        if_taken: str = "fail",
        parallel: int = 4,
        journal: str | Path | None = ".evh-journal.jsonl",
        timeout: float = 3600.0,
        stop: bool = False,
        wait_for_quota: bool = False,
    ) -> Batch[AsyncRun]: ...
    async def run(self, name: str, team: str | None = None) -> AsyncRun: ...
    async def runs(self, **filters: Any) -> list[AsyncRun]: ...
    async def leaderboard(self, *measures: Any, rows: int | None = None, **parameters: Any) -> Board: ...
    async def compare(self, *runs: str | AsyncRun, timeout: float = 600.0, **parameters: Any) -> Comparison: ...
    async def gate(
        self,
        run: str | AsyncRun,
        baseline: str | AsyncRun | None,
        rules: str | Rule | Iterable[str | Rule],
        *,
        test: str = "paired_t",
        alpha: float = 0.05,
        timeout: float = 600.0,
        no_baseline: str = "fail",
    ) -> Verdict: ...
    async def labels(self, **filters: Any) -> Listed: ...
    async def label(self, name: str, run: str | AsyncRun, *, expected: str | None = ..., note: str = "") -> Answer: ...
    async def unlabel(self, name: str, team: str | None = None) -> None: ...
    async def difference(
        self, a: str | AsyncRun, b: str | AsyncRun, measure: Any = None, **parameters: Any
    ) -> Difference: ...
    async def chart(self, name: str, form: str = "svg", **parameters: Any) -> Chart: ...
    async def upload_qrels(
        self,
        source: Any,
        *,
        activate: bool = True,
        note: str = "",
        keyed_by: str | None = None,
        iteration: str | None = None,
        dry_run: bool = False,
    ) -> Answer: ...
    async def upload_topics(self, source: Any, *, format: str | None = None, dry_run: bool = False) -> Answer: ...
    async def topics(self) -> Listed: ...
    @overload
    async def qrels(self) -> Listed: ...
    @overload
    def qrels(self, version: int) -> AsyncQrels: ...
    async def qrels_file(self, version: int) -> bytes: ...

class AsyncHub:
    config: Config
    url: str
    retry_for: float
    def __init__(
        self,
        config: Config,
        *,
        timeout: float = 30.0,
        retry_for: float = 300.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None: ...
    async def __aenter__(self) -> AsyncHub: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def close(self) -> None: ...
    def watch(self, watcher: Watcher | None) -> None: ...
    async def me(self) -> Answer: ...
    async def version(self) -> Answer: ...
    async def teams(self) -> Listed: ...
    async def measures(self, search: str = "") -> Answer: ...
    async def collections(self) -> Listed: ...
    def collection(self, slug: str | None = None) -> AsyncCollection: ...
    async def create_collection(self, slug: str, *, name: str = "", **fields: Any) -> AsyncCollection: ...
    async def run(self, name: str, collection: str | None = None) -> AsyncRun: ...
    async def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: Any = None,
        fields: dict[str, str] | None = None,
        files: dict[str, Any] | None = None,
        key: str = "",
    ) -> httpx.Response: ...

def connect_async(
    url: str | None = None,
    token: str | None = None,
    *,
    profile: str | None = None,
    timeout: float = 30.0,
    retry_for: float = 300.0,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncHub: ...
