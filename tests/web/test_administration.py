"""The pages of the administration: all open, few queries, nothing that may not change in a form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from metrics.models import Comparison, DispatcherRound, Evaluation
from metrics.services.queue.rounds import RoundNotes
from runs.models import (
    ApiToken,
    AuditEvent,
    Collection,
    Membership,
    Qrels,
    QuotaCounter,
    Run,
    Team,
    Topic,
    User,
)
from tests.conftest import GOOD
from tests.fills import Fills
from tests.web.worlds import (
    People,
    add_qrels,
    make_campaign,
    make_collection,
    make_comparison,
    make_experiment,
    make_note,
    make_runs,
    make_session_set,
    submit_form,
)

pytestmark = pytest.mark.words

SCRIPT_OR_STYLE = re.compile(
    rb"<script(?![^>]*\ssrc=\"/(?:static|admin/jsi18n)/)|<style|\sstyle=|\son[a-z]+=\"|javascript:",
    re.IGNORECASE,
)
REGISTERED = list(admin.site._registry)
# What nobody has to look at: bytes, caches, and what an inline or another list shows.
UNSEEN = {
    # Organisers read them under campaigns/{k}/notices/ and outbox/.
    "CampaignNotice",
    "Mail",
    "PhaseMoment",
    "Delivery",
    "UnannouncedEvaluations",
    "Webhook",
    "Install",
    "Invitation",
    "InvitationLink",
    # It is given out as a file.
    "Packet",
    # It has a page of its own.
    "Snapshot",
    # The pages of parameters show them.
    "Parameter",
    "ParameterKey",
    "ParameterSet",
    # The pages of their runs show them.
    "Artifact",
    # The list of experiments counts them.
    "ExperimentRun",
    # Their pages and those of runs show them.
    "System",
    "RunLink",
    "RunParent",
    # Their moves are in the audit trail.
    "Label",
    "LabelMove",
    # The desk of their campaign shows them.
    "Agreement",
    "CampaignMember",
    "Extension",
    "Release",
    "Signature",
    # Pages of their own show them.
    "View",
    "ShareLink",
    "Membership",
    "RateCounter",
    "RememberedAnswer",
    "JudgedView",
    "MetricVector",
    "SessionView",
}


@pytest.fixture
def filled(people: People, fills: Fills) -> None:
    """The collection `c1` with something of everything in it."""
    fills.fill("everything", lambda: fill(people, 1))


@pytest.fixture
def root(people: People) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def fill(people: People, number: int) -> None:
    """A collection with something of everything in it."""
    slug = make_collection(people, f"c{number}", daily_submissions=9)
    add_qrels(people, slug)
    run = make_runs(people, slug)
    make_experiment(run)
    make_note(people, run)
    make_campaign(people, slug, run, alone=False)
    submit_form(people.api["owner"], slug, GOOD, team="lab", tag="waits")
    make_session_set(people, slug)
    make_comparison(slug)
    ApiToken.objects.issue(user=people.users["owner"], name=slug)
    DispatcherRound.objects.create(
        worker=f"worker-{number}", at=Collection.objects.get(slug=slug).created_at
    )
    Group.objects.create(name=f"group {number}")


def page(browser: Client, address: str, **query: Any) -> str:
    answer = browser.get(address, query)
    assert answer.status_code == 200, (address, answer.status_code)
    return answer.content.decode()


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def form_of(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def addresses() -> Iterator[str]:
    """Every list, empty and searched, every row, and every form for a new one."""
    for model, registered in admin.site._registry.items():
        yield list_of(model)
        if registered.search_fields:
            yield f"{list_of(model)}?q=c1"
        first = model._default_manager.first()
        assert first, f"nothing of {model.__name__} to look at"
        yield form_of(first)
        yield form_of(first).replace("/change/", "/history/")
        if registered.has_add_permission(_Superuser()):  # type: ignore[arg-type]
            yield list_of(model) + "add/"


class _Superuser:
    """A request of one."""

    user = User(is_superuser=True, is_active=True)


@pytest.mark.queries
def test_every_page_opens_and_has_no_script_or_style_of_its_own(filled: None, root: Client) -> None:
    seen = list(addresses())
    assert len(seen) > 3 * len(REGISTERED)
    for address in ["/admin/", "/admin/runs/", "/admin/metrics/", *seen]:
        answer = root.get(address)
        assert answer.status_code == 200, (address, answer.status_code, answer.get("Location"))
        assert "script-src" not in answer["Content-Security-Policy"]
        found = SCRIPT_OR_STYLE.findall(answer.content)
        assert not found, (address, found)
    # As on every other page, the day first.
    assert re.search(r"\b\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d\b", page(root, list_of(Collection)))


def test_everything_of_ours_is_there_but_what_nobody_has_to_look_at() -> None:
    ours = {
        model.__name__
        for app in ("runs", "metrics")
        for model in apps.get_app_config(app).get_models()
    }
    assert ours - {model.__name__ for model in REGISTERED} == UNSEEN


@pytest.mark.slow
def test_more_rows_need_no_more_queries(people: People, filled: None, root: Client) -> None:
    before = {}
    for model in REGISTERED:
        root.get(list_of(model))
        before[model] = queries(root, list_of(model))
    for number in (2, 3):
        fill(people, number)
    for model in REGISTERED:
        after = queries(root, list_of(model))
        assert len(after) <= len(before[model]), "\n".join([model.__name__, *after])


def queries(browser: Client, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        page(browser, address)
    return [query["sql"] for query in captured]


@pytest.mark.queries
@pytest.mark.slow
def test_every_filter_and_every_column_to_order_by_works(filled: None, root: Client) -> None:
    for model, registered in admin.site._registry.items():
        for number in range(1, len(registered.list_display) + 1):
            page(root, list_of(model), o=number)
    for state in ("queued", "evaluating", "evaluated", "failed", "cancelled"):
        page(root, list_of(Run), state=state)
    assert "waits" in page(root, list_of(Run), state="queued")
    assert "waits" not in page(root, list_of(Run), state="evaluated")
    run = Run.objects.filter(tag="good").get()
    assert "good" in page(root, list_of(Evaluation), run__id__exact=str(run.pk))


@pytest.mark.queries
def test_a_list_answers_what_is_asked_of_it(filled: None, root: Client) -> None:
    Qrels.objects.update(size=2048)
    QuotaCounter.objects.update(used=7)
    RoundNotes().note()
    assert "v1" in page(root, list_of(Collection))
    assert "2.0\xa0KB" in page(root, list_of(Qrels))
    assert 'field-allowed">9<' in page(root, list_of(QuotaCounter))
    assert 'alt="True"' in page(root, list_of(DispatcherRound))
    token = ApiToken.objects.filter(name="c1").get()
    listed = page(root, list_of(ApiToken))
    assert token.key in listed
    assert token.digest not in listed + page(root, form_of(token))
    Evaluation.objects.update(
        state="failed", error_code="evaluation_error", error_message="it broke " * 50
    )
    assert "evaluation_error" in page(root, list_of(Evaluation))
    assert "failed" in page(root, list_of(Run))
    Run.objects.update(deleted_at="2026-01-01T00:00:00Z")
    assert "withdrawn" in page(root, list_of(Run))


def test_what_has_a_page_leads_to_it(filled: None, root: Client) -> None:
    run = Run.objects.filter(tag="good").get()
    assert f'href="/runs/{run.pk}/"' in page(root, form_of(run))
    assert f"?run__id__exact={run.pk}" in page(root, form_of(run))
    assert 'href="/collections/c1/"' in page(root, form_of(Collection.objects.get()))
    Run.objects.filter(pk=run.pk).update(deleted_at="2026-01-01T00:00:00Z")
    assert f'href="/runs/{run.pk}/"' not in page(root, form_of(run))


@pytest.mark.slow
def test_what_is_a_fact_has_no_form(filled: None, root: Client) -> None:
    facts: list[type[Model]] = [
        Qrels,
        Topic,
        Run,
        Evaluation,
        Comparison,
        AuditEvent,
        QuotaCounter,
        DispatcherRound,
    ]
    for model in facts:
        row = model._default_manager.first()
        assert row, model
        number = model._default_manager.count()
        shown = page(root, form_of(row))
        assert 'name="_save"' not in shown, model
        assert root.post(form_of(row), {"_save": "Save"}).status_code == 403, model
        assert (
            root.post(form_of(row).replace("/change/", "/delete/"), {"post": "yes"}).status_code
            == 403
        ), model
        assert root.get(f"{list_of(model)}add/").status_code == 403, model
        answer = root.post(
            list_of(model),
            {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
        )
        assert answer.status_code in (200, 302), model
        assert model._default_manager.count() >= number, model


def test_what_others_refer_to_does_not_change_in_a_form(filled: None, root: Client) -> None:
    collection, team = Collection.objects.get(), Team.objects.get(slug="lab")
    for row, names in (
        (collection, ("slug", "blind", "measures", "scores", "simulated")),
        (team, ("slug", "personal_of")),
        (ApiToken.objects.filter(name="c1").get(), ("user", "key", "scopes", "revoked_at_0")),
        (User.objects.get(username="member"), ("is_active", "date_joined_0")),
    ):
        shown = page(root, form_of(row))
        assert not [name for name in names if f'name="{name}"' in shown], row
    form = page(root, f"{list_of(Collection)}add/")
    assert 'name="slug"' in form
    assert "its name in URLs" in form


def test_a_form_saves_only_what_it_changed(
    people: People, root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release in the same moment stays a release."""
    slug = make_collection(people, "c1", blind=True)
    collection = Collection.objects.get(slug=slug)
    saved: list[Any] = []
    monkeypatch.setattr(Collection, "save", lambda self, **options: saved.append(options))
    fields = {
        "name": "Renamed",
        "team": collection.team_id,
        "visibility": "public",
        "level_labels": "{}",
    }
    answer = root.post(form_of(collection), {**fields, "initial-level_labels": "{}"})
    assert answer.status_code == 302, answer.content
    assert saved == [{"update_fields": ["name"]}]


