"""evalhub sweep: delete what is no longer needed, now instead of at the next hour."""

from __future__ import annotations

from typing import Any

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from evalhub.operating.install import require_install
from metrics.services.comparisons.stored import sweep_comparisons
from runs.services.mail.outbox import sweep_mails
from runs.services.submissions.sweeping import sweep
from runs.services.webhooks.deliveries import sweep_deliveries


class Command(command.Command):
    help = (
        "Delete orphaned stored files, abandoned uploads and idempotency keys older than 24 hours, "
        "comparisons not requested for 30 days, deliveries of webhooks older than 30 days, and "
        "mails older than 90 days."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        text = (
            "delete up to N orphaned stored files; default: 20, or a tenth of all; if there are "
            "more, none"
        )
        parser.add_argument("--most", type=int, metavar="N", help=text)

    def handle(self, **options: Any) -> None:
        command.require_settled(require_install)
        swept, comparisons = sweep(options["most"]), sweep_comparisons()
        self.stdout.write(
            f"swept: {swept.files} files, {swept.uploads} uploads, {swept.answers} idempotency "
            f"keys, {comparisons} comparisons, {sweep_deliveries()} deliveries, {sweep_mails()} mails"
        )
        if swept.spared:
            raise CommandError(
                f"{swept.spared} stored files are named by no row, too many to be deleted unasked: "
                "was the database restored from an older copy? To delete them all the same: evalhub "
                f"sweep --most {swept.spared}"
            )
