"""The property tests of what reads a stranger's text: how many examples each gets, and how many were tried.

`make test` tries more than 5,000 together, `make fuzz` more than 50,000.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

# As `make fuzz` gives it; else six times what any other property has.
EXAMPLES = os.environ.get("EVALHUB_TEST_READER_EXAMPLES")
# By the names of the tests.
tried: Counter[str] = Counter()

_Test = TypeVar("_Test", bound=Callable[..., Any])


def of_a_reader(test: _Test) -> _Test:
    """Mark a property test of a reader: it is given its share of examples, and they are counted."""
    name = f"{test.__module__}.{test.__qualname__}"
    inner = test.hypothesis.inner_test  # type: ignore[attr-defined]

    @functools.wraps(inner)
    def counted(*args: Any, **kwargs: Any) -> None:
        tried[name] += 1
        inner(*args, **kwargs)

    test.hypothesis.inner_test = counted  # type: ignore[attr-defined]
    return settings(max_examples=int(EXAMPLES or 6 * settings().max_examples))(
        pytest.mark.reader(test)
    )
