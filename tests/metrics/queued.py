"""A queued evaluation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation
from tests.conftest import GOOD, upload

QRELS_PATH = "collections/small/qrels/"


@pytest.fixture
def queued(api: APIClient, collection: str) -> Evaluation:
    upload(api, f"collections/{collection}/runs/", GOOD)
    return Evaluation.objects.get()


def expire(evaluation: Evaluation) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )


def state(evaluation: Evaluation) -> str:
    evaluation.refresh_from_db()
    return evaluation.state
