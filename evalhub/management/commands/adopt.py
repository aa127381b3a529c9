"""evalhub adopt: declare that this database, store and Redis are one install."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import CommandParser
from django.db import connection

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.install import require_migrated, settle_redis
from metrics.services.answer_store import forget_all
from runs.services.storage.installs import adopt


class Command(command.Command):
    help = (
        "Take the database, the data folder and the Redis of the settings for one install from now "
        "on, whatever they belonged to before. Other commands refuse what does not fit."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        text = (
            "give it a new id: for a copy of an install, so that it is never taken for the original"
        )
        parser.add_argument("--new", action="store_true", help=text)

    def handle(self, **options: Any) -> None:
        command.require_settled(require_migrated)
        install, present, named = adopt(new=options["new"])
        forget_all()
        if not settings.EVALHUB_EMBEDDED:
            command.require_settled(lambda: settle_redis(install, replace=True))

        self.stdout.write(
            f"adopted: {settings.EVALHUB_DATA} belongs to the database "
            f"{connection.settings_dict['NAME']}, id {install}"
        )
        if present < named:
            self.stderr.write(
                f"{named - present:,} of {named:,} stored files that the database names are not "
                "there; evalhub fsck names what they belong to"
            )
