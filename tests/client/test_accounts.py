"""Who asks: login, logout, whoami; and the commands of whatever has none of its own."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.client import account_commands
from evalhub.client.config import read_config
from evalhub.client.version import VERSION
from tests.client.conftest import URL, problem, raw_run

TOKEN = "evh_01234567_secret"
ME = {
    "username": "alice",
    "teams": [{"slug": "alice", "role": "owner"}, {"slug": "lab", "role": "member"}],
    "token": {
        "key": "01234567",
        "name": "laptop",
        "scopes": ["read", "submit"],
        "expires_at": None,
    },
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of profiles; nothing of the environment counts but this."""
    for name in (
        "EVH_URL",
        "EVH_TOKEN",
        "EVALHUB_URL",
        "EVALHUB_TOKEN",
        "EVH_PROFILE",
        "EVH_FORMAT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EVH_CONFIG", str(tmp_path / "config.ini"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "config.ini"


class Server:
    """Knows one token."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append((request.method, request.url.path))
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return problem(401, "not_authenticated")
        return httpx.Response(204 if request.method == "DELETE" else 200, json=ME)


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_token_is_kept_after_the_server_said_whose_it_is(
    evh: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, f"{TOKEN}\n")
    status, out, err = evh(Server(), "login", "--url", f"{URL}/")
    assert (status, out) == (0, "")
    assert (
        "as alice. Teams: alice (owner), lab (member). Scopes: read, submit. Expires: never." in err
    )
    assert TOKEN not in err
    assert (read_config().url, read_config().token) == (URL, TOKEN)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_wrong_token_is_not_kept(evh: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, status in (("evh_wrong\n", 3), ("\n", 2)):
        type_in(monkeypatch, text)
        assert evh(Server(), "login", "--url", URL)[0] == status
        assert not file.exists()


def test_who_types_a_token_does_not_see_it(
    evh: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = io.StringIO()
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", typed)
    monkeypatch.setattr(account_commands.getpass, "getpass", lambda prompt: TOKEN)
    status, _, err = evh(Server(), "login", "--url", URL, "--profile", "lab")
    assert (status, f"{URL}/tokens/" in err) == (0, True)
    assert read_config(profile="lab").token == TOKEN
    # A token of the environment would be used in its place.
    monkeypatch.setenv("EVH_TOKEN", "evh_2_other")
    assert "EVH_TOKEN is set" in evh(Server(), "login", "--url", URL)[2]


def test_a_token_comes_from_a_file_and_never_from_an_option(
    evh: Any, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert evh(Server(), "login", "--url", URL, "--token-file", str(tmp_path / "token"))[0] == 0
    assert read_config().token == TOKEN
    status, _, err = evh(Server(), "login", "--url", URL, "--token-file", str(tmp_path / "none"))
    assert (status, "cannot be read" in err) == (3, True)
    assert evh(Server(), "whoami", "--token", TOKEN)[0] == 2


def test_a_token_is_forgotten_and_revoked(
    evh: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, requests in (
        ((), []),
        (("--revoke",), [("GET", "/api/v1/me/"), ("DELETE", "/api/v1/tokens/01234567/")]),
    ):
        type_in(monkeypatch, TOKEN)
        evh(Server(), "login", "--url", URL)
        # That of the environment is another one, and stays.
        monkeypatch.setenv("EVH_TOKEN", "evh_2_other")
        server = Server()
        assert evh(server, "logout", *arguments)[0] == 0
        monkeypatch.delenv("EVH_TOKEN")
        assert server.seen == requests
        assert (read_config().url, read_config().token) == (URL, "")


def test_whoami_says_whose_token_it_is(evh: Any) -> None:
    status, out, _ = evh(
        lambda request: httpx.Response(200, json=ME),
        "whoami",
        "--format",
        "json(user,teams,scopes)",
    )
    assert (status, json.loads(out)) == (
        0,
        [{"user": "alice", "teams": "alice:owner lab:member", "scopes": "read submit"}],
    )
    anonymous = {**ME, "token": None, "teams": []}
    out = evh(lambda request: httpx.Response(200, json=anonymous), "whoami", "--format", "table")[1]
    assert re.search(r"^user +alice\ntoken|^user +alice\nteams\ntoken\n", out, re.MULTILINE)


def test_any_request_is_sent(evh: Any, tmp_path: Path) -> None:
    seen: list[httpx.Request] = []

    def server(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=b'{"a":1}')

    (tmp_path / "file").write_bytes(b"1 0 a 1\n")
    (tmp_path / "body").write_text('{"measures": ["AP"]}')
    for arguments in (
        ("get", "/collections", "-f", "limit=3"),
        ("GET", f"{URL}/api/v1/runs/?id=1"),
        ("POST", "teams/", "-f", "slug=lab", "--key", "k"),
        ("PATCH", "collections/c/", "--input", str(tmp_path / "body")),
        (
            "POST",
            "collections/c/qrels/",
            "-F",
            f"file=@{tmp_path / 'file'}",
            "-f",
            "activate=false",
        ),
    ):
        assert evh(server, "api", *arguments)[:2] == (0, '{"a":1}\n'), arguments
    assert [str(request.url).removeprefix(f"{URL}/api/v1/") for request in seen] == [
        "collections/?limit=3", "runs/?id=1", "teams/", "collections/c/", "collections/c/qrels/",
    ]  # fmt: skip
    assert [request.method for request in seen] == ["GET", "GET", "POST", "PATCH", "POST"]
    assert [json.loads(request.content) for request in seen[2:4]] == [
        {"slug": "lab"},
        {"measures": ["AP"]},
    ]
    assert seen[2].headers["Idempotency-Key"] == "k"
    assert b"1 0 a 1" in seen[4].content
    assert b'name="activate"' in seen[4].content
    for wrong in (("-f", "limit"), ("-F", "file=x"), ("--input", str(tmp_path / "file"))):
        assert evh(server, "api", "POST", "x/", *wrong)[0] == 2
    assert evh(server, "api", "POST", "x/", "--input", str(tmp_path / "none"))[0] == 1


def test_pages_are_opened_and_their_addresses_printed(
    evh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(account_commands.webbrowser, "open", opened.append)
    run = raw_run("bm25")

    def server(request: httpx.Request) -> httpx.Response:
        many = request.url.path.endswith("/runs/")
        return httpx.Response(
            200, json={"count": 1, "next": None, "results": [run]} if many else run
        )

    for arguments in (("robust04",), (run["id"],), ("bm25", "-c", "c")):
        assert evh(server, "open", *arguments)[:2] == (0, f"{opened[-1]}\n")
    assert opened == [f"{URL}/collections/robust04/", *2 * [f"{URL}/runs/{run['id']}/"]]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["evh", "leader"], ["leaderboard"]),
        (["evh", "submit", "--if"], ["--if-taken"]),
        (["evh", "qrels", "acti"], ["activate"]),
        (["evh", "completion", "f"], ["fish"]),
    ],
)
def test_bash_completes_commands_options_and_choices(
    evh: Any, typed: list[str], expected: list[str]
) -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("there is no bash")
    script = evh(None, "completion", "bash")[1]
    words = " ".join(f"'{word}'" for word in typed)
    command = f'{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _evh; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        [bash, "--norc", "-c", command], capture_output=True, text=True, check=True
    )
    assert (done.stdout.split(), done.stderr) == (expected, "")


def test_the_other_shells_get_the_same_words(evh: Any) -> None:
    fish = evh(None, "completion", "fish")[1]
    assert "complete -c evh -n '__fish_seen_subcommand_from submit' -l wait-for-quota\n" in fish
    assert "bashcompinit" in evh(None, "completion", "zsh")[1]


def test_every_request_is_told_without_the_token(evh: Any, caplog: Any) -> None:
    answer = httpx.Response(200, json=ME, headers={"X-Request-ID": "trace-7"})
    evh(lambda request: answer, "whoami", "--verbose")
    assert re.search(r"GET https://hub.example/api/v1/me/ 200 \d+ ms, request trace-7", caplog.text)
    assert "evh_1_x" not in caplog.text


def test_a_client_that_is_too_old_is_told_so_once(hub_of: Callable[..., Any], caplog: Any) -> None:
    seen: list[httpx.Request] = []

    def server(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json=ME, headers={"X-Evalhub-Least-Client": least})

    for least, warnings in (("0.1", 0), ("0.1.0", 0), ("", 0), ("99.0", 1)):
        caplog.clear()
        hub = hub_of(server)
        for _ in range(2):
            hub.me()
        assert [record.levelname for record in caplog.records].count("WARNING") == warnings, least
    assert "serves evalhub-client 99.0 and newer" in caplog.text
    assert re.fullmatch(r"\d+\.\d+\.\d+", seen[0].headers["X-Evalhub-Client"])


def test_an_older_client_says_how_to_update_it(hub_of: Callable[..., Any], caplog: Any) -> None:
    line = "pip install https://hub.example/client/evalhub_client-99.1-py3-none-any.whl"
    for headers, warning in (
        ({"X-Evalhub-Offered-Client": VERSION}, None),
        ({"X-Evalhub-Offered-Client": "0.0.9"}, None),
        ({"X-Evalhub-Offered-Client": "99.1; rm -r ~"}, None),
        ({"X-Evalhub-Offered-Client": "99.1"}, f"offers evalhub-client 99.1; this is {VERSION}"),
        (
            {"X-Evalhub-Offered-Client": "99.1", "X-Evalhub-Least-Client": "99.0"},
            "serves evalhub-client 99.0 and newer",
        ),
    ):
        caplog.clear()
        hub = hub_of(lambda request, headers=headers: httpx.Response(200, json=ME, headers=headers))
        for _ in range(2):
            hub.me()
        warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
        assert len(warnings) == (1 if warning else 0), headers
        if warning:
            assert warning in warnings[0]
            assert warnings[0].endswith(f"To update it: {line}")
