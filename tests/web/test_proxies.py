"""What a proxy, or whatever pretends to be one, may say of a request: the server's configuration is the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client
from waitress.task import WSGITask

from evalhub.serving.requests import Request
from evalhub.serving.web_server import adjustments
from runs.models import User
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]


def environ_of(path: str, **headers: str) -> dict[str, Any]:
    """What the web server makes of a request that comes from the same machine."""
    adj = adjustments()
    request = Request(adj)
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    request.received(("\r\n".join(lines) + "\r\n\r\n").encode())
    server = SimpleNamespace(adj=adj, effective_port=8000, server_name="localhost")
    channel = SimpleNamespace(
        server=server, addr=("127.0.0.1", 5000), check_client_disconnected=None
    )
    environ: dict[str, Any] = WSGITask(channel, request).get_environment()
    return environ


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "PATH_INFO"])
def test_no_header_moves_an_address(name: str) -> None:
    environ = environ_of("/x/login/", **{name: "/x"})
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("", "/x/login/")


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-Forwarded-Proto", "https"), ("X-Forwarded-Ssl", "on"), ("X-Forwarded-Protocol", "ssl")],
)
def test_https_is_believed_where_the_settings_say_so(settings: Any, name: str, value: str) -> None:
    environ = environ_of("/", **{name: value})
    assert environ["wsgi.url_scheme"] == "http"
    assert not WSGIHandler.request_class(environ).is_secure()
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert WSGIHandler.request_class(environ).is_secure() == (name == "X-Forwarded-Proto")


def test_passwords_are_counted_below_a_prefix_too(
    alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    settings.EVALHUB_LOGIN_RATE = 2
    sent = {"username": "alice", "password": "wrong"}
    for prefix in ("/x", "/y", ""):
        codes = [Client().post("/login/", sent, SCRIPT_NAME=prefix).status_code for _ in range(3)]
        assert codes.count(429) >= (1 if prefix == "/x" else 3), prefix
