"""The slots of a phase under entries that come at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx

from evalhub.operating.simulation import TEXTBOOK_RUN
from tests.reliability.servers import Server

ENTRIES, SLOTS = 64, 3
PHASE = {
    "slug": "task",
    "name": "Task",
    "collection": "open",
    "kind": "development",
    "opens_at": "2020-01-01",
    "closes_at": "2090-01-01",
    "slots": SLOTS,
}


def test_parallel_entries_get_exactly_the_slots(server: Server) -> None:
    with server.client() as organiser, server.client() as team:
        organiser.post("collections/", json={"slug": "open", "name": "Open"}).raise_for_status()
        organiser.post(
            "campaigns/", json={"slug": "cup", "name": "Cup", "registration": "open"}
        ).raise_for_status()
        organiser.post("campaigns/cup/phases/", json=PHASE).raise_for_status()
        organiser.post("campaigns/cup/publish/").raise_for_status()
        team.headers["Authorization"] = f"Bearer {server.make_admin()}"
        team.post("campaigns/cup/teams/", json={}).raise_for_status()

        def send(number: int) -> httpx.Response:
            tag = f"run-{number}"
            content = TEXTBOOK_RUN.replace(TEXTBOOK_RUN.split()[5], tag)
            return team.post(f"campaigns/cup/phases/task/entries/?tag={tag}", content=content.encode(),
                             headers={"Content-Type": "text/plain"})  # fmt: skip

        with ThreadPoolExecutor(32) as threads:
            answers = list(threads.map(send, range(ENTRIES)))
        codes = Counter((answer.status_code, answer.json().get("code")) for answer in answers)
        assert codes == {(201, None): SLOTS, (409, "no_slot_left"): ENTRIES - SLOTS}
        rows = team.get("campaigns/cup/phases/task/entries/").json()["results"]
        assert sorted(row["priority"] for row in rows) == [1, 2, 3]
    assert "young_orphan" not in server.manage("fsck")
