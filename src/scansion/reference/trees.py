"""Brute force for nested lattices: list every tree of a tiny problem and add up its scores by definition.

A configuration is a tuple of levels, root first; a level is a tuple of segments ``(start, stop, state)`` that tiles
``0 .. T`` as in :mod:`scansion.reference.enumeration`, whose answers (log Z, probabilities, entropy) serve here too.
The segments of a level are refined by those of the next. For tests only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from scansion.reference.enumeration import Configuration, FloatArray, is_consistent

Tree = tuple[Configuration, ...]
ScoredTrees = list[tuple[Tree, float]]
Arrays = Sequence[npt.ArrayLike]
Known = dict[int, npt.ArrayLike]  # by level


def trees(n_times: int, sizes: Sequence[int], bounds: Sequence[int], children: Arrays | None = None) -> Iterator[Tree]:
    """All trees: ``sizes[d]`` states and segments of length 1 .. ``bounds[d]`` at level d (the root: one segment)."""
    if n_times == 0:
        yield ((),) * len(sizes)
        return

    def below(d: int, segment: tuple[int, int, int]) -> list[Tree]:
        """The subtrees under a segment of level d, by level d+1 .. D-1."""
        if d == len(sizes) - 1:
            return [()]
        start, stop, state = segment
        allowed = [u for u in range(sizes[d + 1]) if children is None or np.asarray(children[d])[state, u]]
        found: list[Tree] = []
        for cut in _tilings(start, stop, bounds[d + 1]):
            for labels in itertools.product(allowed, repeat=len(cut)):
                chain = tuple((u, v, y) for (u, v), y in zip(cut, labels, strict=True))
                for parts in itertools.product(*(below(d + 1, child) for child in chain)):
                    lower = tuple(sum(level, ()) for level in zip(*parts, strict=True))
                    found.append((chain, *lower))
        return found

    for state in range(sizes[0]):
        root = (0, n_times, state)
        for tree in below(0, root):
            yield ((root,), *tree)


def _tilings(start: int, stop: int, longest: int) -> Iterator[tuple[tuple[int, int], ...]]:
    if start == stop:
        yield ()
        return
    for cut in range(start + 1, min(start + longest, stop) + 1):
        for rest in _tilings(cut, stop, longest):
            yield ((start, cut), *rest)


def parents(tree: Tree, d: int) -> Iterator[tuple[tuple[int, int, int], Configuration]]:
    """Each segment of level d with its children."""
    for start, stop, state in tree[d]:
        yield (start, stop, state), tuple(child for child in tree[d + 1] if start <= child[0] < stop)


def tree_score(tree: Tree, persist: Arrays, transit: Arrays, init: Arrays, end: Arrays) -> float:
    """Sum of the four kinds of scores; arrays as in :mod:`scansion.reference.nested`."""
    R, A, I, E = ([np.asarray(a, dtype=np.float64) for a in arrays] for arrays in (persist, transit, init, end))
    terms = []
    for d, level in enumerate(tree):
        terms += [float(R[d][u, v - u - 1, s]) for u, v, s in level]
        if d == len(tree) - 1:
            continue
        for (start, stop, p), chain in parents(tree, d):
            first, last = chain[0][2], chain[-1][2]
            terms.append(float(I[d][p, first] if I[d].ndim == 2 else I[d][start, p, first]))
            terms.append(float(E[d][p, last] if E[d].ndim == 2 else E[d][stop - 1, p, last]))
            for left, right in itertools.pairwise(chain):
                at = (p, left[2], right[2])
                terms.append(float(A[d][at] if A[d].ndim == 3 else A[d][(left[1] - 1, *at)]))
    return -math.inf if -math.inf in terms else math.fsum(terms)


def enumerate_trees(
    persist: Arrays, transit: Arrays, init: Arrays, end: Arrays, children: Arrays | None = None
) -> ScoredTrees:
    """Every tree with its score."""
    shapes = [np.shape(array) for array in persist]
    listed = trees(shapes[0][0], [s[2] for s in shapes], [s[1] for s in shapes], children)
    return [(tree, tree_score(tree, persist, transit, init, end)) for tree in listed]


def constrain(
    scored: ScoredTrees,
    labels: Known | None = None,
    boundaries: Known | None = None,
) -> ScoredTrees:
    """The trees that agree with what is known at each level; see :func:`is_consistent`."""
    labels, boundaries = labels or {}, boundaries or {}
    return [
        (tree, score)
        for tree, score in scored
        if all(is_consistent(level, labels.get(d), boundaries.get(d)) for d, level in enumerate(tree))
    ]


def counts(tree: Tree, sizes: Sequence[int]) -> dict[str, list[FloatArray]]:
    """How often each score counts in a tree, by time: labels, boundaries, segments, transit, init, end."""
    n, levels = sum(v - u for u, v, _ in tree[0]), range(len(sizes))
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    table: dict[str, list[FloatArray]] = {
        "labels": [np.zeros((n, s)) for s in sizes],
        "boundaries": [np.zeros(n) for _ in sizes],
        "segments": [np.zeros((n, n, s)) for s in sizes],
        "transit": [np.zeros((max(n - 1, 0), p, s, s)) for p, s in pairs],
        "init": [np.zeros((n, p, s)) for p, s in pairs],
        "end": [np.zeros((n, p, s)) for p, s in pairs],
    }
    for d in levels:
        for u, v, s in tree[d]:
            table["labels"][d][u:v, s] += 1
            table["boundaries"][d][v - 1] += 1
            table["segments"][d][u, v - u - 1, s] += 1
        if d == len(sizes) - 1:
            continue
        for (start, stop, p), chain in parents(tree, d):
            table["init"][d][start, p, chain[0][2]] += 1
            table["end"][d][stop - 1, p, chain[-1][2]] += 1
            for left, right in itertools.pairwise(chain):
                table["transit"][d][left[1] - 1, p, left[2], right[2]] += 1
    return table


def n_trees(
    n_times: int, sizes: Sequence[int], bounds: Sequence[int], children: Sequence[npt.NDArray[np.bool_]]
) -> float:
    """How many trees there are, without listing them."""
    ways = [np.ones((n_times + 1, s)) for s in sizes]  # below one segment, by its length and state
    for d in reversed(range(len(sizes) - 1)):
        for s in range(sizes[d]):
            chains = np.zeros(n_times + 1)
            chains[0] = 1.0
            for n in range(1, n_times + 1):
                for m in range(1, min(n, bounds[d + 1]) + 1):
                    chains[n] += chains[n - m] * ways[d + 1][m, children[d][s]].sum()
            ways[d][:, s] = chains
    return float(ways[0][n_times].sum())
