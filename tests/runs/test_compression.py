"""Compressed uploads: recognised by their bytes, read whole or refused, never larger than the limit."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from runs.errors import FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.compression import content_size, in_memory, open_file
from runs.formats.limits import Limits
from tests.conftest import GOOD, upload
from tests.readers import of_a_reader
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

LIMITS = Limits()
RUN = b"".join(
    b"%d Q0 doc-%d 1 %d.5 t\n" % (index // 50, index * 7919 % 10_007, -index)
    for index in range(3000)
)
GZIP = gzip.compress(RUN, mtime=0)
ZSTANDARD = zstandard.ZstdCompressor(write_checksum=True).compress(RUN)
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\0\0\0skip"
UNCHECKED = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False).compress(RUN)


def streamed(level: int, window: int = 0) -> bytes:
    """A Zstandard frame of a known level or window, without its content's size."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, **({"window_log": window} if window else {})
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(RUN) + compressor.flush()


def content_of(content: bytes, limits: Limits = LIMITS, step: int = 1 << 20) -> bytes:
    reader = in_memory(content, limits)
    return b"".join(iter(lambda: reader.read(step), b""))


def refused(content: bytes) -> str:
    with pytest.raises((InvalidFile, UnsupportedFile)) as caught:
        content_of(content)
    return caught.value.code


@pytest.mark.parametrize("content", [RUN, GZIP, ZSTANDARD, UNCHECKED, streamed(19)])
@pytest.mark.parametrize("step", [1, 1000, 1 << 20, -1])
def test_plain_gzip_and_zstandard_are_read(content: bytes, step: int) -> None:
    assert content_of(content, step=step) == RUN


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GZIP + GZIP, RUN + RUN),
        (gzip.compress(RUN[:10], mtime=0) * 1000, RUN[:10] * 1000),
        (gzip.compress(b"", mtime=0) + GZIP, RUN),
        (GZIP + b"\0" * 1024, RUN),
        (ZSTANDARD + UNCHECKED + ZSTANDARD, RUN * 3),
        (zstandard.compress(b"") + ZSTANDARD, RUN),
        (ZSTANDARD + SKIPPABLE, RUN),
        (SKIPPABLE + ZSTANDARD + UNCHECKED, RUN + RUN),
        (b"\x5f" + SKIPPABLE[1:] + ZSTANDARD, RUN),
        (SKIPPABLE, b""),
        (gzip.compress(b"", mtime=0), b""),
        (zstandard.compress(b""), b""),
        (b"", b""),
    ],
)
def test_members_and_frames_follow_each_other(content: bytes, expected: bytes) -> None:
    assert content_of(content) == expected


def test_a_run_that_pzstd_compressed_is_submitted(api: APIClient, collection: str) -> None:
    content = SKIPPABLE + zstandard.compress(GOOD.encode())
    answer = upload(api, f"collections/{collection}/runs/", content)
    assert answer.status_code == 202, answer.content
    assert answer.json()["sha256"] == hashlib.sha256(GOOD.encode()).hexdigest()


@pytest.mark.parametrize("length", [2, 3, 9, 10, 11, 100, -100, -9, -8, -5, -4, -1])
def test_truncated_gzip_is_refused(length: int) -> None:
    assert refused(GZIP[:length]) == "bad_gzip"
    assert refused(GZIP + GZIP[:length]) == "bad_gzip"


@pytest.mark.parametrize("content", [ZSTANDARD, UNCHECKED, streamed(3), streamed(19)])
@pytest.mark.parametrize("length", [4, 5, 6, 9, 100, -100, -5, -4, -3, -1])
def test_truncated_zstandard_is_refused(content: bytes, length: int) -> None:
    """The library's own stream reader takes what it got for the whole file."""
    assert refused(content[:length]) == "bad_zstd"
    assert refused(content + content[:length]) == "bad_zstd"


