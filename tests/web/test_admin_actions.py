"""The actions of the administration: through the services, asked first, in the audit trail, for
staff."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db.models import Model
from django.test import Client

from metrics.engine.measures.grammar import parse_measure
from metrics.models import Comparison, Evaluation, SessionEvaluation
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import compare, queue_comparison
from metrics.services.queue.lifecycle import claim, finish
from runs.models import ApiToken, AuditEvent, Collection, Run, User
from tests.conftest import client_of, evaluate_all
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.test_administration import list_of
from tests.web.worlds import (
    People,
    make_session_set,
)

__all__ = ["module_data", "module_people", "people", "run"]

pytestmark = pytest.mark.words

OTHER_QRELS = "1 0 a 1\n2 0 y 2\n3 0 z 1\n"


@pytest.fixture(autouse=True, scope="module")
def sessions(module_people: People, run: str) -> str:
    """A session set in the open collection with two runs of `guests`."""
    return make_session_set(module_people, "one")


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


def waiting_comparison(people: People) -> Comparison:
    query = ComparisonQuery([parse_measure("AP")], tests=["paired_t"])
    return queue_comparison(collection=Collection.objects.get(slug="one"), query=query)


def withdrawn(people: People, run: Run) -> Run:
    assert people.api["participant"].delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    return Run.objects.get(pk=run.pk)


@dataclass(frozen=True)
class Case:
    """An action: what it is done to, whether it asks first, and what it leaves."""

    target: Callable[[People], Model]
    asks: bool
    event: str
    holds: Callable[[], bool]


CASES = {
    "repeat": Case(
        lambda people: Evaluation.objects.get(run=good()), True, "evaluation.repeated",
        lambda: Evaluation.objects.get(run=good()).state == "queued",
    ),
    "repeat of sets": Case(
        lambda people: SessionEvaluation.objects.get(), True, "evaluation.repeated",
        lambda: SessionEvaluation.objects.get().state == "queued",
    ),
    "cancel": Case(
        waiting_comparison, True, "comparison.cancelled",
        lambda: Comparison.objects.get().state == "failed",
    ),
    "revoke": Case(
        lambda people: ApiToken.objects.issue(user=people.users["owner"], name="lost")[0], True,
        "token.revoked", lambda: bool(ApiToken.objects.get(name="lost").revoked_at),
    ),
    "disable": Case(
        lambda people: people.users["owner"], True, "user.changed",
        lambda: not User.objects.get(username="owner").is_active,
    ),
    "enable": Case(
        lambda people: User.objects.create_user("asleep", is_active=False), False, "user.changed",
        lambda: User.objects.get(username="asleep").is_active,
    ),
}  # fmt: skip


@pytest.mark.queries
@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_an_action_asks_acts_and_leaves_one_event(people: People, name: str) -> None:
    case, action = CASES[name], name.split(maxsplit=1)[0]
    target, browser = case.target(people), people.browsers["staff"]
    known = set(AuditEvent.objects.values_list("pk", flat=True))
    if case.asks:
        answer = act(browser, action, target, confirmed=False)
        assert "Are you sure?" in answer
        assert str(target) in answer
        assert not case.holds()
    act(browser, action, target)
    assert case.holds()
    (event,) = AuditEvent.objects.exclude(pk__in=known)
    assert (event.action, event.actor, event.address) == (case.event, "staff", "127.0.0.1")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_only_staff_act(people: People, name: str) -> None:
    case, action = CASES[name], name.split(maxsplit=1)[0]
    target = case.target(people)
    known = AuditEvent.objects.count()
    for role in ("owner", "anonymous"):
        fields = {"action": action, "_selected_action": [str(target.pk)], "confirmed": "yes"}
        assert people.browsers[role].post(list_of(type(target)), fields).status_code == 302
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
    poor = withdrawn(people, Run.objects.get(tag="poor"))
    assert "was withdrawn; restore it first" in act(
        root, "repeat", Evaluation.objects.get(run=poor)
    )
    assert not Evaluation.objects.filter(state="queued").exists()


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
    # Whoever waits for it requests it again.
    assert waiting_comparison(people).pk == comparison.pk
    compare(comparison_id=str(comparison.pk))
    comparison.refresh_from_db()
    assert comparison.state == "compared"


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
    assert "only a superuser can do this" in act(people.browsers["staff"], "disable", chief)
    assert "you cannot disable your own account" in act(people.browsers["staff"], "disable", staff)
    colleague = User.objects.create_user("colleague", is_staff=True)
    assert "only a superuser can do this" in act(people.browsers["staff"], "disable", colleague)
    assert not User.objects.filter(is_active=False).exists()
    token, _ = ApiToken.objects.issue(user=chief, name="chief's")
    assert "only a superuser can do this" in act(people.browsers["staff"], "revoke", token)
    assert not ApiToken.objects.exclude(revoked_at=None).exists()


@pytest.mark.queries
def test_a_revoked_token_is_not_revoked_twice(people: People, root: Client) -> None:
    token, text = ApiToken.objects.issue(user=people.users["owner"], name="lost")
    act(root, "revoke", token)
    api = client_of(None)
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert api.get("/api/v1/collections/").status_code == 401
    known = AuditEvent.objects.count()
    act(root, "revoke", token)
    assert AuditEvent.objects.count() == known


@pytest.mark.queries
def test_a_page_of_rows_is_chosen_asked_for_and_done(people: People, root: Client) -> None:
    """As many as a page shows, through the form that the question sends, then all at once."""
    users = User.objects.bulk_create(User(username=f"u{number}") for number in range(48))
    chosen = {"action": "disable", "_selected_action": [user.pk for user in users]}
    text = root.post(list_of(User), chosen).content.decode()
    assert "and 28 more" in text
    assert text.count('name="_selected_action"') == 48
    sent = root.post(list_of(User), {**chosen, "confirmed": "yes"}, follow=True)
    assert "Disabled: 48" in sent.content.decode()
    everybody = {**chosen, "select_across": "1", "confirmed": "yes"}
    answer = root.post(list_of(User), everybody, follow=True).content.decode()
    assert "Refused: u0 is disabled already" in answer
    assert set(User.objects.filter(is_active=True).values_list("username", flat=True)) == {"root"}
