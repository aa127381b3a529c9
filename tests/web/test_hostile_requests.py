"""No header, parameter or body makes any address answer with a server's error (case A29)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from tests.web.access.addresses import ADDRESSES, Address
from tests.web.worlds import People, body_of

# Not ready is what it is here; it says so by 503.
EXCUSED = {"readyz": {503}}
HEADERS = (
    {"Accept": "\xff/\x00;q=x"}, {"Accept": "text/html;" * 500}, {"Accept-Language": "xx-" * 1000 + ";q=nan"},
    {"Accept-Encoding": "gzip;q=nan, br;q=-1, ,"}, {"Authorization": "Bearer \xe9"}, {"Authorization": "Bearer evh_ _"},
    {"Authorization": "Basic ====="}, {"If-None-Match": 'W/"\x01", "" ,*'}, {"If-Match": "nonsense, \"x"},
    {"If-Modified-Since": "yesterday"}, {"Range": "bytes=9-1,-,x"}, {"Cookie": "sessionid=\xff; csrftoken=; =;;"},
    {"X-Forwarded-For": "::ffff:999.1.1.1, [x]:y"}, {"X-Request-ID": "\x7f" * 300}, {"Idempotency-Key": "\xff" * 300},
    {"Referer": "http://[::1"}, {"Origin": "null"}, {"HX-Request": "\xff", "HX-Current-URL": "http://["},
)  # fmt: skip
VALUES = (
    "",
    "\x00",
    "\ud800",
    "-1",
    "9" * 400,
    "1e999",
    "nan",
    "((((,)",
    "'\"\\",
    "x,,y,",
    "\u202e\U0001f600",
    "[]",
)
TYPES = (
    "application/json", "application/json; charset=utf-99", "multipart/form-data", "multipart/form-data; boundary=",
    "multipart/form-data; boundary=b", "application/x-www-form-urlencoded; charset=\xff", "text/plain",
    "application/gzip", "application/zstd", "",
)  # fmt: skip
BODIES = (
    b"", b"\x00", b"null", b"[]", b'"x"', b"{", b'{"name": "\\ud800", "slug": 1e999}', b"[" * 5000, b"\xff\xfe{}",
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="\xff"\r\n\r\nx\r\n--b--\r\n',
    b"\x1f\x8b\x08\x1f" + b"\xff" * 50, b"\x28\xb5\x2f\xfd" + b"\xff" * 50, b"%00=%ff&a[]=b&=&%", b"1 Q0 d 1 nan r\n",
)  # fmt: skip


# Of this many parameters one is tried; `make fuzz` tries all.
STEP = 1 if "EVALHUB_TEST_API_CASES" in os.environ else 3


def requests_to(address: Address, turn: Iterator[int]) -> Iterator[dict[str, Any]]:
    """Some of everything, by turns, so that each comes up at many addresses."""
    methods = address.methods
    if "GET" in methods:
        for parameter in address.reads():
            number = next(turn)
            if number % STEP == 0:
                value = VALUES[number // STEP % len(VALUES)]
                yield {"method": "GET", "query_params": {parameter: value}}
        header = HEADERS[next(turn) % len(HEADERS)]
        yield {"method": "GET", "headers": header, "QUERY_STRING": "%ff=%fe&%00&&=&a[b]=c;d"}
    for method in methods:
        if method != "GET":
            for _ in range(3):
                number = next(turn)
                kind = TYPES[number // len(BODIES) % len(TYPES)]
                yield {"method": method, "data": BODIES[number % len(BODIES)], "content_type": kind}


@pytest.mark.slow
def test_no_header_parameter_or_body_is_a_servers_error(
    people: People, values: dict[str, Any]
) -> None:
    turn, wrong, count = itertools.count(), [], 0
    for name, address in ADDRESSES.items():
        path = address.path(values)
        client: Any = (people.browsers if address.is_page else people.api)["staff"]
        client.raise_request_exception = False
        for request in requests_to(address, turn):
            fields = dict(request)
            if isinstance(query := request.get("query_params"), dict):
                # Half a surrogate pair arrives as the bytes that some clients make of it.
                text = "&".join(f"{key}={_escaped(value)}" for key, value in query.items())
                request = {"method": request["method"], "QUERY_STRING": text}
            with transaction.atomic():
                answer = client.generic(request.pop("method"), path, **request)
                body_of(answer)
                transaction.set_rollback(True)
            count += 1
            if answer.status_code >= 500 and answer.status_code not in EXCUSED.get(name, set()):
                wrong.append(f"{answer.status_code} of {name}: {fields}")
    assert not wrong, "\n".join(wrong[:30])
    assert count > 600


def _escaped(value: str) -> str:
    return "".join(f"%{byte:02x}" for byte in value.encode("utf-8", "surrogatepass"))
