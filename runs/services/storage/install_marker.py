"""The store's marker, a file with the id of its install, which is checked before every write."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from runs.errors import StorageUnavailable, WrongStore
from runs.models import Install
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.folder import MARKER


@dataclass
class Known:
    """What this process knows about its install: its id, or that its store has no marker yet."""

    install: UUID | None = None
    unmarked: bool = False


KNOWN = Known()


def check_store() -> None:
    """Check that the store belongs to this install.

    Raise StorageUnavailable if it does not exist, WrongStore if it belongs to another install.
    """
    if KNOWN.install is None and not KNOWN.unmarked:
        KNOWN.install = Install.objects.values_list("uuid", flat=True).first()

    store = the_store()
    marker = read_marker(remembered=True)
    if marker is None and KNOWN.unmarked and store.exists():
        return

    if marker is None:
        raise StorageUnavailable(
            f"the server's {store.noun} is not there; nothing was stored, try again later"
        )

    if KNOWN.unmarked:
        # Another process has marked it meanwhile.
        KNOWN.install = Install.objects.values_list("uuid", flat=True).first()
        KNOWN.unmarked = False

    if marker != KNOWN.install:
        raise WrongStore(
            f"the server's {store.noun} belongs to another database; "
            "nothing was stored, try again later"
        )


def remember(*, unmarked: bool) -> None:
    """Forget the known id, and set whether a store without a marker is accepted."""
    KNOWN.install, KNOWN.unmarked = None, unmarked


def read_marker(*, remembered: bool = False) -> UUID | None:
    """Return the id of the store's install, or None if it has no marker or does not exist.

    With `remembered`, an id that was read a moment ago will do.
    """
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
