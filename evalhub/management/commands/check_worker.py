"""evalhub check_worker: check whether this machine's worker is alive; a container's health check."""

from __future__ import annotations

import socket
from typing import Any

from django.core.management import CommandError

from evalhub.management import command
from metrics.services.queue.rounds import ALIVE_SECONDS, last_rounds


class Command(command.Command):
    help = "Succeed if a dispatcher of this host completed a round in the last 30 s."
    requires_system_checks = ()

    def handle(self, **options: Any) -> None:
        host = socket.gethostname()
        rounds = [entry for entry in last_rounds() if entry.worker.startswith(f"{host}-")]
        ages = [entry.age for entry in rounds]
        if not ages or min(ages) >= ALIVE_SECONDS:
            raise CommandError(
                f"no dispatcher of {host} completed a round in the last {ALIVE_SECONDS:.0f} s"
            )
