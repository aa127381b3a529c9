"""The store that the settings name."""

from __future__ import annotations

from runs.services.stores.folder import FolderStore
from runs.services.stores.interface import Store

_FOLDER = FolderStore()


def the_store() -> Store:
    return _FOLDER
