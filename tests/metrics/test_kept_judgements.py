"""Judgements that a worker keeps for the next run."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from runs.models import Qrels
from runs.services.collections import qrels
from tests.conftest import upload


@pytest.mark.parametrize(("large", "count"), [(10, 4), (2, 1)])
def test_four_judgements_are_kept_or_one_large(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch, large: int, count: int
) -> None:
    monkeypatch.setattr(qrels, "_LARGE_TOPICS", large)
    qrels._cache.clear()
    for number in range(5):
        upload(api, f"collections/{collection}/qrels/", f"1 0 a {number}\n1 0 b 1\n2 0 c 2\n")
    versions = list(Qrels.objects.filter(collection__slug=collection).order_by("version"))
    loaded = [qrels.load_judgements(version) for version in versions]
    assert [judgements.levels[0] for judgements in loaded[-5:]] == [0, 1, 2, 3, 4]
    assert list(qrels._cache) == [
        (version.sha256, version.keyed_by, version.iteration, "none", "False")
        for version in versions[-count:]
    ]
    last = versions[-1]
    assert qrels.load_judgements(last) is loaded[-1]
