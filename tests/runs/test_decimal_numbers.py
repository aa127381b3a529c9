"""Compiled code reads a decimal number as Python does: to the nearest double, the even one of two."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.formats.limits import Limits
from runs.formats.scanning import kernel, scan
from runs.formats.scanning.columns import CHECKED_RUN, Columns
from runs.formats.scanning.notes import BAD_NUMBER, FRACTION, SLOW_NUMBER
from tests.readers import of_a_reader


def read(texts: list[str]) -> Columns:
    content = "".join(f"1 Q0 d 1 {text} t\n" for text in texts).encode()
    return kernel.scan(content + scan.PADDING, len(content), CHECKED_RUN, 1, 5, Limits())


def assert_read(texts: list[str]) -> None:
    """Each is read as Python reads it, or noted as one that the scan leaves to others: too long or too large."""
    columns = read(texts)
    for text, value, notes in zip(
        texts, columns.number.tolist(), columns.notes.tolist(), strict=True
    ):
        digits = text.lower().partition("e")[0].lstrip("+-0.").replace(".", "")
        slow = len(digits) > 19 or math.isinf(float(text))
        assert bool(notes & SLOW_NUMBER) == slow, text
        assert bool(notes & FRACTION) == ("." in text or "e" in text.lower()), text
        assert not notes & BAD_NUMBER, text
        if not slow:
            assert struct.pack("<d", value) == struct.pack("<d", float(text)), text


def from_bits(bits: int) -> float:
    return float(np.array(bits, np.uint64).view(np.float64))


def halfway(bits: int, digits: int) -> str:
    """The number between two doubles, written with so many digits: where it is exact, it is rounded to the even one."""
    middle = (Fraction(from_bits(bits)) + Fraction(from_bits(bits + 1))) / 2
    exponent = (
        math.floor(math.log10(middle)) - digits + 1 if middle > Fraction(10) ** -300 else -323
    )
    scaled = middle * Fraction(10) ** -exponent
    return f"{round(scaled)}e{exponent}"


SIGNS = st.sampled_from(["", "-", "+"])
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.one_of(
    FINITE.map(repr),
    st.floats(0, 1000).map(repr),
    st.floats(0, 1, width=32).map(lambda value: repr(float(value))),
    st.builds("{:.{}f}".format, st.floats(-1e6, 1e6), st.integers(0, 22)),
    st.builds("{}{}.{}".format, SIGNS, st.integers(0, 10**10), st.integers(0, 10**19).map(str)),
    st.builds("{}{}e{}".format, SIGNS, st.integers(0, 10**19), st.integers(-400, 400)),
    st.builds("{}.{}E+{}".format, st.integers(0, 99), st.integers(0, 10**18), st.integers(0, 30)),
    st.builds(halfway, st.integers(0, 0x7FE0000000000000), st.integers(15, 19)),
    st.integers(2**53, 2**64).map(str),
)


@of_a_reader
@given(texts=st.lists(TEXTS, min_size=1, max_size=40))
def test_numbers_are_read_as_python_reads_them(texts: list[str]) -> None:
    assert_read(texts)


def test_numbers_at_the_ends_of_their_range_are_read_as_python_reads_them() -> None:
    assert_read(
        ["5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "1e-343", "1e-400",
         "2.2250738585072014e-308", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308",
         "9999999999999999999e-343", "9223372036854775807", "9999999999999999999", "18446744073709551615", "1e23",
         "0e999", "-0e5", "-0.0000000000", "1e400", "-1e400", "1e99999999999999999999", "1e-99999999999999999999",
         "9007199254740993", "0.1234567890123456789", "0.01234567890123456789", "9.9999999999999999999", "1e22",
         "000000000000000000000001.5", "0.000000000000000000000000000000000000001", "4503599627370496.5"]
    )  # fmt: skip


def test_every_power_of_ten_and_the_numbers_around_it_are_read_as_python_reads_them() -> None:
    numbers = (1, 3, 9007199254740993, 2**63, 2**64 - 1, 5**27, 10**19 - 1)
    assert_read([f"{number}e{power}" for power in range(-345, 312) for number in numbers])


@pytest.mark.slow
def test_many_scores_as_python_prints_them_are_read_exactly() -> None:
    rng = np.random.default_rng(17)
    scores = np.concatenate(
        [rng.gamma(3, 4, 100_000), rng.random(100_000), -rng.random(50_000) / 64]
    ).tolist()
    assert read(list(map(repr, scores))).number.tolist() == scores
