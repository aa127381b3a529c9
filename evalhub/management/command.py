"""What all commands of the service have in common."""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandParser


class Command(BaseCommand):
    """A command that takes its options by their whole names: what a shorter one means changes with every new option."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, **{"allow_abbrev": False, **kwargs})
