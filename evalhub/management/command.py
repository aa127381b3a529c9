"""What all commands of the service have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.management import BaseCommand, CommandError, CommandParser

from runs.services.place import WrongPlace

T = TypeVar("T")


class Command(BaseCommand):
    """A command that takes its options by their whole names: what a shorter one means changes with every new option."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"allow_abbrev": False, **kwargs})


def placed(look: Callable[[], T]) -> T:
    """Return what a look at database, store and Redis gives; CommandError where they do not belong together."""
    try:
        return look()
    except WrongPlace as error:
        raise CommandError(str(error)) from error
