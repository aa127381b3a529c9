"""The types of arrays that the engine hands around."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
# Places in a piece of a file: the scanning kernel returns them in 32 bits.
Positions = npt.NDArray[np.signedinteger[Any]]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
