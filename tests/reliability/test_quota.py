"""A quota under requests that come at once (case A6)."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from tests.reliability.servers import Server

REQUESTS, QUOTA = 64, 5


def test_parallel_submissions_get_exactly_the_quota(server: Server) -> None:
    """A6."""
    with server.client() as client:
        fields = {"slug": "quota", "name": "Quota", "daily_submissions": QUOTA}
        client.post("collections/", json=fields).raise_for_status()
        client.post(
            "collections/quota/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
        ).raise_for_status()

        def send(number: int) -> httpx.Response:
            # Of every five requests, four send the same bytes.
            content = TEXTBOOK_RUN if number % 5 else f"{TEXTBOOK_RUN}9 Q0 d{number} 1 1 t\n"
            while True:
                answer = client.post(
                    f"collections/quota/runs/?tag=run-{number}",
                    content=content.encode(),
                    headers={"Content-Type": "text/plain"},
                )
                # The database of a machine that is pressed: every client waits then.
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return answer
                time.sleep(int(answer.headers["Retry-After"]))

        with ThreadPoolExecutor(32) as threads:
            answers = list(threads.map(send, range(REQUESTS)))
        assert Counter(answer.status_code for answer in answers) == {
            202: QUOTA,
            429: REQUESTS - QUOTA,
        }
        refused = [answer for answer in answers if answer.status_code == 429]
        assert {answer.json()["code"] for answer in refused} == {"quota_exceeded"}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
        runs = client.get("collections/quota/runs/").json()
    assert runs["count"] == QUOTA
    assert "young_orphan" not in server.manage("fsck")
