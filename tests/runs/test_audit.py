"""The audit trail (cases A26 and A27)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client, override_settings
from rest_framework.test import APIClient

from runs.models import (
    ApiToken,
    Artifact,
    AuditEvent,
    Collection,
    DocumentTitle,
    Experiment,
    Immutable,
    Invitation,
    Label,
    Membership,
    Note,
    ParameterKey,
    Qrels,
    Run,
    SessionSet,
    ShareLink,
    Team,
    TopicAttributes,
    User,
    View,
    Webhook,
)
from runs.services.audit.trail import SYSTEM, record
from tests.conftest import GOOD, QRELS, SESSIONS, client_of, upload
from tests.metrics.webhooks import make_webhook

AUDIT = "/api/v1/audit/"
SMALL = "/api/v1/collections/small/"
EXPERIMENTS = "/api/v1/experiments/"


@pytest.fixture
def staff(db: None) -> APIClient:
    return client_of(User.objects.create_user("staff", is_staff=True))


def submit(client: APIClient) -> str:
    run: str = upload(client, "collections/small/runs/", GOOD).json()["id"]
    return run


def attach(client: APIClient, run: str) -> Any:
    form = {"file": SimpleUploadedFile("notes.txt", b"k1 = 0.9")}
    return client.post(f"/api/v1/runs/{run}/artifacts/", form, format="multipart")


def make_lab(api: APIClient) -> Team:
    api.post("/api/v1/teams/", {"slug": "lab", "name": "Lab"})
    return Team.objects.get(slug="lab")


def write_note(api: APIClient) -> Any:
    return api.post(f"{SMALL}notes/", {"text": "x"})


def create_webhook(api: APIClient) -> Any:
    with override_settings(EVALHUB_WEBHOOKS=True):
        return api.post(
            "/api/v1/teams/alice/webhooks/",
            {"url": "https://ci.example.org/", "events": ["run.failed"]},
        )


# What is done by whom, what must be there before, and the one event that it leaves.
def save_view(api: APIClient) -> Any:
    return api.post(f"{SMALL}views/", {"name": "x", "query": "", "scope": "collection"})


def share_board(api: APIClient) -> Any:
    return api.post("/api/v1/shares/", {"kind": "leaderboard", "collection": "small"})


def declare_measure(api: APIClient) -> Any:
    fields = {"name": "ms", "direction": "lower"}
    return api.post(f"{SMALL}external-measures/", fields, format="json")


def upload_table(api: APIClient) -> Any:
    return upload(api, "collections/small/value-tables/", f"{Run.objects.get().pk} 1 ms 5\n")


Act = Callable[[APIClient], Any]
ACTS: dict[str, tuple[Act, Act]] = {
    "collection.created": (
        lambda api: None,
        lambda api: api.post("/api/v1/collections/", {"slug": "x", "name": "x"}),
    ),
    "collection.changed": (
        lambda api: None,
        lambda api: api.patch(SMALL, {"visibility": "private"}),
    ),
    "collection.released": (
        lambda api: Collection.objects.update(blind=True),
        lambda api: api.post(f"{SMALL}release/"),
    ),
    "topics.replaced": (
        lambda api: None,
        lambda api: upload(api, "collections/small/topics/", "1\tx\n", "put"),
    ),
    "topic_attributes.replaced": (
        lambda api: None,
        lambda api: upload(api, "collections/small/topic-attributes/", "topic\ta\n1\tx\n", "put"),
    ),
    "topic_attributes.deleted": (
        lambda api: upload(api, "collections/small/topic-attributes/", "topic\ta\n1\tx\n", "put"),
        lambda api: api.delete(f"{SMALL}topic-attributes/"),
    ),
    "documents.replaced": (
        lambda api: None,
        lambda api: upload(api, "collections/small/documents/", "a\tx\n", "put"),
    ),
    "documents.deleted": (
        lambda api: upload(api, "collections/small/documents/", "a\tx\n", "put"),
        lambda api: api.delete(f"{SMALL}documents/"),
    ),
    "measure.declared": (lambda api: None, declare_measure),
    "measure.changed": (
        declare_measure,
        lambda api: api.patch(f"{SMALL}external-measures/ms/", {"unit": "s"}, format="json"),
    ),
    "measure.deleted": (
        declare_measure,
        lambda api: api.delete(f"{SMALL}external-measures/ms/"),
    ),
    "table.uploaded": (lambda api: (submit(api), declare_measure(api)), upload_table),
    "qrels.uploaded": (
        lambda api: None,
        lambda api: upload(api, "collections/small/qrels/", "1 0 q 1\n"),
    ),
    "qrels.activated": (lambda api: None, lambda api: api.post(f"{SMALL}qrels/1/activate/")),
    "qrels.read": (
        lambda api: Collection.objects.update(blind=True),
        lambda api: b"".join(api.get(f"{SMALL}qrels/1/file/").streaming_content),
    ),
    "run.submitted": (lambda api: None, submit),
    "run.changed": (
        submit,
        lambda api: api.patch(f"/api/v1/runs/{Run.objects.get().pk}/", {"description": "x"}),
    ),
    "run.deleted": (submit, lambda api: api.delete(f"/api/v1/runs/{Run.objects.get().pk}/")),
    "parameter.changed": (
        lambda api: api.patch(f"/api/v1/runs/{submit(api)}/", {"metadata": {"k1": 1}}),
        lambda api: api.patch(f"{SMALL}parameters/param/k1/", {"unit": "x"}),
    ),
    "team.created": (
        lambda api: None,
        lambda api: api.post("/api/v1/teams/", {"slug": "lab", "name": "Lab"}),
    ),
    "team.deleted": (make_lab, lambda api: api.delete("/api/v1/teams/lab/")),
    "invitation.made": (
        make_lab,
        lambda api: api.post("/api/v1/teams/lab/members/", {"username": "bob"}),
    ),
    "invitation.ended": (
        lambda api: make_lab(api).invitations.create(user=User.objects.get(username="bob")),
        lambda api: api.delete("/api/v1/teams/lab/invitations/bob/"),
    ),
    "member.added": (
        lambda api: Team.objects.create(slug="lab").invitations.create(
            user=User.objects.get(username="alice")
        ),
        lambda api: api.post("/api/v1/invitations/lab/"),
    ),
    "member.changed": (
        lambda api: Membership.objects.create(
            team=make_lab(api), user=User.objects.get(username="bob")
        ),
        lambda api: api.patch("/api/v1/teams/lab/members/bob/", {"role": "owner"}),
    ),
    "member.removed": (
        lambda api: Membership.objects.create(
            team=make_lab(api), user=User.objects.get(username="bob")
        ),
        lambda api: api.delete("/api/v1/teams/lab/members/bob/"),
    ),
    "artifact.attached": (submit, lambda api: attach(api, str(Run.objects.get().pk))),
    "artifact.deleted": (
        lambda api: attach(api, submit(api)),
        lambda api: api.delete(f"/api/v1/runs/{Run.objects.get().pk}/artifacts/notes.txt/"),
    ),
    "label.moved": (
        submit,
        lambda api: api.put(f"{SMALL}labels/main/", {"run": Run.objects.get().pk}),
    ),
    "label.deleted": (
        lambda api: api.put(f"{SMALL}labels/main/", {"run": submit(api)}),
        lambda api: api.delete(f"{SMALL}labels/main/"),
    ),
    "view.created": (lambda api: None, save_view),
    "view.changed": (
        save_view,
        lambda api: api.patch(f"/api/v1/views/{View.objects.get().code}/", {"name": "y"}),
    ),
    "view.deleted": (
        save_view,
        lambda api: api.delete(f"/api/v1/views/{View.objects.get().code}/"),
    ),
    "share.created": (lambda api: None, share_board),
    "share.revoked": (
        share_board,
        lambda api: api.delete(f"/api/v1/shares/{ShareLink.objects.get().key}/"),
    ),
    "experiment.created": (lambda api: None, lambda api: api.post(EXPERIMENTS, {"slug": "study"})),
    "experiment.changed": (
        lambda api: (submit(api), api.post(EXPERIMENTS, {"slug": "study"})),
        lambda api: api.post(
            f"{EXPERIMENTS}{Experiment.objects.get().pk}/runs/",
            {"add": [str(Run.objects.get().pk)]},
        ),
    ),
    "experiment.deleted": (
        lambda api: api.post(EXPERIMENTS, {"slug": "study"}),
        lambda api: api.delete(f"{EXPERIMENTS}{Experiment.objects.get().pk}/"),
    ),
    "note.written": (lambda api: None, write_note),
    "note.changed": (
        write_note,
        lambda api: api.patch(f"/api/v1/notes/{Note.objects.get().pk}/", {"text": "y"}),
    ),
    "note.deleted": (write_note, lambda api: api.delete(f"/api/v1/notes/{Note.objects.get().pk}/")),
    "run.restored": (
        lambda api: api.delete(f"/api/v1/runs/{submit(api)}/"),
        lambda api: api.post(f"/api/v1/runs/{Run.objects.get().pk}/restore/"),
    ),
    "system.created": (
        lambda api: None,
        lambda api: api.post("/api/v1/systems/", {"slug": "splade"}),
    ),
    "system.changed": (
        lambda api: api.post("/api/v1/systems/", {"slug": "splade"}),
        lambda api: api.patch("/api/v1/systems/alice/splade/", {"name": "x"}),
    ),
    "session_set.submitted": (
        lambda api: None,
        lambda api: upload(api, "collections/small/sessions/", SESSIONS),
    ),
    "session_set.changed": (
        lambda api: upload(api, "collections/small/sessions/", SESSIONS),
        lambda api: api.patch(set_address(), {"description": "changed"}),
    ),
    "session_set.deleted": (
        lambda api: upload(api, "collections/small/sessions/", SESSIONS),
        lambda api: api.delete(set_address()),
    ),
    "token.created": (lambda api: None, lambda api: api.post("/api/v1/tokens/", {"name": "x"})),
    "token.revoked": (
        lambda api: ApiToken.objects.issue(user=User.objects.get(username="alice"), name="x"),
        lambda api: api.delete(f"/api/v1/tokens/{ApiToken.objects.get(name='x').key}/"),
    ),
    "webhook.created": (lambda api: None, create_webhook),
    "webhook.changed": (
        lambda api: make_webhook(team=Team.objects.get(slug="alice")),
        lambda api: api.patch(webhook_address(), {"events": ["run.failed"]}),
    ),
    "webhook.secret_changed": (
        lambda api: make_webhook(team=Team.objects.get(slug="alice")),
        lambda api: api.post(webhook_address() + "secret/"),
    ),
    "webhook.deleted": (
        lambda api: make_webhook(team=Team.objects.get(slug="alice")),
        lambda api: api.delete(webhook_address()),
    ),
}
OF_COLLECTIONS = (
    "collection", "topics", "topic_attributes", "documents", "qrels", "run", "artifact", "session_set", "parameter", "label",
    "view", "share", "note", "measure", "table",
)  # fmt: skip
# Those of commands, of the administration, of workers, and of earlier versions.
ADMINISTRATION = {
    "collection.deleted", "session_set.restored", "evaluation.repeated", "comparison.repeated",
    "comparison.cancelled", "team.changed", "token.changed", "user.created", "user.changed",
    "user.deleted", "webhook.disabled", "provider.linked", "provider.unlinked",
}  # fmt: skip


# tests/campaigns/test_trail.py tries them.
OF_CAMPAIGNS = (
    "campaign.",
    "phase.",
    "agreement.",
    "participation.",
    "participant.",
    "entry.",
    "release.",
    "notice.",
    "values.",
    "collection.disclosed",
)


def webhook_address() -> str:
    return f"/api/v1/webhooks/{Webhook.objects.get().pk}/"


def set_address() -> str:
    return f"/api/v1/session-sets/{SessionSet.objects.get().pk}/"


def test_every_action_is_tried() -> None:
    assert set(ACTS) | ADMINISTRATION == {
        action
        for action in AuditEvent.Action.values
        if not action.startswith((*OF_CAMPAIGNS, "snapshot.", "pool.", "suite."))
    }


@pytest.mark.parametrize("action", list(ACTS))
def test_an_action_leaves_one_event_or_is_not_made(
    api: APIClient, bob: User, collection: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A26: who, through what, and nothing twice; both are in one transaction."""
    prepare, act = ACTS[action]
    prepare(api)
    before = state()

    def full(**fields: Any) -> Any:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(AuditEvent.objects, "create", full)
        with pytest.raises(OSError, match="disk full"):
            act(api)
    assert state() == before

    known = set(AuditEvent.objects.values_list("pk", flat=True))
    api.credentials(**api._credentials, HTTP_X_REQUEST_ID="request-7")  # type: ignore[attr-defined]
    act(api)
    (event,) = AuditEvent.objects.exclude(pk__in=known)
    token = ApiToken.objects.get(name="test")
    assert (event.action, event.actor, event.token) == (action, "alice", token.key)
    assert (event.request_id, event.address) == ("request-7", "127.0.0.1")
    assert (event.collection is not None) == action.startswith(OF_COLLECTIONS)


