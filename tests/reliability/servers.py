"""Real servers for tests: the embedded service, and the separate processes on PostgreSQL and Redis."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 180.0
# Nothing is encrypted here: to read the certificates of the machine would take 25 ms of every
# question.
NO_CERTIFICATES = False
# Where servers of tests keep stored files; tests/reliability/on_objects.py sets it.
FILES_URL = os.environ.get("EVALHUB_TEST_FILES_URL", "")
SECRET_KEY = "only-for-tests-only-for-tests-only-for-tests"


@dataclass
class Server:
    """A running service: its address, its environment, its processes."""

    url: str
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    # Of the administrator that clients are.
    token: str = ""

    def start(self, *command: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as files:
            output = files.enter_context(log.open("ab")) if log else None
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=self.environment,
                cwd=ROOT,
                start_new_session=True,
                stderr=output,
            )
        self.processes.append(process)
        return process

    def manage(self, *arguments: str) -> str:
        """A management command's output."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, env=self.environment, cwd=ROOT, check=True, capture_output=True, text=True
        )
        return done.stdout

    def wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if (
                    httpx.get(f"{self.url}/api/v1/measures/", verify=NO_CERTIFICATES).status_code
                    == 200
                ):
                    return
            time.sleep(0.1)
        raise TimeoutError(f"{self.url} does not answer")

    def prepare(self) -> None:
        """Migrate the database and make an administrator: on SQLite, copy one where there is none yet."""
        data = Path(self.environment["EVALHUB_DATA"])
        if "EVALHUB_DATABASE_URL" in self.environment:
            # The Redis carried the messages of earlier tests.
            self.token = self._begin("adopt")
        elif not any(data.glob("*.sqlite3")):
            database, self.token = prepared_database()
            data.mkdir(parents=True, exist_ok=True)
            shutil.copy(database, data)

    def _begin(self, *more: str, empty: Path | None = None) -> str:
        """Migrate the database, make an administrator and run more commands, in one process; returns the token. `empty`
        becomes a copy of an SQLite database without the administrator."""
        commands = [
            *(f"call_command({name!r})" for name in more),
            "call_command('create_admin', 'admin')",
        ]
        if empty:
            copy = f"connection.cursor().execute('VACUUM INTO %s', [{str(empty)!r}])"
            commands = ["from django.db import connection", copy, *commands]
        script = "; ".join(
            [
                "from django.core.management import call_command",
                "call_command('migrate', verbosity=0)",
            ]
        )
        return (
            self.manage("shell", "-v", "0", "-c", "; ".join([script, *commands]))
            .rsplit("token:", 1)[1]
            .strip()
        )

    def make_admin(self) -> str:
        """The token of a new administrator."""
        return (
            self.manage("create_admin", f"admin-{time.monotonic_ns()}")
            .rsplit("token:", 1)[1]
            .strip()
        )

    def client(self) -> httpx.Client:
        """A client with the token of an administrator."""
        self.token = self.token or self.make_admin()
        headers = {"Authorization": f"Bearer {self.token}"}
        # The server closes what was silent for five seconds; a request must not meet it on the way.
        limits = httpx.Limits(keepalive_expiry=2)
        return httpx.Client(
            base_url=f"{self.url}/api/v1/", headers=headers, timeout=60, limits=limits
        )

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def free_port() -> int:
    """Return a port that nothing listens at, below those that the kernel gives to outgoing connections.

    A server may bind it many seconds later: any connection of another test could have taken one of
    the kernel's.
    """
    ports = list(range(15_000, 32_000))
    random.SystemRandom().shuffle(ports)
    for port in ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port between 15000 and 32000")


def clean_environment(data: Path) -> dict[str, str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("EVALHUB_")
    }
    if FILES_URL:
        # A prefix of the data folder's own.
        prefix = hashlib.sha256(str(data).encode()).hexdigest()[:16]
        environment["EVALHUB_FILES_URL"] = FILES_URL.replace("PREFIX", prefix)
    return {
        **environment,
        "EVALHUB_DATA": str(data),
        "EVALHUB_SECRET_KEY": SECRET_KEY,
        "EVALHUB_BOARD_SECONDS": "0",
    }


# Each command as the console script runs it, with what it prints.
_COMMANDS = """
import io, json, sys
from evalhub.cli import main

real, done = sys.stdout, []
sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
for arguments in json.loads(sys.argv[1]):
    sys.argv, code = ["evalhub", *arguments], 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else bool(end.code)
        if code is True:
            sys.stderr.write(end.code)
    done.append((code, sys.stdout.getvalue(), sys.stderr.getvalue()))
    for stream in (sys.stdout, sys.stderr):
        stream.seek(0)
        stream.truncate()
json.dump(done, real)
# A command may have registered an end without a flush.
real.flush()
"""


