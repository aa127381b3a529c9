"""Libraries that are loaded at their first use, because most processes never need them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class Late(ModuleType):
    """Stands for the module of a name, and loads it when something of it is asked for.

    Unlike importlib's own LazyLoader it may be asked by several threads at once.
    """

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        # The next time it is found without asking here.
        setattr(self, name, found)
        return found
