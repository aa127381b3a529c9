"""Campaigns under kills: entries around the end of a phase, and a release at its time.

    python -m tests.reliability.chaos --on services --campaigns 5 --seed 1

Three teams enter runs until the phase is closed, the judgements change, and the dispatcher releases
the results, while processes of every kind are killed. No entry without its receipt and no receipt
without its entry, none that arrived at the end or later; one release with one mail to each person;
nobody sees a value before, nor values of mixed judgements.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil

from evalhub.operating.simulation import simulate_collection
from metrics.engine import evaluate
from tests.reliability.servers import ROOT

TEAMS = ("ants", "bees", "crabs")
MEASURE = "nDCG@10"
# From the publication to the end of the phase, and from there to the planned release.
OPEN, AFTERWARDS = timedelta(seconds=12), timedelta(seconds=4)
# Before the end of the phase, and after the time of the release.
KILLED_BEFORE, KILLED_AFTER = timedelta(seconds=5), timedelta(seconds=8)
# What starts for seconds is killed at most so often, so that something is done in between.
STARTS = 4.0
PATIENCE = 240.0
TRY_LATER = (502, 503, 507)
_ACCOUNTS = """
import json
from runs.models import ALL_SCOPES, ApiToken, Membership, Team, User
made = {}
for name in %r:
    user = User.objects.create_user(name, email=f"{name}@example.org")
    team = Team.objects.create(slug=f"team-{name}", name=f"Team {name}")
    Membership.objects.create(team=team, user=user, role="owner")
    made[name] = ApiToken.objects.issue(user=user, name="chaos", scopes=ALL_SCOPES)[1]
