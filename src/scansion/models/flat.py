"""Features and weights of the flat models: from encoded sequences to lattices, and to objectives for training.

Conventions: L labels, P patterns of which the first L are the labels themselves, A attributes, W weights, N tokens.
The weight vector is: one weight for each always-on pattern (label pairs and longer), then for each part its attribute x
pattern features (attributes in order, patterns ascending), then length features (basis function x label), then
features of whole segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion.data import Dataset, Targets, Vocabulary
from scansion.lattice import checks
from scansion.lattice.chain import ChainBatch
from scansion.lattice.checks import Bools, Floats, Ints
from scansion.lattice.constraints import Constraints
from scansion.lattice.cores import DenseCore, PatternCore
from scansion.lattice.patterns import BOS, EOS, Pattern, PatternAutomaton
from scansion.lattice.segment import SegmentBatch

PARTS = ("start", "inside", "end", "inner")
Table = tuple[Ints, npt.NDArray[np.int32]]
Numbers = npt.NDArray[np.int32]


@dataclass
class Cells:
    """Attributes of whole segments: for entry e, attribute ids[e] with values[e] on [start, start + length)."""

    offsets: Ints
    start: Numbers
    length: Numbers
    ids: Numbers
    values: Floats


@dataclass
class FlatModel:
    """Which features exist, and their weights.

    Attributes
    ----------
    labels : list
        The labels, by number.
    vocabulary : Vocabulary
        The attributes, by number.
    patterns : tuple of tuples
        All label patterns; the first L are ``(0,), (1,), ...``.
    segments : bool
        Segments (SemiCRF) or single positions (CRF).
    max_length : int
    tables : dict part -> (rows (A + 1,), pattern (n,))
    basis : (n_basis, M) length features
    cell_vocabulary, cell_table
        Attributes of whole segments.
    weights : (W,)
    """

    labels: list[Any]
    vocabulary: Vocabulary
    patterns: tuple[Pattern, ...]
    segments: bool
    max_length: int
    tables: dict[str, Table]
    basis: Floats
    basis_names: list[str]
    cell_vocabulary: Vocabulary
    cell_table: Table
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.weights.size == 0:
            self.weights = np.zeros(self.n_weights)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_cache"] = {}
        return state

    # ---- layout ------------------------------------------------------------------------------------------------

    @property
    def n_labels(self) -> int:
        """L."""
        return len(self.labels)

    @property
    def n_bias(self) -> int:
        """Number of always-on patterns."""
        return len(self.patterns) - self.n_labels

    def blocks(self) -> Iterator[tuple[str, int, int]]:
        """Name, first weight and number of weights of each block of the weight vector."""
        at = 0
        sizes = [("bias", self.n_bias)]
        sizes += [(part, len(self.tables[part][1])) for part in PARTS if part in self.tables]
        sizes += [("length", len(self.basis) * self.n_labels), ("cells", len(self.cell_table[1]))]
        for name, size in sizes:
            yield name, at, size
            at += size

    @property
    def n_weights(self) -> int:
        """W."""
        return sum(size for _, _, size in self.blocks())

    def orders(self) -> npt.NDArray[np.int64]:
        """(W,) the order of each feature: length of its label pattern minus one (BOS and EOS counted)."""
        length = np.array([len(p) - 1 for p in self.patterns], np.int64)
        result = np.zeros(self.n_weights, np.int64)
        for name, at, size in self.blocks():
            if name == "bias":
                result[at : at + size] = length[self.n_labels :]
            elif name in self.tables:
                result[at : at + size] = length[self.tables[name][1]]
        return result

    @property
    def automaton(self) -> PatternAutomaton:
        """The pattern automaton."""
        if "automaton" not in self._cache:
            self._cache["automaton"] = PatternAutomaton(self.patterns, self.n_labels)
        net: PatternAutomaton = self._cache["automaton"]
        return net

    @property
    def dense(self) -> bool:
        """Whether the first-order chain kernel serves: labels and label pairs only."""
        return not self.segments and all(len(p) <= 2 and p[0] != BOS and p[-1] != EOS for p in self.patterns)

    @property
    def varying(self) -> bool:
        """Whether token features sit on longer patterns that depend on the start alone."""
        table = self.tables.get("start")
        if table is None:
            return False
        high = table[1][table[1] >= self.n_labels]
        return bool(high.size) if self.dense else bool((~self.extent[high]).any())

    @property
    def extent(self) -> Bools:
        """(P,) patterns whose score depends on more than a segment's start: labels, and what has such features."""
        if "extent" not in self._cache:
            extent = np.zeros(len(self.patterns), np.bool_)
            extent[: self.n_labels] = True
            for part in ("inside", "end", "inner"):
                if part in self.tables:
                    extent[self.tables[part][1]] = True
            self._cache["extent"] = extent
        result: Bools = self._cache["extent"]
        return result

    @property
    def columns(self) -> int:
        """Patterns that have a column in the arrays of extent scores: the labels, or all."""
        return len(self.patterns) if self.extent[self.n_labels :].any() else self.n_labels

    @property
    def native(self) -> _core.FlatModel:
        """The layout for the native code."""
        if "native" not in self._cache:
            bias = np.full(len(self.patterns), -1, np.int32)
            bias[self.n_labels :] = np.arange(self.n_bias)
            pair = None
            if self.dense:
                pair = np.array([p[0] * self.n_labels + p[-1] for p in self.patterns], np.int32)
            native = _core.FlatModel(
                self.automaton._native,
                None if self.dense else self.automaton.topology(self.extent),
                self.max_length,
                bias,
                pair,
                self.extent.astype(np.uint8),
                self.columns,
                self.varying,
                self.n_weights,
            )
            for name, at, size in self.blocks():
                if name in self.tables and size:
                    native.set_features(PARTS.index(name), *self.tables[name], at)
                elif name == "cells" and size:
                    native.set_features(4, *self.cell_table, at)
                elif name == "length" and size:
                    native.set_lengths(self.basis, at)
            self._cache["native"] = native
        result: _core.FlatModel = self._cache["native"]
        return result

    # ---- lattices ----------------------------------------------------------------------------------------------

    def batch(self, data: Dataset, cells: Cells | None, n_jobs: int) -> ChainBatch | SegmentBatch:
        """The lattices of encoded sequences under the weights."""
        n, columns = data.n_tokens, self.columns
        kept = native_data(data, cells)
        start = np.zeros((n, columns))
        if self.dense:
            steps = int(np.maximum(np.diff(data.offsets) - 1, 0).sum())
            size = self.n_labels
            pairs = np.zeros((steps, size, size) if self.varying else (size, size))
            _core.score_arrays(self.native, kept, self.weights, start, None, None, None, None, None, pairs, n_jobs)
            chain: ChainBatch = ChainBatch._of(DenseCore(start, data.offsets, pairs, None, None), n_jobs)
            return chain
        inside = np.zeros((n, columns)) if self.max_length > 1 or {"inside", "inner"} & set(self.tables) else None
        end = np.zeros((n, columns)) if "end" in self.tables else None
        by_length = np.zeros((self.max_length, columns)) if len(self.basis) else None
        full = None
        if len(self.cell_table[1]) and cells is not None:
            full = np.zeros((n, self.max_length, columns))
        starts = np.zeros((n, len(self.patterns)) if self.varying else len(self.patterns))
        _core.score_arrays(self.native, kept, self.weights, start, inside, end, by_length, full, starts, None, n_jobs)
        core = PatternCore(
            self.automaton, data.offsets, self.max_length, self.extent, starts, full, start, inside, end, by_length
        )
        kind: type[ChainBatch] | type[SegmentBatch] = SegmentBatch if self.segments else ChainBatch
        batch: ChainBatch | SegmentBatch = kind._of(core, n_jobs)
        return batch

    # ---- objectives --------------------------------------------------------------------------------------------

    def objective(
        self, data: Dataset, cells: Cells | None, targets: Targets, weight: Floats | None, everything: bool = False
    ) -> _core.FlatObjective:
        """Objectives on encoded sequences. everything: also complete sequences can be asked for log Z(known)."""
        complete, known = targets.complete, targets.known
        status = np.where(complete, 2, np.where(known, 1, 0)).astype(np.uint8)
        allowed = runs = may_end = None
        if everything or (known & ~complete).any():
            mask = known_labels(targets, self.n_labels)
            if self.segments:
                constraints = Constraints(mask, targets.ends)
                runs, may_end = constraints.runs(data.offsets, self.n_labels, self.max_length)
            else:
                # the automaton engine reads runs, the dense one the mask
                allowed = mask.view(np.uint8)
                runs = mask.astype(np.int32)
                may_end = np.ones(data.n_tokens, np.uint8)
        ends = None
        if self.segments:
            assert targets.ends is not None
            ends = (targets.ends == 1).astype(np.uint8)
        return _core.FlatObjective(
            self.native, native_data(data, cells), targets.labels, ends, status, allowed, runs, may_end, weight
        )

    # ---- features by name --------------------------------------------------------------------------------------

    def pattern_name(self, z: int) -> tuple[Any, ...]:
        """Labels of a pattern; BOS and EOS as they are."""
        return tuple(y if y in (BOS, EOS) else self.labels[y] for y in self.patterns[z])

    def named_features(self, part: str) -> Iterator[tuple[str, tuple[Any, ...], float]]:
        """Attribute, label pattern and weight of a part's features."""
        for name, at, _ in self.blocks():
            if name == part and name in self.tables:
                rows, pattern = self.tables[name]
                attribute = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
                names = self.vocabulary.names()
                for k, (a, z) in enumerate(zip(attribute.tolist(), pattern.tolist(), strict=True)):
                    yield names[a], self.pattern_name(z), float(self.weights[at + k])


