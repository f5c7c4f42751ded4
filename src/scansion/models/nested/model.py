r"""The features and weights of a hierarchical model: scores of its lattices, and expectations back to weights.

Conventions
-----------
K named levels from the top down, S_k states each; above them the root, one state over the whole sequence, so that level
k of the model is level k + 1 of its lattices. The parent's level of k is k - 1, S_{-1} = 1.

The score of a tree is the sum over its cliques (paper 000, equations 6 to 11) of weighted features:

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

from scansion._checks import Bools, Floats, Ints
from scansion.data import Vocabulary
from scansion.lattice.nested import NestedBatch, Persistence
from scansion.models.nested.inputs import Entries, NestedInputs, Table

__all__ = ["CLIQUES", "PERSISTENCE", "Block", "Level", "NestedModel", "product"]

PERSISTENCE = ("inside", "start", "end", "inner")
CLIQUES = ("transition", "initialisation", "ending")

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

    def matrix(self, values: Floats, rows: int) -> Floats:
        """(rows, width) the values at the entries, 0 elsewhere."""
        result = np.zeros(rows * self.width)
        result[self.index] = values
        return result.reshape(rows, self.width)


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

    def table(self, block: Block) -> Table:
        """The features of attributes of a block."""
        tables = self._cache.setdefault("tables", {})
        if block.key not in tables:
            tables[block.key] = Table.of(block.index, self.rows(block), block.width)
        found: Table = tables[block.key]
        return found

    # ---- scores ------------------------------------------------------------------------------------------------

    @staticmethod
    def _entries(block: Block, inputs: NestedInputs) -> Entries:
        """The attributes that a block reads at each row: transitions stand where their left child ends."""
        return inputs.following if block.part == "transition" else inputs.tokens

    def _products(self, inputs: NestedInputs, n_jobs: int) -> dict[tuple[int, str], Floats]:
        """(N, width) the scores that each part has from token attributes."""
        return {
            (block.level, block.part): self._entries(block, inputs).scores(
                self.table(block), self.weights[where], n_jobs
            )
            for block, where in self.parts()
            if block.tokens and len(block.index)
        }

    def _persistence(
        self, k: int, products: dict[tuple[int, str], Floats], inputs: NestedInputs, n_jobs: int
    ) -> Persistence:
        level = self.levels[k]
        inside, start, stop, inner = (products.get((k, part)) for part in PERSISTENCE)
        if inner is not None:
            inside = inner if inside is None else inside + inner
            start = -inner if start is None else start - inner
        length: Floats | None = None
        spans: Floats | None = None
        for block, where in self.parts():
            if block.level != k or block.always or not len(block.index):
                continue
            if block.part == "length":
                weights = block.matrix(self.weights[where], len(level.basis))
                length = product(level.basis.T, weights)
            elif block.part == "span" and level.max_length is not None and inputs.cells[k] is not None:
                n, longest = inputs.data.n_tokens, level.max_length
                places, entries = inputs.spans(k, longest, len(level.cell_vocabulary))
                scores = np.zeros((n * longest, level.size))
                scores[places] = entries.scores(self.table(block), self.weights[where], n_jobs)
                spans = scores.reshape(n, longest, level.size)
        if level.max_length is None and length is not None:
            inside = np.repeat(length, inputs.data.n_tokens, axis=0) if inside is None else inside + length
            length = None
        return Persistence(inside, start, stop, length, spans, level.max_length)

    def _clique(self, k: int, part: str, products: dict[tuple[int, str], Floats]) -> Floats:
        """Scores of transitions, initialisations or endings, with rows in front if attributes take part."""
        shape = self.shape(k, part)
        scores: Floats = np.zeros(shape)
        for block, where in self.parts():
            if block.key == (k, part, True):
                scores = block.matrix(self.weights[where], 1).reshape(shape)
        scores[~self.possible[k][part]] = -np.inf
        varying = products.get((k, part))
        if varying is None:
            return scores
        varying += scores.ravel()
        return varying.reshape(len(varying), *shape)

    def batch(self, inputs: NestedInputs, n_jobs: int) -> NestedBatch:
        """The lattices of encoded sequences under the weights; the root is level 0."""
        products = self._products(inputs, n_jobs)
        persist: list[Any] = [Persistence()]
        transit, init, end = [], [], []
        for k in range(len(self.levels)):
            persist.append(self._persistence(k, products, inputs, n_jobs))
            transit.append(self._clique(k, "transition", products))
            init.append(self._clique(k, "initialisation", products))
            end.append(self._clique(k, "ending", products))
        return NestedBatch(persist, transit, init, end, inputs.data.offsets, children=self.children, n_jobs=n_jobs)

    # ---- expectations ------------------------------------------------------------------------------------------

    def gather(self, inputs: NestedInputs, expected: Any, out: Floats, sign: float, n_jobs: int) -> None:
        """Add the expected value of each feature to `out` (W,), times `sign`.

        Parameters
        ----------
        expected : NestedScores
            Expected numbers, in the shapes of the scores that `batch` gave to the lattices.
        """
        for block, where in self.parts():
            if not len(block.index):
                continue
            if block.tokens:
                counts = self._counts(block, expected)
                totals = self._entries(block, inputs).counts(self.table(block), counts, n_jobs)
            else:
                totals = self._totals(block, expected, inputs, n_jobs)
            out[where] += sign * totals

    def _counts(self, block: Block, expected: Any) -> Floats:
        """(N, width) how often each column of a block counts at each row."""
        k, part = block.level, block.part
        if part in PERSISTENCE:
            persist = expected.persist[k + 1]
            if part == "inner":
                inner: Floats = persist.inside - persist.start
                return inner
            counts: Floats = {"inside": persist.inside, "start": persist.start, "end": persist.stop}[part]
            return counts
        which = {"transition": expected.transit, "initialisation": expected.init, "ending": expected.end}
        clique: Floats = which[part][k].reshape(-1, block.width)
        return clique

    def _totals(self, block: Block, expected: Any, inputs: NestedInputs, n_jobs: int) -> Floats:
        """(n,) expected values of what is always on, of lengths and of spans."""
        k, level = block.level, self.levels[block.level]
        if block.always:
            which = {"transition": expected.transit, "initialisation": expected.init, "ending": expected.end}
            counts = which[block.part][k]
            totals: Floats = counts.reshape(-1, block.width).sum(axis=0)[block.index]
            return totals
        persist = expected.persist[k + 1]
        if block.part == "length":
            free = level.max_length is None
            by_length = persist.inside.sum(axis=0)[None] if free else persist.length
            return product(level.basis, by_length).ravel()[block.index]
        assert level.max_length is not None
        places, entries = inputs.spans(k, level.max_length, len(level.cell_vocabulary))
        return entries.counts(self.table(block), persist.spans.reshape(-1, level.size)[places], n_jobs)

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


def product(a: Floats, b: Floats) -> Floats:
    """Product of two small matrices, whose sums do not depend on NumPy's BLAS."""
    result: Floats = np.einsum("ij,jk->ik", a, b)
    return result
