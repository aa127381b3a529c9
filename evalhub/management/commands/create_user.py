"""evalhub create_user: create an ordinary account, with a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.management.account_files import create_accounts, read_accounts
from evalhub.management.accounts import create_account
from evalhub.operating.checks import OWN_CHECKS
from runs.models import ALL_SCOPES, DEFAULT_SCOPES


class Command(command.Command):
    help = (
        "Create a user with a password and a token that may read and submit; both are shown only "
        "once."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?")
        parser.add_argument("--email", default="", help="an address for mail")
        parser.add_argument(
            "--scope",
            action="append",
            choices=ALL_SCOPES,
            help="scope of the token; can be given several times; default: read and submit. With "
            "manage the user can change the address with it",
        )
        parser.add_argument(
            "--from",
            dest="file",
            type=Path,
            metavar="FILE",
            help="create all accounts of a CSV file, or none: its first line names the columns "
            "name, and any of email, team and password",
        )
        parser.add_argument(
            "--to",
            type=Path,
            metavar="FILE",
            help="a new file for the passwords and tokens of --from, which only you can read; "
            "default: the name of the file with .secrets.csv",
        )
        parser.add_argument("--dry-run", action="store_true", help="only check the file of --from")

    def handle(self, **options: Any) -> None:
        name, path = options["name"], options["file"]
        if (name is None) == (path is None):
            raise CommandError("give a name, or a file with --from: one of the two")

        if path is not None and (options["email"] or options["scope"]):
            raise CommandError(
                "--email and --scope are of a name; the file of --from has addresses"
            )

        if path is not None:
            self._create_all(path, options["to"] or Path(f"{path}.secrets.csv"), options["dry_run"])
            return

        scopes = list(dict.fromkeys(options["scope"] or DEFAULT_SCOPES))
        password, token = create_account(name, scopes=scopes, email=options["email"])
        self.stdout.write(f"user:     {name}\npassword: {password}\ntoken:    {token}")

    def _create_all(self, path: Path, secrets_file: Path, dry_run: bool) -> None:
        lines = read_accounts(path)
        if dry_run:
            self.stdout.write(f"{len(lines)} accounts would be created; nothing was.")
            return

        for words in create_accounts(lines, secrets_file):
            self.stdout.write(words)

        self.stdout.write(
            f"{len(lines)} accounts created. {secrets_file} has their passwords and tokens; nothing "
            "shows them again."
        )
