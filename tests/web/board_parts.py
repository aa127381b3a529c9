"""A leaderboard's page, and what stands on it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runs.models import Collection, Run, User
from tests.metrics.boards import make_board, simulated
from tests.web.test_pages import text_of

Submit = Callable[..., Run]
SMALL, BOARD = "/collections/small/", "/collections/board/"
PIECE = f"{BOARD}board/"


@pytest.fixture
def browser(db: None) -> Client:
    return Client()


@pytest.fixture(scope="module")
def board(alice: User) -> Collection:
    """Twelve runs of Alice's on 20 topics."""
    return make_board(
        alice.personal_team, {"AP": simulated(12, 20), "P@5": simulated(12, 20, seed=6)}
    )


def rows_of(html: str) -> list[list[str]]:
    """The cells of the board's rows as a reader sees them, without the box to tick."""
    table = html.split('aria-label="Leaderboard"')[1].split("</table>", maxsplit=1)[0]
    rows = re.findall(r"<tr.*?</tr>", table.split("<tbody>")[1], re.DOTALL)
    return [
        [text_of(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)][1:]
        for row in rows
    ]


def links_of(html: str, text: str) -> list[str]:
    """Where the links of a text lead."""
    links = re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', html, re.DOTALL)
    return [address.replace("&amp;", "&") for address, inner in links if text in text_of(inner)]


def statistics_of(browser: Client, **query: str) -> Any:
    answer = browser.get("/api/v1/collections/board/leaderboard/", {"statistics": "all", **query})
    assert answer.status_code == 200, answer.content
    return answer.json()
