"""evalhub restore: restore a backup into an empty install; with --verify only check it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, CommandParser, call_command

from evalhub.database_errors import is_full
from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.install import settle_install
from evalhub.operating.restoring import Backup, BadBackup, describe, install
from evalhub.serving.supervisor import AlreadyServed, exclusive


class Command(command.Command):
    help = "Restore a backup into an empty database and data folder that nothing is using."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--verify", action="store_true", help="check the backup without restoring it"
        )

    def handle(self, **options: Any) -> None:
        try:
            backup = Backup(options["file"])
            try:
                lost = self._check(backup)
                if not options["verify"]:
                    self._install(backup, lost)
            finally:
                backup.close()
        except BadBackup as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            if is_full(error):
                text = (
                    f"no space is left on the disk of {settings.EVALHUB_DATA}; free some, then "
                    "restore again"
                )
                raise CommandError(text) from error
            raise CommandError(
                f"cannot restore {options['file']}: {error.strerror or error}"
            ) from error
        except AlreadyServed as error:
            raise CommandError(str(error), returncode=2) from error

        if lost:
            sys.exit(1)

    def _check(self, backup: Backup) -> set[str]:
        """Print the faults, and return the SHA-256 of stored files that the backup has not intact."""
        faults = []
        for fault in backup.faults():
            self.stdout.write(f"wrong {fault}")
            faults.append(fault)

        for sha256, fault_text in backup.lacking.items():
            self.stdout.write(
                f"not in the backup: files/{sha256}, which {fault_text} in the install that it is of"
            )

        self.stdout.write(f"verified: {describe(backup)}; {len(faults)} faults")
        if not all(fault.sha256 for fault in faults):
            raise BadBackup(
                "its rows are not those that were saved; nothing was installed, take another backup"
            )
        return {fault.sha256 for fault in faults} | set(backup.lacking)

    def _install(self, backup: Backup, lost: set[str]) -> None:
        with exclusive(settings.EVALHUB_DATA):
            call_command("migrate", verbosity=0)
            command.require_settled(settle_install)
            disabled = install(backup, lost)

        self.stdout.write(f"restored: {describe(backup)}")
        if disabled:
            self.stdout.write(
                f"webhooks disabled: {disabled}; their secrets were sealed with another secret key. "
                "Restore with that key, or let their owners make new secrets (POST "
                "webhooks/ID/secret/) and enable them"
            )

        if lost:
            self.stdout.write(
                f"stored files not restored: {len(lost)}; evalhub fsck names the runs and "
                "judgements they belong to"
            )
