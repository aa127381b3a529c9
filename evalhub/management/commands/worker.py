"""evalhub worker: one worker with its dispatcher; as many as wanted, on any machine that sees the data folder."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser

from evalhub.processes import worker_command


class Command(BaseCommand):
    help = "Run one worker; the database and Redis are those of the environment."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--processes", type=int, default=settings.EVALHUB_WORKER_PROCESSES)

    def handle(self, **options: Any) -> None:
        if settings.EVALHUB_EMBEDDED:
            raise CommandError("set EVALHUB_REDIS_URL; without it, evalhub serve runs a worker of its own")
        command = worker_command(options["processes"])
        # In place of this process: signals reach the worker itself.
        os.execv(command[0], command)
