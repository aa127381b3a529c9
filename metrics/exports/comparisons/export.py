"""Export: a way to write a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.comparisons.stored import Answer
from runs.models import Collection

Render = Callable[[Collection, Answer, PairSelection], Iterator[str]]
"""render(collection, answer, which pairs) -> pieces of text; refuses what it cannot write before the first piece"""


@dataclass(frozen=True)
class Export:
    """A renderer and its content type."""

    render: Render
    content_type: str
