"""Requests of webhooks: how they are signed, where they may go, and what becomes of them."""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import struct
import time
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from runs.errors import InvalidInput
from runs.services.webhooks import signing, transport
from runs.services.webhooks.addresses import (
    NotAllowedAddress,
    parse_url,
    permitted_addresses,
    resolve,
)
from runs.services.webhooks.transport import Reply
from tests.runs.receivers import NAME, OPENSSL, Behave, Receiver, answering, receiving

LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
# Of the specification's own libraries: secret, id, timestamp, body and signature.
VECTOR = (
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
    b'{"test": 2432232314}', "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
)  # fmt: skip


def test_signatures_are_those_of_the_specification() -> None:
    text, message_id, moment, body, expected = VECTOR
    secret = base64.b64decode(text.removeprefix("whsec_"))
    assert signing.secret_text(secret) == text
    assert signing.sign(secret, message_id, moment, body) == expected
    both = signing.signatures([b"another", secret], message_id, moment, body)
    assert both.split(" ")[1] == expected
    assert both.split(" ")[0] != expected


def test_a_sealed_secret_opens_with_its_key_for_its_webhook_alone(settings: Any) -> None:
    secret, webhook = signing.new_secret(), uuid.uuid4()
    sealed = signing.seal(secret, webhook)
    assert signing.unseal(sealed, webhook) == secret
    assert signing.seal(secret, webhook) != sealed
    assert len(sealed) <= 200
    for text, other in ((sealed, uuid.uuid4()), ("A" + sealed[1:], webhook), ("", webhook), ("é", webhook),
                        (sealed[:-8], webhook), (sealed[:-4] + "AAA=", webhook)):  # fmt: skip
        if text != sealed or other != webhook:
            with pytest.raises(signing.Unreadable):
                signing.unseal(text, other)
    settings.SECRET_KEY = "another-key-another-key-another-key-another"
    with pytest.raises(signing.Unreadable):
        signing.unseal(sealed, webhook)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://ci.example.org/hook", "bad_url"),
        ("https://user:word@ci.example.org/hook", "bad_url"),
        ("https://ci.example.org/hook#part", "bad_url"),
        ("https://ci.example.org\\@127.0.0.1/", "bad_url"),
        ("https://ci.example.org/a b", "bad_url"),
        ("https://ci.example.org/\r\nHost: x", "bad_url"),
        ("https://exämple.org/", "bad_url"),
        ("https:///hook", "bad_url"),
        ("https://ci.example.org/" + "x" * 2000, "bad_url"),
        ("https://ci.example.org:22/", "port_not_permitted"),
        ("https://ci.example.org:99999/", "port_not_permitted"),
        ("https://127.0.0.1/", "address_not_permitted"),
        ("https://[::1]/", "address_not_permitted"),
        ("https://169.254.169.254/latest/meta-data/", "address_not_permitted"),
        ("https://[::ffff:10.0.0.1]:8443/", "address_not_permitted"),
    ],
)
def test_an_address_that_may_not_be_called_is_refused_with_its_reason(url: str, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url(url)
    assert (refused.value.code, refused.value.pointer) == (code, "/url")


def test_the_parts_of_an_address() -> None:
    address = parse_url("https://CI.example.org:8443/hook/x?a=b")
    assert (address.host, address.port, address.authority) == (
        "CI.example.org",
        8443,
        "CI.example.org:8443",
    )
    assert address.path == "/hook/x?a=b"
    assert parse_url("https://ci.example.org").path == "/"
    assert parse_url("https://ci.example.org:443?a").path == "/?a"
    assert parse_url("https://ci.example.org:443?a").authority == "ci.example.org"
    assert parse_url("https://[2606:4700::1111]/").host == "2606:4700::1111"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"], ["169.254.169.254"], ["10.1.2.3"], ["192.168.1.1"], ["100.64.0.1"], ["0.0.0.0"],
        ["224.0.0.1"], ["255.255.255.255"], ["::1"], ["::"], ["fe80::1"], ["fe80::1%eth0"], ["fd00::1"], ["fec0::1"],
        ["ff02::1"], ["::ffff:10.0.0.1"], ["::ffff:127.0.0.1"], ["2002:7f00:1::1"], ["2002:a00:1::1"],
        ["64:ff9b::7f00:1"], ["64:ff9b::a00:1"], ["::10.0.0.1"], ["2001:0:5ef5:79fd:0:0:f5ff:fffe"],
        ["3fff::1"], ["3fff:fff::1"], ["192.88.99.1"], ["2620:4f:8000::1"], ["5f00::1"], ["192.31.196.1"],
        ["192.175.48.1"], ["2001:4:112::1"], ["::ffff:192.88.99.1"],
        # Two addresses, of which the second is not public, and none.
        ["93.184.216.34", "10.0.0.1"], ["2606:4700::1111", "::ffff:192.168.0.1"], [], ["nonsense"],
    ],
)  # fmt: skip
def test_nothing_is_sent_where_a_name_has_an_address_that_is_not_public(
    addresses: list[str],
) -> None:
    with pytest.raises(NotAllowedAddress):
        permitted_addresses(parse_url("https://ci.example.org/"), lambda host, port: addresses)


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "localhost"])
def test_other_spellings_of_the_machine_itself_are_not_permitted(host: str) -> None:
    """As the system's own resolver reads them."""
    with pytest.raises(NotAllowedAddress):
        permitted_addresses(parse_url(f"https://{host}/"), resolve)


