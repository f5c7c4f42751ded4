"""Brute force, many problems of one shape at a time: all configurations as a matrix of counts, sums without rounding.

The score of configuration c is ``counts[c] @ scores``, so that the scores of B problems (n, B) give all totals at once,
and the expected counts under the posterior are every marginal. Totals are sums of whole numbers: each score is cut into
digits of 30 bits, which matrix products add without loss. What is said here holds at any size of scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

BITS = 30
LOWEST = -90  # digits begin at 2^-90 and reach beyond 1e100
DIGITS = 15


@dataclass
class Design:
    """All configurations of one shape.

    counts (C, n): how often each score counts; seen: by name, (C, *shape) what marginals are about; codes (C,): a
    number for each configuration; order (C,): the rank among equals, or None; group (C,): its trajectory, or None.
    """

    counts: np.ndarray
    seen: dict[str, np.ndarray]
    codes: np.ndarray
    order: np.ndarray | None = None
    group: np.ndarray | None = None
    groups: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sorted = np.argsort(self.codes)

    def find(self, codes: np.ndarray) -> np.ndarray:
        """The configurations with these codes, -1 where there is none."""
        at = np.searchsorted(self.codes, codes, sorter=self._sorted)
        found = self._sorted[np.minimum(at, len(self.codes) - 1)]
        return np.where(self.codes[found] == codes, found, -1)


class Answers:
    """What is true of B problems of one design: scores (n, B), known (C, B) whether a configuration may be."""

    def __init__(self, design: Design, scores: np.ndarray, known: np.ndarray | None = None) -> None:
        self.design = design
        forbidden = scores == -np.inf
        self.possible = design.counts @ forbidden == 0  # (C, B)
        if known is not None:
            self.possible &= known
        self.any = self.possible.any(axis=0)  # (B,)
        digits = _totals(design.counts, np.where(forbidden, 0.0, scores))
        top = _highest(digits, self.possible)
        self.below = np.where(self.possible, _value([d - t for d, t in zip(digits, top, strict=True)]), -np.inf)
        self.best = np.where(self.any, _value(top), -np.inf)  # (B,) score of the best
        size = np.abs(np.where(forbidden, 0.0, scores))
        self.exact = bool((size * 1024.0 == np.floor(size * 1024.0)).all() and size.sum(axis=0).max(initial=0) < 2**40)

    @cached_property
    def weight(self) -> np.ndarray:
        """(C, B) beside the best."""
        return np.exp(self.below)

    @cached_property
    def log_partition(self) -> np.ndarray:
        """(B,)."""
        with np.errstate(divide="ignore"):
            return self.best + np.log(self.weight.sum(axis=0))

    @cached_property
    def probability(self) -> np.ndarray:
        """(C, B); NaN where nothing is possible."""
        with np.errstate(invalid="ignore"):
            return self.weight / self.weight.sum(axis=0)

    @cached_property
    def entropy(self) -> np.ndarray:
        """(B,)."""
        below = np.where(self.weight > 0.0, self.below, 0.0)
        return np.log(self.weight.sum(axis=0)) - (self.probability * below).sum(axis=0)

    def expected(self, counts: np.ndarray) -> np.ndarray:
        """(B, *shape) expected values of counts (C, *shape)."""
        mean = self.probability.T @ counts.reshape(len(counts), int(np.prod(counts.shape[1:])))
        return mean.reshape(len(mean), *counts.shape[1:])

    @cached_property
    def grouped(self) -> np.ndarray:
        """(groups, B) probability of each trajectory."""
        assert self.design.group is not None
        member = self.design.group[None, :] == np.arange(len(self.design.groups))[:, None]
        return member @ self.probability


def _totals(counts: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """(C, B) digits of all totals, highest first; all but the highest lie in 0 .. 2^30 - 1."""
    rest, sums = scores.copy(), []
    for k in reversed(range(DIGITS)):
        unit = 2.0 ** (LOWEST + BITS * k)
        digit = np.trunc(rest / unit)
        rest -= digit * unit
        sums.append(counts @ digit if digit.any() else np.zeros((len(counts), scores.shape[1])))
    base = 2.0**BITS
    for k in reversed(range(1, DIGITS)):
        carry = np.floor(sums[k] / base)
        sums[k] = sums[k] - carry * base
        sums[k - 1] = sums[k - 1] + carry
    return sums


def _highest(digits: list[np.ndarray], possible: np.ndarray) -> list[np.ndarray]:
    """(B,) digits of the greatest possible total; 0 where nothing is possible."""
    left, top = possible, []
    for digit in digits:
        most = np.where(left, digit, -np.inf).max(axis=0)
        most = np.where(most > -np.inf, most, 0.0)
        left = left & (digit == most)
        top.append(most)
    return top


def _value(digits: list[np.ndarray]) -> np.ndarray:
    """Digits as a number: what is above decides, so that nothing is lost but the last bits."""
    value = digits[0]
    for digit in digits[1:]:
        value = value * 2.0**BITS + digit
    return value * 2.0**LOWEST
