"""Files as large as they may be, of every kind, and archives that are made to hurt their reader."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import zstandard
from isal import igzip

from runs.formats.limits import DEFAULT_LIMITS as LIMITS
from tests.attack.many import ask_all
from tests.attack.target import SLUG, Target

OWN = "mallory"
_MEGABYTE = 1024 * 1024


def _grouped_run(target: Target) -> Iterator[str]:
    topics = target.size(LIMITS.topics)
    block = "".join(
        f"{{0}} Q0 {document:x} {document} {100 - document} r\n" for document in range(100)
    )
    yield from (block.format(topic) for topic in range(topics))


def _interleaved_run(target: Target) -> Iterator[str]:
    topics = target.size(LIMITS.lines_at_once // 50)
    for document in range(50):
        yield "".join([f"{topic} Q0 d{document} 1 {document} r\n" for topic in range(topics)])


def _qrels(target: Target) -> Iterator[str]:
    topics = target.size(LIMITS.lines_at_once // 50)
    block = "".join(f"{{0}} 0 d{document} {document % 4}\n" for document in range(50))
    yield from (block.format(topic) for topic in range(topics))


def _topics(target: Target) -> Iterator[str]:
    text = "what is written about this " * 10
    yield from (f"{topic}\t{text}\n" for topic in range(target.size(LIMITS.topics)))


def _sessions(target: Target) -> Iterator[str]:
    queries = json.dumps([{"documents": [f"d{document}" for document in range(20)]}] * 25)
    total = target.size(LIMITS.session_documents // 500)
    yield from (
        f'{{"session_id": "s{number}", "topic_id": "1", "queries": {queries}}}\n'
        for number in range(total)
    )


def _session_columns(target: Target) -> Iterator[str]:
    lines = [
        f"s{{0}} {query} d{place} {place} 1 A 1\n"
        for query in range(1, 6)
        for place in range(1, 11)
    ]
    block = "".join(lines)
    yield from (block.format(number) for number in range(target.size(LIMITS.sessions)))


def _session_xml(target: Target) -> Iterator[str]:
    """One session after the other with a thousand results and as many clicks each: 6,000 elements and attributes."""
    results = "".join(
        f'<result rank="{rank}"><docno>d{rank}</docno></result>' for rank in range(1, 1001)
    )
    clicks = "".join(
        f'<click num="{rank}"><docno>d{rank}</docno></click>' for rank in range(1, 1001)
    )
    yield "<sessiontrack2014>"
    for number in range(target.size(LIMITS.lines // 6_010)):
        yield f'<session num="{number}"><topic num="1"/><interaction num="1"><query>q</query><results>{results}'
        yield f"</results><clicked>{clicks}</clicked></interaction></session>"
    yield "</sessiontrack2014>"


def _braces(target: Target) -> Iterator[str]:
    block = "{}\n" * (_MEGABYTE // 3)
    yield from (block for _ in range(target.size(2047)))


# A kind of file, where it is sent and how, and what makes it, piece by piece.
LARGEST: dict[str, tuple[str, str, Callable[[Target], Iterator[str]]]] = {
    "a run, topic by topic": ("POST", "runs/?tag=grouped", _grouped_run),
    "a run with interleaved topics": ("POST", "runs/?tag=interleaved", _interleaved_run),
    "judgements": ("POST", "qrels/", _qrels),
    "topics": ("PUT", "topics/", _topics),
    "sessions, JSON lines": ("POST", "sessions/?tag=lines", _sessions),
    "sessions, columns": ("POST", "sessions/?tag=columns", _session_columns),
    "sessions, XML": ("POST", "sessions/?tag=xml", _session_xml),
    "sessions of empty lines": ("POST", "sessions/?tag=empty", _braces),
}


def largest(kind: str) -> Callable[[Target, Counter[str]], None]:
    """The largest permitted file of a kind, compressed, sent to a collection of the attacker's own."""
    method, path, pieces = LARGEST[kind]

    def attack(target: Target, answers: Counter[str]) -> None:
        file = target.folder / "largest.gz"
        with igzip.open(file, "wt", compresslevel=0) as out:
            for piece in pieces(target):
                out.write(piece)
        with target.client() as client:
            client.post("/api/v1/collections/", json={"slug": OWN, "name": "Own"})
        ask_all(target, [partial(_send_file, method, path, file)], answers)
        file.unlink()

    return attack


