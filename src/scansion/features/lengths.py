"""Features of the lengths of segments: indicators of ranges, families of distributions.

A family is the functions of the length d whose weighted sum is its log probability: gamma has d and log d, negative
binomial d and log C(d + r - 2, d - 1), a histogram has an indicator of each length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion._checks import Floats, Ints

__all__ = ["KINDS", "check_lengths", "label_lengths", "length_basis", "named_length"]

KINDS = ("segment", "adaptive", "bins", "length", "log", "gamma", "negative binomial", "histogram")

_BINS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
_PER_BIN, _BINS_RANGE = 10, (4, 20)  # adaptive: segments that carry a bin; how many bins share the lengths seen

_NAME = re.compile(
    r"length = (?P<only>\d+)|length >= (?P<low>\d+)( and < (?P<high>\d+))?|log C\(length \+ (?P<r>.+), .*"
)

Row = tuple[str, Floats]  # name, (M,)


def length_basis(wanted: Any, max_length: int) -> tuple[Floats, list[str]]:
    """Length features (n, M) that all labels share, and their names; wanted: some of "bins", "length", "log"."""
    rows: list[Row] = []
    for kind in wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else (wanted,):
        if not checks.among(kind, ("bins", "length", "log")):
            raise ValueError(f"length_features must be among 'bins', 'length', 'log', got {kind!r}")
        rows.extend(_rows(kind, np.zeros(max_length, np.int64)))
    return np.array([row for _, row in rows]).reshape(len(rows), max_length), [name for name, _ in rows]


def check_lengths(wanted: Any) -> None:
    """Raise unless these are kinds of length features: names, first lengths of bins, or a mapping of labels to both."""
    for one in wanted.values() if isinstance(wanted, Mapping) else [wanted]:
        for kind in _kinds(one):
            if isinstance(kind, str):
                if kind not in KINDS:
                    names = ", ".join(map(repr, KINDS))
                    raise ValueError(f"length_features must be among {names}, or first lengths of bins, got {kind!r}")
            else:
                _edges(kind)


def label_lengths(
    wanted: Any, labels: Sequence[Any], counts: Ints
) -> tuple[Floats, list[str], tuple[Ints, npt.NDArray[np.int32]]]:
    """Functions of the length (n, M), their names, and which labels have each: rows (n + 1,), ascending columns.

    counts (L, M): how many segments of each label and length there are, from which bins and families follow.
    """
    if isinstance(wanted, Mapping):
        for label in wanted:
            if label not in labels:
                raise ValueError(f"length_features name {label!r}, which is no label of the training data")
    found: dict[str, tuple[Floats, list[int]]] = {}
    for y, label in enumerate(labels):
        for kind in _kinds(wanted.get(label, ("segment",)) if isinstance(wanted, Mapping) else wanted):
            for name, row in _rows(kind, counts[y]):
                having = found.setdefault(name, (row, []))[1]
                if y not in having:
                    having.append(y)
    basis = np.array([row for row, _ in found.values()]).reshape(len(found), counts.shape[1])
    rows = np.concatenate([[0], np.cumsum([len(having) for _, having in found.values()])]).astype(np.int64)
    columns = np.array([y for _, having in found.values() for y in having], np.int32)
    return basis, list(found), (rows, columns)


def _kinds(wanted: Any) -> tuple[Any, ...]:
    """Kinds in a sequence; one kind, or the first lengths of bins, stand for themselves."""
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        return (wanted,)
    several = tuple(wanted)
    plain = bool(several) and not any(isinstance(kind, (str, Iterable)) for kind in several)
    return (several,) if plain else several


def _edges(given: Any) -> list[int]:
    """First lengths of bins of one's own, ascending."""
    if not isinstance(given, Iterable):
        raise ValueError(f"length_features must be names or first lengths of bins, got {given!r}")
    edges = [checks.count("length_features", edge, 1) for edge in given]
    if not edges or edges != sorted(set(edges)):
        raise ValueError(f"length_features: first lengths of bins must ascend, got {tuple(given)!r}")
    return edges


def _rows(kind: Any, counts: Ints) -> list[Row]:
    """The functions of one kind for a label with these counts (M,) of lengths."""
    length = np.arange(1, len(counts) + 1, dtype=np.float64)
    if kind == "segment":
        return [("segment", np.ones(len(counts)))]
    if kind == "length":
        return [("length", length)]
    if kind == "log":
        return [("log(length)", np.log(length))]
    if kind == "gamma":
        return _rows("length", counts) + _rows("log", counts)
    if kind == "negative binomial":
        return _rows("length", counts) + [_binomial(length, counts)]
    if kind == "histogram":
        return [(f"length = {d}", (length == d).astype(np.float64)) for d in range(1, len(counts) + 1)]
    edges = _BINS if kind == "bins" else _adaptive(counts) if kind == "adaptive" else _edges(kind)
    rows = []
    for low, high in zip(edges, (*edges[1:], np.inf), strict=True):
        if low <= len(counts):
            name = f"length >= {low}" + ("" if high == np.inf else f" and < {high}")
            rows.append((name, ((length >= low) & (length < high)).astype(np.float64)))
    return rows


def _adaptive(counts: Ints) -> list[int]:
    """First lengths of bins that hold about as many segments each; what lies beyond those seen has bins of its own."""
    seen = np.flatnonzero(counts) + 1
    if not len(seen):
        return [1]
    total = np.cumsum(counts)
    n = int(np.clip(total[-1] // _PER_BIN, *_BINS_RANGE))
    cuts = np.searchsorted(total, total[-1] * np.arange(1, n) / n, side="right") + 1  # first lengths after each share
    return sorted({1, int(seen[0]), int(seen[-1]) + 1, *cuts.tolist()})


def _binomial(length: Floats, counts: Ints) -> Row:
    """The factor C(d + r - 2, d - 1) of the negative binomial of d - 1; r from mean and variance of those seen."""
    n, more = max(int(counts.sum()), 1), length - 1.0
    mean = float(counts @ more) / n
    excess = float(counts @ (more - mean) ** 2) / n - mean
    r = float(f"{np.clip(mean * mean / excess if excess > 0.0 else 100.0, 0.1, 100.0):.2g}")
    return f"log C(length + {r - 2:g}, length - 1)", _log_choose(r, more)


def _log_choose(r: float, more: Floats) -> Floats:
    """The logarithm of C(d + r - 2, d - 1) of lengths d = more + 1."""
    return np.array([math.lgamma(d + r) - math.lgamma(d + 1.0) - math.lgamma(r) for d in more.tolist()])


def named_length(name: str, max_length: int) -> Floats:
    """(M,) the function of the length that has this name, as `label_lengths` and `length_basis` give them."""
    length = np.arange(1, max_length + 1, dtype=np.float64)
    plain = {"segment": "segment", "length": "length", "log(length)": "log"}.get(name)
    if plain is not None:
        return _rows(plain, np.zeros(max_length, np.int64))[0][1]
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is no function of a segment's length")
    if found["r"] is not None:
        return _log_choose(float(found["r"]) + 2.0, length - 1.0)
    low = float(found["only"] or found["low"])
    high = low + 1.0 if found["only"] else float(found["high"] or np.inf)
    return ((length >= low) & (length < high)).astype(np.float64)
