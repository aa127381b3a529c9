"""Receipts held against a database that was restored from an older backup."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from runs.models import Entry
from tests.campaigns.worlds import OPENS, TICK, Clock, enter, make_campaign, register

pytestmark = pytest.mark.sqlite


def test_receipts_that_a_database_does_not_know_are_listed(
    people: dict[str, APIClient], clock: Clock, tmp_path: Path
) -> None:  # fmt: skip
    make_campaign(people["olga"])
    register(people["ann"], "apples")
    clock.now = OPENS
    receipts = [enter(people["ann"], tag).json() for tag in ("kept", "lost", "moved", "other")]
    file = tmp_path / "receipts.jsonl"
    file.write_text("\n".join(map(json.dumps, receipts)) + "\n\n")
    out = io.StringIO()
    call_command("reconcile", str(file), stdout=out)
    assert out.getvalue() == "4 receipts, 0 of which do not agree with this database\n"
    # The backup of yesterday.
    Entry.objects.filter(pk=receipts[1]["id"]).delete()
    Entry.objects.filter(pk=receipts[2]["id"]).update(arrived_at=OPENS + TICK)
    file.write_text(file.read_text().replace(receipts[3]["run_sha256"], "ab" * 32))
    out = io.StringIO()
    with pytest.raises(CommandError, match="on_behalf_of"):
        call_command("reconcile", str(file), stdout=out)
    lines = out.getvalue().splitlines()
    assert [line.split("\t")[3:] for line in lines[:3]] == [
        [
            "lost",
            f"missing: arrived {receipts[1]['arrived_at']}, sha256 {receipts[1]['run_sha256']}",
        ],
        [
            "moved",
            f"another instant: 2027-04-02T12:00:00.000001+00:00 here, {receipts[2]['arrived_at']} in the receipt",
        ],
        ["other", f"another file: {receipts[3]['run_sha256']} here, {'ab' * 32} in the receipt"],
    ]
    for line in (
        "{}",
        "[]",
        "no",
        '{"id": "x", "run_sha256": "a", "arrived_at": "2027-01-01T00:00:00Z"}',
    ):
        file.write_text(line)
        with pytest.raises(CommandError, match="line 1 cannot be read as a receipt"):
            call_command("reconcile", str(file), stdout=out)
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("reconcile", str(tmp_path / "none"), stdout=out)
