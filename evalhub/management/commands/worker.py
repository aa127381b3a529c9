"""evalhub worker: run a Celery worker on the Redis of EVALHUB_REDIS_URL, on any machine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import CommandError, CommandParser
from django.db import InterfaceError, OperationalError

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS, check_redis
from evalhub.operating.install import settle_install, settle_redis
from evalhub.serving.processes import load_worker
from evalhub.serving.supervisor import Supervisor
from runs.models import Install


class Command(command.Command):
    help = "Evaluate until SIGTERM; jobs in progress are finished or put back into the queue."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--processes", type=int, default=settings.EVALHUB_WORKER_PROCESSES)

    def handle(self, **options: Any) -> None:
        if settings.EVALHUB_EMBEDDED:
            raise CommandError(
                "set EVALHUB_REDIS_URL; without it evalhub serve runs the only worker itself"
            )

        for message in check_redis(settings.EVALHUB_REDIS_URL):
            self.stderr.write(str(message))
            if message.is_serious():
                raise CommandError("the worker did not start; see the reason above")

        try:
            command.require_settled_or_wait(settle_install, self.stderr.write)
            install = Install.objects.get().uuid
            command.require_settled(lambda: settle_redis(install))
        except (InterfaceError, OperationalError) as error:
            reason = " ".join(str(error).split())
            self.stderr.write(
                f"the database does not answer yet ({reason}); the worker keeps trying"
            )

        # If Celery ends, as it may when its pool or its broker is killed, another worker starts.
        evaluate = load_worker()
        supervisor = Supervisor({"worker": lambda: evaluate(options["processes"])})
        supervisor.start()

        try:
            supervisor.wait()
        finally:
            supervisor.stop()
