"""Downloads of stored files: what is altered on the disk is never passed off as what was submitted."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import zstandard
from rest_framework.test import APIClient

from metrics.engine.errors import EvalHubError
from runs.models import Run
from runs.services.storage.files import StoredFile
from runs.services.storage.stores.folder import stored_path
from tests.conftest import GOOD, upload
from tests.reliability.servers import FILES_URL, Server

LARGE = "".join(f"1 Q0 d{rank:06} {rank} {-rank}.5 large\n" for rank in range(1, 100_001))
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes, "gzip": gzip.compress, "zstd": zstandard.compress
}  # fmt: skip


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))


@pytest.fixture
def stored(api: APIClient, collection: str, request: pytest.FixtureRequest) -> Run:
    """A run of several megabytes."""
    assert (
        upload(
            api, f"collections/{collection}/runs/", PACKED[request.param](LARGE.encode())
        ).status_code
        == 202
    )
    return Run.objects.get()


@pytest.mark.parametrize("stored", list(PACKED), indirect=True)
def test_a_sound_file_is_downloaded_whole(api: APIClient, stored: Run) -> None:
    answer = api.get(f"/api/v1/runs/{stored.pk}/file/")
    assert b"".join(answer.streaming_content) == LARGE.encode()
    for size in (-1, 1, 2 * 1024 * 1024):
        file = StoredFile(stored.sha256)
        assert file.read(size)[:4] == b"1 Q0"[: abs(size) if size > 0 else 4]
        file.close()


@pytest.mark.parametrize("stored", list(PACKED), indirect=True)
@pytest.mark.parametrize("part", [0.3, 0.99])
def test_a_large_altered_file_ends_in_the_middle(api: APIClient, stored: Run, part: float) -> None:
    path = stored_path(stored.sha256)
    flip(path, int(path.stat().st_size * part))
    got: list[bytes] = []
    with pytest.raises(EvalHubError, match="the stored file"):
        got.extend(api.get(f"/api/v1/runs/{stored.pk}/file/").streaming_content)
    assert sum(map(len, got)) < len(LARGE) - 500_000


@pytest.mark.parametrize(
    "content", [GOOD.replace("3.0", "0.5"), GOOD[:-1], "", "PK\x03\x04", "\x1f\x8bx"]
)
def test_a_small_altered_file_is_an_error_and_no_byte_of_it_is_sent(
    api: APIClient, submit: Callable[..., Run], content: str
) -> None:
    run = submit(GOOD)
    stored_path(run.sha256).write_bytes(content.encode("latin-1"))
    answer = api.get(f"/api/v1/runs/{run.pk}/file/")
    assert (answer.status_code, answer.json()["code"]) == (500, "stored_file_corrupt")
    stored_path(run.sha256).unlink()
    stored_path(run.sha256).mkdir()
    assert api.get(f"/api/v1/runs/{run.pk}/file/").json()["code"] == "stored_file_corrupt"


@pytest.mark.skipif(bool(FILES_URL), reason="a damaged copy of an object is fetched again")
def test_the_connection_is_cut_so_that_a_client_notices(embedded: Server) -> None:
    """Through the real server, compressed on the way and not."""
    with embedded.client() as client:
        client.post("collections/", json={"slug": "cut", "name": "Cut"}).raise_for_status()
        sent = client.post(
            "collections/cut/runs/", content=LARGE, headers={"Content-Type": "text/plain"}
        )
        path = f"{sent.raise_for_status().json()['url']}file/"
        assert client.get(path).text == LARGE
        sha256 = hashlib.sha256(LARGE.encode()).hexdigest()
        stored = Path(embedded.environment["EVALHUB_DATA"]) / "files" / sha256[:2] / sha256
        flip(stored, 2_000_000)
        for encoding in ("identity", "gzip"):
            with pytest.raises(httpx.RemoteProtocolError):
                client.get(path, headers={"Accept-Encoding": encoding})
        # Others use this server too.
        flip(stored, 2_000_000)
