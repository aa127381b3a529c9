"""Two machines: data folders, web servers and workers of their own. They share a PostgreSQL, a Redis and an object
store, and nothing else."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import psutil

from tests.reliability.parts import Services, environment_of
from tests.reliability.rigs import OwnObjects, frozen
from tests.reliability.servers import Server, free_port

# Longer than a request to the store waits for its answer, which is then refused.
FROZEN_SECONDS = 20.0


class Machines(Services):
    """Each has one web server and one worker; `server` is the first, `second` the other one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.objects = OwnObjects()
        environment, port = self.server.environment, free_port()
        environment["EVALHUB_FILES_URL"] = self.objects.url("evalhub")
        # Small enough that copies are deleted and fetched again.
        environment["EVALHUB_FILES_CACHE_MB"] = "1"
        self.second = Server(
            f"http://127.0.0.1:{port}", {**environment, "EVALHUB_DATA": str(folder / "second")}
        )
        worker = ("evalhub", "worker", "--processes", "2")
        self.commands = {
            "web": ("evalhub", "web", "--bind", f"127.0.0.1:{self.port}", "--processes", "1"),
            "worker": worker,
            "second web": ("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1"),
            "second worker": worker,
        }

    @property
    def urls(self) -> list[str]:
        return [self.server.url, self.second.url]

    @property
    def others(self) -> list[str]:
        return [*super().others, "objects"]

    def prepare(self) -> None:
        self.objects.start()
        super().prepare()

    def start(self, name: str) -> subprocess.Popen[bytes]:
        on = self.second if name.startswith("second") else self.server
        return on.start(*self.commands[name])

    def wait(self) -> None:
        super().wait()
        self.second.wait()

    def survivors(self) -> list[psutil.Process]:
        data = self.second.environment["EVALHUB_DATA"]
        processes = [
            process
            for process in psutil.process_iter()
            if environment_of(process).get("EVALHUB_DATA") == data
        ]
        return [*super().survivors(), *processes]

    def break_off(self, what: str) -> None:
        if what != "objects":
            super().break_off(what)
        elif random.random() < 0.5:
            with frozen(self.objects.pid):
                time.sleep(FROZEN_SECONDS)
        else:
            self.objects.kill()
            time.sleep(2)
            self.objects.start()

    def stop_servers(self) -> None:
        super().stop_servers()
        self.second.stop()

    def stop(self) -> None:
        super().stop()
        self.objects.remove()
