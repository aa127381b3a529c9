"""The compiled passes over pairs of runs and resamples, with the types of their arguments."""

from __future__ import annotations

from metrics.engine.compiled.machine_code import Kernel

_MODULE = "metrics.engine.compiled.kernels.pair_pass"
_LARGEST = "metrics.engine.compiled.kernels.largest_pass"
_SUMS, _SMALL, _PAIRS = "float64[:, :, ::1]", "float32[:, :, ::1]", "int64[::1], int64[::1]"

add_up = Kernel(_MODULE, "add_up", f"void(float64[:, ::1], {_SUMS}, {_SUMS})")
begin_maxima = Kernel(
    _LARGEST,
    "begin_maxima",
    f"void({_SMALL}, int64, {_PAIRS}, float32[:, ::1], float32[::1], float32[:, ::1])",
)
count_extreme = Kernel(
    _MODULE, "count_extreme", f"void({_SUMS}, int64, {_PAIRS}, float64[::1], int64[::1])"
)
count_maxima = Kernel(
    _LARGEST,
    "count_maxima",
    f"void({_SUMS}, {_SMALL}, float64, int64, {_PAIRS}, float64[::1], float64[::1], float64[::1], "
    "float64[::1], float32[:, ::1], uint8[:, ::1], float32[::1], int64[::1], int64[::1], "
    "float64[:, ::1])",
)
count_shifted = Kernel(
    _MODULE,
    "count_shifted",
    f"void({_SUMS}, int64, {_PAIRS}, float64[::1], float64, int64[::1], int64[::1])",
)
mark_maxima = Kernel(
    _LARGEST,
    "mark_maxima",
    f"void({_SMALL}, float32[:, ::1], float32[:, ::1], int32[:, ::1], float32[::1], "
    "float32[:, ::1], float32[:, ::1], float32[:, ::1], uint8[:, ::1])",
)
quantiles = Kernel(
    _MODULE,
    "quantiles",
    f"void(float64[:, :], {_PAIRS}, float64[::1], float64[:, ::1], int32[::1], int64[::1], "
    "float64[:, ::1])",
)
draw = Kernel(_MODULE, "draw", "void(uint64[::1], uint64[::1])")
draw_topics = Kernel(_MODULE, "draw_topics", f"void(uint64[::1], {_SUMS})")
shuffled_ranges = Kernel(
    _MODULE, "shuffled_ranges", "void(int64[:, ::1], uint64[::1], int64[::1], int64[::1])"
)

KERNELS = (
    add_up,
    begin_maxima,
    count_extreme,
    count_maxima,
    count_shifted,
    mark_maxima,
    quantiles,
    draw,
    draw_topics,
    shuffled_ranges,
)