def state() -> list[Any]:
    models: tuple[Any, ...] = (
        Artifact, Collection, DocumentTitle, TopicAttributes, Qrels, Run, ParameterKey, Label, Experiment, Note, Team,
        Membership, Invitation, ApiToken, Webhook,
    )  # fmt: skip
    hidden = {"last_used_at"}
    return [
        sorted(
            str({name: value for name, value in row.items() if name not in hidden})
            for row in model.objects.values()
        )
        for model in models
    ]


def test_an_event_is_refused_outside_a_transaction(
    transactional_db: None, alice: User, django_user_model: type[User]
) -> None:
    with pytest.raises(transaction.TransactionManagementError):
        record(SYSTEM, AuditEvent.Action.USER_CHANGED, alice)
    assert not AuditEvent.objects.exists()


def test_what_changes_nothing_leaves_no_event(api: APIClient, collection: str) -> None:
    submit(api)
    known = AuditEvent.objects.count()
    submit(api)
    api.patch(SMALL, {"name": "Small"})
    upload(api, "collections/small/runs/", GOOD, tag="x", dry_run="true")
    upload(api, "collections/small/qrels/", "nonsense")
    api.patch(SMALL, {"visibility": "nowhere"})
    api.delete("/api/v1/tokens/00000000/")
    assert AuditEvent.objects.count() == known