print(json.dumps(made))
"""


@dataclass
class CampaignTally:
    """What happened, and what is wrong with it."""

    faults: Counter[str] = field(default_factory=Counter)
    campaigns: int = 0
    entries: int = 0
    repeated: int = 0
    refused: int = 0
    seen: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        codes = ", ".join(f"{count} x {code}" for code, count in sorted(self.seen.items()))
        return (
            f"{self.campaigns} campaigns, {self.entries} entries, {self.repeated} requests sent again, {self.refused} "
            f"refused at the end, {faults} killed; results asked for: {codes}; {len(self.wrong)} wrong, "
            f"{self.seconds:.0f} s"
        )


class CampaignChaos:
    """Campaigns one after the other against one service, which is started again whenever something of it was killed."""

    def __init__(self, service: Any, campaigns: int, seed: int) -> None:
        self.service, self.campaigns = service, campaigns
        self.random, self.tally = random.Random(seed), CampaignTally()
        simulated = simulate_collection(topics=10, pool=60, judged=30, depth=40)
        self.runs = dict(list(simulated.runs.items())[:4])
        lines = simulated.qrels.splitlines(keepends=True)
        # The second version takes a third of the relevant documents back.
        self.judged = {
            1: simulated.qrels,
            2: "".join(_taken_back(line) if n % 3 == 0 else line for n, line in enumerate(lines)),
        }
        self.expected = {version: self._means(qrels) for version, qrels in self.judged.items()}
        self.tokens: dict[str, str] = {}

    def run(self) -> CampaignTally:
        start = time.monotonic()
        self.service.prepare()
        self.service.revive()
        self.service.server.wait()
        process = self.service.server.manage("shell", "-v", "0", "-c", _ACCOUNTS % (TEAMS,))
        self.tokens = {**json.loads(process.strip().splitlines()[-1]), "nobody": ""}
        with self.service.server.client() as organiser:
            for number in range(self.campaigns):
                Round(self, organiser, f"cup-{number}").run()
                self.tally.campaigns += 1
        self.service.server.stop()
        environment = self.service.server.environment
        fsck = subprocess.run(
            [sys.executable, "manage.py", "fsck"],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if fsck.returncode:
            self.tally.wrong.append(f"fsck: {fsck.stdout}{fsck.stderr}")
        self.tally.seconds = time.monotonic() - start
        return self.tally

    def _means(self, qrels: str) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            judged, ranked = Path(folder) / "qrels", Path(folder) / "run"
            judged.write_text(qrels)
            means = {}
            for name, text in self.runs.items():
                ranked.write_text(text)
                means[name] = evaluate(judged, ranked, MEASURE).means[MEASURE]
        return means

    @contextlib.contextmanager
    def client_of(self, name: str) -> Iterator[httpx.Client]:
        token = self.tokens[name]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        base = f"{self.service.server.url}/api/v1/"
        with httpx.Client(base_url=base, headers=headers, timeout=30, verify=False) as client:
            yield client

    def patiently(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        """Ask until there is an answer that is more than to try later."""
        deadline, first = time.monotonic() + PATIENCE, True
        while time.monotonic() < deadline:
            self.tally.repeated += not first
            first = False
            with contextlib.suppress(httpx.TransportError):
                answer = ask()
                if answer.status_code not in TRY_LATER:
                    return answer
            time.sleep(0.1)
        raise TimeoutError(f"no answer in {PATIENCE} s")

    def kill_something(self, heavy: bool) -> bool:
        """Kill a process of the service, or with `heavy` one that all others need; return whether it was such a one."""
        own = [part.pid for part in self.service.parts.values()]
        processes = self.service.processes()
        chosen = [process for process in processes if (process.pid in own) == heavy] or processes
        if not chosen:
            return False
        victim = self.random.choice(chosen)
        with contextlib.suppress(psutil.Error):
            victim.kill()
            self.tally.faults["services" if victim.pid in own else "processes of theirs"] += 1
        return victim.pid in own


class Round:
    """One campaign: its phase, its teams, what they were told, and what others saw meanwhile."""

    def __init__(self, chaos: CampaignChaos, organiser: httpx.Client, slug: str) -> None:
        self.chaos, self.organiser, self.slug = chaos, organiser, slug
        self.phase = f"campaigns/{slug}/phases/task/"
        # By the tag of each entry: what its run was made of, and when its receipt says that it
        # arrived.
        self.made_of: dict[str, str] = {}
        self.receipts: dict[str, datetime] = {}
        self.over = threading.Event()

    def run(self) -> None:
        self._set_up()
        jobs = [(self._enter, (team,)) for team in TEAMS] + [
            (self._watch, (who,)) for who in (TEAMS[0], "nobody")
        ]
        threads = [
            threading.Thread(target=target, args=arguments)
            for target, arguments in [*jobs, (self._judge, ())]
        ]
        for thread in threads:
            thread.start()
        self._kill()
        self._wait_for_release()
        self.over.set()
        for thread in threads:
            while thread.is_alive():
                self.chaos.service.revive()
                thread.join(0.5)
        self._count()

    def wrong(self, text: str) -> None:
        self.chaos.tally.wrong.append(f"{self.slug}: {text}")

    def _set_up(self) -> None:
        post = self.organiser.post
        fields = {
            "slug": self.slug,
            "name": self.slug,
            "blind": True,
            "visibility": "public",
            "measures": [MEASURE],
        }
        post("collections/", json=fields).raise_for_status()
        post(
            f"collections/{self.slug}/qrels/", files={"file": ("q", self.chaos.judged[1])}
        ).raise_for_status()
        post(
            "campaigns/", json={"slug": self.slug, "name": self.slug, "registration": "open"}
        ).raise_for_status()
        self.closes = datetime.now(UTC) + OPEN
        self.planned = self.closes + AFTERWARDS
        phase = {"slug": "task", "name": "Task", "collection": self.slug, "measures": [MEASURE]}
        times = {"opens_at": "2020-01-01", "closes_at": self.closes.isoformat()}
        post(f"campaigns/{self.slug}/phases/", json={**phase, **times}).raise_for_status()
        post(f"campaigns/{self.slug}/publish/").raise_for_status()
        for name in TEAMS:
            with self.chaos.client_of(name) as client:
                client.post(
                    f"campaigns/{self.slug}/teams/", json={"team": f"team-{name}"}
                ).raise_for_status()
        release = {"audience": "participants", "at": self.planned.isoformat()}
        self.release = post(f"{self.phase}releases/", json=release).raise_for_status().json()["id"]

    def _enter(self, team: str) -> None:
        """Enter runs until the phase is closed, as a careful client does: each with one key for all its tries."""
        chosen, number = random.Random(f"{self.slug} {team}"), 0
        with self.chaos.client_of(team) as client:
            while True:
                number += 1
                tag, base = f"{team}-{number}", chosen.choice(list(self.chaos.runs))
                text = self.chaos.runs[base].replace(base, tag)
                self.made_of[tag] = base
                form = {
                    "files": {"file": ("run", text)},
                    "headers": {"Idempotency-Key": str(uuid.uuid4())},
                }
                answer = self.chaos.patiently(lambda: client.post(f"{self.phase}entries/", **form))  # noqa: B023
                if answer.status_code == 201:
                    self.receipts[tag] = _instant(answer.json()["arrived_at"])
                elif answer.status_code == 409 and answer.json()["code"] == "phase_closed":
                    self.chaos.tally.refused += 1
                    if datetime.now(UTC) < self.closes:
                        self.wrong(f"{tag} was refused before the end")
                    return
                else:
                    self.wrong(f"{tag}: {answer.status_code} {answer.text[:300]}")
                    return
                time.sleep(chosen.uniform(0.1, 0.5))

    def _judge(self) -> None:
        """Correct the judgements after the end, shortly before the release."""
        time.sleep(max(0.0, (self.closes - datetime.now(UTC)).total_seconds() + 1))
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        form: dict[str, Any] = {"files": {"file": ("q", self.chaos.judged[2])}, "headers": headers}
        with httpx.Client(
            base_url=self.organiser.base_url, headers=self.organiser.headers, timeout=30
        ) as client:
            answer = self.chaos.patiently(
                lambda: client.post(f"collections/{self.slug}/qrels/", **form)
            )
        if answer.status_code != 201:
            self.wrong(f"judgements: {answer.status_code} {answer.text[:300]}")

    def _watch(self, who: str) -> None:
        """Ask for everything that depends on judgements, and compare what is shown with what it has to be."""
        paths = (
            f"{self.phase}board/?limit=200",
            f"collections/{self.slug}/leaderboard/?limit=200",
            f"{self.phase}results/",
        )
        with self.chaos.client_of(who) as client:
            while not self.over.is_set():
                for path in paths:
                    with contextlib.suppress(httpx.TransportError):
                        answer = client.get(path)
                        self.chaos.tally.seen[answer.status_code] += 1
                        if answer.status_code == 200:
                            self._check_shown(who, path, answer.json())
                        elif answer.status_code not in (401, 403, *TRY_LATER):
                            self.wrong(f"{path} as {who}: {answer.status_code} {answer.text[:300]}")
                time.sleep(0.1)

    def _check_shown(self, who: str, path: str, answer: dict[str, Any]) -> None:
        if datetime.now(UTC) < self.planned or who == "nobody":
            self.wrong(f"{path} was shown to {who}")
        rows = answer.get("results")
        for row in rows if rows is not None else answer["entries"]:
            tag = row["run"]["tag"] if rows is not None else row["tag"]
            version = row["qrels"] if rows is not None else answer["qrels"]
            mean = (
                (row["values"] if rows is not None else row["means"]).get(MEASURE, {}).get("mean")
            )
            stale = rows is not None and (row["stale"] or row["state"] != "evaluated")
            if version != answer["qrels"] and not stale:
                self.wrong(
                    f"{path}: {tag} has values of version {version}, {answer['qrels']} is active"
                )
            if mean is None and not stale:
                self.wrong(f"{path}: {tag} has no value")
            elif (
                mean is not None
                and abs(mean - self.chaos.expected[version][self.made_of[tag]]) > 1e-12
            ):
                self.wrong(f"{path}: {tag} has {mean} under version {version}")

    def _kill(self) -> None:
        """Kill processes around the end of the phase, and from there until after the time of the release."""
        time.sleep(max(0.0, (self.closes - KILLED_BEFORE - datetime.now(UTC)).total_seconds()))
        last = 0.0
        while datetime.now(UTC) < self.planned + KILLED_AFTER:
            heavy = time.monotonic() - last > STARTS and self.chaos.random.random() < 0.5
            if self.chaos.kill_something(heavy):
                last = time.monotonic()
            time.sleep(self.chaos.random.uniform(0.1, 0.8))
            self.chaos.service.revive()

    def _wait_for_release(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.chaos.service.revive()
            with contextlib.suppress(httpx.HTTPError):
                if (
                    self.organiser.get(f"releases/{self.release}/")
                    .raise_for_status()
                    .json()["state"]
                    == "done"
                ):
                    # Those who watch see it, too.
                    time.sleep(2)
                    return
            time.sleep(0.2)
        self.wrong("the release was not done")

    def _count(self) -> None:
        """Compare what is stored with the receipts, and count what happens once."""

        def rows(path: str, **query: Any) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = []
            while True:
                page = {"limit": 200, "offset": len(rows), **query}
                answer = (
                    self.chaos.patiently(lambda: self.organiser.get(path, params=page))  # noqa: B023
                    .raise_for_status()
                    .json()
                )
                rows += answer["results"]
                if answer["next"] is None:
                    return rows

        entries = {row["tag"]: row for row in rows(f"{self.phase}entries/")}
        self.chaos.tally.entries += len(entries)
        if entries.keys() != self.receipts.keys():
            self.wrong(
                f"entries without receipt or receipts without entry: {entries.keys() ^ self.receipts.keys()}"
            )
        for tag, entry in entries.items():
            arrived = _instant(entry["arrived_at"])
            if (
                entry["late"]
                or arrived >= self.closes
                or arrived != self.receipts.get(tag)
                or entry["state"] != "entered"
            ):
                self.wrong(
                    f"{tag} arrived {arrived}, its receipt says {self.receipts.get(tag)}: {entry['state']}"
                )
        done = self.organiser.get(f"releases/{self.release}/").json()
        if _instant(done["done_at"]) < self.planned or done["entries"] != len(entries):
            self.wrong(f"released at {done['done_at']} with {done['entries']} entries")
        acts = Counter(event["action"] for event in rows(f"collections/{self.slug}/audit/"))
        expected = {
            "release.planned": 1,
            "release.done": 1,
            "collection.disclosed": 1,
            "entry.made": len(entries),
        }
        if {action: acts[action] for action in expected} != expected:
            self.wrong(f"the audit trail has {acts}")
        mails = Counter(
            (mail["event"], mail["to"]) for mail in rows(f"campaigns/{self.slug}/outbox/")
        )
        for name in TEAMS:
            for event in ("phase.closed", "release.done"):
                if mails[event, name] != 1:
                    self.wrong(f"{mails[event, name]} mails {event} to {name}")
            own = sum(tag.startswith(name) for tag in self.receipts)
            if mails["entry.received", name] != own:
                self.wrong(
                    f"{mails['entry.received', name]} receipts mailed to {name} for {own} entries"
                )
            with self.chaos.client_of(name) as client:
                packets = {
                    self.chaos.patiently(lambda: client.get(f"{self.phase}packet/")).content
                    for _ in range(2)
                }
            if len(packets) != 1:
                self.wrong(f"the packet of {name} differs")


def _taken_back(line: str) -> str:
    topic, iteration, doc, _ = line.split()
    return f"{topic} {iteration} {doc} 0\n"


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