def known_labels(targets: Targets, n_labels: int) -> Bools:
    """(N, L) labels that targets allow."""
    if targets.allowed is not None:
        return np.ascontiguousarray(targets.allowed)
    labels = targets.labels[:, None]
    result: Bools = (labels == np.arange(n_labels)) | (labels < 0)
    return result


def native_data(data: Dataset, cells: Cells | None) -> _core.FlatData:
    """Encoded sequences for the native code."""
    native = _core.FlatData(data.offsets, data.token_offsets, data.ids, data.values)
    if cells is not None:
        native.set_cells(cells.offsets, cells.start, cells.length, cells.ids, cells.values)
    return native


# ---- building ------------------------------------------------------------------------------------------------------


def seen_patterns(targets: Targets, offsets: Ints, segments: bool, order: int) -> list[Pattern]:
    """Label patterns of length 2 .. order + 1 that occur in known stretches, sorted by length, then by labels."""
    found: set[Pattern] = set()
    if order >= 1:
        for run in known_runs(targets, offsets, segments):
            for size in range(2, order + 2):
                found.update(zip(*(run[i:] for i in range(size)), strict=False))
    return sorted(found, key=lambda p: (len(p), p))


def known_runs(targets: Targets, offsets: Ints, segments: bool) -> Iterator[list[int]]:
    """Labels of consecutive known segments (or positions), one list for each unbroken stretch."""
    labels = targets.labels.tolist()
    ends = targets.ends.tolist() if segments and targets.ends is not None else None
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        run: list[int] = []
        start = first
        while start < last:
            y = labels[start]
            stop, known = start + 1, y >= 0
            if ends is not None and known:
                while stop < last and ends[stop - 1] == 0 and labels[stop] == y:
                    stop += 1
                known = ends[stop - 1] == 1
            if known:
                run.append(y)
            elif run:
                yield run
                run = []
            start = stop
        if run:
            yield run


def by_prefix(names: Sequence[str], rules: Mapping[str, Any] | None, parse: Callable[[Any], int], default: int) -> Any:
    """(A,) what the longest matching prefix of each attribute name says, else the default."""
    result = np.full(len(names), default, np.uint32)
    if rules:
        parsed = {prefix: parse(value) for prefix, value in rules.items()}
        lengths = sorted({len(prefix) for prefix in parsed}, reverse=True)
        for a, name in enumerate(names):
            for length in lengths:
                if name[:length] in parsed:
                    result[a] = parsed[name[:length]]
                    break
    return result


def order_bits(value: Any) -> int:
    """Orders as bits: an int or an iterable of ints."""
    orders = value if isinstance(value, Iterable) else (value,)
    bits = 0
    for order in orders:
        bits |= 1 << checks.count("attribute_orders", order, 0)
    return bits


def part_bits(value: Any) -> int:
    """Parts as bits: a name or an iterable of names."""
    parts = (value,) if isinstance(value, str) else tuple(value)
    bits = 0
    for part in parts:
        if part not in PARTS:
            raise ValueError(f"attribute_parts must name parts among {', '.join(PARTS)}, got {part!r}")
        bits |= 1 << PARTS.index(part)
    return bits
