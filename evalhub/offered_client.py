"""The wheel of the client, which this server offers at /client/ for pip."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import get_conditional_response

from evalhub.client.version import VERSION
from runs.web.views import page

WHEEL_NAME = f"evalhub_client-{VERSION}-py3-none-any.whl"
_SOURCE = Path(__file__).resolve().parent / "client"
_BUILD_SECONDS = 60


@dataclass(frozen=True)
class Wheel:
    """The content of a wheel and its SHA-256."""

    content: bytes
    sha256: bytes


_lock = Lock()
_wheels: list[Wheel] = []


def client_wheel() -> Wheel:
    """Return the wheel, which the first call in a process builds.

    The client's sources are part of every installation of the server. Its build backend gives all
    files of a wheel the same date and order, so that every process has the same bytes.
    """
    with _lock:
        if not _wheels:
            content = _build()
            _wheels.append(Wheel(content=content, sha256=hashlib.sha256(content).digest()))

        return _wheels[0]


def _build() -> bytes:
    with tempfile.TemporaryDirectory(prefix="evalhub-client-") as folder:
        # A process of its own: the backend works in the current directory.
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", folder],
            cwd=_SOURCE,
            check=True,
            capture_output=True,
            timeout=_BUILD_SECONDS,
        )

        return (Path(folder) / WHEEL_NAME).read_bytes()


def client_lines(request: HttpRequest) -> dict[str, Callable[[], str]]:
    """Return the addresses in the commands of pages, as a context processor.

    They are read where a template shows them: a page about a wrong host name has none.
    """

    def server_url() -> str:
        return request.build_absolute_uri("/").rstrip("/")

    def client_install() -> str:
        return f"pip install {server_url()}{reverse('client-wheel')}"

    return {"server_url": server_url, "client_install": client_install}


@page
def client_page(request: HttpRequest) -> HttpResponse:
    """Show how to install the client; the page is an index for `pip --find-links`, too."""
    wheel = client_wheel()
    context = {
        "name": WHEEL_NAME,
        "version": VERSION,
        "sha256": wheel.sha256.hex(),
        "size": len(wheel.content),
    }

    return render(request, "evalhub/client.html", context)


@page
def client_file(request: HttpRequest) -> HttpResponse:
    """Return the wheel, which anybody may cache and has to revalidate."""
    wheel = client_wheel()
    response = HttpResponse(wheel.content, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{WHEEL_NAME}"'
    response["Cache-Control"] = "public, no-cache"
    response["ETag"] = f'"{wheel.sha256.hex()}"'
    response["Repr-Digest"] = f"sha-256=:{base64.b64encode(wheel.sha256).decode()}:"

    answer = get_conditional_response(request, etag=response["ETag"], response=response)
    return answer if isinstance(answer, HttpResponse) else response
