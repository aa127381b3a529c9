"""The service under attack: started as it ships, filled over HTTP, with an account for the attacker."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from evalhub.operating.simulation import simulate_collection
from tests.reliability.rigs import own_postgres, own_redis
from tests.reliability.servers import Server, clean_environment, free_port

SLUG, TOPICS, DEPTH = "board", 50, 100
# Addresses of this machine, so that attacker and victim are two clients and no limit by address
# counts for both.
ATTACKER, VICTIM = "127.0.0.2", "127.0.0.3"
FILL_SECONDS = 900.0


@dataclass
class Target:
    """A filled service, and what an attacker can know of it: names, and a token of an ordinary account."""

    server: Server
    folder: Path
    token: str
    names: dict[str, str]
    scale: float = 1.0
    seconds: float = 30.0

    @property
    def port(self) -> int:
        return httpx.URL(self.server.url).port or 80

    def client(self, *, known: bool = True, timeout: float = 60.0) -> httpx.Client:
        """An attacker's client: with the account's token, or of nobody."""
        headers = {"Authorization": self.token} if known else {}
        # Without the certificates, which plain HTTP does not need: loading them for each client
        # would take the cores from the server that is measured.
        limits = httpx.Limits(max_keepalive_connections=0)
        transport = httpx.HTTPTransport(local_address=ATTACKER, limits=limits, verify=False)
        return httpx.Client(
            base_url=self.server.url, headers=headers, timeout=timeout, transport=transport
        )

    def forget_comparisons(self) -> None:
        """Delete the comparisons that no worker has begun."""
        script = "from metrics.models import Comparison; Comparison.objects.filter(state='queued').delete()"
        self.server.manage("shell", "-v", "0", "-c", script)

    def size(self, full: int, least: int = 1) -> int:
        """So much of something, or the share of it that is tried."""
        return max(least, int(full * self.scale))


@contextlib.contextmanager
def running_service(kind: str) -> Iterator[tuple[Server, Path]]:
    """`evalhub serve` on SQLite; or `evalhub web` and `evalhub worker` on a PostgreSQL and a Redis of their own."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evalhub-attack-")))
        port = free_port()
        environment = clean_environment(folder / "data")
        del environment["EVALHUB_BOARD_SECONDS"]
        server = Server(f"http://127.0.0.1:{port}", environment)
        stack.callback(server.stop)
        if kind == "services":
            redis, postgres = stack.enter_context(own_redis()), stack.enter_context(own_postgres())
            environment.update(
                {"EVALHUB_DATABASE_URL": postgres.url, "EVALHUB_REDIS_URL": redis.url}
            )
            server.prepare()
            server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", log=folder / "log")
            server.start("evalhub", "worker", log=folder / "log")
        else:
            server.start("evalhub", "serve", "--bind", f"127.0.0.1:{port}", log=folder / "log")
        server.wait()
        yield server, folder


@contextlib.contextmanager
def target_on(
    kind: str, *, runs: int, megabytes: int, scale: float, seconds: float
) -> Iterator[Target]:
    """A filled target; `megabytes` is the size of the large run file."""
    with running_service(kind) as (server, folder), server.client() as owner:
        names = fill(owner, runs, megabytes)
        server.manage(
            "shell", "-c", "from runs.models import User; User.objects.create_user('mallory')"
        )
        scopes = [part for scope in ("read", "submit", "manage") for part in ("--scope", scope)]
        token = (
            f"Bearer {server.manage('create_token', 'mallory', *scopes).strip().splitlines()[-1]}"
        )
        yield Target(server, folder, token, names, scale, seconds)


def fill(owner: httpx.Client, runs: int, megabytes: int) -> dict[str, str]:
    """Make a public collection of so many runs, a large one and a session log; returns the names of it all."""
    world, rng = simulate_collection(topics=TOPICS), np.random.default_rng(7)
    owner.post("collections/", json={"slug": SLUG, "name": "Board"}).raise_for_status()
    owner.put(f"collections/{SLUG}/topics/", files={"file": ("t", world.topics)}).raise_for_status()
    owner.post(f"collections/{SLUG}/qrels/", files={"file": ("q", world.qrels)}).raise_for_status()
    suite = {"slug": SLUG, "name": "Suite", "members": [{"collection": SLUG}]}
    owner.post("suites/", json=suite).raise_for_status()
    sent = []
    for number in range(runs):
        answer = owner.post(
            f"collections/{SLUG}/runs/", files={"file": ("r", run_of(rng, number, DEPTH, 400))}
        )
        sent.append(str(answer.raise_for_status().json()["id"]))
    depth = megabytes * 1_000_000 // (TOPICS * 44)
    large = owner.post(
        f"collections/{SLUG}/runs/", files={"file": ("r", run_of(rng, runs, depth, 10 * depth))}
    )
    log = owner.post(
        f"collections/{SLUG}/sessions/", files={"file": ("s", world.sessions)}, data={"tag": "log"}
    )
    deadline = time.monotonic() + FILL_SECONDS
    for path in [
        f"runs/{large.raise_for_status().json()['id']}/",
        f"session-sets/{log.raise_for_status().json()['id']}/",
    ]:
        while owner.get(path).json()["status"]["state"] != "evaluated":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} was not evaluated in {FILL_SECONDS} s")
            time.sleep(0.5)
    while not owner.get(f"collections/{SLUG}/evaluations/").json()["done"]:
        time.sleep(0.5)
    stored = (
        owner.post(f"collections/{SLUG}/comparison/", json={"runs": sent[:10], "seed": 1})
        .raise_for_status()
        .json()
    )
    while (
        owner.get(f"comparisons/{stored['comparison']['id']}/").json()["comparison"]["state"]
        != "compared"
    ):
        time.sleep(0.2)
    return {
        "collection": SLUG,
        "run": sent[0],
        "other": sent[1],
        "large": str(large.json()["id"]),
        "set": str(log.json()["id"]),
        "comparison": str(stored["comparison"]["id"]),
        "twenty": ",".join(sent[:20]),
        "runs": ",".join(sent),
    }


def run_of(rng: np.random.Generator, number: int, depth: int, pool: int) -> bytes:
    """A run over the simulated topics; documents above 399 are in no judgement."""
    lines = []
    for topic in range(TOPICS):
        documents = rng.choice(pool, depth, replace=False).tolist()
        lines += [
            f"{101 + topic} Q0 SIM-{topic:03d}-{document:04d} {rank} {depth - rank}.{number:04d} attack-{number}\n"
            for rank, document in enumerate(documents, 1)
        ]
    return "".join(lines).encode()
