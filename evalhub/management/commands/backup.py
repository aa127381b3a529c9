"""evalhub backup: back up everything into one file, while the service runs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.operating.backup import FAULTS, write_backup
from evalhub.operating.checks import READING_CHECKS
from evalhub.operating.install import require_install


class Command(command.Command):
    help = (
        "Back up all rows and stored files, as of now, into one tar file that either database can "
        "restore."
    )
    requires_system_checks = READING_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, **options: Any) -> None:
        target = options["file"].resolve()
        if target.is_dir():
            raise CommandError(f"{target} is a folder; name a file in it")
        if not target.parent.is_dir():
            raise CommandError(f"the folder {target.parent} does not exist; make it first")

        command.require_settled(require_install)
        # With this, SIGTERM removes the unfinished file, as Ctrl-C does.
        handler = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        try:
            manifest = write_backup(target)
        except OSError as error:
            raise CommandError(
                f"cannot write {target}: {error.strerror or error}; nothing is left of it"
            ) from error
        finally:
            signal.signal(signal.SIGTERM, handler)

        rows = sum(manifest["rows"].values())
        files = sum(name.startswith("files/") for name in manifest["members"])
        self.stdout.write(f"backup: {rows:,} rows and {files:,} files in {options['file']}")

        faults = [(sha256, fault) for state, fault in FAULTS.items() for sha256 in manifest[state]]
        for sha256, fault in faults:
            self.stderr.write(
                f"backup: the stored file {sha256} {fault}; evalhub fsck names what it belongs to"
            )

        if faults:
            sys.exit(1)
