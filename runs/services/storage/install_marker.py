"""The store's marker: the id of its install in a file among the stored ones, checked before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from runs.errors import StorageUnavailable, WrongStore
from runs.models import Install
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.folder import MARKER


@dataclass
class Known:
    """What this process knows of its install: its id, or that its store needs no marker (yet)."""

    install: UUID | None = None
    unmarked: bool = False


KNOWN = Known()


def check_store() -> None:
    """Raise StorageUnavailable if the store does not exist, WrongStore if it belongs to another install."""
    if KNOWN.install is None and not KNOWN.unmarked:
        KNOWN.install = Install.objects.values_list("uuid", flat=True).first()
    store = the_store()
    found = read_marker(remembered=True)
    if found is None and KNOWN.unmarked and store.is_there():
        return
    if found is None:
        raise StorageUnavailable(
            f"the server's {store.noun} is not there; nothing was stored, try again later"
        )
    if KNOWN.unmarked:
        # Another process has marked it meanwhile.
        KNOWN.install, KNOWN.unmarked = (
            Install.objects.values_list("uuid", flat=True).first(),
            False,
        )
    if found != KNOWN.install:
        raise WrongStore(
            f"the server's {store.noun} belongs to another database; nothing was stored, try again later"
        )


def remember(*, unmarked: bool) -> None:
    """Forget the known id, and set whether a store without a marker is accepted."""
    KNOWN.install, KNOWN.unmarked = None, unmarked


def read_marker(*, remembered: bool = False) -> UUID | None:
    """Return the id of the install to which the store belongs, or None if it has none or does not exist. One that was
    read a moment ago will do if it may be `remembered`."""
    text = the_store().read_marker(remembered=remembered)
    if text is None:
        return None
    try:
        return UUID(text.strip())
    except ValueError as error:
        raise WrongStore(
            f"files/{MARKER} in the {the_store().noun} is damaged; evalhub adopt writes it anew"
        ) from error


def write_marker(install: UUID, *, replace: bool = False) -> None:
    """Write the id into the store atomically; an existing id stays unless `replace` is given."""
    the_store().write_marker(f"{install}\n", replace=replace)
