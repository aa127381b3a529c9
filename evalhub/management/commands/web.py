"""evalhub web: run the web server alone, for installs whose workers are separate processes."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management import CommandParser
from django.db import InterfaceError, OperationalError

from evalhub.management import command
from evalhub.management.commands.serve import begin, check_address
from evalhub.operating.checks import OWN_CHECKS
from evalhub.serving.processes import INHERITED, load_web


class Command(command.Command):
    help = "Run the web server alone; run evalhub worker for evaluations."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--bind", default="127.0.0.1:8000", help="address and port of the web server"
        )
        parser.add_argument("--processes", type=int, default=settings.EVALHUB_WEB_PROCESSES)

    def handle(self, **options: Any) -> None:
        # A server that replaced itself has the address, and its install is settled.
        if INHERITED not in os.environ:
            check_address(options["bind"])
            try:
                begin(self.stderr.write)
            except (InterfaceError, OperationalError) as error:
                reason = " ".join(str(error).split())
                self.stderr.write(
                    f"the database does not answer yet ({reason}); requests are answered when it "
                    "does"
                )

        sys.exit(load_web()(options["bind"], options["processes"]))
