"""evalhub create_admin: create the first account, with a token."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandParser

from evalhub.management import command
from evalhub.management.accounts import create_account
from evalhub.operating.checks import OWN_CHECKS
from runs.models import ALL_SCOPES


class Command(command.Command):
    help = "Create an administrator with a password and a token; both are shown only once."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, **options: Any) -> None:
        name = options["name"]
        password, token = create_account(name, scopes=ALL_SCOPES, administrator=True)
        self.stdout.write(
            f"administrator: {name}\npassword:      {password}\ntoken:         {token}"
        )
