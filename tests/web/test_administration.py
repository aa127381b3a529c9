"""The pages of the administration: all open to staff, with few queries, and none changes anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from metrics.models import DispatcherRound, Evaluation, VectorUpdate
from metrics.services.queue.rounds import RoundNotes
from runs.models import (
    ApiToken,
    AuditEvent,
    Collection,
    Qrels,
    QuotaCounter,
    Run,
    User,
)
from tests.conftest import GOOD
from tests.web.shared_people import module_data, module_people, people
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

__all__ = ["module_data", "module_people", "people"]

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
    # Organisers see them under manage/documents/.
    "DocumentTitle",
    "TopicAttributes",
    # The page of value tables shows them.
    "ExternalMeasure",
    "TableValues",
    "ValueTable",
    "Invitation",
    "InvitationLink",
    # The account page of its user shows it.
    "ProviderAccount",
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
    "RevisionPart",
    "StoredCurves",
    "StoredSessionCurves",
}


@pytest.fixture(scope="module")
def filled(module_people: People) -> None:
    """The collection `c1` with something of everything in it."""
    fill(module_people, 1)


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
    VectorUpdate.objects.create(qrels=Qrels.objects.get(collection__slug=slug, active=True))
    ApiToken.objects.issue(user=people.users["owner"], name=slug)
    DispatcherRound.objects.create(
        worker=f"worker-{number}", at=Collection.objects.get(slug=slug).created_at
    )


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


@pytest.mark.queries
def test_every_page_opens_and_has_no_script_or_style_of_its_own(filled: None, root: Client) -> None:
    seen = list(addresses())
    assert len(seen) > 3 * len(REGISTERED)
    for address in ["/admin/", "/admin/runs/", "/admin/metrics/", *seen]:
        answer = root.get(address)
        assert answer.status_code == 200, (address, answer.status_code, answer.get("Location"))
        assert "script-src" not in answer["Content-Security-Policy"]
        matches = SCRIPT_OR_STYLE.findall(answer.content)
        assert not matches, (address, matches)
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


@pytest.mark.queries
@pytest.mark.slow
@pytest.mark.parametrize("mighty", [True, False])
def test_no_address_changes_anything(people: People, filled: None, mighty: bool) -> None:
    """Every form of every list, and every row, is refused; so is the action that deletes many rows."""
    browser = people.browsers["staff"]
    User.objects.filter(username="staff").update(is_superuser=mighty)
    rows = {model: model._default_manager.order_by("pk").first() for model in REGISTERED}
    before = [table_of(model) for model in REGISTERED]
    events = AuditEvent.objects.count()
    for model, row in rows.items():
        assert row, model
        html = page(browser, form_of(row))
        assert 'name="_save"' not in html, model
        assert 'type="password"' not in html, model
        field = {field.name: "x" for field in model._meta.concrete_fields}
        for address in (
            f"{list_of(model)}add/",
            form_of(row),
            form_of(row).replace("/change/", "/delete/"),
        ):
            for fields in ({}, {**field, "post": "yes", "_save": "Save"}):
                answer = browser.post(address, fields)
                assert answer.status_code == 403, (address, answer.status_code)
        assert browser.get(f"{list_of(model)}add/").status_code == 403, model
        assert 'value="delete_selected"' not in page(browser, list_of(model)), model
        chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        assert browser.post(list_of(model), chosen).status_code in (200, 302), model
    assert browser.post(
        form_of(people.users["owner"]).replace("/change/", "/password/"), {}
    ).status_code in (302, 404)
    assert [table_of(model) for model in REGISTERED] == before
    assert AuditEvent.objects.count() == events


def table_of(model: type[Model]) -> list[Any]:
    return list(model._default_manager.order_by("pk").values())


def test_the_actions_are_those_that_have_no_page(root: Client, people: People) -> None:
    request = RequestFactory().get("/")
    request.user = User.objects.get(username="root")
    actions = {
        (model.__name__, action)
        for model, registered in admin.site._registry.items()
        for action in registered.get_actions(request)
    }
    assert actions == {
        ("User", "disable"), ("User", "enable"), ("ApiToken", "revoke"), ("Evaluation", "repeat"),
        ("SessionEvaluation", "repeat"), ("Comparison", "cancel"),
    }  # fmt: skip


def test_a_password_is_shown_to_nobody(people: People, root: Client) -> None:
    owner = people.users["owner"]
    owner.set_password("a long passphrase")
    owner.save()
    assert owner.password not in page(root, form_of(owner)) + page(root, list_of(User))
