"""Services that are started again, part by part, whenever something of them dies."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path

import psutil

from tests.reliability.rigs import OwnPostgres, OwnRedis
from tests.reliability.servers import Server, clean_environment, free_port

LEASE = 3


class Service:
    """A service that is started again, part by part, whenever something of it died."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        environment = {**clean_environment(folder / "data"), "EVALHUB_LEASE_SECONDS": str(LEASE)}
        self.server = Server(f"http://127.0.0.1:{self.port}", environment)
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.commands: dict[str, tuple[str, ...]] = {
            "serve": ("evalhub", "serve", "--bind", f"127.0.0.1:{self.port}"),
        }

    def prepare(self) -> None:
        """What must run before the parts."""
        self.server.prepare()

    def revive(self) -> None:
        for name in self.commands:
            part = self.parts.get(name)
            if part is None or part.poll() is not None:
                self.parts[name] = self.start(name)

    def start(self, name: str) -> subprocess.Popen[bytes]:
        return self.server.start(*self.commands[name])

    def wait(self) -> None:
        self.server.wait()

    @property
    def urls(self) -> list[str]:
        """The addresses of its web servers."""
        return [self.server.url]

    @property
    def others(self) -> list[str]:
        """Servers beside ours that can be broken off."""
        return []

    def processes(self) -> list[psutil.Process]:
        processes: list[psutil.Process] = []
        for part in self.parts.values():
            with contextlib.suppress(psutil.Error):
                top = psutil.Process(part.pid)
                processes += [top, *top.children(recursive=True)]
        return processes

    def workers(self) -> list[psutil.Process]:
        return [process for process in self.processes() if name_of(process) == "evalhub worker"]

    def survivors(self) -> list[psutil.Process]:
        """Every process that works on this data folder, whoever its parent is."""
        data = self.server.environment["EVALHUB_DATA"]
        return [
            process
            for process in psutil.process_iter()
            if environment_of(process).get("EVALHUB_DATA") == data
        ]

    def break_off(self, what: str) -> None:
        """Kill a server beside ours and start it again after a while."""

    def stop_servers(self) -> None:
        """Stop what is ours."""
        self.server.stop()

    def stop(self) -> None:
        self.stop_servers()


class Services(Service):
    """Separate processes on a PostgreSQL and a Redis of our own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.redis, self.postgres = OwnRedis(), OwnPostgres()
        urls = {"EVALHUB_REDIS_URL": self.redis.url, "EVALHUB_DATABASE_URL": self.postgres.url}
        self.server.environment.update(urls)
        self.commands = {
            "web": ("evalhub", "web", "--bind", f"127.0.0.1:{self.port}", "--processes", "2"),
            "one": ("evalhub", "worker", "--processes", "2"),
            "two": ("evalhub", "worker", "--processes", "2"),
        }

    def prepare(self) -> None:
        self.redis.start()
        self.postgres.start()
        self.server.prepare()

    @property
    def others(self) -> list[str]:
        return ["redis", "postgres"]

    def break_off(self, what: str) -> None:
        broken = {"redis": self.redis, "postgres": self.postgres}[what]
        broken.kill()
        time.sleep(0.5)
        broken.start()

    def stop(self) -> None:
        super().stop()
        self.redis.kill()
        self.postgres.remove()


def command_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def name_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return process.name()
    return ""


def environment_of(process: psutil.Process) -> dict[str, str]:
    with contextlib.suppress(psutil.Error):
        return process.environ()
    return {}


def is_web_child(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        parent = process.parent()
        return parent is not None and all(
            process.name() == "evalhub web" for process in (process, parent)
        )
    return False
