"""evalhub create_admin: the first account, and a token to begin with."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.management import CommandError, CommandParser
from django.db import transaction

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from runs.models import ALL_SCOPES, AuditEvent, User
from runs.services.audit import SYSTEM, record
from runs.services.tokens import issue_token


class Command(command.Command):
    help = "Create an administrator with a password and a token; both are shown only once."
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, **options: Any) -> None:
        name = options["name"]
        if User.objects.filter(username=name).exists():
            raise CommandError(f"there is a user {name!r} already; evalhub create_token {name} creates another token")
        password = secrets.token_urlsafe(12)
        with transaction.atomic():
            user = User.objects.create_superuser(name, password=password)
            record(SYSTEM, AuditEvent.Action.USER_CREATED, user, after={"is_superuser": True})
            _, token = issue_token(user=user, name="first token", scopes=ALL_SCOPES)
        self.stdout.write(f"administrator: {name}\npassword:      {password}\ntoken:         {token}")
