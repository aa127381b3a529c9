"""evalhub serve: web server and worker on this machine, on the data folder of EVALHUB_DATA."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from django.conf import settings
from django.core.management import CommandError, CommandParser, call_command

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.serving.processes import web_command, worker_command
from evalhub.serving.supervisor import AlreadyServed, Supervisor, exclusive
from runs.models import User

DEFAULT_BIND = "127.0.0.1:8000"


class Command(command.Command):
    help = "Run the web server and the worker until Ctrl-C."
    requires_system_checks = OWN_CHECKS
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_server_arguments(parser)

    def handle(self, **options: Any) -> None:
        try:
            with exclusive(settings.EVALHUB_DATA):
                call_command("migrate", verbosity=0)
                supervisor = make_supervisor(options)
                supervisor.start()
                self.stdout.write(f"EvalHub at http://{options['bind']}/ on {settings.EVALHUB_DATA}; Ctrl-C ends it")
                if not User.objects.exists():
                    self.stdout.write(
                        f"nobody has an account yet; this makes the first one: {_own_command()} create_admin NAME"
                    )
                self.stdout.flush()
                try:
                    code = supervisor.wait()
                finally:
                    supervisor.stop()
        except AlreadyServed as error:
            raise CommandError(str(error), returncode=2) from error
        if code:
            raise CommandError("the web server could not go on; its message is above", returncode=code)


def add_server_arguments(parser: CommandParser) -> None:
    parser.add_argument("--bind", default=DEFAULT_BIND, help="address and port of the web server")
    parser.add_argument("--web-processes", type=int, default=settings.EVALHUB_WEB_PROCESSES)


def make_supervisor(options: dict[str, Any]) -> Supervisor:
    web = web_command(options["bind"], options["web_processes"])
    return Supervisor({"web": web, "worker": worker_command(settings.EVALHUB_WORKER_PROCESSES)})


def _own_command() -> str:
    """What is pasted into another terminal, in another folder."""
    return shlex.join(["env", f"EVALHUB_DATA={settings.EVALHUB_DATA}", sys.executable, "-m", "evalhub"])
