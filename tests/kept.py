"""Which answers come from the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from metrics.questions import answer_cache
from metrics.services.answer_store import recall


@contextmanager
def recalled_answers() -> Iterator[list[Any]]:
    """Yield the answers that are given from the cache meanwhile, as they come."""
    recalled: list[Any] = []

    def note(key: str) -> Any:
        answer = recall(key)
        if isinstance(answer, answer_cache.KeptAnswer):
            recalled.append(answer)
        return answer

    with patch.object(answer_cache, "recall", note):
        yield recalled
