"""Types that the scores share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray", "Sequences"]

FloatArray = NDArray[np.float64]
Sequences = Iterable[Iterable[Any]]
