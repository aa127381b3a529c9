"""The first check of every command: whether code, database, store and Redis belong together."""

from __future__ import annotations

import contextlib
import functools
import stat
from pathlib import Path
from typing import cast
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils.crypto import salted_hmac

from runs.models import Install
from runs.services.storage.installs import WrongPlace, require_place, settle

# Older code works on a newer database if it knows these migrations. A release adds a migration here
# if the code of the previous release cannot work with it.
NEEDS = ("runs.0012_install", "runs.0024_artifacts", "metrics.0012_store_compressed_as_it_is")
# The last version with all migrations that are replaced today; it upgrades older databases.
LAST_WITH_ALL_STEPS = "0.1.0.dev1170"
_REDIS_KEY = "evalhub:install"


def settle_install() -> UUID:
    """Mark database and store as one install, for a command that may begin one.

    Raise WrongPlace if they do not fit.
    """
    require_migrated()
    install = settle()
    note_needs()
    close_data_folder()

    return install


def close_data_folder() -> None:
    """Deny other users of the machine access to the data folder, as far as it belongs to this one.

    Commands create files for their own user alone; the modes of copied and other folders are
    corrected at every start.
    """
    folder: Path = settings.EVALHUB_DATA
    inside = (
        folder / "files",
        folder / "uploads",
        folder / "secret.key",
        *folder.glob("*.sqlite3*"),
    )
    for path in (folder, *inside):
        with contextlib.suppress(OSError):
            mode = path.stat().st_mode
            # A folder that many users write into, such as /tmp, stays as it is.
            if mode & 0o077 and not mode & stat.S_ISVTX:
                path.chmod(stat.S_IMODE(mode) & ~0o077)


def note_needs() -> None:
    """Record which migrations code must know for this database; older code removes none of them."""
    recorded = Install.objects.values_list("needs", flat=True).first()
    if recorded is not None and set(recorded) < set(NEEDS):
        Install.objects.update(needs=list(NEEDS))


def require_install() -> None:
    """Check the install without writing anything, for a command that does not begin one."""
    require_migrated()
    require_place()


def require_migrated() -> None:
    """Raise WrongPlace if the database lacks migrations, or has some that do not fit this code."""
    require_known()
    if missing := missing_migrations():
        raise WrongPlace(
            f"the database is not that of this version: {len(missing)} migrations are missing, "
            f"{missing[0]} first. Run evalhub migrate first."
        )


def require_known() -> None:
    """Raise WrongPlace if the database needs migrations that this code does not know.

    It is raised, too, if only some of the migrations are applied that one of this code replaces.
    """
    applied = MigrationRecorder(connection).applied_migrations().keys()
    known = set(_loader().disk_migrations or ())

    for migration in _loader().replacements.values():
        replaced = set(migration.replaces)
        known |= replaced
        if applied & replaced and not replaced <= applied:
            raise WrongPlace(
                f"the database is that of an older version ({'.'.join(min(replaced - applied))} is "
                "missing), which this one cannot upgrade. Install EvalHub "
                f"{LAST_WITH_ALL_STEPS}, run evalhub migrate with it, and then use this version."
            )

    unknown = {node for node in applied if node[0] in ("runs", "metrics")} - known
    if not unknown:
        return

    needs = None
    if ("runs", "0012_install") in applied:
        needs = Install.objects.values_list("needs", flat=True).first()

    if needs and set(needs) <= {".".join(node) for node in known}:
        return

    names = ", ".join(sorted(".".join(node) for node in unknown)[:3])
    raise WrongPlace(
        f"the database was migrated by another version of EvalHub (this one does not know {names}). "
        "Use that version or a newer one, or restore a backup of this version; a database from "
        "before the first release cannot be upgraded."
    )


def missing_migrations() -> list[str]:
    """Return the migrations that this code knows and the database lacks, in their order."""
    applied = MigrationRecorder(connection).applied_migrations()
    graph = _loader().graph
    plan = dict.fromkeys(node for leaf in newest_migrations() for node in graph.forwards_plan(leaf))

    return [".".join(node) for node in plan if node not in applied]


def newest_migrations() -> set[tuple[str, str]]:
    """Return the last migration of each app that this code knows."""
    return set(_loader().graph.leaf_nodes())


@functools.cache
def _loader() -> MigrationLoader:
    return MigrationLoader(None)


def settle_redis(install: UUID, *, replace: bool = False) -> None:
    """Mark Redis as that of an install; raise WrongPlace if it belongs to another one.

    An unavailable Redis is checked next time.
    """
    # Imported here, as it takes half a second to load, and most commands do not need it.
    import redis

    client = redis.Redis.from_url(
        settings.EVALHUB_REDIS_URL, socket_timeout=3, socket_connect_timeout=3
    )

    redis_install = str(install)
    # Redis is unavailable, or its user may not read this key: Celery reports what it lacks.
    with contextlib.suppress(redis.RedisError), contextlib.closing(client):
        client.set(_REDIS_KEY, redis_install, nx=not replace)
        stored = cast(bytes, client.get(_REDIS_KEY) or b"").decode(errors="replace")
        redis_install = stored or redis_install

    if redis_install != str(install):
        raise WrongPlace(
            "the Redis of EVALHUB_REDIS_URL carries the messages of another install (id "
            f"{redis_install}). Give each install a Redis database of its own "
            "(redis://HOST:6379/1); if this one is free now, run evalhub adopt."
        )


def changed_key() -> str:
    """Return a warning if the secret key differs from that of the last start, and record it, or "".

    Only a digest is stored, which shows nothing but whether keys are equal.
    """
    check = salted_hmac("evalhub.install", "key", algorithm="sha256").hexdigest()
    last_check = Install.objects.values_list("key_check", flat=True).first()
    if last_check is None or last_check == check:
        return ""

    Install.objects.update(key_check=check)
    if not last_check:
        return ""

    return (
        "the secret key is another one than at the last start: everybody must log in again. Give "
        "all web servers of an install the same EVALHUB_SECRET_KEY; without it, keep secret.key in "
        "the data folder."
    )
