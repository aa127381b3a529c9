"""The sizes of pieces that kernels and their callers share."""

from __future__ import annotations

# Resamples of a piece: the sums of a thousand runs then fit into a cache.
TILE = 128
# Runs with a common bound by their largest and smallest sums, and resamples whose bounds are
# compared at once.
GROUP, LANES = 16, 16
# The bins in which a distribution is counted for its quantiles.
BINS = 1024
