"""HEAD is answered as GET is, without a body: what a server throws away it also complains about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory

from runs.models import Run
from tests.conftest import GOOD
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words


@pytest.mark.parametrize(
    "path",
    ["/", "/collections/small/", "/nowhere/", "/api/v1/collections/", "/runs/{0}/", "/api/v1/runs/{0}/file/",
     "/api/v1/collections/small/leaderboard/export/csv/"],
)  # fmt: skip
def test_head_has_the_headers_of_get_and_no_body(submit: Callable[..., Run], path: str) -> None:
    path = path.format(submit(GOOD).pk)
    handler, factory = WSGIHandler(), RequestFactory()
    # What the test client itself takes from an answer to HEAD is looked at before it does.
    got: Any = handler.get_response(factory.get(path))
    answer: Any = handler.get_response(factory.head(path))
    assert answer.status_code == got.status_code
    assert answer["Content-Type"] == got["Content-Type"]
    assert (b"".join(answer.streaming_content) if answer.streaming else answer.content) == b""
    if not got.streaming:
        assert int(answer["Content-Length"]) == len(got.content) > 0
    for response in (got, answer):
        response.close()
