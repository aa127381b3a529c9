"""What a proxy, or whatever pretends to be one, may say of a request: the server's configuration is the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client
from gunicorn.config import Config
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import create

from evalhub.serving import web_server
from runs.models import User


def environ_of(path: str, **headers: str) -> dict[str, Any]:
    """What gunicorn makes of a request that comes from the same machine."""
    config = Config()
    for name, value in vars(web_server).items():
        if name in config.settings:
            config.set(name, value)
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    parser = RequestParser(config, iter([("\r\n".join(lines) + "\r\n\r\n").encode()]), ("127.0.0.1", 5000))
    sock = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 8000))
    _, environ = create(next(parser), sock, ("127.0.0.1", 5000), ("127.0.0.1", 8000), config)
    found: dict[str, Any] = environ
    return found


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "PATH_INFO"])
def test_no_header_moves_an_address(name: str) -> None:
    environ = environ_of("/x/login/", **{name: "/x"})
    assert (environ["SCRIPT_NAME"], environ["PATH_INFO"]) == ("", "/x/login/")


@pytest.mark.parametrize(
    ("name", "value"), [("X-Forwarded-Proto", "https"), ("X-Forwarded-Ssl", "on"), ("X-Forwarded-Protocol", "ssl")]
)
def test_https_is_believed_where_the_settings_say_so(settings: Any, name: str, value: str) -> None:
    environ = environ_of("/", **{name: value})
    assert environ["wsgi.url_scheme"] == "http"
    assert not WSGIHandler.request_class(environ).is_secure()
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert WSGIHandler.request_class(environ).is_secure() == (name == "X-Forwarded-Proto")


def test_passwords_are_counted_below_a_prefix_too(alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    settings.EVALHUB_LOGIN_RATE = 2
    sent = {"username": "alice", "password": "wrong"}
    for prefix in ("/x", "/y", ""):
        codes = [Client().post("/login/", sent, SCRIPT_NAME=prefix).status_code for _ in range(3)]
        assert codes.count(429) >= (1 if prefix == "/x" else 3), prefix
