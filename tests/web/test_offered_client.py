"""The client that a server offers at /client/: pip installs it, and it says when it is old."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from django.test import Client

from evalhub import offered_client
from evalhub.client import __version__
from runs.models import User
from tests.reliability.servers import ROOT, embedded_server
from tests.reliability.wheel import install_client

NAME = f"evalhub_client-{__version__}-py3-none-any.whl"
ADDRESS = f"/client/{NAME}"


def test_the_wheel_has_a_hash_and_is_cached(db: None) -> None:
    answer = Client().get(ADDRESS)
    sha256 = hashlib.sha256(answer.content)
    assert answer.status_code == 200
    assert answer["ETag"] == f'"{sha256.hexdigest()}"'
    assert base64.b64decode(answer["Repr-Digest"].split(":")[1]) == sha256.digest()
    assert answer["Cache-Control"] == "public, no-cache"
    again = Client().get(ADDRESS, headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    page = Client().get("/client/").content.decode()
    assert f'href="{ADDRESS}#sha256={sha256.hexdigest()}"' in page
    assert f"pip install http://testserver{ADDRESS}" in page
    assert Client().get("/client/evalhub_client-0.0.1-py3-none-any.whl").status_code == 404


def test_the_wheel_has_the_sources_and_is_built_to_the_same_bytes() -> None:
    wheel = offered_client.client_wheel()
    source = ROOT / "evalhub/client"
    names = ZipFile(BytesIO(wheel.content)).namelist()
    packaged = {name for name in names if name.startswith("evalhub_client/")}
    assert packaged == {
        f"evalhub_client/{path.relative_to(source)}"
        for path in [*source.rglob("*.py"), *source.glob("*.pyi"), source / "py.typed"]
    }
    assert offered_client._build() == wheel.content


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pip_installs_the_client_from_the_server(tmp_path: Path) -> None:
    with embedded_server(tmp_path / "data") as server:
        commands = install_client(server.url, tmp_path / "venv")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "EVH_URL": server.url,
            "EVH_TOKEN": server.token,
        }

        def evh(*arguments: str) -> str:
            command = [commands / "evh", *arguments]
            return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True)

        (tmp_path / "tiny.qrels").write_text("1 0 a 1\n1 0 b 1\n")
        (tmp_path / "bm25.run").write_text("1 Q0 a 1 2.0 bm25\n")
        assert evh("--version") == f"evalhub-client {__version__}\n"
        evh("collections", "create", "tiny", "--qrels", "tiny.qrels", "-m", "AP")
        evh("submit", "tiny", "bm25.run", "--wait")
        board = evh("leaderboard", "tiny", "--format", "json(tag,AP)")
        assert json.loads(board) == [{"tag": "bm25", "AP": 0.5}]

        # The page is an index, too, and pip compares the file with its sum.
        index = ["--no-index", "--find-links", f"{server.url}/client/", "evalhub-client"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", tmp_path]
        subprocess.run([*pip, *index], check=True)
        assert (tmp_path / NAME).read_bytes() == httpx.get(server.url + ADDRESS).content


def test_pages_show_the_lines_of_this_server_and_collection(alice: User, collection: str) -> None:
    browser = Client()
    browser.force_login(alice)
    token = {"action": "create", "name": "laptop", "days": "90", "scopes": ["read"]}
    slug = collection
    pages = {
        "submit": browser.get(f"/collections/{slug}/submit/"),
        "collection": browser.get(f"/collections/{slug}/"),
        "token": browser.post("/tokens/", token),
        "api": browser.get("/api/v1/docs/"),
    }
    for name, answer in pages.items():
        html = answer.content.decode()
        assert f"pip install http://testserver{ADDRESS}" in html, name
        assert "evh login --url http://testserver" in html, name
        assert "evh.connect(&quot;http://testserver" in html or 'connect("http://testserver' in html
    for name in ("submit", "collection"):
        html = pages[name].content.decode()
        assert f"evh submit {slug} run.txt" in html
        assert f"http://testserver/api/v1/collections/{slug}/runs/" in html