def members(team: Team, *roles: tuple[Membership, str], **more: Any) -> dict[str, Any]:
    """The form of a team."""
    fields: dict[str, Any] = {
        "name": team.name, "memberships-TOTAL_FORMS": len(roles), "memberships-INITIAL_FORMS": len(roles), **more,
    }  # fmt: skip
    for number, (membership, role) in enumerate(roles):
        fields[f"memberships-{number}-id"] = membership.pk
        fields[f"memberships-{number}-team"] = team.pk
        fields[f"memberships-{number}-user"] = membership.user_id
        fields[f"memberships-{number}-role"] = role
    return fields


@pytest.mark.queries
def test_a_team_keeps_an_owner(people: People, root: Client) -> None:
    lab = Team.objects.get(slug="lab")
    owner, member = (lab.memberships.get(user__username=name) for name in ("owner", "member"))
    answer = root.post(form_of(lab), members(lab, (owner, "member"), (member, "member")))
    assert "A team needs an owner." in answer.content.decode()
    removed = members(lab, (owner, "owner"), (member, "member"), **{"memberships-0-DELETE": "on"})
    assert "A team needs an owner." in root.post(form_of(lab), removed).content.decode()
    assert (
        root.post(form_of(lab), members(lab, (owner, "member"), (member, "owner"))).status_code
        == 302
    )
    assert dict(lab.memberships.values_list("user__username", "role")) == {
        "owner": "member",
        "member": "owner",
    }
    actions = AuditEvent.objects.filter(object_type="membership").values_list("action", flat=True)
    assert list(actions) == ["member.changed"] * 2


