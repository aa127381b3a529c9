"""evalhub migrate: Django's command, one process at a time, and not in place of a lost database."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.install import missing_migrations, note_needs, require_known
from runs.services.storage.stores.chosen import the_store

# Any number that other locks do not use.
_ADVISORY_LOCK = 0x65766C687562
_PAUSE_SECONDS = 0.2


class Command(command.Command, migrate.Command):
    help = "Bring the database up to date; a second one waits until the first is done."
    # Django's checks would load every page.
    requires_system_checks = OWN_CHECKS

    def execute(self, *args: Any, **options: Any) -> Any:
        # Before the checks, which query the database.
        with _exclusive():
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        command.require_settled(require_known)
        if not (options.get("app_label") or options["verbosity"] or missing_migrations()):
            # The usual case when a server starts. Django would build the state of all models twice;
            # only the signal after a migration is sent again, in case the last one was interrupted.
            emit_post_migrate_signal(0, False, options["database"])
            note_needs()
            return

        super().handle(*args, **options)
        if not missing_migrations():
            note_needs()


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    """Hold the lock for migrating this database, after its present holder is done.

    The kernel or the server frees it if the process dies.
    """
    path = connection.settings_dict["NAME"]
    if connection.vendor == "postgresql":
        # Polled: the server would end a waiting statement at its time limit.
        with connection.cursor() as cursor:
            while True:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [_ADVISORY_LOCK])
                if cursor.fetchone() == (True,):
                    break
                time.sleep(_PAUSE_SECONDS)

        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_ADVISORY_LOCK])
    elif isinstance(path, Path):
        with contextlib.ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(path.with_name("migrate.lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                _create_database(path)
            except OSError as error:
                raise CommandError(
                    f"cannot make a database in {path.parent}: {error.strerror}"
                ) from error

            yield
    else:
        yield


def _create_database(path: Path) -> None:
    """Create an empty database if there is none, which no other command does.

    Raise CommandError if one was lost.
    """
    if path.exists() and path.stat().st_size:
        return
    if any(the_store().entries()):
        raise CommandError(
            f"there is no database {path}, but {the_store().name} has stored files. Put the "
            "database back where it was, or restore a backup into an empty folder: "
            "EVALHUB_DATA=NEW_FOLDER evalhub restore BACKUP_FILE"
        )

    path.touch()
