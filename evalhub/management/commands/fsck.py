"""evalhub fsck: check rows and files, with one line for every fault."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management import CommandParser
from django.db import connection

from evalhub.cli import damaged_database
from evalhub.management import command
from evalhub.operating.checks import READING_CHECKS
from evalhub.operating.install import require_install
from evalhub.serving.processes import abandoned_folders
from evalhub.serving.secret_key import damaged_key
from metrics.services.upkeep.findings import Finding
from metrics.services.upkeep.integrity import find_faults


class Command(command.Command):
    help = (
        "Check every row against the others, SQLite's file page by page, and every stored file "
        "against its SHA-256; exit status 1 for faults."
    )
    requires_system_checks = READING_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--repair", action="store_true", help="repair what can be repaired without losing data"
        )
        text = "skip reading the contents of files, judged views and SQLite's pages"
        parser.add_argument("--fast", action="store_true", help=text)

    def handle(self, **options: Any) -> None:
        command.require_settled(require_install)
        faults, repairable, damage = 0, [], ""
        repair = options["repair"]

        if message := damaged_key():
            faults += self._print(Finding("key_damaged", message))
            # Without the key, sealed secrets cannot be read: that is no reason to remove them.
            repair = False

        for finding in find_faults(fast=options["fast"]):
            if repair and finding.repair:
                repairable.append((finding, finding.repair))
            else:
                faults += self._print(finding)
                if finding.code == "database_damaged":
                    damage = damage or finding.message

        # Repair only after all rows were read.
        for finding, repair in repairable:
            repair()
            self.stdout.write(f"repaired {finding}")

        for folder in abandoned_folders():
            message = f"{folder} belongs to a killed web server; the next one removes it"
            self._print(Finding("abandoned_folder", message, note=True))

        repairs = f", {len(repairable)} findings repaired" if repairable else ""
        self.stdout.write(f"fsck: {faults} faults{repairs}")
        if damage and connection.vendor == "sqlite":
            self.stderr.write(damaged_database(damage))

        if faults:
            sys.exit(1)

    def _print(self, finding: Finding) -> bool:
        """Print a finding at once, in case the next check fails. Return whether it is a fault."""
        self.stdout.write(str(finding))
        self.stdout.flush()
        return not finding.note
