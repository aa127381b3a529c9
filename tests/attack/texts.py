"""Texts that a careless expression takes for ever to read, in every parameter that is a list or a language."""

from __future__ import annotations

from collections import Counter
from functools import partial

import httpx

from tests.attack.many import ask_all
from tests.attack.target import SLUG, Target

LONG = 3900
TEXTS = (
    "," * LONG + ")",
    "a," * (LONG // 2),
    "(" * LONG,
    "nDCG(" * (LONG // 5),
    " ," * (LONG // 2) + "x)",
    "'" * LONG,
)
PATHS = (
    f"/api/v1/collections/{SLUG}/leaderboard/?measures=", f"/api/v1/collections/{SLUG}/comparison/?measures=",
    f"/api/v1/collections/{SLUG}/what-if/?measures=", f"/api/v1/collections/{SLUG}/leaderboard/?filter=",
    f"/api/v1/collections/{SLUG}/session-leaderboard/?measures=", "/api/v1/runs/{run}/values/?measures=",
    "/api/v1/runs/{run}/curve/?measures=", f"/collections/{SLUG}/?measures=", "/measures/suggestions/?measures=",
    "/measures/suggestions/?measure=", "/api/v1/measures/?search=", "/api/v1/session-sets/{set}/values/?measures=",
)  # fmt: skip


def hostile_texts(target: Target, answers: Counter[str]) -> None:
    """3,900 commas and the like in every list of measures, from nobody, twenty at a time."""

    def get(path: str, text: str, client: httpx.Client) -> httpx.Response:
        return client.get(path + text)

    named = [path.format(**target.names) for path in PATHS]
    ask_all(
        target, [partial(get, path, text) for text in TEXTS for path in named], answers, known=False
    )

    def post(text: str, client: httpx.Client) -> httpx.Response:
        return client.post(f"/api/v1/collections/{SLUG}/comparison/", json={"measures": text})

    # A body has room for more.
    ask_all(target, [partial(post, text * 5) for text in TEXTS], answers)
