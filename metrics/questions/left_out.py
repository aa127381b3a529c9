"""What a page shows of its reader is left out of what is kept, and filled in for everyone who gets it: who is signed
in, and the tokens of forms, which belong to one browser.

Neither can be imitated by what users write: in the text of a page, < and " are escaped.
"""

from __future__ import annotations

import re

from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.template.loader import render_to_string

_BEGIN, _END = b"<!-- account -->", b"<!-- /account -->"
_TOKEN = re.compile(rb'(?<=name="csrfmiddlewaretoken" value=")[^"]*')


def without_reader(page: bytes) -> bytes:
    """Return a page without what belongs to its reader."""
    return _TOKEN.sub(b"", _with_account(page, b""))


def with_reader(page: bytes, request: HttpRequest) -> bytes:
    """Return such a page for the reader of a request."""
    if _BEGIN in page:
        page = _with_account(
            page, render_to_string("evalhub/_account.html", request=request).encode()
        )
    if _TOKEN.search(page):
        token = get_token(request).encode()
        page = _TOKEN.sub(lambda _: token, page)
    return page


def _with_account(page: bytes, account: bytes) -> bytes:
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    return before + begin + account + end + after if end else page
