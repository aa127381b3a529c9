"""evalhub migrate: Django's command, in one process at a time, and never on a database that
replaces a lost one."""

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
from evalhub.operating.settling import missing_migrations, note_needs, require_known
from runs.services.storage.stores.chosen import the_store

# Any number that is the same in every process and not used by another lock.
_ADVISORY_LOCK = 0x65766C687562
_PAUSE_SECONDS = 0.2


class Command(command.Command, migrate.Command):
    help = "Bring the database up to date; a second one waits until the first is done."
    # All of Django's would load every page.
    requires_system_checks = OWN_CHECKS

    def execute(self, *args: Any, **options: Any) -> Any:
        # Before the checks, which query the database.
        with _alone():
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        command.placed(require_known)
        if not (options.get("app_label") or options["verbosity"] or missing_migrations()):
            # As a server finds it at almost every start. Django would build the state of all models
            # twice; what it does after a migration is repeated, in case the last one was
            # interrupted there.
            emit_post_migrate_signal(0, False, options["database"])
            note_needs()
            return

        super().handle(*args, **options)
        if not missing_migrations():
            note_needs()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock for migrating this database, after waiting for its current holder. The kernel
    or server frees it if the process dies."""
    path = connection.settings_dict["NAME"]
    if connection.vendor == "postgresql":
        # Polled, because a wait inside the server would end with a statement's time limit.
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
                _begin(path)
            except OSError as error:
                raise CommandError(
                    f"cannot make a database in {path.parent}: {error.strerror}"
                ) from error

            yield
    else:
        yield


def _begin(path: Path) -> None:
    """Create an empty database if there is none; no other command does. Raise CommandError if one
    was lost."""
    if path.exists() and path.stat().st_size:
        return
    if any(the_store().entries()):
        raise CommandError(
            f"there is no database {path}, but {the_store().name} has stored files. Put the database back where it "
            "was, or restore a backup into an empty folder: EVALHUB_DATA=NEW_FOLDER evalhub restore BACKUP_FILE"
        )

    path.touch()
