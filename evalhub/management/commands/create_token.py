"""evalhub create_token: create a token for a user."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management import CommandParser
from django.utils import timezone

from evalhub.management import command
from evalhub.management.accounts import find_account
from evalhub.operating.checks import OWN_CHECKS
from runs.models import ALL_SCOPES, DEFAULT_SCOPES
from runs.services.accounts.tokens import issue_token


class Command(command.Command):
    help = "Create a token for a user; it is shown only once."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="from the command line")
        parser.add_argument(
            "--scope",
            action="append",
            choices=ALL_SCOPES,
            help="scope of the token; can be given several times; default: read and submit",
        )
        parser.add_argument("--days", type=int, help="until the token expires; default: never")

    def handle(self, **options: Any) -> None:
        user = find_account(options["user"])
        expires_at = timezone.now() + timedelta(days=options["days"]) if options["days"] else None
        scopes = list(dict.fromkeys(options["scope"] or DEFAULT_SCOPES))
        _, text = issue_token(user=user, name=options["name"], expires_at=expires_at, scopes=scopes)
        self.stdout.write(text)