def test_a_team_of_one_stays_one(people: People, root: Client) -> None:
    own = Team.objects.get(slug="owner")
    shown = page(root, form_of(own))
    assert "memberships-0-role" not in shown
    assert (
        root.post(form_of(own).replace("/change/", "/delete/"), {"post": "yes"}).status_code == 403
    )
    fields = members(own, **{"memberships-TOTAL_FORMS": 1, "memberships-0-user": people.users["other"].pk,
                             "memberships-0-role": "owner"})  # fmt: skip
    root.post(form_of(own), fields)
    assert own.memberships.count() == 1


def test_permissions_that_open_nothing_are_not_offered(people: People, root: Client) -> None:
    shown = page(root, form_of(people.users["staff"]))
    assert "Can change run" in shown
    assert "Can change session</option>" not in shown
    assert "Can delete metric vector" not in shown
    # All of them together, beside the other fields of the form, fit into what a form may send.
    offered = page(root, f"{list_of(Group)}add/").count("<option")
    assert 40 < offered < settings.DATA_UPLOAD_MAX_NUMBER_FIELDS - 10


def granted(people: People, *codenames: str) -> Client:
    """Staff with these permissions, and no superuser."""
    found = Permission.objects.filter(codename__in=codenames)
    assert len(found) == len(codenames)
    people.users["staff"].user_permissions.set(found)
    return people.browsers["staff"]


