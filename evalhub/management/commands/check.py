"""evalhub check: Django's command, with the checks for a server that others can reach."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.management import CommandError, CommandParser
from django.core.management.commands import check
from django.db import connection

from evalhub.management import command
from evalhub.operating.checks import check_redis
from runs.services.storage.install_marker import read_marker


class Command(command.Command, check.Command):
    help = (
        "Check the settings and the code, as every command does, and what a server that others "
        "reach needs."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--services",
            action="store_true",
            help="also connect to the database, the file store and Redis",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **{**options, "deploy": True})
        if not options["services"]:
            return

        connection.ensure_connection()
        self.stdout.write("The database accepts the connection.")
        if settings.EVALHUB_FILES:
            command.require_settled(read_marker)
            self.stdout.write("The file store accepts the requests.")

        if not settings.EVALHUB_REDIS_URL:
            return

        messages = check_redis(settings.EVALHUB_REDIS_URL)
        for message in messages:
            self.stderr.write(str(message))

        if any(message.is_serious(checks.WARNING) for message in messages):
            raise CommandError("correct what is said of Redis above")

        self.stdout.write("Redis accepts the connection, and its settings are right.")
