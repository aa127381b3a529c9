"""evalhub delete_user: delete an account that has submitted nothing."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.management.accounts import find_account
from evalhub.operating.checks import OWN_CHECKS
from runs.errors import Conflict
from runs.services.accounts.accounts import delete_account


class Command(command.Command):
    help = (
        "Delete an account and its personal team, which must have no runs, collections or "
        "campaigns."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")

    def handle(self, **options: Any) -> None:
        try:
            delete_account(user=find_account(options["user"]))
        except Conflict as error:
            raise CommandError(error.message) from error
