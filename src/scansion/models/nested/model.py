r"""The features and weights of a hierarchical model, and its lattices.

Conventions
-----------
K named levels from the top down, S_k states each; above them the root, one state over the whole sequence, so that level
k of the model is level k + 1 of its lattices. The parent's level of k is k - 1, S_{-1} = 1.

The score of a tree is the sum over its cliques (paper 000, equations 68 to 71) of weighted features:

=================  ===================================  ==========================================================
part               clique                               features
=================  ===================================  ==========================================================
inside             persistence, s-segment [i, j)        attributes summed over i .. j-1
start, end         persistence                          attributes at i, at j-1
inner              persistence                          attributes summed over i+1 .. j-1
length             persistence                          functions of j - i
span               persistence                          attributes that a user's function gives to [i, j)
transition         u then v under the parent p          always on; attributes at v's first position
initialisation     p and its first child u              always on; attributes at their first position
ending             p and its last child u               always on; attributes at their last position
=================  ===================================  ==========================================================

A `Block` is the features of one part at one level: a matrix of rows (attributes, functions of the length, or one row
for what is always on) by columns (states s, pairs p * S_k + u, or triples (p * S_k + u) * S_k + v), of which some
entries exist. The weight vector has the blocks' entries one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data import Vocabulary
from scansion.lattice.nested import NestedBatch, Persistence
from scansion.models.nested.inputs import NestedInputs

__all__ = ["CLIQUES", "PERSISTENCE", "Block", "Level", "NestedModel"]

PERSISTENCE = ("inside", "start", "end", "inner")
CLIQUES = ("transition", "initialisation", "ending")
_PARTS = (*PERSISTENCE, *CLIQUES, "length", "span")  # by their numbers in native code

_FLOATS_AT_ONCE = 30_000_000


@dataclass
class Level:
    """One named level.

    Attributes
    ----------
    name : str
    labels : list
        Its states, by number.
    max_length : int or None
        Longest segment; None: no bound.
    basis : (n, M), or (n, 1) where there is no bound
        Functions of the length; without a bound, constants that are summed over the positions.
    basis_names : list of n
    cell_vocabulary : Vocabulary
        Attributes of spans.
    length_counts : int64 (S, M), or None
        How many segments of each length, 1 .. M, training saw; nothing but reports depends on it.
    """

    name: str
    labels: list[Any]
    max_length: int | None
    basis: Floats
    basis_names: list[str]
    cell_vocabulary: Vocabulary
    length_counts: Ints | None = None

    @property
    def size(self) -> int:
        """S, the number of states."""
        return len(self.labels)


@dataclass(frozen=True)
class Block:
    """The features of one part at one level.

    Attributes
    ----------
    level : int
    part : str
    always : bool
        Whether they are always on; else they are of attributes, or of lengths.
    width : int
        Number of columns.
    index : int64 (n,), ascending
        The entries that exist: row * width + column.
    """

    level: int
    part: str
    always: bool
    width: int
    index: Ints

    @property
    def key(self) -> tuple[int, str, bool]:
        """What tells it from other blocks."""
        return self.level, self.part, self.always

    @property
    def tokens(self) -> bool:
        """Whether the rows are attributes of tokens."""
        return not self.always and self.part not in ("length", "span")


@dataclass
class NestedModel:
    """Levels, topology, features and weights.

    Attributes
    ----------
    levels : list of K Level
    vocabulary : Vocabulary
        A attributes of tokens.
    children : list of K bool (S_{k-1}, S_k)
        The states that a parent may have as children.
    possible : list of K dicts, part -> bool array
        "transition" (S_{k-1}, S_k, S_k), "initialisation" and "ending" (S_{k-1}, S_k): what may occur at all.
    blocks : list of Block
    weights : (W,)
    """

    levels: list[Level]
    vocabulary: Vocabulary
    children: list[Bools]
    possible: list[dict[str, Bools]]
    blocks: list[Block]
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.weights.size == 0:
            self.weights = np.zeros(self.n_weights)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_cache"] = {}
        return state

    def weighted(self, weights: Floats) -> NestedModel:
        """The model with other weights."""
        return replace(self, weights=weights)  # what is cached depends on the features only

    @property
    def n_weights(self) -> int:
        """W."""
        return sum(len(block.index) for block in self.blocks)

    def parts(self) -> Iterator[tuple[Block, slice]]:
        """Every block with the place of its weights."""
        at = 0
        for block in self.blocks:
            yield block, slice(at, at + len(block.index))
            at += len(block.index)

    def n_parents(self, k: int) -> int:
        """S_{k-1}."""
        return self.levels[k - 1].size if k else 1

    def shape(self, k: int, part: str) -> tuple[int, ...]:
        """What the columns of a part at level k count."""
        size, parents = self.levels[k].size, self.n_parents(k)
        if part == "transition":
            return parents, size, size
        return (parents, size) if part in CLIQUES else (size,)

    def rows(self, block: Block) -> int:
        """Number of rows of a block."""
        if block.always:
            return 1
        level = self.levels[block.level]
        return {"length": len(level.basis_names), "span": len(level.cell_vocabulary)}.get(
            block.part, len(self.vocabulary)
        )

    def tokens_at_once(self) -> int:
        """Number of tokens whose scores fit into a moderate amount of memory."""
        floats = 1
        for block in self.blocks:
            if block.tokens or block.part == "span":
                longest = self.levels[block.level].max_length or 1
                floats += block.width * (longest if block.part == "span" else 1)
        return max(1, _FLOATS_AT_ONCE // floats)

    @property
    def native(self) -> _core.NestedModel:
        """The layout for the native code."""
        if "native" not in self._cache:
            bounds = [0 if level.max_length is None else level.max_length for level in self.levels]
            masks = [
                tuple(np.ascontiguousarray(mask).view(np.uint8) for mask in (child, *(may[part] for part in CLIQUES)))
                for child, may in zip(self.children, self.possible, strict=True)
            ]
            native = _core.NestedModel(bounds, masks, self.n_weights)  # type: ignore[arg-type]  # four masks
            for k, level in enumerate(self.levels):
                native.set_basis(k, np.ascontiguousarray(level.basis))
            for block, where in self.parts():
                if len(block.index):
                    rows = np.searchsorted(block.index, np.arange(self.rows(block) + 1) * block.width).astype(np.int64)
                    columns = (block.index % block.width).astype(np.int32)
                    put = native.set_always if block.always else native.set_features
                    put(block.level, _PARTS.index(block.part), rows, columns, where.start)
            self._cache["native"] = native
        found: _core.NestedModel = self._cache["native"]
        return found

    # ---- lattices ----------------------------------------------------------------------------------------------

    def batch(self, inputs: NestedInputs, n_jobs: int) -> NestedBatch:
        """The lattices of encoded sequences under the weights; the root is level 0."""
        n = inputs.data.n_tokens
        there = {(block.level, block.part) for block in self.blocks if not block.always and len(block.index)}

        def array(k: int, parts: tuple[str, ...], shape: tuple[int, ...]) -> Floats | None:
            """Zeros if level k has one of the parts."""
            return np.zeros(shape) if any((k, part) in there for part in parts) else None

        arrays: dict[str, list[Any]] = {name: [] for name in (*Persistence._fields[:-1], *CLIQUES)}
        for k, level in enumerate(self.levels):
            free, longest = level.max_length is None, level.max_length or 1
            rows, spans = (n, level.size), (n, longest, level.size)
            arrays["inside"].append(array(k, ("inside", "inner", *(("length",) if free else ())), rows))
            arrays["start"].append(array(k, ("start", "inner"), rows))
            arrays["stop"].append(array(k, ("end",), rows))
            arrays["length"].append(None if free else array(k, ("length",), (longest, level.size)))
            arrays["spans"].append(None if free or inputs.cells[k] is None else array(k, ("span",), spans))
            for part in CLIQUES:
                shape = self.shape(k, part)
                arrays[part].append(np.zeros((n, *shape) if (k, part) in there else shape))
        _core.nested_score_arrays(self.native, inputs.native, self.weights, *arrays.values(), n_jobs)
        transit, init, end = (arrays[part] for part in CLIQUES)
        persist: list[Any] = [Persistence()]
        for k, level in enumerate(self.levels):
            parts = {name: arrays[name][k] for name in Persistence._fields[:-1]}
            persist.append(Persistence(**parts, max_length=level.max_length))
        return NestedBatch(persist, transit, init, end, inputs.data.offsets, children=self.children, n_jobs=n_jobs)

    # ---- names -------------------------------------------------------------------------------------------------

    def column_names(self, block: Block) -> list[tuple[Any, ...]]:
        """Labels of each column: (label,), (parent, label), or (parent, label, next); the root is None."""
        labels = self.levels[block.level].labels
        parents = self.levels[block.level - 1].labels if block.level else [None]
        if block.part == "transition":
            return [(p, u, v) for p in parents for u in labels for v in labels]
        if block.part in CLIQUES:
            return [(p, u) for p in parents for u in labels]
        return [(u,) for u in labels]

    def row_names(self, block: Block) -> Sequence[str]:
        """Names of the rows of a block: attributes, or functions of the length."""
        if block.always:
            return [""]
        level = self.levels[block.level]
        if block.part == "length":
            return level.basis_names
        return (level.cell_vocabulary if block.part == "span" else self.vocabulary).names()

    def named_features(self) -> Iterator[tuple[Block, str, tuple[Any, ...], float]]:
        """Block, row and column names and weight of all features whose weight is not 0."""
        for block, where in self.parts():
            chosen = np.flatnonzero(self.weights[where])
            if not len(chosen):
                continue
            rows, columns = self.row_names(block), self.column_names(block)
            entries = block.index[chosen].tolist()
            for entry, weight in zip(entries, self.weights[where][chosen].tolist(), strict=True):
                yield block, rows[entry // block.width], columns[entry % block.width], weight
