"""What is sent to each address that changes something: requests that succeed for whoever may make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Run
from tests.conftest import GOOD, SESSIONS


def file_of(content: str) -> dict[str, Any]:
    return {"file": SimpleUploadedFile("file", content.encode())}


def unlabelled_run() -> str:
    """The other of the participant's runs, which no label names."""
    runs = Run.objects.filter(collection__slug="one", team__slug="guests", deleted_at=None)
    return str(runs.filter(labels=None).latest("created_at").pk)


HOOK = {"url": "https://ci.example.org/", "events": ["run.failed"], "format": "standard"}
# What makes a request that whoever may make it would see succeed.
BODIES: dict[tuple[str, str], Callable[[], Any]] = {
    ("collections", "POST"): lambda: {"slug": "new", "name": "New"},
    ("collection", "PATCH"): lambda: {"name": "Renamed"},
    ("topics", "PUT"): lambda: file_of("1\tanother\n"),
    ("documents", "PUT"): lambda: file_of("a\ta title\n"),
    ("topic-attributes", "PUT"): lambda: file_of("topic\ttype\n1\tshort\n"),
    ("qrels-list", "POST"): lambda: file_of("1 0 b 1\n"),
    ("measure-declarations", "POST"): lambda: {"name": "new", "direction": "higher"},
    ("measure-declaration", "PATCH"): lambda: {"unit": "ms"},
    # Which runs a line may name is tested with the tables.
    ("value-tables", "POST"): lambda: file_of("\n"),
    ("value-tables-page", "POST"): lambda: {"action": "upload", **file_of("\n")},
    ("runs", "POST"): lambda: file_of(GOOD.replace("good", "another")),
    ("session-sets", "POST"): lambda: file_of(SESSIONS.replace("s1", "s3")),
    ("session-set", "PATCH"): lambda: {"description": "changed"},
    ("run", "PATCH"): lambda: {"description": "changed"},
    ("run-metadata", "PUT"): lambda: {"metadata": {"k1": 1.2}},
    ("runs-metadata", "PATCH"): lambda: {"filter": "tag:good", "metadata": {"seed": 1}},
    ("artifacts", "POST"): lambda: {**file_of("k1: 0.9"), "name": "config.yaml"},
    ("run-artifacts-page", "POST"): lambda: {**file_of("k1: 0.9"), "name": "config.yaml"},
    ("run-parameters-edit-page", "POST"): lambda: {"parameters": "k1 = 1.2"},
    ("parameter", "PATCH"): lambda: {"unit": "ms"},
    ("rename-parameter-page", "POST"): lambda: {
        "filter": "own:yes",
        "name": "k1",
        "new": "bm25.k1",
    },
    # Which runs a row may name is tested with the table.
    ("parameter-table", "POST"): lambda: file_of("tag,k1\n"),
    ("edit-parameters-page", "POST"): lambda: {"table": "tag,k1\n", "action": "save"},
    ("describe-parameter", "POST"): lambda: {"space": "param", "name": "k1", "unit": "ms"},
    # It names the other of the participant's runs now.
    ("label", "PUT"): lambda: {"run": unlabelled_run()},
    ("views", "POST"): lambda: {"name": "New", "query": "filter=tag:good&measures=AP"},
    ("view", "PATCH"): lambda: {"name": "Renamed"},
    ("shares", "POST"): lambda: {
        "kind": "leaderboard",
        "collection": "one",
        "query": "filter=tag:good",
    },
    ("shares-page", "POST"): lambda: {
        "action": "create",
        "kind": "leaderboard",
        "collection": "one",
        "days": "30",
    },
    ("views-page", "POST"): lambda: {"action": "create", "name": "New", "query": "", "share": "me"},
    ("experiments", "POST"): lambda: {"slug": "new"},
    ("experiment", "PATCH"): lambda: {"goal": "changed"},
    ("experiment-runs", "POST"): lambda: {"add": [unlabelled_run()]},
    ("run-notes", "POST"): lambda: {"text": "seen again"},
    ("collection-notes", "POST"): lambda: {"text": "seen again"},
    ("experiment-notes", "POST"): lambda: {"text": "seen again"},
    ("note", "PATCH"): lambda: {"text": "changed"},
    ("experiments-page", "POST"): lambda: {"name": "New"},
    ("experiment-page", "POST"): lambda: {"action": "describe", "goal": "changed"},
    # The other of the participant's runs, which no label names.
    ("my-runs-page", "POST"): lambda: {
        "action": "withdraw",
        "runs": unlabelled_run(),
    },
    ("run-notes-page", "POST"): lambda: {"action": "write", "text": "seen again"},
    ("collection-notes-page", "POST"): lambda: {"action": "write", "text": "seen again"},
    ("experiment-notes-page", "POST"): lambda: {"action": "write", "text": "seen again"},
    ("campaigns", "POST"): lambda: {"slug": "new", "name": "New"},
    ("campaign", "PATCH"): lambda: {"name": "Renamed"},
    ("campaign-notices", "POST"): lambda: {"title": "More topics", "text": "Soon."},
    ("campaign-config", "PUT"): lambda: {"campaign": {"name": "Renamed"}},
    ("agreements", "POST"): lambda: {"title": "More", "text": "Be kind."},
    ("agreement-sign", "POST"): lambda: {"typed_name": "P. Articipant"},
    ("participations", "PATCH"): lambda: {"state": "accepted", "teams": ["nobody"]},
    ("participation", "PATCH"): lambda: {"state": "removed"},
    ("phases", "POST"): lambda: {
        "slug": "new",
        "name": "New",
        "collection": "one",
        "kind": "training",
        "opens_at": "2090-01-01",
        "closes_at": "2090-02-01",
    },
    ("phase", "PATCH"): lambda: {"name": "Renamed"},
    ("phase-extend", "POST"): lambda: {
        "closes_at": "2091-01-01",
        "reason": "power cut",
        "confirm": True,
    },
    ("phase-pause", "POST"): lambda: {"reason": "power cut"},
    ("phase-releases", "POST"): lambda: {"audience": "public"},
    ("entries", "POST"): lambda: file_of(GOOD.replace("good", "another")),
    ("suites", "POST"): lambda: {
        "slug": "another",
        "name": "Another",
        "members": [{"collection": "one"}],
    },
    ("suite-versions", "POST"): lambda: {"members": [{"collection": "one"}]},
    ("new-suite-page", "POST"): lambda: {"name": "Another", "members": "one AP"},
    ("new-suite-version-page", "POST"): lambda: {"members": "one AP"},
    ("collection-pools", "POST"): lambda: {"method": "depth", "k": 2, "only_new": False},
    ("phase-pools", "POST"): lambda: {"method": "depth", "k": 2, "only_new": False},
    ("new-pool-page", "POST"): lambda: {"method": "depth", "k": "2", "action": "make"},
    ("new-phase-pool-page", "POST"): lambda: {"method": "depth", "k": "2", "action": "make"},
    ("pool", "PATCH"): lambda: {"shown": True},
    ("pool-assignments", "POST"): lambda: {"assessor": "member", "topics": ["1"]},
    ("pool-judgements", "POST"): lambda: {**file_of("1 0 a 1\n"), "assessor": "member"},
    ("pool-adjudications", "POST"): lambda: [{"topic_id": "1", "doc_id": "a", "level": 1}],
    ("pool-qrels", "POST"): lambda: {"activate": False},
    ("judge-page", "POST"): lambda: {"topic": "1", "doc_id": "a", "level": "1"},
    ("judging-desk-page", "POST"): lambda: {"action": "assign", "assessor": "member"},
    ("pool-act-page", "POST"): lambda: {"action": "show"},
    ("snapshot", "PATCH"): lambda: {"doi": "10.5281/zenodo.1"},
    ("snapshot-withdraw", "POST"): lambda: {"reason": "power cut"},
    ("priorities", "PUT"): lambda: {"order": []},
    ("entry", "PATCH"): lambda: {"run_type": ""},
    ("entry-disqualify", "POST"): lambda: {"reason": "power cut"},
    ("new-campaign-page", "POST"): lambda: {
        "name": "New",
        "registration": "open",
        "tag_scope": "team",
    },
    ("campaign-own-entry-page", "POST"): lambda: {
        "role": "baseline",
        "action": "enter",
        **file_of(GOOD.replace("good", "another")),
    },
    ("campaign-agreements-page", "POST"): lambda: {
        "title": "More",
        "text": "Be kind.",
        "required_of": "one_owner",
    },
    ("campaign-notices-page", "POST"): lambda: {
        "title": "More topics",
        "text": "Soon.",
        "audience": "public",
    },
    ("campaign-settings-page", "POST"): lambda: {
        "name": "Renamed",
        "registration": "open",
        "tag_scope": "team",
    },
    ("campaign-copy-page", "POST"): lambda: {"name": "Next year"},
    ("campaign-config-page", "POST"): lambda: {
        "action": "apply",
        "text": "campaign: {name: Renamed}",
    },
    ("campaign-new-phase-page", "POST"): lambda: {
        "name": "New",
        "collection": "one",
        "kind": "training",
        "opens_at_day": "2090-01-01",
        "closes_at_day": "2090-02-01",
        "zone": "AoE",
    },
    ("campaign-phase-page", "POST"): lambda: {
        "name": "Renamed",
        "opens_at_day": "2020-01-01",
        "closes_at_day": "2089-12-31",
        "zone": "UTC",
    },
    ("campaign-team-page", "POST"): lambda: {
        "action": "sign",
        "agreement": "ab" * 32,
        "typed_name": "P. Articipant",
    },
    ("campaign-enter-page", "POST"): lambda: {
        "action": "enter",
        **file_of(GOOD.replace("good", "another")),
    },
    ("campaign-entry-page", "POST"): lambda: {"action": "save"},
    ("run-parents", "PUT"): lambda: {"parents": []},
    ("run-links", "PUT"): lambda: {"links": [{"kind": "code", "url": "https://example.org/"}]},
    ("run-lineage-page", "POST"): lambda: {"links": "code https://example.org/"},
    ("systems", "POST"): lambda: {"slug": "new"},
    ("system", "PATCH"): lambda: {"name": "Renamed"},
    ("system-change-page", "POST"): lambda: {"action": "describe", "name": "Renamed"},
    ("teams", "POST"): lambda: {"slug": "new", "name": "New"},
    ("members", "POST"): lambda: {"username": "participant"},
    ("member", "PATCH"): lambda: {"role": "owner"},
    ("comparison", "POST"): lambda: {"tests": ["sign"], "seed": 1},
    ("me", "PATCH"): lambda: {"email": ""},
    ("tokens", "POST"): lambda: {"name": "new", "scopes": ["manage"]},
    ("team-webhooks", "POST"): lambda: HOOK,
    ("collection-webhooks", "POST"): lambda: HOOK,
    ("webhook", "PATCH"): lambda: {"events": ["run.evaluated"]},
    ("evaluations", "POST"): lambda: {"scores": "float32"},
    ("run-evaluations", "POST"): lambda: {"scores": "float32"},
    ("submit-page", "POST"): lambda: file_of(GOOD.replace("good", "another")),
    ("new-collection-page", "POST"): lambda: {"name": "New"},
    ("manage-page", "POST"): lambda: {"name": "Renamed", "level_labels": "1 = relevant"},
    ("manage-documents-page", "POST"): lambda: file_of("a\ta title\n"),
    ("manage-topics-page", "POST"): lambda: file_of("1\tanother\n"),
    ("manage-judgements-page", "POST"): lambda: file_of("1 0 b 1\n"),
    ("manage-measures-page", "POST"): lambda: {"add": "P@7"},
    ("manage-access-page", "POST"): lambda: {"action": "release", "confirm": "one"},
    ("manage-quota-page", "POST"): lambda: {"daily_submissions": "3"},
    ("manage-withdrawn-page", "POST"): lambda: {
        "kind": "run",
        "id": "00000000-0000-4000-8000-000000000000",
    },
    ("run-change-page", "POST"): lambda: {"action": "withdraw"},
    ("session-set-change-page", "POST"): lambda: {"action": "describe", "description": "changed"},
    ("submit-sessions-page", "POST"): lambda: file_of(SESSIONS.replace("s1", "s3")),
    ("first-account-page", "POST"): lambda: {
        "code": "x",
        "username": "new",
        "password": "x",
        "again": "x",
    },
    ("join-page", "POST"): lambda: {"code": "x"},
    ("join-campaign-page", "POST"): lambda: {"code": "x"},
    ("invite-page", "POST"): lambda: {"action": "create"},
    ("campaign-links-page", "POST"): lambda: {"action": "create"},
    ("new-password-page", "POST"): lambda: {"code": "x"},
    ("register-page", "POST"): lambda: {"email": "x@example.org"},
    ("forgotten-password-page", "POST"): lambda: {"email": "x@example.org"},
    ("teams-page", "POST"): lambda: {"name": "New"},
    ("team-page", "POST"): lambda: {"action": "link"},
    ("account-page", "POST"): lambda: {"action": "decline", "team": "lab"},
    ("collection-webhooks-page", "POST"): lambda: {"action": "create", **HOOK},
    ("team-webhooks-page", "POST"): lambda: {"action": "create", **HOOK},
    ("tokens-page", "POST"): lambda: {"name": "new", "scopes": ["read"]},
}