def test_a_change_is_told_with_what_was_before(api: APIClient, collection: str) -> None:
    api.patch(SMALL, {"visibility": "team", "name": "Small", "measures": ["AP"]})
    event = AuditEvent.objects.get(action="collection.changed")
    assert event.before == {"visibility": "public", "measures": ["nDCG@10", "AP"]}
    assert event.after == {"visibility": "team", "measures": ["AP"]}


def test_a_collection_moves_to_another_team(api: APIClient, collection: str) -> None:
    make_lab(api)
    assert api.patch(SMALL, {"team": "lab"}).json()["team"] == "lab"
    event = AuditEvent.objects.get(action="collection.changed")
    assert (event.before, event.after) == ({"team": "alice"}, {"team": "lab"})


def test_nothing_changes_the_trail(api: APIClient, staff: APIClient, collection: str) -> None:
    """A26."""
    event = AuditEvent.objects.earliest("pk")
    event.actor = "mallory"
    for attempt in (
        event.save,
        event.delete,
        AuditEvent.objects.all().delete,
        lambda: AuditEvent.objects.update(actor="mallory"),
        lambda: AuditEvent.objects.bulk_update([event], ["actor"]),
        lambda: AuditEvent.objects.update_or_create(pk=event.pk, defaults={"actor": "mallory"}),
    ):
        with pytest.raises(Immutable), transaction.atomic():
            attempt()
    for method in ("post", "put", "patch", "delete"):
        for path in (AUDIT, f"{SMALL}audit/", f"{AUDIT}{event.pk}/"):
            assert getattr(staff, method)(path, {"actor": "mallory"}).status_code in {404, 405}
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    path = f"/admin/runs/auditevent/{event.pk}/"
    assert browser.get(f"{path}change/").status_code == 200
    for last in ("change", "delete"):
        assert (
            browser.post(f"{path}{last}/", {"actor": "mallory", "post": "yes"}).status_code == 403
        )
    assert set(AuditEvent.objects.values_list("actor", flat=True)) == {"alice"}


