"""evalhub create_user: create an ordinary account, with a token."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandParser

from evalhub.management import command
from evalhub.management.accounts import create_account
from evalhub.operating.checks import OWN_CHECKS
from runs.models import DEFAULT_SCOPES


class Command(command.Command):
    help = (
        "Create a user with a password and a token that may read and submit; both are shown only "
        "once."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, **options: Any) -> None:
        name = options["name"]
        password, token = create_account(name, scopes=DEFAULT_SCOPES)
        self.stdout.write(f"user:     {name}\npassword: {password}\ntoken:    {token}")
