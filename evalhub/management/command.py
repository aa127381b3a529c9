"""The base of all commands of the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.management import BaseCommand, CommandError, CommandParser

from runs.errors import StorageUnavailable, StoreRefuses, WrongStore
from runs.models import Install
from runs.services.storage.installs import WrongPlace
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.s3 import AWAY

_CHECK_FILES = "check EVALHUB_FILES_URL, EVALHUB_FILES_KEY and EVALHUB_FILES_SECRET"

T = TypeVar("T")


class Command(BaseCommand):
    """A command that accepts options only by their full names.

    The meaning of an abbreviation would change with every new option.
    """

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"allow_abbrev": False, **kwargs})

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Raise CommandError if the store cannot be reached at any time."""
        try:
            return super().execute(*args, **options)
        except StorageUnavailable as error:
            raise _unreachable(error) from error


def require_settled(check: Callable[[], T]) -> T:
    """Return the result of a check of database, store and Redis.

    Raise CommandError if they do not belong together.
    """
    try:
        return check()
    except WrongPlace as error:
        raise CommandError(str(error)) from error


def _unreachable(error: StorageUnavailable) -> CommandError:
    store = the_store()
    if isinstance(error, StoreRefuses):
        return CommandError(f"the file store {error.reason}; {_CHECK_FILES}")
    if error.message == AWAY:
        return CommandError(f"{store.name} does not answer")

    prefix = "" if store.noun in error.message else f"{store.name}: "
    return CommandError(f"{prefix}{error.message}")


def require_settled_or_wait(check: Callable[[], object], notify: Callable[[str], object]) -> None:
    """Check the same for a service, which starts even if the store of its install does not answer yet."""
    try:
        require_settled(check)
    except StorageUnavailable as error:
        if isinstance(error, StoreRefuses | WrongStore) or not Install.objects.exists():
            raise
        notify(f"{the_store().name} does not answer yet; files are stored and read when it does")