def test_the_trail_outlives_who_made_it(db: None) -> None:
    user = User.objects.create_user("brief")
    client_of(user).post("/api/v1/teams/", {"slug": "lab", "name": "x"})
    Team.objects.all().delete()
    user.delete()
    assert AuditEvent.objects.get().actor == "brief"


def test_organisers_read_their_own_trail_and_staff_all(
    api: APIClient, bob: User, staff: APIClient, collection: str
) -> None:
    client_of(bob).post("/api/v1/collections/", {"slug": "other", "name": "x"})
    own = api.get(f"{SMALL}audit/").json()
    assert {row["action"] for row in own["results"]} == {"collection.created", "qrels.uploaded"}
    assert all("address" not in row and "token" not in row for row in own["results"])
    whole = staff.get(AUDIT).json()
    assert whole["count"] == 3
    assert {row["address"] for row in whole["results"]} == {"127.0.0.1"}
    assert [
        row["action"] for row in staff.get(AUDIT, {"collection": "other"}).json()["results"]
    ] == ["collection.created"]
    assert staff.get(AUDIT, {"actor": "bob"}).json()["count"] == 1
    assert staff.get(AUDIT, {"action": "qrels.uploaded", "limit": 1}).json()["count"] == 1
    assert (
        staff.get(AUDIT, {"object_type": "collection", "object_id": "small"}).json()["count"] == 1
    )
    assert staff.get(AUDIT, {"before": "2001-01-01T00:00:00Z"}).json()["count"] == 0
    assert staff.get(AUDIT, {"action": "nothing"}).status_code == 400
    assert api.get(AUDIT).status_code == 404


