"""The plain scan gives what the kernel gives, array by array, whatever the bytes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metrics.engine.arrays import Ints
from metrics.engine.compiled.machine_code import Kernel
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.scanning import kernel, plain_scan, scan
from runs.formats.scanning.columns import CHECKED_RUN, KNOWN, QRELS, RUN, Columns, Layout
from runs.formats.scanning.notes import NEW_TOPIC
from runs.formats.trec_run import use_run
from tests.readers import of_a_reader
from tests.runs.run_files import NUMBERS
from tests.runs.test_trec_run_properties import file

LIMITS = Limits()
NARROW = Limits(id_length=3, line_length=12)
LAYOUTS = [RUN, CHECKED_RUN, QRELS, KNOWN]


def assert_equal(
    content: bytes, layout: Layout, limits: Limits = LIMITS, line: int = 1, seed: int = 5
) -> Columns:
    padded, size = content + scan.PADDING, len(content)
    compiled, plain = (
        code.scan(padded, size, layout, line, seed, limits) for code in (kernel, plain_scan)
    )
    # What follows the content is each one's own: newlines, so many as it may look ahead.
    assert all(bytes(columns.data).startswith(content) for columns in (plain, compiled))
    for part in fields(Columns)[1:]:
        ours, theirs = getattr(plain, part.name), getattr(compiled, part.name)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), part.name
        assert np.array_equal(ours, theirs, equal_nan=part.name == "number"), part.name
    signs = [
        np.signbit(columns.number[~np.isnan(columns.number)]).tolist()
        for columns in (plain, compiled)
    ]
    assert signs[0] == signs[1]
    assert plain_scan.last_topic(padded, size) == kernel.last_topic(padded, size)
    assert_same_duplicates(
        compiled, np.append(np.flatnonzero(compiled.notes & NEW_TOPIC), len(compiled.line))
    )
    return compiled


def assert_same_duplicates(columns: Columns, topic_starts: Ints) -> None:
    duplicates, expected = (
        code.find_duplicates(columns, topic_starts) for code in (plain_scan, kernel)
    )
    assert [part.tolist() for part in duplicates] == [part.tolist() for part in expected]
    assert [part.dtype for part in duplicates] == [part.dtype for part in expected]


ODD_NUMBERS = [
    *NUMBERS, "", "+", "-", ".", "-.", "1.2.3", "--1", "1-", "1e", "1e+", "e1", ".e1", "1e1e1", "1.e5", "-1E-05", "0x1",
    "1_0", "nan", "inf", "-0", "+0.0", "007", "123456789012345", "1234567890123456", "0.000000000000000000000001",
    "12345678901234567", "0.12345678901234567", "-12.345678901234567", "9999999999999999999", "10000000000000000000",
    "9.999999999999999999e3", "99999999999999999999", "1e999", "-1e-999", "999999999999999", "1000000000000000", "1e15",
    "0" * 40, "0" * 40 + ".5", "1." + "0" * 22, "1." + "0" * 23, "9" * 31, "9" * 32, "9" * 33, "\u0663", "1\x00",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("number", ODD_NUMBERS)
def test_every_number_is_read_and_noted_alike(number: str, layout: Layout) -> None:
    """In every column; the last one ends with the file."""
    forms = ("1 Q0 d 1 {} t", "1 Q0 d {} 1 t", "1 Q0 d 1 1 t {}", "1 0 d 1 {}", "1 0 d {}")
    lines = [form.format(number) for form in forms]
    assert_equal("\n".join(lines).encode(), layout)
    assert_equal("\r\n".join(["1 Q0 d 1 1 t", *lines, "2 0 d 1\n"]).encode(), layout)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"\r", b"\r\n", b" ", b"\t\t\n\n", b"#", b"1", b"1 0 a 1", b"1 0 a 1\r", b"1 0 a 1\r\r\n", b"a\rb",
        b"1 0 a 1\n\n\n1 0 b 1", b"\0", b"1 0 a\0 1\n", b"1 0 a 1 x y z \x01\n", b"1 0 a 1 2 \x7f\n", b"1 \x7f a 1 2\n",
        b"  1 0 a 1  \n#1 0 a 1\n# x\n2 0 a 1\n", b"1 0 " + b"x" * 5000 + b" 1\n", b"\x0b1 0 a 1\n", b"1 0 a 1\n" * 3,
        b"1 Q0 a 1 2 t\n12 Q0 a 1 2 t\n1 Q0 a 1 2 tt\n1 Q0 a 1 2\n", b"1 Q0 a -3 2 t\n1 Q0 a 1.0 2 t\n1 Q0 a x 2 t\n",
        "t\u00e9 Q0 d\u00a0\u2028 1 1.5 t\n".encode(), b"\xff\xfe 0 \xc3 1\n",
    ],
)  # fmt: skip
def test_every_line_is_split_and_noted_alike(content: bytes, layout: Layout) -> None:
    for limits in (LIMITS, NARROW):
        assert_equal(content, layout, limits, line=7)


@pytest.mark.slow
@of_a_reader
@given(content=file(), layout=st.sampled_from(LAYOUTS), limits=st.sampled_from([LIMITS, NARROW]))
def test_files_are_read_alike(content: bytes, layout: Layout, limits: Limits) -> None:
    assert_equal(content, layout, limits)


PIECES = st.sampled_from(
    [b" ", b"\t", b"\n", b"\r", b"\r\n", b"a", b"1", b"0", b".", b"-", b"+", b"e", b"E5", b"#", b"\0", b"\x7f",
     b"\xc3\xa9", b"12345678901234567", b".12345678901234567", b"x" * 9, b"1 Q0 d 1 2.5 t\n", b"1 0 d 1\n"]
)  # fmt: skip


@pytest.mark.slow
@of_a_reader
@given(
    content=st.lists(PIECES, max_size=60).map(b"".join) | st.binary(max_size=200),
    layout=st.sampled_from(LAYOUTS), limits=st.sampled_from([LIMITS, NARROW]), seed=st.integers(0, 2**63 - 1),
)  # fmt: skip
@example(content=b"1 0 a 1 \r", layout=QRELS, limits=LIMITS, seed=0)
def test_any_bytes_are_read_alike(
    content: bytes, layout: Layout, limits: Limits, seed: int
) -> None:
    assert_equal(content, layout, limits, seed=seed)


@pytest.mark.slow
@pytest.mark.real_data
def test_real_and_odd_files_are_read_alike(real_data: Path) -> None:
    odd = [path for path in (real_data / "edge-cases").rglob("*") if path.is_file()]
    assert len(odd) > 100
    for path in [
        *odd,
        real_data / "trec_eval_test/results.test",
        real_data / "robust03/qrels/robust03_qrels.txt",
    ]:
        for layout in LAYOUTS:
            assert_equal(path.read_bytes(), layout)


@pytest.mark.slow
@of_a_reader
@given(
    documents=st.lists(st.sampled_from("abcdef"), max_size=30), cuts=st.lists(st.integers(0, 30), max_size=4),
    collide=st.booleans(),
)  # fmt: skip
def test_duplicates_are_found_alike_even_where_hashes_collide(
    documents: list[str], cuts: list[int], collide: bool
) -> None:
    columns = assert_equal(
        "".join(f"1 Q0 {document} 1 1 t\n" for document in documents).encode(), RUN
    )
    if collide:
        columns = replace(columns, hashes=columns.hashes % np.uint64(2))
    size = len(documents)
    starts = sorted({0, size, *(cut for cut in cuts if cut < size)}) if size else [0]
    assert_same_duplicates(columns, np.array(starts))


# Which of the two is used


def scanners(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that scan from now on."""
    used: list[str] = []
    for code in (kernel, plain_scan):
        original = code.scan
        monkeypatch.setattr(
            code,
            "scan",
            lambda *args, name=code.__name__, real=original: used.append(name) or real(*args),
        )
    return used


@pytest.mark.parametrize(
    ("size", "compiled", "expected"),
    [
        (scan.PLAIN_BYTES, False, "runs.formats.scanning.plain_scan"),
        (scan.PLAIN_BYTES + 1, False, "runs.formats.scanning.kernel"),
        (scan.PLAIN_BYTES, True, "runs.formats.scanning.kernel"),
        (None, False, "runs.formats.scanning.kernel"),
    ],
)
def test_a_command_with_little_to_read_does_not_wait_for_the_compiler(
    size: int | None, compiled: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, content = scanners(monkeypatch), b"1 Q0 a 1 1 t\n"
    monkeypatch.setattr(Kernel, "compiled", compiled)
    with scan.plain_for(size) if size is not None else nullcontext():
        use_run(lambda: in_memory(content, LIMITS), list)
    assert used == [expected]
