"""Comparisons that a worker makes, however small they are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Comparison
from metrics.services.comparisons import workload
from metrics.services.comparisons.stored import compare
from runs.models import Team, User
from tests.metrics.scored import make_scored, simulated

SCORED = "/api/v1/collections/scored/comparison/"
# Enough to be more than a request may take, by what is set below.
QUERY = {"tests": "randomisation,paired_t", "resamples": "3000", "measures": "AP"}


@pytest.fixture
def ids(alice: User) -> list[str]:
    return make_scored("scored", Team.objects.get(personal_of=alice), simulated(5, 30))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made while its client waits."""
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)


@pytest.fixture
def queued(api: APIClient, ids: list[str], slow: None) -> Comparison:
    assert api.get(SCORED, QUERY).status_code == 202
    return Comparison.objects.get()


def expire(job: Comparison) -> None:
    Comparison.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def compute_now(queued: Comparison) -> Comparison:
    assert compare(comparison_id=str(queued.pk))
    queued.refresh_from_db()
    return queued


def address(stored: Comparison) -> str:
    return f"/api/v1/comparisons/{stored.pk}/"
