"""A small installation that is damaged and put back thousands of times, and what is read of it."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urljoin

from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.utils.timezone import now

from evalhub.operating.install import settle_install
from evalhub.operating.simulation import simulate_collection
from metrics.engine.measures.grammar import parse_measure
from metrics.models import Comparison
from metrics.services.answer_store import forget_all
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import compare, queue_comparison
from runs.models import ALL_SCOPES, ApiToken, Collection, User
from tests.campaigns.worlds import (
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    START,
    enter,
    make_campaign,
    make_team,
    register,
)
from tests.conftest import evaluate_all
from tests.reliability.servers import ROOT, clean_environment

SLUG = "small"
# An answer by its name: where it is read. What is in braces is the name of something that is there.
ANSWERS = {
    "board": "collections/small/leaderboard/?measures=nDCG@10,AP",
    "board of others": "collections/small/leaderboard/?measures=P@3",
    "values": "runs/{a}/values/?measures=nDCG@10,AP",
    "other values": "runs/{b}/values/?measures=nDCG@10,AP,P@3",
    "curve": "runs/{a}/curve/?measures=nDCG&depth=10&per_topic=true",
    "recall": "runs/{a}/precision-recall/",
    "ranking": "runs/{a}/ranking/?topic=101",
    "difference": "collections/small/difference/?runs={a},{b}&measure=AP",
    "what-if": "collections/small/what-if/",
    "comparison": "comparisons/{comparison}/",
    "run": "runs/{a}/",
    "other run": "runs/{b}/",
    "judgements": "collections/small/qrels/1/",
    "run file": "runs/{a}/file/",
    "other file": "runs/{b}/file/",
    "known file": "runs/{a}/known/",
    "judgements file": "collections/small/qrels/1/file/",
    "session board": "collections/small/session-leaderboard/",
    "session values": "session-sets/{set}/values/",
    "session curves": "session-sets/{set}/curves/",
    "sessions": "session-sets/{set}/",
    "log file": "session-sets/{set}/file/",
    "pool": "pools/{pool}/",
    "pool statistics": "pools/{pool}/statistics/",
    "pool file": "pools/{pool}/files/101.tsv",
    "campaign": "campaigns/cup/",
    "phase": "campaigns/cup/phases/task/",
    "phase board": "campaigns/cup/phases/task/board/",
    "entries": "campaigns/cup/phases/task/entries/",
    "releases": "campaigns/cup/phases/task/releases/",
    "results of a team": "campaigns/cup/phases/task/results/?team=apples",
    "packet": "campaigns/cup/phases/task/packet/?team=apples",
    "snapshot": "snapshots/{snapshot}/",
    "manifest": "/s/{snapshot}.json",
    "archive": "/s/{snapshot}.tar.zst",
}
CAMPAIGN = tuple(ANSWERS)[-10:]
EVERYTHING = tuple(ANSWERS)


@dataclass
class Answer:
    """A status and what came with it; what was cut off in its middle has no status."""

    status: int
    content: bytes

    @property
    def code(self) -> str:
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            return str(json.loads(self.content).get("code", ""))
        return ""


class World:
    """A data folder, a copy of it as it was, and a client of its administrator."""

    def __init__(self, data: Path, copy: Path) -> None:
        self.data, self.copy = data, copy
        self.database = data / "evalhub.sqlite3"
        call_command("migrate", verbosity=0)
        settle_install()
        user = User.objects.create_superuser("alice")
        _, token = ApiToken.objects.issue(user=user, name="damage", scopes=ALL_SCOPES)
        self.client = Client(
            raise_request_exception=False, headers={"Authorization": f"Bearer {token}"}
        )
        self.names = self._fill()
        self.close()
        with contextlib.closing(sqlite3.connect(self.database)) as opened:
            opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copytree(data, copy)
        self.sound = {name: self.ask(name) for name in ANSWERS}
        bad = {
            name: (answer.status, answer.code)
            for name, answer in self.sound.items()
            if answer.status != 200
        }
        assert not bad, bad

    def _fill(self) -> dict[str, str]:
        simulated = simulate_collection(topics=12, pool=60, judged=30, depth=40)
        api = f"/api/v1/collections/{SLUG}/"
        fields = {"slug": SLUG, "name": "Small", "measures": ["nDCG@10", "AP"]}
        assert (
            self.client.post(
                "/api/v1/collections/", fields, content_type="application/json"
            ).status_code
            == 201
        )

        def send(path: str, **fields: str) -> str:
            files = {
                name: SimpleUploadedFile(name, fields.pop(name).encode())
                for name in ("file", "known")
                if name in fields
            }
            answer = self.client.post(api + path, {**files, **fields})
            assert answer.status_code in (201, 202), answer.content
            return str(answer.json().get("id", ""))

        send("qrels/", file=simulated.qrels)
        runs = list(simulated.runs.values())
        a = send("runs/", file=runs[-1], known="101 SIM-000-0001\n102 SIM-001-0002\n")
        b, _, _ = (send("runs/", file=run) for run in runs[:3])
        log = send("sessions/", file=simulated.sessions, tag="log")
        other = send(
            "sessions/", file="".join(simulated.sessions.splitlines(True)[:20]), tag="other"
        )
        evaluate_all()
        collection = Collection.objects.get()
        stored = queue_comparison(
            collection=collection, query=ComparisonQuery([parse_measure("AP")], tests=["bootstrap"])
        )
        compare(comparison_id=str(stored.pk))
        named = {"a": a, "b": b, "set": log, "other set": other, "comparison": str(stored.pk)}
        return {**named, "pool": self._make_pool(), "snapshot": self._run_campaign()}

    def _make_pool(self) -> str:
        """A frozen pool, whose identifier is returned."""
        recipe = {"method": "depth", "k": 5, "only_new": False}
        address = f"/api/v1/collections/{SLUG}/pools/"
        answer = self.client.post(address, recipe, content_type="application/json")
        assert answer.status_code == 201, answer.content
        freezing = f"/api/v1/pools/{answer.json()['id']}/freeze/"
        frozen = self.client.post(freezing, content_type="application/json")
        assert frozen.status_code == 200, frozen.content
        return str(answer.json()["id"])

    def _run_campaign(self) -> str:
        """A campaign from its publication to its snapshot, whose identifier is returned: two teams, a baseline, a run
        that was withdrawn, and results that all may see. Its time has passed."""
        people = {
            **make_team("lab", "olga"),
            **make_team("apples", "ann"),
            **make_team("berries", "ben"),
        }
        olga = people["olga"]
        ago = LATE - now() + timedelta(days=1)
        past = {"opens_at": OPENS - ago, "closes_at": CLOSES - ago, "late_closes_at": LATE - ago}
        with patch("runs.services.clock.database_now", lambda: START - ago):
            make_campaign(olga, **{name: at.isoformat() for name, at in past.items()})
            for team, person in (("apples", "ann"), ("berries", "ben")):
                register(people[person], team)
        with patch("runs.services.clock.database_now", lambda: OPENS - ago):
            addresses = [enter(people["ann"], tag).json()["url"] for tag in ("a", "b", "c")]
            people["ann"].post(f"{addresses[2]}withdraw/")
            enter(people["ben"], "other")
            enter(olga, "bm25", role="baseline", label="BM25")
        evaluate_all()
        planned = olga.post(f"{PHASE}releases/", {"audience": "public"}, format="json").json()[
            "url"
        ]
        assert olga.post(f"{planned}now/").status_code == 200
        # Packets are made when they are first asked for.
        assert people["ann"].get(f"{PHASE}packet/").status_code == 200
        snapshot = olga.post("/api/v1/campaigns/cup/snapshots/", {"label": "final"}, format="json")
        assert snapshot.status_code == 201, addresses.content
        return str(snapshot.json()["code"])

    def compare_all(self) -> None:
        """Make what waits of the comparisons, as a worker would."""
        for key in Comparison.objects.filter(state=Comparison.State.QUEUED).values_list(
            "pk", flat=True
        ):
            compare(comparison_id=str(key))

    def close(self) -> None:
        """Let go of the database and forget all that was read."""
        connections.close_all()
        forget_all()
        cache.clear()

    def ask(self, name: str) -> Answer:
        """Read one answer, whatever was remembered of it."""
        forget_all()
        response: Any = self.client.get(urljoin("/api/v1/", ANSWERS[name].format(**self.names)))
        try:
            content = (
                b"".join(response.streaming_content) if response.streaming else response.content
            )
        except Exception:
            # The connection ends before its Content-Length: no client takes that for a whole file.
            return Answer(0, b"")
        finally:
            response.close()
        return Answer(response.status_code, content)

    @contextlib.contextmanager
    def damaged(self) -> Iterator[sqlite3.Connection]:
        """For one damage: a connection to the database's file, which checks nothing."""
        self.close()
        with contextlib.closing(sqlite3.connect(self.database, isolation_level=None)) as opened:
            opened.execute("PRAGMA ignore_check_constraints = ON")
            yield opened

    def put_back(self) -> None:
        """Everything as it was."""
        self.close()
        for name in ("", "-wal", "-shm"):
            Path(f"{self.database}{name}").unlink(missing_ok=True)
        shutil.copy(self.copy / self.database.name, self.database)

    def put_files_back(self) -> None:
        shutil.rmtree(self.data / "files", ignore_errors=True)
        shutil.copytree(self.copy / "files", self.data / "files")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command as an operator types it."""
        self.close()
        command = [sys.executable, "-m", "evalhub", *words]
        environment = {**clean_environment(self.data), "EVALHUB_DATA": str(self.data)}
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )

    def stored_file(self, table: str, key: str, column: str = "sha256") -> Path:
        """The stored file that a row names."""
        with self.damaged() as database:
            ((sha256,),) = database.execute(f'SELECT "{column}" FROM "{table}" WHERE id = ?', [key])
        return self.data / "files" / sha256[:2] / sha256
