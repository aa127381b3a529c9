"""What all commands of the service share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.management import BaseCommand, CommandError, CommandParser

from runs.services.place import WrongPlace

T = TypeVar("T")


class Command(BaseCommand):
    """A command that accepts options only by their full names, because an abbreviation changes its meaning with every
    new option."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"allow_abbrev": False, **kwargs})


def placed(look: Callable[[], T]) -> T:
    """Return the result of checking database, store and Redis. Raise CommandError if they do not belong together."""
    try:
        return look()
    except WrongPlace as error:
        raise CommandError(str(error)) from error
