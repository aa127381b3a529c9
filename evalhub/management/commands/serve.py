"""evalhub serve: run web server and worker on this machine, on the data folder of EVALHUB_DATA."""

from __future__ import annotations

import errno
import multiprocessing
import shlex
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, CommandParser, call_command
from django.db import connections

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.install import changed_key, settle_install
from evalhub.serving.processes import load_web, load_worker, parse_address
from evalhub.serving.secret_key import keep_key
from evalhub.serving.supervisor import AlreadyServed, Supervisor, exclusive
from runs.models import User
from runs.services.accounts.first_account import offer_code
from runs.services.submissions.sweeping import delete_old_uploads, delete_uploads_left_behind

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
                check_address(options["bind"])
                migrate_apart()
                begin(self.stderr.write)
                delete_uploads_left_behind()
                supervisor = make_supervisor(options)
                supervisor.start()
                self.stdout.write(
                    f"EvalHub at http://{options['bind']}/ on {settings.EVALHUB_DATA}; Ctrl-C "
                    "ends it"
                )

                if not User.objects.exists():
                    # A command to paste into another terminal, in another folder.
                    data = f"EVALHUB_DATA={settings.EVALHUB_DATA}"
                    words = ["env", data, sys.executable, "-m", "evalhub"]
                    create = f"{shlex.join(words)} create_admin NAME"
                    page = f"http://{options['bind']}/ with the code {offer_code()}"
                    self.stdout.write(f"no account exists yet; create the first one at {page}")
                    self.stdout.write(f"or with: {create}")

                self.stdout.flush()
                try:
                    code = supervisor.wait()
                finally:
                    supervisor.stop()
        except AlreadyServed as error:
            raise CommandError(str(error), returncode=2) from error

        if code:
            raise CommandError("the web server stopped; see its message above", returncode=code)


def migrate_apart() -> None:
    """Migrate the database in a process of its own.

    To migrate a new one takes 250 MB, which all processes that are forked from this one would have,
    too.
    """
    connections.close_all()
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as migrating:
        migrating.submit(call_command, "migrate", verbosity=0).result()


def begin(notify: Callable[[str], object]) -> None:
    """Settle the install before its web server starts. Raise CommandError if its parts do not fit."""
    command.require_settled_or_wait(settle_install, notify)
    if settings.EVALHUB_FILES:
        # Workers on other machines do not sweep these.
        delete_old_uploads()

    try:
        keep_key()
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error

    if warning := changed_key():
        notify(warning)


def add_server_arguments(parser: CommandParser) -> None:
    parser.add_argument("--bind", default=DEFAULT_BIND, help="address and port of the web server")
    parser.add_argument("--web-processes", type=int, default=settings.EVALHUB_WEB_PROCESSES)


def check_address(bind: str) -> None:
    """Raise CommandError if the web server could not listen at `bind`, HOST:PORT."""
    try:
        host, port = parse_address(bind)
    except ValueError as error:
        raise CommandError(str(error)) from error

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # Bind as the web server does: old connections of an ended server are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            reason = error.strerror
            if error.errno == errno.EADDRINUSE:
                reason = f"another program is listening there (ss -ltnp 'sport = :{port}' names it)"

            raise CommandError(
                f"cannot listen at {bind}: {reason}; choose another address with --bind"
            ) from error


def make_supervisor(options: dict[str, Any]) -> Supervisor:
    """Load web server and worker, once for all their processes, and return their supervisor."""
    serve, evaluate = load_web(), load_worker()
    # The worker comes first: the web server is ready after a dispatcher's round.
    return Supervisor(
        {
            "worker": lambda: evaluate(settings.EVALHUB_WORKER_PROCESSES),
            "web": lambda: serve(options["bind"], options["web_processes"]),
        }
    )
