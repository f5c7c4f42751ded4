"""Features and weights of the flat models: from encoded sequences to lattices, and to objectives for training.

Conventions: L labels, P patterns of which the first L are the labels themselves, A attributes, W weights, N tokens.
The weight vector is: one weight for each always-on pattern (label pairs and longer), then for each part its attribute x
pattern features (attributes in order, patterns ascending), then length features (basis function x label), then
features of whole segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data import Dataset, Targets, Vocabulary
from scansion.features.spans import Cells
from scansion.lattice.chain import ChainBatch
from scansion.lattice.constraints import Constraints
from scansion.lattice.cores import DenseCore, PatternCore
from scansion.lattice.patterns import BOS, EOS, Pattern, PatternAutomaton
from scansion.lattice.segment import SegmentBatch

PARTS = ("start", "inside", "end", "inner")
Table = tuple[Ints, npt.NDArray[np.int32]]
Numbers = npt.NDArray[np.int32]
NamedWeight = tuple[str, str, float]


@dataclass(frozen=True)
class Inputs:
    """Encoded sequences as a model takes them."""

    data: Dataset
    cells: Cells | None = None

    def blocks(self, tokens: int) -> Iterator[tuple[slice, Inputs]]:
        """Runs of sequences of about that many tokens, each with its rows in the whole."""
        offsets, first = self.data.offsets, 0
        while first < len(self.data):
            last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
            last = min(max(last, first + 1), len(self.data))
            part = self
            if last - first < len(self.data):
                cells = None if self.cells is None else self.cells.take(first, last)
                part = Inputs(self.data.take(np.arange(first, last)), cells)
            yield slice(int(offsets[first]), int(offsets[last])), part
            first = last


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
    n_forbidden : int
        The last so many patterns must not occur, and have no features.
    n_silent : int
        So many patterns before those have no always-on feature, only attributes.
    limits : int32 (L,), or None
        Longest segment of each label, at most `max_length`.
    length_counts : int64 (L, M), or None
        How many segments of each length, 1 .. M, training saw; nothing but reports depends on it.
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
    n_forbidden: int = 0
    limits: Numbers | None = None
    length_counts: Ints | None = None
    n_silent: int = 0
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.weights.size == 0:
            self.weights = np.zeros(self.n_weights)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_cache"] = {}
        return state

    def with_tables(self, tables: dict[str, Table], cell_table: Table) -> FlatModel:
        """The model with other features of attributes, and weights of 0."""
        cache = {"automaton": self.automaton}
        return replace(self, tables=tables, cell_table=cell_table, weights=np.zeros(0), _cache=cache)

    def weighted(self, weights: Floats) -> FlatModel:
        """The model with other weights."""
        return replace(self, weights=weights)  # what is cached depends on the features only

    # ---- layout ------------------------------------------------------------------------------------------------

    @property
    def n_labels(self) -> int:
        """L."""
        return len(self.labels)

    @property
    def n_bias(self) -> int:
        """Number of always-on patterns."""
        return len(self.patterns) - self.n_labels - self.n_forbidden - self.n_silent

    @property
    def bounded(self) -> bool:
        """Whether the model excludes configurations, so that what is known of a sequence may be impossible."""
        return self.n_forbidden > 0 or self.limits is not None

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
                result[at : at + size] = length[self.n_labels : self.n_labels + size]
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
        if "dense" not in self._cache:
            plain = all(len(p) <= 2 and p[0] != BOS and p[-1] != EOS for p in self.patterns)
            self._cache["dense"] = plain and not self.segments
        return bool(self._cache["dense"])

    def _features_on(self, *parts: str) -> Bools:
        """(P,) patterns that have features of attributes in one of the parts."""
        found = np.zeros(len(self.patterns), np.bool_)
        for part in parts:
            if part in self.tables:
                found[self.tables[part][1]] = True
        return found

    @property
    def varying(self) -> bool:
        """Whether token features sit on longer patterns that depend on the start alone."""
        if "varying" not in self._cache:
            longer = ~self.extent if not self.dense else np.arange(len(self.patterns)) >= self.n_labels
            self._cache["varying"] = bool((self._features_on("start") & longer).any())
        return bool(self._cache["varying"])

    @property
    def extent(self) -> Bools:
        """(P,) patterns whose score depends on more than a segment's start: labels, and what has such features.

        Patterns that end in EOS are not among them: the kernels read their start scores with those of the others.
        """
        if "extent" not in self._cache:
            extent = self._features_on("inside", "end", "inner") & [p[-1] != EOS for p in self.patterns]
            extent[: self.n_labels] = True
            self._cache["extent"] = extent
        result: Bools = self._cache["extent"]
        return result

    @property
    def columns(self) -> int:
        """Patterns that have a column in the arrays of extent scores: the labels, or all."""
        if "columns" not in self._cache:
            wide = self._features_on("inside", "end", "inner")[self.n_labels :].any()
            self._cache["columns"] = len(self.patterns) if wide else self.n_labels
        return int(self._cache["columns"])

    @property
    def native(self) -> _core.FlatModel:
        """The layout for the native code."""
        if "native" not in self._cache:
            bias = np.full(len(self.patterns), -1, np.int32)
            bias[self.n_labels : self.n_labels + self.n_bias] = np.arange(self.n_bias)
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
            if self.segments:
                forbidden = np.zeros(len(self.patterns), np.uint8)
                forbidden[len(self.patterns) - self.n_forbidden :] = 1
                native.set_limits(self.limits, forbidden)
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

    def batch(self, inputs: Inputs, n_jobs: int) -> ChainBatch | SegmentBatch:
        """The lattices of encoded sequences under the weights, in the kernels' compact form.

        Scores have columns for some patterns only: `lattices` makes those that answer for all of them.
        """
        data, columns = inputs.data, self.columns
        n = data.n_tokens
        kept = native_data(inputs)
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
        by_length = np.zeros((self.max_length, columns)) if len(self.basis) or self.limits is not None else None
        full = None
        if len(self.cell_table[1]) and inputs.cells is not None:
            full = np.zeros((n, self.max_length, columns))
        starts = np.zeros((n, len(self.patterns)) if self.varying else len(self.patterns))
        _core.score_arrays(self.native, kept, self.weights, start, inside, end, by_length, full, starts, None, n_jobs)
        core = PatternCore(
            self.automaton, data.offsets, self.max_length, self.extent, starts, full, start, inside, end, by_length
        )
        kind: type[ChainBatch] | type[SegmentBatch] = SegmentBatch if self.segments else ChainBatch
        batch: ChainBatch | SegmentBatch = kind._of(core, n_jobs)
        return batch

    def lattices(self, inputs: Inputs, n_jobs: int) -> ChainBatch | SegmentBatch:
        """The same lattices with a score for every pattern, as their constructors make them."""
        batch = self.batch(inputs, n_jobs)
        core = batch._core
        if isinstance(core, DenseCore):
            return batch
        n, size, longest, net = inputs.data.n_tokens, len(self.patterns), self.max_length, self.automaton

        def wide(part: Floats | None) -> Floats | None:
            if part is None or part.shape[-1] == size:
                return part
            padded = np.zeros((*part.shape[:-1], size))
            padded[..., : part.shape[-1]] = part
            return padded

        start, inside, end, by_length, full = map(wide, (core.start, core.inside, core.end, core.by_length, core.full))
        assert start is not None and core.starts is not None
        start = start + core.starts
        if not self.segments:
            return ChainBatch.from_patterns(start, core.offsets, net, self.n_labels, n_jobs)
        if full is None:
            parts = {"start": start, "inside": inside, "end": end, "length": by_length}
            return SegmentBatch.from_parts(core.offsets, net, self.n_labels, longest, **parts, n_jobs=n_jobs)
        within = np.zeros((n, size))
        for d in range(min(longest, n)):  # what is written for segments that pass the end of a sequence is ignored
            full[:, d] += start
            if inside is not None:
                within[: n - d] += inside[d:]
                full[:, d] += within
            if end is not None:
                full[: n - d, d] += end[d:]
            if by_length is not None:
                full[:, d] += by_length[d]
        return SegmentBatch(full, core.offsets, net, self.n_labels, n_jobs)

    # ---- objectives --------------------------------------------------------------------------------------------

    def objective(self, inputs: Inputs, targets: Targets, weight: Floats | None) -> _core.FlatObjective:
        """Objectives on encoded sequences."""
        data = inputs.data
        complete, known = targets.complete, targets.known
        status = np.where(complete, 2, np.where(known, 1, 0)).astype(np.uint8)
        if targets.trajectories is not None:
            status[np.diff(targets.trajectories[0]) > 0] = 3
        allowed = runs = may_end = None
        if (known & ~complete).any():
            mask = known_labels(targets, self.n_labels)
            if self.segments:
                constraints = Constraints(mask, targets.ends)
                runs, may_end = constraints.runs(data.offsets, self.n_labels, self.max_length)
                if runs is not None and self.limits is not None:
                    np.minimum(runs, self.limits, out=runs)
            else:
                # the automaton engine reads runs, the dense one the mask
                allowed = mask.view(np.uint8)
                runs = mask.astype(np.int32)
                may_end = np.ones(data.n_tokens, np.uint8)
        ends = None
        if self.segments:
            assert targets.ends is not None
            ends = (targets.ends == 1).astype(np.uint8)
        objective = _core.FlatObjective(
            self.native, native_data(inputs), targets.labels, ends, status, allowed, runs, may_end, weight
        )
        if targets.trajectories is not None:
            objective.set_trajectories(*targets.trajectories, not self.segments)
        return objective

    # ---- features by name --------------------------------------------------------------------------------------

    def pattern_name(self, z: int) -> tuple[Any, ...]:
        """Labels of a pattern; BOS and EOS as they are."""
        return tuple(y if y in (BOS, EOS) else self.labels[y] for y in self.patterns[z])

    def named_features(self) -> Iterator[tuple[str, str, tuple[Any, ...], float]]:
        """Block, attribute (or length), label pattern and weight of all features that are not 0 and not always on."""
        names = self.vocabulary.names()
        for block, at, size in self.blocks():
            chosen = np.flatnonzero(self.weights[at : at + size])
            values = self.weights[at : at + size][chosen].tolist()
            if block == "bias":
                continue
            if block == "length":
                for k, w in zip(chosen.tolist(), values, strict=True):
                    yield block, self.basis_names[k // self.n_labels], (self.labels[k % self.n_labels],), w
                continue
            rows, pattern = self.cell_table if block == "cells" else self.tables[block]
            known = self.cell_vocabulary.names() if block == "cells" else names
            attribute = np.repeat(np.arange(len(rows) - 1), np.diff(rows))[chosen]
            for a, z, w in zip(attribute.tolist(), pattern[chosen].tolist(), values, strict=True):
                yield block, known[a], self.pattern_name(z), w

    def strongest_features(self, top: int) -> list[tuple[list[NamedWeight], list[NamedWeight]]]:
        """Of each label, the `top` features of highest weight above 0 and of lowest below: block, name, weight.

        Features of single labels; equal weights in the order of the weight vector. O(W log W).
        """
        parts: list[tuple[str, Ints, Ints, Ints, Floats]] = []
        for block, at, size in self.blocks():
            if block == "bias" or not size:
                continue
            if block == "length":
                attribute, pattern = np.divmod(np.arange(size), self.n_labels)
            else:
                rows, pattern = self.cell_table if block == "cells" else self.tables[block]
                attribute = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
            chosen = np.flatnonzero((pattern < self.n_labels) & (self.weights[at : at + size] != 0))
            kind = np.full(len(chosen), len(parts))
            parts.append((block, kind, attribute[chosen], pattern[chosen], self.weights[at : at + size][chosen]))
        names = {"length": self.basis_names, "cells": self.cell_vocabulary.names()}
        plain = self.vocabulary.names()
        if not parts:
            return [([], []) for _ in self.labels]
        kind, attribute, label, weight = (np.concatenate([part[i] for part in parts]) for i in range(1, 5))
        order = np.lexsort((-weight, label))
        cuts = np.searchsorted(label[order], np.arange(self.n_labels + 1))

        def named(rows: Ints) -> list[NamedWeight]:
            blocks = [parts[k][0] for k in kind[rows]]
            return [
                (block, names.get(block, plain)[a], w)
                for block, a, w in zip(blocks, attribute[rows].tolist(), weight[rows].tolist(), strict=True)
            ]

        result = []
        for first, last in zip(cuts[:-1], cuts[1:], strict=True):
            rows = order[first:last]
            zero = first + int(np.searchsorted(-weight[rows], 0.0))
            result.append(
                (named(order[first : min(zero, first + top)]), named(order[max(zero, last - top) : last][::-1]))
            )
        return result


def constrained(batch: ChainBatch | SegmentBatch, known: Constraints) -> ChainBatch | SegmentBatch:
    """The same lattices under what is known, which is known to be possible."""
    result: ChainBatch | SegmentBatch = batch._of(replace(batch._core, known=known), batch.n_jobs)
    return result


def constraints(targets: Targets, n_labels: int) -> Constraints:
    """What targets say, for lattices."""
    return Constraints(known_labels(targets, n_labels), targets.ends)


def known_labels(targets: Targets, n_labels: int) -> Bools:
    """(N, L) labels that targets allow."""
    if targets.allowed is not None:
        return np.ascontiguousarray(targets.allowed)
    labels = targets.labels[:, None]
    result: Bools = (labels == np.arange(n_labels)) | (labels < 0)
    return result


def native_data(inputs: Inputs) -> _core.EncodedData:
    """Encoded sequences for the native code."""
    data, cells = inputs.data, inputs.cells
    native = _core.EncodedData(data.offsets, data.token_offsets, data.ids, data.values)
    if cells is not None:
        native.set_cells(0, cells.offsets, cells.start, cells.length, cells.ids, cells.values)
    return native
