"""Every kind of lattice on tiny problems against enumeration: log Z, marginals, best, k best, samples, trajectories.

A round draws a shape, lists its configurations, and asks batches of problems with scores of one kind each
(`fuzz.scores`), free and under constraints.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.flat import Additive, Chain, Patterns, Segments, flat_round, long_segments, sum_difference_round
from fuzz.nested import nested_round

KINDS: dict[str, Callable[[np.random.Generator], int]] = {
    "chain": lambda rng: flat_round(Chain, rng),
    "patterns": lambda rng: flat_round(Patterns, rng),
    "segments": lambda rng: flat_round(Segments, rng),
    "additive": lambda rng: flat_round(Additive, rng),
    "long_segments": long_segments,
    "nested": nested_round,
    "sum_difference": sum_difference_round,
}
