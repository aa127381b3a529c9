"""evalhub check: Django's command, which also checks the settings of a server that others can reach."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import check

from evalhub.management import command


class Command(command.Command, check.Command):
    help = "Check the settings and the code, as every command does, and what a server that others reach needs."

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **{**options, "deploy": True})
