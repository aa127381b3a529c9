"""Quotas and rates (cases A6 and A15)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.db import InterfaceError
from django.test import Client, RequestFactory
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation
from runs.models import Membership, QuotaCounter, RateCounter, Run, Team, User
from runs.services.audit.rates import RATES, Rates
from runs.web.origin import address_of, network_of
from tests.conftest import GOOD, client_of, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

pytestmark = pytest.mark.words

RUNS = "collections/small/runs/"


def send(client: APIClient, number: int, **query: Any) -> Any:
    return upload(client, RUNS, GOOD.replace("good", f"good-{number}"), **query)


@pytest.mark.queries
def test_a_quota_is_kept_exactly(api: APIClient, collection: str) -> None:
    """A6; tests/reliability/test_quota.py sends them at once."""
    api.patch("/api/v1/collections/small/", {"daily_submissions": 2})
    assert [send(api, number).status_code for number in range(4)] == [202, 202, 429, 429]
    answer = send(api, 9)
    assert answer.json()["code"] == "quota_exceeded"
    assert 1 <= int(answer["Retry-After"]) <= 86_401
    assert Run.objects.count() == QuotaCounter.objects.get().used == 2


def test_what_is_no_submission_does_not_count(api: APIClient, collection: str) -> None:
    api.patch("/api/v1/collections/small/", {"daily_submissions": 2})
    assert send(api, 0).status_code == 202
    for _ in range(3):
        assert upload(api, RUNS, GOOD.replace("3.0", "x")).status_code == 422
        assert send(api, 1, dry_run="true").status_code == 200
        assert send(api, 0).status_code == 200
        assert upload(api, RUNS, GOOD, tag="good-0").status_code == 409
    assert send(api, 1).status_code == 202
    # Used up: the same run again is still the same run.
    assert send(api, 1).status_code == 200
    assert send(api, 2).status_code == 429


def test_a_deleted_run_stays_counted(api: APIClient, collection: str) -> None:
    api.patch("/api/v1/collections/small/", {"daily_submissions": 1})
    run = send(api, 0).json()["id"]
    api.delete(f"/api/v1/runs/{run}/")
    assert send(api, 0).status_code == 429


def test_what_becomes_of_a_run_does_not_change_what_was_counted(
    api: APIClient, collection: str
) -> None:
    """A7: a run counts once, when it is accepted: failing, another try, other scores, new judgements are free."""
    api.patch("/api/v1/collections/small/", {"daily_submissions": 2})
    run = send(api, 1).json()["id"]
    Evaluation.objects.update(state="failed", error_code="evaluation_timeout")
    for scores in ("float64", "float32"):
        assert api.post(f"/api/v1/runs/{run}/evaluations/", {"scores": scores}).status_code == 202
    assert upload(api, "collections/small/qrels/", "1 0 a 1\n").status_code == 201
    assert evaluate_all() > 0
    assert send(api, 2).status_code == 202
    assert send(api, 3).json()["code"] == "quota_exceeded"
    assert QuotaCounter.objects.get().used == 2


@pytest.mark.queries
def test_a_day_begins_at_midnight_utc(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: by the moment at which the run is stored."""
    api.patch("/api/v1/collections/small/", {"daily_submissions": 1})
    assert send(api, 1).status_code == 202
    assert send(api, 2).status_code == 429
    yesterday = timezone.now() - timedelta(days=1)
    Run.objects.update(created_at=yesterday)
    QuotaCounter.objects.update(day=yesterday.astimezone(UTC).date())
    assert send(api, 2).status_code == 202
    assert send(api, 3).status_code == 429


@pytest.mark.queries
def test_who_changes_teams_takes_no_quota_along(
    api: APIClient, alice: User, bob: User, collection: str
) -> None:
    """A7: a quota is a team's: a member more or less changes nothing, and a second account none of the first one's."""
    api.patch("/api/v1/collections/small/", {"daily_submissions": 1})
    team = Team.objects.create(slug="both", name="Both")
    for user in (alice, bob):
        Membership.objects.create(team=team, user=user, role="member")
    assert send(api, 1, team="both").status_code == 202
    assert send(client_of(bob), 2, team="both").status_code == 429
    Membership.objects.filter(user=bob).exclude(team__personal_of=bob).delete()
    assert send(client_of(bob), 2).status_code == 202
    assert send(client_of(bob), 3).status_code == 429


def test_every_team_has_its_own_quota(api: APIClient, bob: User, collection: str) -> None:
    api.patch("/api/v1/collections/small/", {"daily_submissions": 1})
    assert [send(client, 0).status_code for client in (api, client_of(bob), api)] == [202, 202, 200]
    assert [send(client, 1).status_code for client in (api, client_of(bob))] == [429, 429]


@pytest.mark.queries
def test_the_runs_of_the_day_count_from_before_there_was_a_quota(
    api: APIClient, collection: str
) -> None:
    for number in range(3):
        send(api, number)
    Run.objects.filter(tag="good-0").update(created_at=timezone.now() - timedelta(days=2))
    api.patch("/api/v1/collections/small/", {"daily_submissions": 3})
    assert [send(api, number).status_code for number in (3, 4)] == [202, 429]
    api.patch("/api/v1/collections/small/", {"daily_submissions": None})
    assert send(api, 4).status_code == 202


@pytest.mark.parametrize("value", [0, -1, 2**40, "x", 1.5, []])
def test_a_quota_is_a_number_of_runs(api: APIClient, collection: str, value: Any) -> None:
    answer = api.patch("/api/v1/collections/small/", {"daily_submissions": value})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (
        400,
        "/daily_submissions",
    )


