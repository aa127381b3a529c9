"""evalhub create_token: a token for a user, from the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management import CommandError, CommandParser
from django.utils import timezone

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from runs.models import ALL_SCOPES, DEFAULT_SCOPES, User
from runs.services.tokens import issue_token


class Command(command.Command):
    help = "Make a token for a user; it is shown this once."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="from the command line")
        parser.add_argument(
            "--scope",
            action="append",
            choices=ALL_SCOPES,
            help="what it may be used for, several times where several; read and submit where left out",
        )
        parser.add_argument("--days", type=int, help="until it expires; never where left out")

    def handle(self, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']!r}")
        expires_at = timezone.now() + timedelta(days=options["days"]) if options["days"] else None
        scopes = list(dict.fromkeys(options["scope"] or DEFAULT_SCOPES))
        _, text = issue_token(user=user, name=options["name"], expires_at=expires_at, scopes=scopes)
        self.stdout.write(text)