def run_commands(
    environment: dict[str, str], *commands: Sequence[str], within: Sequence[str] = ()
) -> list[subprocess.CompletedProcess[str]]:
    """Run several commands of EvalHub in one process, which takes as long to start as they take together; `within` is
    the beginning of a command line that starts it."""
    start = [*within, sys.executable, "-c", _COMMANDS, json.dumps(commands)]
    done = subprocess.run(
        start, env=environment, cwd=ROOT, check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return [
        subprocess.CompletedProcess(command, *each)
        for command, each in zip(commands, json.loads(done.stdout), strict=True)
    ]


@cache
def prepared_database() -> tuple[Path, str]:
    """A migrated SQLite database with an administrator, and that one's token: made once for all processes of tests."""
    if "EVALHUB_TEST_SHARED" in os.environ:
        folder = Path(os.environ["EVALHUB_TEST_SHARED"])
    else:
        folder = Path(tempfile.mkdtemp(prefix="evalhub-prepared-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data, token = folder / "prepared", folder / "prepared-token"
    with (folder / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not token.exists():
            token.write_text(
                Server("", clean_environment(data))._begin(empty=folder / "empty.sqlite3")
            )
    (database,) = data.glob("*.sqlite3")
    return database, token.read_text()


@contextlib.contextmanager
def embedded_server(data: Path, **settings: str) -> Iterator[Server]:
    """`evalhub serve` on SQLite, as `make serve` runs it."""
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", {**clean_environment(data), **settings})
    try:
        server.prepare()
        server.start("evalhub", "serve", "--bind", f"127.0.0.1:{port}")
        server.wait()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def empty_server(data: Path, **settings: str) -> Iterator[tuple[Server, str]]:
    """`evalhub serve` on a folder with no account, and the code that it prints for the first one."""
    port, log = free_port(), data.with_name(f"{data.name}-said")
    server = Server(f"http://127.0.0.1:{port}", {**clean_environment(data), **settings})
    try:
        database, _ = prepared_database()
        data.mkdir(parents=True, exist_ok=True)
        shutil.copy(database.parent.with_name("empty.sqlite3"), data / database.name)
        with log.open("wb") as output:
            command = [sys.executable, "-m", "evalhub", "serve", "--bind", f"127.0.0.1:{port}"]
            server.processes.append(
                subprocess.Popen(
                    command, env=server.environment, cwd=ROOT, start_new_session=True, stdout=output
                )
            )
        server.wait()
        while "with the code " not in log.read_text():
            time.sleep(0.05)
        yield server, log.read_text().partition("with the code ")[2].split()[0]
    finally:
        server.stop()


@contextlib.contextmanager
def separate_servers(data: Path, database_url: str, redis_url: str) -> Iterator[Server]:
    """The web server and two workers on PostgreSQL and Redis. Where stored files are in an object store, the second
    worker has another data folder."""
    port = free_port()
    environment = {
        **clean_environment(data),
        "EVALHUB_DATABASE_URL": database_url,
        "EVALHUB_REDIS_URL": redis_url,
    }
    server = Server(f"http://127.0.0.1:{port}", environment)
    try:
        server.prepare()
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
        server.start("evalhub", "worker", "--processes", "1")
        elsewhere = (
            {"EVALHUB_DATA": str(data.with_name(f"{data.name}-elsewhere"))} if FILES_URL else {}
        )
        second = Server(server.url, {**environment, **elsewhere}, server.processes)
        second.start("evalhub", "worker", "--processes", "1")
        server.wait()
        yield server
    finally:
        server.stop()


def wait_until_evaluated(
    client: httpx.Client, run_url: str, seconds: float = 120.0
) -> dict[str, object]:
    """Poll a run until its evaluation ended; returns its status."""
    deadline, pause = time.monotonic() + seconds, 0.02
    while time.monotonic() < deadline:
        status: dict[str, object] = client.get(run_url).raise_for_status().json()["status"]
        if status["state"] in ("evaluated", "failed"):
            return status
        time.sleep(pause)
        # A question costs processor time that what is waited for needs.
        pause = min(pause * 1.2, 0.2)
    raise TimeoutError(f"{run_url} is still {status['state']}")


def wait_until_compared(client: httpx.Client, url: str, seconds: float = 60.0) -> None:
    """Poll a comparison until a worker has made it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        state = client.get(url).raise_for_status().json()["comparison"]["state"]
        if state == "compared":
            return
        time.sleep(0.05)
    raise TimeoutError(f"{url} is still {state}")