@pytest.mark.queries
def test_staff_without_a_permission_see_nothing_and_with_it_what_it_says(
    people: People, filled: None
) -> None:
    for model in REGISTERED:
        assert granted(people).get(list_of(model)).status_code == 403, model
    for model in REGISTERED:
        own = f"view_{model._meta.model_name}"
        browser = granted(people, own)
        page(browser, list_of(model))
        first = model._default_manager.first()
        assert first
        page(browser, form_of(first))
        assert browser.post(form_of(first), {}).status_code == 403, model
        assert "Run the selected action" not in page(browser, list_of(model)), model
        others = [other for other in REGISTERED if other is not model]
        assert {browser.get(list_of(other)).status_code for other in others} == {403}


@pytest.mark.queries
def test_whoever_changes_accounts_makes_nobody_mightier(people: People) -> None:
    browser = granted(
        people, "view_user", "add_user", "change_user", "delete_user", "change_group", "view_group"
    )
    staff, chief = (
        people.users["staff"],
        User.objects.create_superuser("chief", password="a long passphrase"),
    )
    shown = page(browser, form_of(staff))
    powers = ("is_staff", "is_superuser", "groups", "user_permissions")
    assert not [name for name in powers if f'name="{name}"' in shown]
    every = list(Permission.objects.values_list("pk", flat=True)[:40])
    fields = {
        "username": "staff",
        "is_staff": "on",
        "is_superuser": "on",
        "user_permissions": every,
    }
    assert browser.post(form_of(staff), fields).status_code == 302
    staff.refresh_from_db()
    assert (staff.is_superuser, staff.user_permissions.count()) == (False, 6)
    new = {
        "usable_password": "true",
        "password1": "another passphrase",
        "password2": "another passphrase",
    }
    assert browser.post(form_of(chief).replace("/change/", "/password/"), new).status_code == 403
    assert browser.post(form_of(chief), {"username": "gone"}).status_code == 403
    assert (
        browser.post(form_of(chief).replace("/change/", "/delete/"), {"post": "yes"}).status_code
        == 403
    )
    colleague = User.objects.create_user("colleague", is_staff=True, password="a long passphrase")
    for path, sent in (
        ("password", new),
        ("change", {"username": "gone"}),
        ("delete", {"post": "yes"}),
    ):
        assert (
            browser.post(form_of(colleague).replace("/change/", f"/{path}/"), sent).status_code
            == 403
        ), path
    colleague.refresh_from_db()
    assert (colleague.username, colleague.check_password("a long passphrase")) == (
        "colleague",
        True,
    )
    owner = people.users["owner"]
    assert browser.post(form_of(owner).replace("/change/", "/password/"), new).status_code == 302
    group = Group.objects.create(name="x")
    assert browser.post(form_of(group), {"name": "y", "permissions": every}).status_code == 403
    assert browser.post(form_of(staff).replace("/change/", "/password/"), new).status_code == 302