@pytest.mark.parametrize("position", [-8, -5, -4, -1, len(GZIP) // 2])
def test_gzip_with_a_wrong_checksum_or_length_is_refused(position: int) -> None:
    damaged = bytearray(GZIP)
    damaged[position] ^= 1
    assert refused(bytes(damaged)) == "bad_gzip"


@pytest.mark.parametrize("position", [-4, -1, len(ZSTANDARD) // 2])
def test_zstandard_with_a_wrong_checksum_is_refused(position: int) -> None:
    damaged = bytearray(ZSTANDARD)
    damaged[position] ^= 1
    assert refused(bytes(damaged)) == "bad_zstd"


@pytest.mark.parametrize("rest", [b"x", b"\n", b"1 Q0 a 1 1 t\n", b"\0\0x"])
def test_garbage_after_the_end_is_refused(rest: bytes) -> None:
    assert refused(GZIP + rest) == "bad_gzip"
    assert refused(ZSTANDARD + rest) == "bad_zstd"


@pytest.mark.slow
@pytest.mark.parametrize("content", [GZIP, ZSTANDARD])
@of_a_reader
@given(data=st.data())
def test_a_damaged_file_is_refused_or_unharmed(content: bytes, data: st.DataObject) -> None:
    damaged = bytearray(content)
    damaged[data.draw(st.integers(4, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        assert content_of(bytes(damaged)) == RUN
    except InvalidFile as error:
        assert error.code in ("bad_gzip", "bad_zstd")


MAGIC = st.sampled_from(
    [
        GZIP[:10],
        ZSTANDARD[:6],
        UNCHECKED[:4],
        GZIP[:2],
        b"BZh9",
        b"PK\x03\x04",
        b"\xfd7zXZ\x00",
        b"",
    ]
)


@pytest.mark.slow
@of_a_reader
@given(
    MAGIC,
    st.binary(max_size=80),
    st.sampled_from([b"", GZIP, ZSTANDARD]),
    st.sampled_from([1, 7, 1 << 20]),
)
def test_any_bytes_are_decompressed_or_refused(
    start: bytes, middle: bytes, end: bytes, step: int
) -> None:
    content = start + middle + end
    try:
        assert content_of(content, step=step) == content or start or end
    except (InvalidFile, UnsupportedFile, FileTooLarge) as error:
        assert error.code


def archive(suffix: str) -> bytes:
    target = io.BytesIO()
    if suffix == "zip":
        with zipfile.ZipFile(target, "w") as file:
            file.writestr("run", RUN)
    else:
        with tarfile.open(fileobj=target, mode="w") as tar:
            member = tarfile.TarInfo("run")
            member.size = len(RUN)
            tar.addfile(member, io.BytesIO(RUN))
    return target.getvalue()


UNREAD = {
    "xz": lzma.compress(RUN),
    "bzip2": bz2.compress(RUN),
    "empty bzip2": bz2.compress(b""),
    "zip": archive("zip"),
    "tar": archive("tar"),
    "7z": b"7z\xbc\xaf\x27\x1c",
    "lz4": b"\x04\x22\x4d\x18abc",
}


@pytest.mark.parametrize("content", UNREAD.values(), ids=UNREAD)
def test_archives_and_other_compressions_are_refused(content: bytes) -> None:
    assert refused(content) == "unsupported_media_type"
    assert refused(gzip.compress(content, mtime=0)) == "unsupported_media_type"
    assert refused(zstandard.compress(content)) == "unsupported_media_type"


@pytest.mark.parametrize(
    "content",
    [gzip.compress(GZIP, mtime=0), gzip.compress(ZSTANDARD, mtime=0), zstandard.compress(GZIP)],
)
def test_what_is_compressed_twice_is_refused(content: bytes) -> None:
    assert refused(content) == "unsupported_media_type"


@pytest.mark.parametrize("content", [b"BZh1 Q0 a 1 1 t\n", b"PK Q0 a 1 1 t\n", b"7z Q0 a 1 1 t\n"])
def test_topics_that_look_a_little_like_an_archive_are_read(content: bytes) -> None:
    assert content_of(content) == content


def test_a_refused_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.xz"
    path.write_bytes(UNREAD["xz"])
    with pytest.raises(UnsupportedFile):
        open_file(path, LIMITS)


@pytest.mark.parametrize("level", [1, 3, 12, 19])
def test_the_windows_of_the_usual_levels_are_accepted(level: int) -> None:
    assert content_of(streamed(level)) == RUN


@pytest.mark.parametrize("window", [24, 27, 30])
def test_a_huge_window_is_refused(window: int) -> None:
    assert refused(streamed(3, window)) == "bad_zstd"


# Bombs


def zeros(compression: str, size: int) -> bytes:
    block = b"\0" * (1 << 20)
    if compression == "gzip":
        return gzip.compress(block, 1) * (size >> 20)
    return zstandard.ZstdCompressor().compress(block * (size >> 20))


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["gzip", "zstandard"])
def test_a_bomb_is_refused_in_little_memory(compression: str) -> None:
    bomb = zeros(compression, 512 << 20)
    limits = replace(LIMITS, bytes_out=64 << 20)
    tracemalloc.start()
    reader = in_memory(bomb, limits)
    sizes: list[int] = []
    with pytest.raises(FileTooLarge) as caught:
        sizes.extend(iter(lambda: len(reader.read(1 << 20)), 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.code == "decompressed_too_large"
    assert sum(sizes) <= limits.bytes_out
    assert peak < 80 << 20


@pytest.mark.slow
def test_no_single_read_of_zstandard_makes_more_than_is_fed() -> None:
    """Four bytes can say 128 KiB of zeros; what is fed at a time bounds what comes out."""
    bomb = zstandard.ZstdCompressor(level=19).compress(b"\0" * (256 << 20))
    reader = in_memory(bomb, LIMITS)
    tracemalloc.start()
    assert reader.read(10) == b"\0" * 10
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 72 << 20


@pytest.mark.parametrize("content", [RUN, GZIP, ZSTANDARD])
def test_the_limit_of_bytes_is_inclusive(content: bytes) -> None:
    assert content_of(content, replace(LIMITS, bytes_out=len(RUN))) == RUN
    with pytest.raises(FileTooLarge):
        content_of(content, replace(LIMITS, bytes_out=len(RUN) - 1))
    with pytest.raises(FileTooLarge):
        in_memory(content, replace(LIMITS, bytes_out=10)).read()


# How much there will be to read


@pytest.mark.parametrize(
    "packed", [RUN, GZIP, ZSTANDARD, gzip.compress(b"", mtime=0), b"", b"\x1f\x8b", b"1"]
)
def test_a_file_tells_the_size_of_its_content(packed: bytes) -> None:
    content = RUN if packed in (RUN, GZIP, ZSTANDARD) else b""
    assert content_size(io.BytesIO(packed)) == max(
        len(content), len(packed) if packed is not ZSTANDARD else 0
    )


def test_the_size_of_a_frame_that_names_none_is_guessed() -> None:
    assert content_size(io.BytesIO(UNCHECKED)) == 5 * len(UNCHECKED)
    assert content_size(io.BytesIO(ZSTANDARD[:4])) == 20
    assert content_size(io.BytesIO(SKIPPABLE + ZSTANDARD)) == 5 * len(SKIPPABLE + ZSTANDARD)


def test_a_gzip_header_that_is_too_long_is_refused() -> None:
    """It holds the name of the file, of any length."""
    plain = gzip.compress(b"1 Q0 d 1 1 t\n")
    named = plain[:3] + b"\x08" + plain[4:10] + b"n" * 1_000_000 + b"\0" + plain[10:]
    with pytest.raises(InvalidFile, match="truncated, damaged or not readable") as refused:
        in_memory(named, Limits()).read()
    assert refused.value.code == "bad_gzip"
