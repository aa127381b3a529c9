"""The same request from many clients at once, and how each was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx

from tests.attack.target import Target

AT_ONCE = 20
Ask = Callable[[httpx.Client], httpx.Response]


def ask_all(
    target: Target, asks: Sequence[Ask], answers: Counter[str], *, known: bool = True
) -> None:
    """Send every request, twenty at a time, and count the answers; who waits for longer than a minute goes away."""

    def send(ask: Ask) -> str:
        try:
            with target.client(known=known) as client:
                return code_of(ask(client))
        except httpx.TimeoutException:
            return "gave up"
        except httpx.HTTPError:
            return "cut"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers.update(pool.map(send, asks))


def code_of(answer: httpx.Response) -> str:
    """The status of an answer, and the code of a refusal."""
    with suppress(ValueError, AttributeError, KeyError):
        if answer.status_code >= 400:
            return f"{answer.status_code} {answer.json()['code']}"
    return str(answer.status_code)
