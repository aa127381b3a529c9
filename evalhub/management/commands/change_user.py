"""evalhub change_user: change the name, address, marks and password of an account."""

from __future__ import annotations

import secrets
from argparse import BooleanOptionalAction
from typing import Any

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.management.accounts import find_account
from evalhub.operating.checks import OWN_CHECKS
from runs.errors import Conflict, InvalidInput
from runs.services.accounts.accounts import change_account, change_password


class Command(command.Command):
    help = "Change an account: its name, mail address, staff and superuser marks, or its password."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", dest="username", help="a new user name")
        parser.add_argument("--email", help="an address for mail; '' for none")
        parser.add_argument(
            "--staff",
            dest="is_staff",
            action=BooleanOptionalAction,
            help="staff see and may do everything",
        )

        parser.add_argument(
            "--superuser",
            dest="is_superuser",
            action=BooleanOptionalAction,
            help="superusers may also disable accounts of staff",
        )
        parser.add_argument(
            "--password", action="store_true", help="set a new password, which is shown only once"
        )

    def handle(self, **options: Any) -> None:
        user = find_account(options["user"])
        fields = ("username", "email", "is_staff", "is_superuser")

        changes = {name: options[name] for name in fields if options[name] is not None}
        try:
            change_account(user=user, **changes)
        except (Conflict, InvalidInput) as error:
            raise CommandError(error.message) from error

        if options["password"]:
            password = secrets.token_urlsafe(12)
            change_password(user=user, password=password)
            self.stdout.write(f"user:     {user}\npassword: {password}")
