"""Where documents can be read: what organisers may set, and what rankings and topics link."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from rest_framework.test import APIClient

from runs.models import Collection, Run, document_address
from runs.models.collections.collections import check_document_url
from runs.services.audit.revisions import read_revision
from tests.conftest import GOOD, POOR, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words


@pytest.mark.parametrize(
    "pattern",
    ["ftp://a/{doc_id}", "https://a/", "https://{doc_id}/", "https://a{doc_id}.b/", "https://u@a/{doc_id}",
     "//a/{doc_id}", "javascript:{doc_id}", "https://a/{doc_id} b", "https://a/{doc}/{doc_id}", "https:///{doc_id}",
     "https://[/{doc_id}", "https://a\\{doc_id}"],
)  # fmt: skip
def test_an_address_of_documents_names_a_server_and_an_id(pattern: str) -> None:
    with pytest.raises(ValidationError, match="https://example"):
        check_document_url(pattern)


def test_documents_are_linked_where_the_collection_says_so(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    run = submit(GOOD.replace(" a ", " a/b?c&d "))
    assert (
        upload(api, "collections/small/qrels/", "1 0 a/b?c&d 2\n2 0 x 1\n3 0 z 1\n").status_code
        == 201
    )
    paths = ("/collections/small/topics/1/", f"/runs/{run.pk}/ranking/?topic=1&qrels=1")
    assert not any("example.org" in Client().get(path).content.decode() for path in paths)
    wrong = api.patch("/api/v1/collections/small/", {"document_url": "example.org"}, format="json")
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (400, "/document_url")
    answer = api.patch(
        "/api/v1/collections/small/",
        {"document_url": "https://example.org/d?id={doc_id}"},
        format="json",
    )
    assert answer.json()["document_url"] == "https://example.org/d?id={doc_id}"
    address = document_address(Collection.objects.get(slug="small"), "a/b?c&d")
    assert address == "https://example.org/d?id=a%2Fb%3Fc%26d"
    for path in paths:
        html = Client().get(path).content.decode()
        assert f'href="{address}" rel="noopener noreferrer"' in html


def test_titles_are_shown_wherever_documents_are_listed(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    runs = [submit(GOOD), submit(POOR)]
    ids = ",".join(str(run.pk) for run in runs)
    api.patch("/api/v1/collections/small/", {"document_url": "https://example.org/{doc_id}"})
    titles = 'a\t<script>alert("x")</script>\tIts first words & more.\nb\tBirds\n'
    paths = (
        f"/runs/{runs[0].pk}/ranking/?topic=1",
        "/collections/small/topics/1/",
        f"/collections/small/comparison/?runs={ids}&topic=1",
    )

    assert not any("alert" in Client().get(path).content.decode() for path in paths)
    # Pages are kept under the revision of their collection.
    revision = read_revision(runs[0].collection_id)
    assert upload(api, "collections/small/documents/", titles, "put").status_code == 200
    assert read_revision(runs[0].collection_id).others > revision.others

    for path in paths:
        html = Client().get(path).content.decode()
        assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;</bdi></a>" in html, path
        assert '<a href="https://example.org/a" rel="noopener noreferrer"><bdi>&lt;script' in html
        assert "<script>alert" not in html
        assert '<code class="under">a</code>' in html
        assert ("Its first words &amp; more." in html) == ("/ranking/" in path)

    documents = api.get(f"/api/v1/runs/{runs[0].pk}/ranking/?topic=1").json()["documents"]
    by_id = {document["doc_id"]: document["title"] for document in documents}
    assert by_id["a"] == '<script>alert("x")</script>'
    assert set(by_id.values()) - {by_id["a"], "Birds"} <= {""}

    api.delete("/api/v1/collections/small/documents/")
    assert not any("alert" in Client().get(path).content.decode() for path in paths)
