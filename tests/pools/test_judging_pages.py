"""The pages on which assessors judge, and organisers have a pool judged."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from evalhub.pools.models import Judgement, Pool, PoolRun
from evalhub.pools.services.pool_file import documents_of
from runs.models import Qrels, User
from tests.conftest import evaluate_all
from tests.pools.test_judging import assign, given, judged, kim, pool
from tests.pools.test_pools import browser_of, runs

__all__ = ["kim", "pool", "runs"]
pytestmark = pytest.mark.django_db


def page_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def document_in(text: str) -> str:
    return re.findall(r'name="doc_id" value="([^"]+)"', text)[0]


def test_an_assessor_judges_one_document_after_the_other(
    api: APIClient, pool: Pool, kim: User
) -> None:
    assign(api, pool, "kim", topics=["1"])
    browser, address = browser_of("kim"), f"/pools/{pool.pk}/judge/"
    assert address in page_of(browser.get("/judging/"))
    assert f"{address}?topic=1" in page_of(browser.get(address))
    documents = given(pool, "kim")
    text = page_of(browser.get(address, {"topic": "1"}))
    assert document_in(text) == documents[0]
    assert f"0 of {len(documents)} documents judged" in text
    assert re.findall(r'aria-keyshortcuts="(\w)"', text) == ["0", "1", "2", "n", "x", "u"]
    skipped = re.findall(r'href="([^"]+)" aria-keyshortcuts="n"', text)[0]
    assert document_in(page_of(browser.get(address + skipped))) == documents[1]

    for number, doc in enumerate(documents):
        form = {
            "topic": "1",
            "doc_id": doc,
            "place": number + 1,
            "level": number % 3,
            "seconds": "2.5",
        }
        answer = browser.post(address, form, follow=True)
        assert answer.redirect_chain[0][1] == 303
        assert f"{number + 1} of {len(documents)} documents judged" in page_of(answer)
    assert "All documents of this topic are judged" in page_of(answer)
    rows = list(Judgement.objects.order_by("pk").values_list("doc_id", "level", "seconds"))
    assert rows == [(doc, number % 3, 2.5) for number, doc in enumerate(documents)]

    undone = browser.post(address, {"topic": "1", "action": "undo"}, follow=True)
    assert document_in(page_of(undone)) == documents[-1]
    assert Judgement.objects.filter(active=True, level__gte=0).count() == len(documents) - 1
    again = page_of(browser.get(address, {"topic": "1", "place": 2}))
    assert (document_in(again), 'value="1" aria-keyshortcuts="1" aria-pressed="true"' in again) == (
        documents[1], True,
    )  # fmt: skip


def test_a_document_that_cannot_be_judged_is_done(api: APIClient, pool: Pool, kim: User) -> None:
    assign(api, pool, "kim", topics=["1"])
    browser, address = browser_of("kim"), f"/pools/{pool.pk}/judge/"
    first, second, *others = given(pool, "kim")
    form = {"topic": "1", "doc_id": first, "place": 1, "action": "unclear"}
    text = page_of(browser.post(address, form, follow=True))
    assert document_in(text) == second
    assert f"1 of {len(others) + 2} documents judged" in text
    assert Judgement.objects.get(active=True).level == -2
    again = page_of(browser.get(address, {"topic": "1", "place": 1}))
    assert 'aria-keyshortcuts="x" aria-pressed="true"' in again

    # A level may follow, and undoing takes back the last of either kind.
    browser.post(address, {"topic": "1", "doc_id": first, "place": 1, "level": "1"})
    assert Judgement.objects.get(active=True).level == 1
    browser.post(address, {**form, "doc_id": second, "place": 2})
    undone = page_of(browser.post(address, {"topic": "1", "action": "undo"}, follow=True))
    assert document_in(undone) == second


def test_what_is_not_an_assessors_is_refused(api: APIClient, pool: Pool, kim: User) -> None:
    assign(api, pool, "kim", topics=["1"])
    browser, address = browser_of("kim"), f"/pools/{pool.pk}/judge/"
    doc, foreign = given(pool, "kim")[0], documents_of(pool, "2")[0]
    for form, status, words in (
        ({"topic": "1", "doc_id": doc, "level": "7"}, 400, "7 is not one of 0, 1, 2"),
        ({"topic": "1", "doc_id": "unpooled", "level": "1"}, 400, "not yours to judge"),
        ({"topic": "2", "doc_id": foreign, "level": "1"}, 400, "not yours to judge"),
        ({"topic": "1", "doc_id": doc}, 400, "level"),
    ):
        answer = browser.post(address, form)
        assert (answer.status_code, words in page_of(answer)) == (status, True), form
    assert browser.get(address, {"topic": "2"}).status_code == 404
    assert browser.get(f"/pools/{pool.pk}/judging/").status_code == 404
    User.objects.create_user("eve")
    assert browser_of("eve").get(address).status_code == 404
    assert Client().get(address).status_code == 302
    assert not Judgement.objects.exists()


def test_answers_to_an_assessor_are_the_same_whoever_contributed(
    api: APIClient, pool: Pool, kim: User
) -> None:
    """In the second world the documents are brought by other runs, to other ranks."""
    assign(api, pool, "kim", topics=["1", "2"])
    api_of_kim, browser = APIClient(), browser_of("kim")
    api_of_kim.force_authenticate(kim)
    url = f"/api/v1/pools/{pool.pk}/"
    addresses = (f"{url}assignments/", f"{url}documents/?topic=1", f"{url}judgements/")
    pages = ("/judging/", f"/pools/{pool.pk}/judge/", f"/pools/{pool.pk}/judge/?topic=1")

    def read() -> list[bytes]:
        answers = [api_of_kim.get(address) for address in addresses]
        answers += [browser.get(page) for page in pages]
        assert {answer.status_code for answer in answers} == {200}
        return [re.sub(rb'"csrfmiddlewaretoken" value="\w+"', b"", row.content) for row in answers]

    before = read()
    rows = list(PoolRun.objects.filter(pool=pool).order_by("place"))
    tags = {row.run.tag for row in rows}
    PoolRun.objects.filter(pool=pool, place__gt=0).delete()
    PoolRun.objects.filter(pool=pool).update(depth=1, priority=3)
    Pool.objects.filter(pk=pool.pk).update(depths={"depths": [1], "documents": [[1]]}, note="other")
    assert read() == before
    for text in before:
        assert not {tag for tag in tags if tag.encode() in text}
        assert pool.sha256.encode() not in text


def test_organisers_have_a_pool_judged_on_pages(api: APIClient, pool: Pool, kim: User) -> None:
    browser, address = browser_of("alice"), f"/pools/{pool.pk}/judging/"
    assert address in page_of(browser.get(f"/pools/{pool.pk}/"))
    form = {"action": "assign", "assessor": "kim", "topics": "1 2", "copies": "2"}
    assert "kim judges 2 topics" in page_of(browser.post(address, form, follow=True))
    refused = page_of(browser.post(address, {**form, "assessor": "nemo"}))
    assert "there is no user 'nemo'" in refused.replace("There", "there")
    form = {"action": "unassign", "assessor": "kim", "topic_id": "2"}
    browser.post(address, form)
    assert [row.topic_id for row in pool.assignments.all()] == ["1"]

    judged(api, pool)
    text = page_of(browser.get(address))
    assert "Krippendorff’s alpha, ordinal" in text
    blocked = browser.post(address, {"action": "make", "resolve": "adjudicated"})
    assert (blocked.status_code, "adjudicate them" in page_of(blocked)) == (409, True)
    rounds = 0
    while found := re.findall(
        r'name="topic_id" value="(\w+)"><input type="hidden" name="doc_id" value="([^"]+)"', text
    ):
        for topic, doc in found:
            decision = {"action": "decide", "topic_id": topic, "doc_id": doc, "level": "1"}
            assert browser.post(address, decision).status_code == 303
        text = page_of(browser.get(address))
        rounds += 1
    assert (rounds > 0, "No open conflicts" in text) == (True, True)
    made = browser.post(
        address, {"action": "make", "resolve": "adjudicated", "activate": "true"}, follow=True
    )
    assert f"Version 2 has {pool.documents} judgements" in page_of(made)
    evaluate_all()
    assert Qrels.objects.get(active=True).version == 2


def test_organisers_store_a_file_on_the_page(api: APIClient, pool: Pool) -> None:
    browser, address = browser_of("alice"), f"/pools/{pool.pk}/judging/"
    documents = documents_of(pool, "1")

    def send_file(text: str, action: str, **fields: str) -> Any:
        form = {"file": SimpleUploadedFile("ann.qrels", text.encode()), "action": action, **fields}
        return browser.post(address, {"format": "qrels", "assessor": "ann", **form}, follow=True)

    lines = "".join(f"1 0 {doc} 1\n" for doc in documents)
    checked = page_of(send_file(lines, "check"))
    assert f"The file can be stored: it has {len(documents)} judgements" in checked
    assert not Judgement.objects.exists()
    assert f"The file is stored: {len(documents)} new" in page_of(send_file(lines, "import"))
    assert Judgement.objects.filter(pool=pool, assessor__name="ann").count() == len(documents)

    refused = send_file(f"1 0 {documents[0]} 9\n1 0 elsewhere 1\n", "import")
    assert refused.status_code == 422
    text = page_of(refused)
    assert text.count('name="assessor" maxlength="150" value="ann"') == text.count('ann"') == 1
    assert "9" in text
    assert "elsewhere" in text
    outside = page_of(send_file("1 0 elsewhere 1\n", "import", allow_outside="true"))
    assert re.search(
        r"The file is stored: 1 new.* Warning: documents that are not in the pool are stored",
        outside,
        re.DOTALL,
    )
    assert browser.post(address, {"action": "import"}).status_code == 400
