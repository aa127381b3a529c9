"""evalhub invite: links that create accounts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.management.accounts import find_account
from evalhub.operating.checks import OWN_CHECKS
from metrics.engine.errors import EvalHubError
from runs.models import Team, User
from runs.services.accounts.invitation_links import (
    DAYS,
    MAX_DAYS,
    MAX_USES,
    account_links,
    create_account_link,
    is_open,
    revoke_link,
)


class Command(command.Command):
    help = "Make a link with which people create an account; it is shown only once."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--by", help="an administrator; default: the first one")
        parser.add_argument("--team", help="a team of which they become members")
        parser.add_argument("--email", default="", help="an address to which the link is mailed")
        parser.add_argument("--days", type=int, default=DAYS, help="until it expires; default: 7")
        parser.add_argument(
            "--people", type=int, default=1, help="how many can use it; default: 1; 0: any number"
        )
        parser.add_argument("--list", action="store_true", help="list the open links")
        parser.add_argument("--revoke", metavar="KEY", help="revoke the link with this key")

    def handle(self, **options: Any) -> None:
        if options["list"]:
            for link in account_links().filter(is_open()):
                goal = f"team {link.team}" if link.team else "an account"
                self.stdout.write(
                    f"{link.key}  {goal}  {link.email or '-'}  by {link.created_by}  until "
                    f"{link.expires_at:%Y-%m-%d %H:%M} UTC  used {link.uses} of "
                    f"{link.max_uses or 'any number'}"
                )
            return

        try:
            if options["revoke"]:
                revoke_link(key=options["revoke"])
                return

            self._create(options)
        except EvalHubError as error:
            raise CommandError(error.message) from error

    def _create(self, options: dict[str, Any]) -> None:
        days, people = options["days"], options["people"]
        if not 1 <= days <= MAX_DAYS:
            raise CommandError(f"--days is a number from 1 to {MAX_DAYS}")
        if not 0 <= people <= MAX_USES:
            raise CommandError(f"--people is a number from 0 to {MAX_USES}")

        team = None
        if options["team"]:
            team = Team.objects.filter(slug=options["team"]).first()
            if team is None:
                raise CommandError(f"there is no team {options['team']!r}")

        _, code = create_account_link(
            by=_administrator(options["by"]),
            team=team,
            email=options["email"],
            days=days,
            max_uses=people or None,
        )
        self.stdout.write(f"{settings.EVALHUB_URL}/join/?code={code}")
        if not settings.EVALHUB_URL:
            self.stderr.write(
                "Put the address of the server in front of it, such as http://127.0.0.1:8000, or "
                "set EVALHUB_URL."
            )


def _administrator(name: str | None) -> User:
    if name:
        return find_account(name)

    user = User.objects.filter(is_staff=True, is_active=True).order_by("pk").first()
    if user is None:
        raise CommandError("there is no administrator; evalhub create_admin NAME makes one")
    return user
