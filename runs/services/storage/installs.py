"""Check that database and store belong together.

The database has the id of its install in a row, the store in a file among the stored ones. EvalHub
never writes to or sweeps a store that belongs to another install, was emptied, or does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Literal
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection

from runs.models import Install, Qrels, Run, SessionSet
from runs.services.storage.files import files_of_apps
from runs.services.storage.install_marker import check_store, read_marker, remember, write_marker
from runs.services.storage.stores.chosen import the_store

# Files of each kind that rows name, which are looked up in a store without a marker.
_SAMPLE = 50

Standing = Literal["ours", "unmarked", "new"]


class WrongPlace(Exception):
    """Database, store and Redis do not belong to one install; the message says what to do."""


def settle() -> UUID:
    """Mark database and store as one install if both are new or fit each other, and return its id.

    Raise WrongPlace otherwise. Several processes can call this at once.
    """
    _create_data_folder()

    if judge() != "ours":
        install, _ = Install.objects.get_or_create(
            pk=1, defaults={"uuid": read_marker() or uuid4()}
        )
        write_marker(install.uuid)

    remember(unmarked=False)
    check_store()
    return Install.objects.get().uuid


def require_place() -> None:
    """Check the install without writing, for commands that must work on a read-only disk.

    Raise WrongPlace if database and store do not belong together, or there is no data folder.
    """
    _create_data_folder()
    standing = judge()

    if not settings.EVALHUB_DATA.is_dir():
        raise WrongPlace(
            f"there is no data folder {settings.EVALHUB_DATA}; check EVALHUB_DATA, "
            "or start with evalhub serve or web"
        )

    remember(unmarked=standing != "ours")


def adopt(*, new: bool = False) -> tuple[UUID, int, int]:
    """Make database and store one install whatever they were; with `new` under a new id.

    Return the id, and how many of a sample of stored files that rows name exist: (id, existing,
    size of the sample).
    """
    install, _ = Install.objects.get_or_create(pk=1)

    if new:
        install.uuid = uuid4()
        install.save(update_fields=["uuid"])

    write_marker(install.uuid, replace=True)
    remember(unmarked=False)
    sample = set(_named_files())

    return install.uuid, sum(the_store().has(name) for name in sample), len(sample)


def judge() -> Standing:
    """Return how database and store relate.

    They are `ours`, both `new`, or `unmarked` but with files that our rows name. Raise WrongPlace
    if they do not belong together.
    """
    install = Install.objects.values_list("uuid", flat=True).first()
    marker = read_marker()
    if install and install == marker:
        return "ours"

    store, database = the_store(), connection.settings_dict["NAME"]
    if install and marker:
        raise WrongPlace(
            f"{store.name} belongs to another install (id {marker}) than the database {database} "
            f"(id {install}). Check {store.setting} and EVALHUB_DATABASE_URL; "
            "if these two belong together from now on, run evalhub adopt."
        )

    names = list(islice(_named_files(), 4 * _SAMPLE))
    if any(store.has(name) for name in names):
        return "unmarked"

    if names:
        raise WrongPlace(
            f"{store.name} has none of the stored files that the database {database} names. "
            f"Is its disk mounted, and is {store.setting} right? If the files are lost, "
            "restore a backup; to go on without them, run evalhub adopt."
        )

    # Nothing is lost if both are in one folder and both are empty.
    if any(store.entries()) or (marker and connection.vendor != "sqlite"):
        raise WrongPlace(
            f"{store.name} holds the stored files of another database: "
            f"the database {database} names none of them. Check EVALHUB_DATABASE_URL, "
            "or put the database back where it was, or restore a backup into an empty "
            f"{store.noun}; to have these files swept, run evalhub adopt."
        )

    return "new"


def _create_data_folder() -> None:
    """Create the data folder if the stored files are elsewhere."""
    if settings.EVALHUB_FILES:
        settings.EVALHUB_DATA.mkdir(parents=True, exist_ok=True)


def _named_files() -> Iterator[str]:
    """Yield the SHA-256 of stored files that rows name, beginning with a sample of each kind."""
    querysets = (
        Qrels.objects.order_by("pk").values_list("sha256", flat=True),
        Run.objects.filter(deleted_at=None)
        .with_files()
        .order_by("pk")
        .values_list("sha256", flat=True),
        SessionSet.objects.filter(deleted_at=None).order_by("pk").values_list("sha256", flat=True),
    )
    samples = (queryset[:_SAMPLE] for queryset in querysets)

    return chain(*samples, *querysets, (sha256 for sha256, _, _ in files_of_apps()))