def test_public_addresses_and_those_of_the_operators_networks_are_permitted(settings: Any) -> None:
    target = parse_url("https://ci.example.org/")
    # As this Python writes them: newer ones write mapped addresses with dots.
    public = [
        str(ipaddress.ip_address(address))
        for address in ("93.184.216.34", "2606:4700::1111", "::ffff:5db8:d822")
    ]
    assert permitted_addresses(target, lambda host, port: public) == public
    settings.EVALHUB_WEBHOOK_ALLOW = (
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_network("::1/128"),
    )
    inside = [
        str(ipaddress.ip_address(address)) for address in ("10.1.2.3", "::ffff:a01:203", "::1")
    ]
    assert permitted_addresses(target, lambda host, port: inside) == inside
    for outside in ("127.0.0.1", "192.168.0.1", "169.254.169.254", "2002:7f00:1::1"):
        with pytest.raises(NotAllowedAddress):
            permitted_addresses(target, lambda host, port, address=outside: ["10.1.2.3", address])  # type: ignore[misc]


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    if OPENSSL is None:
        pytest.skip("needs openssl")
    with receiving(tmp_path_factory.mktemp("receiver")) as receiver:
        yield receiver


@pytest.fixture
def near(settings: Any, receiver: Receiver) -> Receiver:
    """The receiver, where it may be called."""
    settings.EVALHUB_WEBHOOK_ALLOW, settings.EVALHUB_WEBHOOK_PORTS = (LOOPBACK,), (receiver.port,)
    receiver.requests.clear()
    return receiver


def call(receiver: Receiver, behave: Behave, seconds: float = 5.0, **options: Any) -> Reply:
    receiver.behave = behave
    arguments: dict[str, Any] = {
        "resolve": lambda host, port: ["127.0.0.1"],
        "context": receiver.context,
        **options,
    }
    return transport.post(
        receiver.url(), b'{"type":"x"}', {"webhook-id": "7"}, seconds=seconds, **arguments
    )