def _send_file(method: str, path: str, file: Path, client: httpx.Client) -> httpx.Response:
    client.timeout = httpx.Timeout(600)
    with file.open("rb") as content:
        headers = {"Content-Type": "application/gzip", "Content-Length": str(file.stat().st_size)}
        return client.request(
            method, f"/api/v1/collections/{OWN}/{path}", content=content, headers=headers
        )


def archives() -> dict[str, bytes]:
    """What no sound file looks like, each a few megabytes at most."""
    deflated, zeros = zlib.compressobj(9, zlib.DEFLATED, 31), b"\0" * _MEGABYTE
    bomb = b"".join(deflated.compress(zeros) for _ in range(2200)) + deflated.flush()
    lines = b"1 Q0 d 1 1 r\n"
    frames = zstandard.ZstdCompressor(19)
    stream = zstandard.ZstdCompressor(19).compressobj()
    named = b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * _MEGABYTE + b"\0" + gzip.compress(lines)[10:]
    extra = (
        b"\x1f\x8b\x08\x04"
        + bytes(6)
        + struct.pack("<H", 65535)
        + bytes(65535)
        + gzip.compress(lines)[10:]
    )
    return {
        "gzip of 2.2 GB of zeros": bomb,
        "gzip of gzip of zeros": gzip.compress(bomb),
        "zstd of 2.2 GB of zeros": b"".join(stream.compress(zeros) for _ in range(2200))
        + stream.flush(),
        "gzip with a name of 1 MB": named,
        "100 members with 64 KB of extra fields": extra * 100,
        "100,000 members of a line": gzip.compress(lines) * 100_000,
        "100,000 empty members": gzip.compress(b"") * 100_000,
        "100,000 frames of a line": frames.compress(lines) * 100_000,
        "300,000 skippable frames": (b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip")
        * 300_000,
        "zstd with a window of 2 GB": b"\x28\xb5\x2f\xfd\x00\xa8" + bytes(100),
        "cut in its middle": bomb[: len(bomb) // 2],
        "gzip with garbage behind it": gzip.compress(lines) + b"\xff" * _MEGABYTE,
        "zip": b"PK\x03\x04" + bytes(_MEGABYTE),
    }


def hostile_archives(target: Target, answers: Counter[str]) -> None:
    """Every archive to every address that takes a file, twenty at a time."""
    with target.client() as client:
        client.post("/api/v1/collections/", json={"slug": OWN, "name": "Own"})
    ways = [("POST", "runs/"), ("POST", "qrels/"), ("PUT", "topics/"), ("POST", "sessions/?tag=a")]

    def send(method: str, path: str, content: bytes, client: httpx.Client) -> httpx.Response:
        kind = {b"\x1f": "application/gzip", b"(": "application/zstd", b"P": "application/zip"}.get(
            content[:1]
        )
        address = f"/api/v1/collections/{OWN}/{path}"
        return client.request(
            method, address, content=content, headers={"Content-Type": kind or "application/zstd"}
        )

    ask_all(
        target,
        [partial(send, *way, content) for content in archives().values() for way in ways],
        answers,
    )


def hostile_json(target: Target, answers: Counter[str]) -> None:
    """JSON that is deep, huge, or full of keys, where a collection is made and where a comparison is asked for."""
    texts = ["[" * 100_000, '{"a":' * 100_000, '{"name": "' + "x" * 3 * _MEGABYTE + '"}', "1" * 100_000,
             json.dumps({f"k{number}": number for number in range(100_000)})]  # fmt: skip

    def send(path: str, text: str, client: httpx.Client) -> httpx.Response:
        return client.post(
            path, content=text.encode(), headers={"Content-Type": "application/json"}
        )

    paths = ("/api/v1/collections/", f"/api/v1/collections/{SLUG}/comparison/", "/api/v1/tokens/")
    ask_all(
        target,
        [partial(send, path, text) for text in texts for path in paths for _ in range(4)],
        answers,
    )