def test_the_trail_and_the_log_keep_secrets(
    api: APIClient, staff: APIClient, collection: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A27: no token, password or line of judgements in either; a refusal names no other team."""
    text = api._credentials["HTTP_AUTHORIZATION"].split()[1]  # type: ignore[attr-defined]
    with (
        caplog.at_level(logging.DEBUG, "django.request"),
        caplog.at_level(logging.DEBUG, "evalhub"),
    ):
        token = api.post("/api/v1/tokens/", {"name": "x"}).json()["token"]
        upload(api, "collections/small/qrels/", "1 0 topsecretdoc 1\n1 0 topsecretdoc 2\n")
        upload(api, "collections/small/qrels/", "1 0 topsecretdoc 1\n")
        api.get("/api/v1/collections/nothing/")
        api.post(
            "/api/v1/collections/", '{"slug":' + "[" * 100_000, content_type="application/json"
        )
        Client().post("/admin/login/", {"username": "alice", "password": "topsecretword"})
        call_command("create_admin", "root")
    trail = str([str(row) for row in AuditEvent.objects.values()])
    for secret in (
        text,
        token,
        token.split("_", 2)[2],
        "topsecretdoc",
        "topsecretword",
        QRELS.splitlines()[0],
    ):
        assert secret not in trail
        assert secret not in caplog.text
    assert "qrels.uploaded" in trail


@pytest.mark.parametrize("name", ["after", "before"])
def test_an_empty_moment_is_refused(staff: APIClient, name: str) -> None:
    answer = staff.get(AUDIT, {name: ""})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert [entry["code"] for entry in answer.json()["errors"]] == ["invalid"]


def test_the_trail_outlives_a_collection(api: APIClient, staff: APIClient) -> None:
    api.post("/api/v1/collections/", {"slug": "brief", "name": "x"})
    call_command("delete_collection", "brief")
    assert not Collection.objects.exists()
    rows = staff.get(AUDIT, {"object_type": "collection"}).json()["results"]
    assert [row["action"] for row in rows] == ["collection.deleted", "collection.created"]
    assert [(row["object_id"], row["collection"]) for row in rows] == [("brief", None)] * 2
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    assert browser.get("/admin/runs/auditevent/").status_code == 200


def test_a_collection_with_judgements_is_not_deleted(staff: APIClient, collection: str) -> None:
    with pytest.raises(CommandError, match="collection small is not empty"):
        call_command("delete_collection", "small")
    with pytest.raises(CommandError, match="there is no collection 'other'"):
        call_command("delete_collection", "other")
    assert Collection.objects.exists()
    assert not AuditEvent.objects.filter(action="collection.deleted").exists()
