"""The sizes of pieces on which kernels and their callers agree."""

from __future__ import annotations

# Resamples looked at together: the sums of a thousand runs then fit a cache.
TILE = 128
# Runs whose largest and smallest sums bound those of all of them, and resamples for which bounds
# are compared at once.
GROUP, LANES = 16, 16
# In how many bins a distribution is counted for its quantiles.
BINS = 1024