@pytest.mark.queries
@pytest.mark.parametrize(("limit", "most"), [(1, 1), (10, 10), (99, 99), (1000, 1080)])
def test_processes_share_a_limit(
    db: None, limit: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A15: four processes that know of each other through the database alone, each asked in turn."""
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    processes = [Rates() for _ in range(4)]
    allowed = [
        processes[number % 4].take("user:1", limit) == 0 for number in range(2 * limit + 200)
    ]
    assert limit <= sum(allowed) <= most
    assert not any(allowed[-50:])
    # Rows are written for shares of the limit, not for requests.
    assert RateCounter.objects.count() == 1
    assert processes[0].take("user:2", limit) == 0
    monkeypatch.setattr("time.time", lambda: 6_000_000_060.0)
    assert processes[0].take("user:1", limit) == 0


def test_a_large_limit_costs_no_writes(
    db: None, django_assert_num_queries: Callable[..., Any]
) -> None:
    with django_assert_num_queries(0):
        assert not any(Rates().take("user:1", 60_000) for _ in range(500))


@pytest.mark.queries
def test_old_counts_go(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for moment in (6e9, 6e9 + 3600):
        monkeypatch.setattr("time.time", lambda moment=moment: moment)
        Rates().take("user:1", 1)
    assert RateCounter.objects.get().minute == (6_000_000_000 + 3600) // 60


def test_a_silent_database_limits_nobody(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(**fields: Any) -> Any:
        raise InterfaceError("gone")

    monkeypatch.setattr(RateCounter.objects, "filter", silent)
    assert not any(RATES.take(f"user:{number}", 1) for number in range(3))


def test_a_user_who_asks_too_often_waits(
    api: APIClient, bob: User, collection: str, settings: Any
) -> None:
    settings.EVALHUB_USER_RATE = 5
    RATES.forget()
    codes = [api.get("/api/v1/collections/").status_code for _ in range(12)]
    assert 5 <= codes.count(200) <= 10
    assert codes.count(429) == 12 - codes.count(200)
    answer = api.get("/api/v1/collections/")
    assert (answer.json()["code"], answer["Content-Type"]) == (
        "throttled",
        "application/problem+json",
    )
    assert 1 <= int(answer["Retry-After"]) <= 61
    assert client_of(bob).get("/api/v1/collections/").status_code == 200


def test_an_address_that_asks_too_often_waits_on_pages_as_well(db: None, settings: Any) -> None:
    settings.EVALHUB_ADDRESS_RATE = 5
    browser = Client()
    answers = [browser.get("/measures/") for _ in range(12)]
    codes = [answer.status_code for answer in answers]
    assert 5 <= codes.count(200) <= 10
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused["Content-Type"].startswith("text/html")
    assert int(refused["Retry-After"]) >= 1
    assert refused["Cache-Control"] == "private, no-cache"
    assert browser.get("/api/v1/measures/AP/")["Content-Type"] == "application/problem+json"
    assert browser.get("/measures/", REMOTE_ADDR="192.0.2.9").status_code == 200


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "192.0.2.1", "127.0.0.1"),
        (1, "192.0.2.1", "192.0.2.1"),
        (1, "10.9.9.9, 192.0.2.1", "192.0.2.1"),
        (2, "10.9.9.9, 192.0.2.1, 192.0.2.2", "192.0.2.1"),
        (2, "192.0.2.2", "192.0.2.2"),
        (1, "", "127.0.0.1"),
        (1, "nonsense'; --", None),
    ],
)
def test_an_address_is_believed_from_proxies_only(
    settings: Any, proxies: int, forwarded: str, address: str | None
) -> None:
    settings.EVALHUB_PROXIES = proxies
    assert address_of(RequestFactory().get("/", HTTP_X_FORWARDED_FOR=forwarded)) == address


@pytest.mark.parametrize(
    ("sender", "address", "network"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:50123", "192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:443", "192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:3::4]", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2:3::4]:50123", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::1", "fe80::/64"),
        ("", None, "unknown"),
    ],
)
def test_an_address_is_read_in_every_spelling(
    sender: str, address: str | None, network: str
) -> None:
    assert address_of(RequestFactory().get("/", REMOTE_ADDR=sender)) == address
    assert network_of(sender) == network


def test_a_network_of_version_six_is_one_address() -> None:
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2:9::9")
    assert network_of("2001:db8:1:3::4") != network_of("2001:db8:1:2::4")
    assert network_of("::ffff:192.0.2.1") != network_of("::ffff:192.0.2.2")


def test_what_is_no_address_is_not_one_client() -> None:
    senders = ("_hidden", "_other", "unknown", "192.0.2.1:x", "[192.0.2.1", "x" * 5000)
    networks = {network_of(sender) for sender in senders}
    assert len(networks) == len(senders)
    assert max(len(network) for network in networks) <= 64


def test_clients_behind_one_socket_for_both_versions_do_not_share_a_limit(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    settings.EVALHUB_ADDRESS_RATE = 3
    codes = [
        Client().get("/measures/", REMOTE_ADDR=f"::ffff:192.0.2.{number}").status_code
        for number in range(9)
    ]
    assert codes == [200] * 9
    again = [Client().get("/measures/", REMOTE_ADDR="192.0.2.1").status_code for _ in range(8)]
    assert again.count(200) == 2
