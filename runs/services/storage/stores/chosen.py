"""The store that the settings name."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from runs.services.storage.stores.folder import FolderStore
from runs.services.storage.stores.interface import Store
from runs.services.storage.stores.location import Location
from runs.services.storage.stores.objects import ObjectStore

_FOLDER = FolderStore()


def the_store() -> Store:
    """Return the store of `EVALHUB_FILES_URL`, or else the data folder."""
    location: Location | None = settings.EVALHUB_FILES
    return _objects(location) if location else _FOLDER


@cache
def _objects(location: Location) -> Store:
    return ObjectStore(location)
