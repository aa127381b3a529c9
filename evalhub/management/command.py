"""What all commands of the service share."""

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
    """A command that accepts options only by their full names, because an abbreviation changes its meaning with every
    new option."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"allow_abbrev": False, **kwargs})

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command. Raise CommandError where the store cannot be reached, whatever the command has begun."""
        try:
            return super().execute(*args, **options)
        except StorageUnavailable as error:
            raise _unreachable(error) from error


def placed(look: Callable[[], T]) -> T:
    """Return the result of checking database, store and Redis. Raise CommandError if they do not belong together."""
    try:
        return look()
    except WrongPlace as error:
        raise CommandError(str(error)) from error


def _unreachable(error: StorageUnavailable) -> CommandError:
    if isinstance(error, StoreRefuses):
        return CommandError(f"the file store {error.reason}; {_CHECK_FILES}")

    said = (
        error.message
        if the_store().noun in error.message
        else f"{the_store().name}: {error.message}"
    )
    return CommandError(f"{the_store().name} does not answer" if error.message == AWAY else said)


def placed_or_waits(look: Callable[[], object], tell: Callable[[str], object]) -> None:
    """Do the same for a service of an install that has begun: it starts although its store does not answer yet."""
    try:
        placed(look)
    except StorageUnavailable as error:
        if isinstance(error, StoreRefuses | WrongStore) or not Install.objects.exists():
            raise
        tell(f"{the_store().name} does not answer yet; files are stored and read when it does")
