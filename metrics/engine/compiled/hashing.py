"""The constants of the hashes of ids, in kernels and in plain NumPy."""

from __future__ import annotations

import numpy as np

# Bytes that are hashed at once.
WORD = 8
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FINISH = np.uint64(0xC2B2AE3D27D4EB4F)
