"""The pages on which organisers make, freeze and read a pool."""

from __future__ import annotations

import pytest
from django.test import Client

from evalhub.pools.models import Pool
from tests.pools import naive
from tests.pools.test_pools import browser_of, pairs, runs

__all__ = ["runs"]
pytestmark = pytest.mark.django_db


def test_organisers_make_a_pool_on_pages(collection: str, runs: dict[str, str]) -> None:
    browser = browser_of("alice")
    form = {"method": "depth", "k": "3", "topics": "1 2"}
    ranked = [naive.rank(text) for text in runs.values()]
    expected = {pair for pair in naive.depth(ranked, 3) if pair[0] != "3"}
    counted = browser.post("/collections/small/new-pool/", {**form, "action": "preview"})
    assert f"{len(expected)} documents on 2 topics" in counted.content.decode()
    assert not Pool.objects.exists()
    refused = browser.post("/collections/small/new-pool/", {"method": "depth", "action": "make"})
    assert 'id="k-hint">\n    <strong class="wrong">' in refused.content.decode()

    made = browser.post("/collections/small/new-pool/", {**form, "action": "make"}, follow=True)
    pool = Pool.objects.get()
    assert made.redirect_chain == [(f"/pools/{pool.pk}/", 303)]
    assert (pairs(pool), pool.is_frozen) == (expected, False)
    page = made.content.decode()
    assert (pool.sha256 in page, "Files for assessors" in page) == (True, False)
    act = f"/pools/{pool.pk}/act/"
    frozen = browser.post(act, {"action": "freeze"}, follow=True).content.decode()
    assert f'href="/api/v1/pools/{pool.pk}/files/1.tsv"' in frozen
    assert "frozen pool stays" in browser.post(act, {"action": "delete"}).content.decode()
    assert f"/pools/{pool.pk}/" in browser.get("/collections/small/pools/").content.decode()
    assert Client().get(f"/pools/{pool.pk}/").status_code == 404
    assert Client().get(act).status_code != 200
