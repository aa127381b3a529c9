"""evalhub reconcile: list receipts that a restored database does not have."""

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

_BATCH = 500


class Command(command.Command):
    help = (
        "List the receipts of entries that this database does not have, or has with another file or "
        "instant. FILE has one as JSON in each line: an answer of the API, or what evh campaign "
        "enter --format jsonl writes."
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

        for start in range(0, len(receipts), _BATCH):
            batch = receipts[start : start + _BATCH]
            ids = [receipt["id"] for receipt in batch]
            entries = Entry.objects.select_related("run").filter(pk__in=ids)
            by_id = {entry.pk: entry for entry in entries}
            for receipt in batch:
                if difference := _difference(receipt, by_id.get(receipt["id"])):
                    missing += 1
                    name = f"{receipt.get('team') or '-'}\t{receipt.get('tag') or '-'}"
                    place = f"line {receipt['line']}\t{receipt['id']}"
                    self.stdout.write(f"{place}\t{name}\t{difference}")

        self.stdout.write(
            f"{len(receipts)} receipts, {missing} of which do not agree with this database"
        )
        if missing:
            raise CommandError(
                "ask their teams for these runs again, and enter them with on_behalf_of and the "
                "reason"
            )


def _receipts(text: str) -> Iterator[dict[str, Any]]:
    """Yield the receipts with their `line`, `id` and instant. Raise CommandError for other lines."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue

        try:
            receipt = json.loads(line)
            arrived = datetime.fromisoformat(str(receipt["arrived_at"]))
            if arrived.tzinfo is None or not isinstance(receipt["run_sha256"], str):
                raise ValueError(line)
            yield {**receipt, "line": number, "id": UUID(str(receipt["id"])), "arrived": arrived}
        except (ValueError, KeyError, TypeError) as error:
            message = (
                f"line {number} cannot be read as a receipt: it has no id, run_sha256 and "
                "arrived_at with its offset"
            )
            raise CommandError(message) from error


def _difference(receipt: dict[str, Any], entry: Entry | None) -> str:
    """Return how a receipt differs from the database, or ""."""
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
