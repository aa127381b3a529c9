"""Sheet: the figures of one run, ready to be written in any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from metrics.engine.trec_eval.columns import Column


@dataclass(frozen=True)
class Sheet:
    """Columns over the topics of one run; `scaled` where the values are deviations from a mean."""

    run: str
    topics: list[str]
    columns: list[Column]
    scaled: bool = False


class Render(Protocol):
    """A format, as a function that yields text for runs: lines by topic, of the run, or both."""

    def __call__(
        self, sheets: Iterable[Sheet], *, by_topic: bool, summary: bool
    ) -> Iterator[str]: ...
