"""evalhub restore: a backup into an empty install; with --verify it is only checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, CommandParser, call_command

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.restoring import Backup, BadBackup, describe, install
from evalhub.serving.supervisor import AlreadyServed, exclusive


class Command(command.Command):
    help = "Restore a backup into an empty database and data folder that nothing is using."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--verify", action="store_true", help="check the backup without restoring it")

    def handle(self, **options: Any) -> None:
        try:
            backup = Backup(options["file"])
            try:
                self._check(backup)
                if not options["verify"]:
                    self._install(backup)
            finally:
                backup.close()
        except (BadBackup, FileNotFoundError) as error:
            raise CommandError(str(error)) from error
        except AlreadyServed as error:
            raise CommandError(str(error), returncode=2) from error

    def _check(self, backup: Backup) -> None:
        problems = list(backup.problems())
        for problem in problems:
            self.stdout.write(f"wrong {problem}")
        self.stdout.write(f"verified: {describe(backup)}; {len(problems)} faults")
        if problems:
            sys.exit(1)

    def _install(self, backup: Backup) -> None:
        with exclusive(settings.EVALHUB_DATA):
            call_command("migrate", verbosity=0)
            install(backup)
        self.stdout.write(f"restored: {describe(backup)}")