def test_a_request_has_the_name_of_its_receiver_and_nothing_of_the_environment(
    near: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    requests: list[tuple[str, int]] = []

    def resolve(host: str, port: int) -> list[str]:
        requests.append((host, port))
        return ["127.0.0.1"]

    reply = call(near, answering("200 OK", body=b"thanks"), resolve=resolve)
    assert (reply.delivered, reply.status, reply.error) == (True, 200, "")
    assert requests == [(NAME, near.port)]
    headers, body = near.last
    assert (headers["request"], headers["host"]) == ("POST /hook HTTP/1.1", f"{NAME}:{near.port}")
    assert (headers["webhook-id"], body) == ("7", b'{"type":"x"}')


def reset(connection: ssl.SSLSocket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize(
    ("behave", "status", "error", "wait"),
    [
        (answering("500 Oops"), 500, "refused", 0.0),
        (answering("410 Gone"), 410, "refused", 0.0),
        (answering("302 Found", "Location: https://127.0.0.1:9/\r\n"), 302, "redirected", 0.0),
        (answering("429 Slow", "Retry-After: 77\r\n"), 429, "refused", 77.0),
        (answering("503 Busy", "Retry-After: x\r\n"), 503, "refused", 0.0),
        (
            answering("503 Busy", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            503,
            "refused",
            0.0,
        ),
        (reset, None, "connection_failed", 0.0),
        (lambda connection: connection.sendall(b"SSH-2.0-x\r\n"), None, "bad_answer", 0.0),
        (lambda connection: None, None, "connection_failed", 0.0),
    ],
)
def test_what_is_no_success_is_a_failure_with_its_reason(
    near: Receiver, behave: Behave, status: int | None, error: str, wait: float
) -> None:
    reply = call(near, behave)
    assert (reply.delivered, reply.status, reply.error, reply.retry_after) == (
        False,
        status,
        error,
        wait,
    )
    assert len(near.requests) == 1


@pytest.mark.slow
def test_a_receiver_that_hangs_or_drips_is_left(near: Receiver) -> None:
    def hang(connection: ssl.SSLSocket) -> None:
        near.over.wait(20)

    def drip(connection: ssl.SSLSocket) -> None:
        while not near.over.wait(0.02):
            connection.sendall(b"H")

    for behave in (hang, drip):
        began = time.monotonic()
        assert call(near, behave, seconds=0.3).error == "timed_out"
        assert time.monotonic() - began < 3


def test_a_long_answer_is_not_read_to_its_end(near: Receiver) -> None:
    sent = [0]

    def pour(connection: ssl.SSLSocket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(2_000):
            connection.sendall(b"x" * 65536)
            sent[0] += 65536

    assert call(near, pour).delivered
    assert sent[0] < 100_000_000


def test_the_certificate_must_be_that_of_the_name(near: Receiver) -> None:
    assert call(near, answering(), context=ssl.create_default_context()).error == "tls_failed"
    near.behave = answering()
    post = partial(transport.post, body=b"", headers={}, context=near.context)
    other = post(near.url(host="another.example"), resolve=lambda host, port: ["127.0.0.1"])
    assert (other.error, near.requests) == ("tls_failed", [])


def test_a_name_that_resolves_otherwise_the_second_time_is_not_asked_again(near: Receiver) -> None:
    """DNS rebinding: what was checked is what is connected to."""
    answers = iter([["127.0.0.1"], ["169.254.169.254"]])
    assert call(near, answering(), resolve=lambda host, port: next(answers)).delivered
    assert len(near.requests) == 1
    assert (
        call(near, answering(), resolve=lambda host, port: next(answers)).error
        == "address_not_permitted"
    )


def test_without_the_operators_leave_nothing_reaches_the_machine_itself(
    near: Receiver, settings: Any
) -> None:
    settings.EVALHUB_WEBHOOK_ALLOW = ()
    reply = call(near, answering())
    assert (reply.error, reply.status, near.requests) == ("address_not_permitted", None, [])
    settings.EVALHUB_WEBHOOK_ALLOW, settings.EVALHUB_WEBHOOK_PORTS = (LOOPBACK,), (443,)
    assert call(near, answering()).error == "address_not_permitted"
    assert near.requests == []


def test_what_is_not_found_and_what_is_not_permitted_look_the_same(near: Receiver) -> None:
    """Nobody learns from the answers which names the server's own network has."""

    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror

    assert call(near, answering(), resolve=unknown).error == "address_not_permitted"
    assert (
        call(near, answering(), resolve=lambda host, port: ["10.0.0.1"]).error
        == "address_not_permitted"
    )
