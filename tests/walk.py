"""Print what the first request of a process goes through: calls of EvalHub's functions, and its
files.

    python -m tests.walk

The web application is loaded as the web server loads it; then each request is answered in a process
of its own, with three evaluated runs on 30 topics in the database. Calls are counted of functions
and lambdas, not of comprehensions, which are no calls on a newer Python.
"""

from __future__ import annotations

import os
import shutil
import sys
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

from tests import environment  # noqa: F401, first: Django reads the environment

ROOT = Path(__file__).resolve().parent.parent
OWN = tuple(f"{ROOT / package}/" for package in ("evalhub", "metrics", "runs"))
TOPICS = range(1, 31)
# What is sent has a token; what is read is public.
REQUESTS = {
    "upload (API)": ("POST", "/api/v1/collections/walk/runs/"),
    "board (API)": ("GET", "/api/v1/collections/walk/leaderboard/"),
    "board (page)": ("GET", "/collections/walk/"),
    "comparison (API)": ("GET", "/api/v1/collections/walk/comparison/"),
    "comparison (page)": ("GET", "/collections/walk/comparison/"),
    "run (page)": ("GET", "/runs/{run}/"),
    "campaign entry (API)": ("POST", "/api/v1/campaigns/cup/phases/task/entries/"),
}


def run_text(seed: int) -> str:
    """Return a run with five documents for each topic, in an order that depends on the seed."""
    return "".join(
        f"{topic} Q0 d{(rank * seed + topic) % 7} {rank} {9 - rank} r{seed}\n"
        for topic in TOPICS
        for rank in range(1, 6)
    )


def prepare() -> dict[str, str]:
    """Fill the database; return the id of a run, and a token of somebody who may submit and enter."""
    from django.conf import settings
    from django.utils import timezone

    from runs.models import ALL_SCOPES, ApiToken, User
    from runs.services.storage.installs import settle
    from tests.campaigns.worlds import make_campaign, make_team, register
    from tests.conftest import evaluate_all, upload
    from tests.reliability.servers import prepared_database

    shutil.copy(prepared_database()[0], settings.EVALHUB_DATA)
    settle()
    olga, ann = make_team("lab", "olga")["olga"], make_team("apples", "ann")["ann"]

    olga.post("/api/v1/collections/", {"slug": "walk", "name": "Walk", "team": "lab"})
    qrels = "".join(f"{topic} 0 d{(topic + n) % 7} {n}\n" for topic in TOPICS for n in range(4))
    upload(olga, "collections/walk/qrels/", qrels)
    runs = [upload(olga, "collections/walk/runs/", run_text(seed)).json() for seed in (1, 2, 3)]
    assert evaluate_all() == len(runs)

    make_campaign(olga, opens_at=(timezone.now() - timedelta(hours=1)).isoformat())
    register(ann, "apples")
    user = User.objects.get(username="ann")
    _, token = ApiToken.objects.issue(user=user, name="walk", scopes=ALL_SCOPES)
    return {"run": runs[0]["id"], "token": token}


def walk(name: str, prepared: dict[str, str]) -> tuple[int, int]:
    """Answer a request; return how many own calls it made, and in how many own files."""
    import httpx

    from evalhub.serving.wsgi import application

    method, address = REQUESTS[name]
    headers = {"Authorization": f"Bearer {prepared['token']}"}
    form = {"headers": headers, "data": {"tag": "r4"}, "files": {"file": run_text(4)}}
    calls, files = 0, set()

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OWN):
            calls += code.co_name == "<lambda>" or not code.co_name.startswith("<")
            files.add(code.co_filename)

    transport = httpx.WSGITransport(app=application)
    with httpx.Client(transport=transport, base_url="http://testserver") as client:
        request = client.build_request(
            method, address.format(**prepared), **(form if method == "POST" else {})
        )
        sys.setprofile(note)
        try:
            answer = client.send(request)
        finally:
            sys.setprofile(None)

    assert answer.is_success, answer.text
    return calls, len(files)


def main() -> None:
    # Answers are kept, as on a server.
    del os.environ["EVALHUB_KEPT_ANSWERS_MB"]
    os.environ["EVALHUB_ALLOWED_HOSTS"] = "testserver"
    import evalhub.serving.wsgi  # noqa: F401

    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        prepared = pool.apply(prepare)
        for name in REQUESTS:
            calls, files = pool.apply(walk, (name, prepared))
            sys.stdout.write(f"{name:<21}{calls:>6} calls {files:>4} files\n")


if __name__ == "__main__":
    main()
