"""Scores of all sizes: smooth ones, coarse grids, where sums meet exactly, and mixtures up to the promised range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

POWERS = (3, 5, 6, 7, 10, 12, 15, 19, 30, 50, 75, 100)  # of ten; the last is the limit


def size(rng: np.random.Generator) -> float:
    """A power of ten within the range."""
    return float(10.0 ** rng.choice(POWERS))


def smooth(rng: np.random.Generator) -> Draw:
    """Normal noise."""
    scale = rng.choice([0.3, 2.0, 30.0, 300.0])
    return lambda rng, shape: rng.normal(size=shape) * scale


def whole(rng: np.random.Generator) -> Draw:
    """Small whole numbers: many ties."""
    return lambda rng, shape: rng.integers(-1, 2, size=shape).astype(np.float64)


def hundreds(rng: np.random.Generator) -> Draw:
    """A coarse grid of some hundreds, where products vanish and meet again."""
    step = rng.choice([50.0, 100.0, 200.0, 250.0, 350.0, 400.0, 700.0, 710.0])
    low, high = -int(rng.integers(1, 4)), int(rng.integers(0, 3))
    return lambda rng, shape: rng.integers(low, high + 1, size=shape) * step


def thousands(rng: np.random.Generator) -> Draw:
    """A coarse grid of thousands."""
    step = rng.choice([1000.0, 5000.0, 10000.0, 50000.0])
    return lambda rng, shape: rng.integers(-3, 4, size=shape) * step


def rough(rng: np.random.Generator) -> Draw:
    """A coarse grid with noise on it."""
    step = rng.choice([100.0, 400.0, 700.0, 3000.0, 1e5])
    return lambda rng, shape: rng.integers(-2, 3, size=shape) * step + rng.normal(size=shape)


def large(rng: np.random.Generator) -> Draw:
    """A grid, or noise, of one size."""
    scale, steps = size(rng), int(rng.integers(0, 4))
    if steps == 0:
        return lambda rng, shape: np.clip(rng.normal(size=shape) * scale, -1e100, 1e100)
    return lambda rng, shape: rng.integers(-steps, steps + 1, size=shape) / steps * scale


def mixed(rng: np.random.Generator) -> Draw:
    """Sizes of all kinds beside each other."""
    scales = np.array([1.0, *(size(rng) for _ in range(rng.integers(1, 5)))])
    return lambda rng, shape: rng.integers(-2, 3, size=shape) / 2 * rng.choice(scales, size=shape)


def cancelling(rng: np.random.Generator) -> Draw:
    """Sums of several sizes, which meet again in the sums of a configuration."""
    scales = [size(rng) for _ in range(rng.integers(1, 4))]
    noise = rng.choice([0.0, 1.0])

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        parts = [rng.integers(-1, 2, size=shape) * scale for scale in scales]
        return np.clip(sum(parts, rng.normal(size=shape) * noise), -1e100, 1e100)

    return draw


def lonely(rng: np.random.Generator) -> Draw:
    """A few huge ones among small ones."""
    scale, share = size(rng), rng.choice([0.02, 0.1, 0.3])

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        huge = rng.choice([-scale, scale], size=shape)
        return np.where(rng.random(shape) < share, huge, rng.normal(size=shape))

    return draw


SIZES = (smooth, whole, hundreds, hundreds, thousands, rough, large, mixed, cancelling, lonely)


class Scores:
    """One way to draw scores: arrays of one size, or of several; some entries are -inf."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.draws = [SIZES[rng.integers(len(SIZES))](rng)]
        if rng.random() < 0.3:
            self.draws.append(SIZES[rng.integers(len(SIZES))](rng))
        self.forbidden = rng.choice([0.0, 0.0, 0.0, 0.1, 0.3])

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Scores of a shape."""
        out = self.draws[rng.integers(len(self.draws))](rng, shape)
        if self.forbidden:
            out = np.where(rng.random(shape) < self.forbidden, -np.inf, out)
        return np.ascontiguousarray(out)
