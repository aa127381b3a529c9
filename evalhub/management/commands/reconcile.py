"""evalhub reconcile: which receipts of entries this database does not know, after it was restored from a backup."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management import CommandError, CommandParser

from evalhub.management import command
from evalhub.operating.checks import OWN_CHECKS
from runs.models import Entry

_AT_ONCE = 500


class Command(command.Command):
    help = (
        "List the receipts of entries that this database does not have, or has with another file or instant. FILE has "
        "one as JSON in each line: an answer of the API, or what evh campaign enter --format jsonl writes."
    )
    requires_system_checks = OWN_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="of receipts, one in each line; - is standard input")

    def handle(self, **options: Any) -> None:
        path = options["file"]
        try:
            text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{path} cannot be read: {error}") from error

        receipts = list(_receipts(text))
        missing = 0

        for start in range(0, len(receipts), _AT_ONCE):
            some = receipts[start : start + _AT_ONCE]
            rows = Entry.objects.select_related("run").filter(
                pk__in=[receipt["id"] for receipt in some]
            )

            known = {entry.pk: entry for entry in rows}
            for receipt in some:
                if said := _difference(receipt, known.get(receipt["id"])):
                    missing += 1
                    name = f"{receipt.get('team') or '-'}\t{receipt.get('tag') or '-'}"
                    self.stdout.write(f"line {receipt['line']}\t{receipt['id']}\t{name}\t{said}")

        self.stdout.write(
            f"{len(receipts)} receipts, {missing} of which do not agree with this database"
        )
        if missing:
            raise CommandError(
                "ask their teams for these runs again, and enter them with on_behalf_of and the "
                "reason"
            )


def _receipts(text: str) -> Iterator[dict[str, Any]]:
    """Yield the receipts with their `line`, `id` and instant. Raise CommandError for a line that is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue

        try:
            read = json.loads(line)
            arrived = datetime.fromisoformat(str(read["arrived_at"]))
            if arrived.tzinfo is None or not isinstance(read["run_sha256"], str):
                raise ValueError(line)
            yield {**read, "line": number, "id": UUID(str(read["id"])), "arrived": arrived}
        except (ValueError, KeyError, TypeError) as error:
            say = (
                f"line {number} cannot be read as a receipt: it has no id, run_sha256 and "
                "arrived_at with its offset"
            )
            raise CommandError(say) from error


def _difference(receipt: dict[str, Any], entry: Entry | None) -> str:
    """Return what of a receipt is not so in the database, or an empty text."""
    if entry is None:
        return f"missing: arrived {receipt['arrived_at']}, sha256 {receipt['run_sha256']}"
    if entry.run.sha256 != receipt["run_sha256"]:
        return f"another file: {entry.run.sha256} here, {receipt['run_sha256']} in the receipt"
    if entry.arrived_at != receipt["arrived"]:
        return (
            f"another instant: {entry.arrived_at.isoformat()} here, {receipt['arrived_at']} in "
            "the receipt"
        )

    return ""
