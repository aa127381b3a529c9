"""The actions of the administration: through the services, asked first, in the audit trail, for those who may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from metrics.engine.grammar import parse_measure
from metrics.models import Comparison, Evaluation, SessionEvaluation
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import compare, queue_comparison
from metrics.services.queue.lifecycle import claim, finish
from runs.models import ApiToken, AuditEvent, Collection, Qrels, Run, SessionSet, User
from runs.services.stores.folder import stored_path
from tests.conftest import GOOD, POOR, client_of, evaluate_all, upload
from tests.fills import Fills
from tests.web.test_administration import form_of, list_of
from tests.web.worlds import (
    People,
    add_qrels,
    make_collection,
    make_session_set,
    submit_form,
)

pytestmark = pytest.mark.words

OTHER_QRELS = "1 0 a 1\n2 0 y 2\n3 0 z 1\n"


@pytest.fixture
def people(people: People, run: str, fills: Fills) -> People:
    """Everybody, and an open collection with two runs of `guests` and a session set."""
    fills.fill("session set", lambda: make_session_set(people, "one"))
    return people


@pytest.fixture
def root(people: People) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def act(browser: Client, action: str, *rows: Model, confirmed: bool = True) -> str:
    """Choose an action for rows of a list; returns the page that follows."""
    fields: dict[str, Any] = {
        "action": action,
        "index": "0",
        "_selected_action": [str(row.pk) for row in rows],
    }
    answer = browser.post(
        list_of(type(rows[0])), fields | ({"confirmed": "yes"} if confirmed else {}), follow=True
    )
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def good() -> Run:
    return Run.objects.get(tag="good")


def newest(number: int = 1) -> list[tuple[str, str]]:
    """The last events: action and object."""
    return list(AuditEvent.objects.order_by("-pk").values_list("action", "object_id")[:number])


def fail_evaluation(run: Run) -> Evaluation:
    made = {
        "state": "failed",
        "attempts": 3,
        "error_code": "evaluation_error",
        "error_message": "broke",
    }
    Evaluation.objects.filter(run=run).update(**made)
    return Evaluation.objects.get(run=run)


def waiting_comparison(people: People) -> Comparison:
    query = ComparisonQuery([parse_measure("AP")], tests=["paired_t"])
    return queue_comparison(collection=Collection.objects.get(slug="one"), query=query)


def withdrawn_run(people: People) -> Run:
    assert people.api["participant"].delete(f"/api/v1/runs/{good().pk}/").status_code == 204
    return good()


def withdrawn_set(people: People) -> SessionSet:
    made = SessionSet.objects.get()
    assert people.api["participant"].delete(f"/api/v1/session-sets/{made.pk}/").status_code == 204
    return made


def blind_collection(people: People) -> Collection:
    slug = make_collection(people, "veiled", blind=True)
    add_qrels(people, slug)
    return Collection.objects.get(slug=slug)


def second_version(people: People) -> Qrels:
    sent = upload(people.api["owner"], "collections/one/qrels/", OTHER_QRELS, activate="false")
    assert sent.status_code == 201, sent.content
    return Qrels.objects.get(version=2)


def failed_comparison(people: People) -> Comparison:
    made = waiting_comparison(people)
    Comparison.objects.filter(pk=made.pk).update(state="failed", error_code="comparison_error")
    return made


@dataclass(frozen=True)
class Case:
    """An action: what it is done to, the permission it needs, whether it asks first, and what it leaves."""

    target: Callable[[People], Model]
    permission: str
    asks: bool
    event: str
    holds: Callable[[], bool]


CASES = {
    "withdraw": Case(lambda people: good(), "delete_run", True, "run.deleted", lambda: bool(good().deleted_at)),
    "restore": Case(withdrawn_run, "delete_run", False, "run.restored", lambda: good().deleted_at is None),
    "withdraw of sets": Case(
        lambda people: SessionSet.objects.get(), "delete_sessionset", True, "session_set.deleted",
        lambda: bool(SessionSet.objects.get().deleted_at),
    ),
    "restore of sets": Case(
        withdrawn_set, "delete_sessionset", False, "session_set.restored",
        lambda: SessionSet.objects.get().deleted_at is None,
    ),
    "try_failed_again": Case(
        lambda people: fail_evaluation(good()), "change_evaluation", False, "evaluation.repeated",
        lambda: Evaluation.objects.get(run=good()).state == "queued",
    ),
    "repeat": Case(
        lambda people: Evaluation.objects.get(run=good()), "change_evaluation", True, "evaluation.repeated",
        lambda: Evaluation.objects.get(run=good()).state == "queued",
    ),
    "repeat of sets": Case(
        lambda people: SessionEvaluation.objects.get(), "change_sessionevaluation", True, "evaluation.repeated",
        lambda: SessionEvaluation.objects.get().state == "queued",
    ),
    "try_failed_again of comparisons": Case(
        failed_comparison, "change_comparison", False, "comparison.repeated",
        lambda: Comparison.objects.get().state == "queued",
    ),
    "cancel": Case(
        waiting_comparison, "change_comparison", True, "comparison.cancelled",
        lambda: Comparison.objects.get().state == "failed",
    ),
    "revoke": Case(
        lambda people: ApiToken.objects.issue(user=people.users["owner"], name="lost")[0], "change_apitoken", True,
        "token.revoked", lambda: bool(ApiToken.objects.get(name="lost").revoked_at),
    ),
    "activate": Case(
        second_version, "change_qrels", True, "qrels.activated",
        lambda: list(Qrels.objects.filter(active=True).values_list("version", flat=True)) == [2],
    ),
    "release": Case(
        blind_collection, "change_collection", True, "collection.released",
        lambda: not Collection.objects.filter(blind=True).exists(),
    ),
    "disable": Case(
        lambda people: people.users["owner"], "change_user", True, "user.changed",
        lambda: not User.objects.get(username="owner").is_active,
    ),
    "enable": Case(
        lambda people: User.objects.create_user("asleep", is_active=False), "change_user", False, "user.changed",
        lambda: User.objects.get(username="asleep").is_active,
    ),
}  # fmt: skip


@pytest.mark.queries
@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("role", ["superuser", "staff with the permission"])
def test_an_action_asks_acts_and_leaves_one_event(
    people: People, root: Client, name: str, role: str
) -> None:
    case, action = CASES[name], name.split(maxsplit=1)[0]
    target = case.target(people)
    browser = root
    if role != "superuser":
        browser = people.browsers["staff"]
        names = (case.permission, f"view_{target._meta.model_name}")
        people.users["staff"].user_permissions.set(Permission.objects.filter(codename__in=names))
    known = set(AuditEvent.objects.values_list("pk", flat=True))
    if case.asks:
        asked = act(browser, action, target, confirmed=False)
        assert "Are you sure?" in asked
        assert str(target) in asked
        assert not case.holds()
    act(browser, action, target)
    assert case.holds()
    (event,) = AuditEvent.objects.exclude(pk__in=known)
    actor = "root" if role == "superuser" else "staff"
    assert (event.action, event.actor, event.address) == (case.event, actor, "127.0.0.1")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_an_action_is_not_there_without_its_permission(people: People, name: str) -> None:
    case, action = CASES[name], name.split(maxsplit=1)[0]
    target = case.target(people)
    own = {f"{verb}_{target._meta.model_name}" for verb in ("view", "add", "change", "delete")} - {
        case.permission
    }
    people.users["staff"].user_permissions.set(Permission.objects.filter(codename__in=own))
    known = AuditEvent.objects.count()
    assert (
        f'value="{action}"'
        not in people.browsers["staff"].get(list_of(type(target))).content.decode()
    )
    for browser in (
        people.browsers["staff"],
        people.browsers["owner"],
        people.browsers["anonymous"],
    ):
        fields = {"action": action, "_selected_action": [str(target.pk)], "confirmed": "yes"}
        assert browser.post(list_of(type(target)), fields).status_code in (200, 302)
    assert not case.holds()
    assert AuditEvent.objects.count() == known


@pytest.mark.queries
@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_an_action_whose_event_cannot_be_written_is_not_done(
    people: People, root: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    target = case.target(people)

    def full(**fields: Any) -> Any:
        raise OSError("disk full")

    monkeypatch.setattr(AuditEvent.objects, "create", full)
    with pytest.raises(OSError, match="disk full"):
        act(root, name.split(maxsplit=1)[0], target)
    assert not case.holds()


def test_a_restored_run_is_what_it_was(people: People, root: Client) -> None:
    board = "/api/v1/collections/one/leaderboard/"
    before = people.api["owner"].get(board).json()["results"]
    run = withdrawn_run(people)
    assert len(people.api["owner"].get(board).json()["results"]) == 1
    act(root, "restore", run)
    assert people.api["owner"].get(board).json()["results"] == before


@pytest.mark.queries
def test_what_was_cancelled_with_its_run_is_evaluated_when_it_comes_back(
    people: People, root: Client
) -> None:
    sent = submit_form(people.api["participant"], "one", GOOD, team="guests", tag="late")
    run = Run.objects.get(pk=sent.json()["id"])
    act(root, "withdraw", run)
    assert Evaluation.objects.get(run=run).state == "cancelled"
    # The judgements change meanwhile: it comes back under both versions.
    upload(people.api["owner"], "collections/one/qrels/", OTHER_QRELS)
    evaluate_all()
    act(root, "restore", run)
    evaluate_all()
    assert set(Evaluation.objects.filter(run=run).values_list("qrels__version", "state")) == {
        (1, "evaluated"), (2, "evaluated"),
    }  # fmt: skip


@pytest.mark.queries
def test_a_run_does_not_come_back_without_its_file_or_beside_its_namesake(
    people: People, root: Client
) -> None:
    run = withdrawn_run(people)
    again = submit_form(people.api["participant"], "one", POOR, team="guests", tag="good")
    assert again.status_code == 202
    assert "has another &#x27;good&#x27; in one now; withdraw it first" in act(root, "restore", run)
    Run.objects.filter(pk=again.json()["id"]).delete()
    stored_path(run.sha256).unlink()
    assert "is no longer stored; submit it again" in act(root, "restore", run)
    run.refresh_from_db()
    assert run.deleted_at
    assert "run.restored" not in dict(newest(9))
    assert "was not withdrawn" in act(root, "restore", Run.objects.get(tag="poor"))


@pytest.mark.queries
def test_an_evaluation_is_repeated_to_the_same_values(people: People, root: Client) -> None:
    evaluation = Evaluation.objects.get(run=good())
    values = list(evaluation.vectors.order_by("measure").values_list("measure", "mean"))
    assert "Queued again: 1" in act(root, "repeat", evaluation)
    assert "is in the queue already" in act(root, "repeat", evaluation)
    assert newest() == [("evaluation.repeated", str(evaluation))]
    evaluate_all()
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.attempts) == ("evaluated", 1)
    assert list(evaluation.vectors.order_by("measure").values_list("measure", "mean")) == values


@pytest.mark.queries
def test_what_another_engine_made_or_whose_run_is_gone_is_not_repeated(
    people: People, root: Client
) -> None:
    evaluation = Evaluation.objects.get(run=good())
    Evaluation.objects.filter(pk=evaluation.pk).update(engine_version="0")
    assert "is engine 0&#x27;s" in act(root, "repeat", evaluation)
    poor = Run.objects.get(tag="poor")
    act(root, "withdraw", poor)
    assert "was withdrawn; restore it first" in act(
        root, "repeat", Evaluation.objects.get(run=poor)
    )
    assert not Evaluation.objects.filter(state="queued").exists()


@pytest.mark.queries
def test_only_those_that_failed_are_tried_again(people: People, root: Client) -> None:
    rows = [fail_evaluation(good()), Evaluation.objects.get(run__tag="poor")]
    assert "Queued again: 1" in act(root, "try_failed_again", *rows)
    assert Evaluation.objects.get(run__tag="poor").state == "evaluated"
    assert AuditEvent.objects.filter(action="evaluation.repeated").count() == 1


@pytest.mark.queries
def test_a_cancelled_comparison_ends_also_in_its_workers_hands(
    people: People, root: Client
) -> None:
    comparison = waiting_comparison(people)
    lease = claim(comparison.pk, Comparison)
    assert lease
    act(root, "cancel", comparison)
    assert not finish(lease, content=b"x", size=1)
    comparison.refresh_from_db()
    assert (comparison.state, comparison.error_message) == (
        "failed",
        "an administrator cancelled it",
    )
    assert "has ended already" in act(root, "cancel", comparison)
    act(root, "try_failed_again", comparison)
    compare(comparison_id=str(comparison.pk))
    comparison.refresh_from_db()
    assert comparison.state == "compared"
    assert "did not fail" in act(root, "try_failed_again", comparison)
    assert newest() == [("comparison.repeated", str(comparison.pk))]


@pytest.mark.queries
def test_a_disabled_account_is_out_everywhere_and_comes_back(people: People, root: Client) -> None:
    owner = people.users["owner"]
    assert people.browsers["owner"].get("/tokens/").status_code == 200
    act(root, "disable", owner)
    assert people.api["owner"].get("/api/v1/collections/").status_code == 401
    assert people.browsers["owner"].get("/tokens/").status_code == 302
    event = AuditEvent.objects.order_by("-pk")[0]
    assert (event.object_id, event.before, event.after) == (
        "owner",
        {"is_active": True},
        {"is_active": False},
    )
    assert "is disabled already" in act(root, "disable", owner)
    act(root, "enable", owner)
    assert people.api["owner"].get("/api/v1/collections/").status_code == 200


@pytest.mark.queries
def test_nobody_disables_themselves_or_somebody_mightier(people: People, root: Client) -> None:
    chief, staff = User.objects.get(username="root"), people.users["staff"]
    assert "you cannot disable your own account" in act(root, "disable", chief)
    names = ("view_user", "change_user")
    staff.user_permissions.set(Permission.objects.filter(codename__in=names))
    assert "only a superuser can do this" in act(people.browsers["staff"], "disable", chief)
    assert "you cannot disable your own account" in act(people.browsers["staff"], "disable", staff)
    colleague = User.objects.create_user("colleague", is_staff=True)
    assert "only a superuser can do this" in act(people.browsers["staff"], "disable", colleague)
    assert not User.objects.filter(is_active=False).exists()


@pytest.mark.queries
def test_a_revoked_token_is_not_revoked_twice_nor_brought_back(
    people: People, root: Client
) -> None:
    token, text = ApiToken.objects.issue(user=people.users["owner"], name="lost")
    act(root, "revoke", token)
    api = client_of(None)
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert api.get("/api/v1/collections/").status_code == 401
    known = AuditEvent.objects.count()
    act(root, "revoke", token)
    assert AuditEvent.objects.count() == known
    form = {
        "name": "lost",
        "expires_at_0": "",
        "expires_at_1": "",
        "revoked_at_0": "",
        "revoked_at_1": "",
    }
    assert root.post(form_of(token), form).status_code == 302
    assert ApiToken.objects.get(name="lost").revoked_at


@pytest.mark.queries
def test_a_release_that_has_nothing_to_show_is_refused(people: People, root: Client) -> None:
    make_collection(people, "veiled", blind=True)
    veiled, open_one = Collection.objects.get(slug="veiled"), Collection.objects.get(slug="one")
    told = act(root, "release", veiled, open_one)
    assert "has no active judgements, so there is nothing to release" in told
    assert "collection one is not blind" in told
    assert Collection.objects.get(slug="veiled").blind


@pytest.mark.queries
def test_one_version_counts(people: People, root: Client) -> None:
    second = second_version(people)
    assert "Choose exactly one version" in act(
        root, "activate", second, Qrels.objects.get(version=1)
    )
    act(root, "activate", second)
    assert newest() == [("qrels.activated", "one v2")]
    assert Evaluation.objects.filter(qrels=second, state="queued").count() == 2
    assert SessionEvaluation.objects.filter(qrels=second, state="queued").count() == 1


@pytest.mark.queries
def test_a_page_of_rows_is_chosen_asked_for_and_done(people: People, root: Client) -> None:
    """As many as a page shows, through the form that the question sends."""
    run = good()
    fields = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    same = {name: value for name, value in fields.items() if name not in ("id", "tag", "digest")}
    now = timezone.now()
    made = Run.objects.bulk_create(
        Run(**{**same, "tag": f"r{n}", "created_at": now}) for n in range(48)
    )
    asked = root.post(
        list_of(Run), {"action": "withdraw", "_selected_action": [run.pk for run in made]}
    )
    text = asked.content.decode()
    assert "and 28 more" in text
    assert text.count('name="_selected_action"') == 48
    sent = {"action": "withdraw", "_selected_action": [run.pk for run in made], "confirmed": "yes"}
    assert "Withdrawn: 48" in root.post(list_of(Run), sent, follow=True).content.decode()
    everything = {
        "action": "withdraw",
        "select_across": "1",
        "_selected_action": [run.pk],
        "confirmed": "yes",
    }
    assert "Withdrawn: 2" in root.post(list_of(Run), everything, follow=True).content.decode()
    assert not Run.objects.filter(deleted_at=None).exists()
