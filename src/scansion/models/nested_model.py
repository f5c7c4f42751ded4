r"""The features and weights of a hierarchical model: scores of its lattices, and expectations back to weights.

Conventions
-----------
K named levels from the top down, S_k states each; above them the root, one state over the whole sequence, so that level
k of the model is level k + 1 of its lattices. The parent's level of k is k - 1, S_{-1} = 1.

The score of a tree is the sum over its cliques (paper 000, equations 9 and 68 to 71) of weighted features:

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

Columns of a `Block` are states s, pairs p * S_k + u, or triples (p * S_k + u) * S_k + v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scansion._checks import Bools, Floats
from scansion.data import Knowledge, Vocabulary, level_names
from scansion.lattice.nested import NestedBatch, Persistence
from scansion.models.nested.inputs import Entries, NestedInputs, Table
from scansion.models.packing import Contents
from scansion.models.weights import Block, Level, Mark, Model

__all__ = ["CLIQUES", "PERSISTENCE", "NestedModel", "product", "unpacked"]

PERSISTENCE = ("inside", "start", "end", "inner")
CLIQUES = ("transition", "initialisation", "ending")

_FLOATS_AT_ONCE = 30_000_000


@dataclass
class NestedModel(Model):
    """Levels, topology, features and weights of a hierarchical model.

    Attributes
    ----------
    children : list of K bool (S_{k-1}, S_k)
        The states that a parent may have as children.
    possible : list of K dicts, part -> bool array
        "transition" (S_{k-1}, S_k, S_k), "initialisation" and "ending" (S_{k-1}, S_k): what may occur at all.
    """

    children: list[Bools] = field(default_factory=list)
    possible: list[dict[str, Bools]] = field(default_factory=list)

    no_configuration = (
        "leaves no tree: none gets beyond position {furthest} with what is known there and what the model allows "
        "(topology, transitions, repeats, max_length)"
    )
    whole_parts = ()
    bounded = True
    segments = True

    def n_parents(self, k: int) -> int:
        """S_{k-1}."""
        return self.levels[k - 1].size if k else 1

    def shape(self, k: int, part: str) -> tuple[int, ...]:
        """What the columns of a part at level k count."""
        size, parents = self.levels[k].size, self.n_parents(k)
        if part == "transition":
            return parents, size, size
        return (parents, size) if part in CLIQUES else (size,)

    def tokens_at_once(self) -> int:
        """Number of tokens whose scores fit into a moderate amount of memory."""
        floats = 1
        for block in self.blocks:
            if block.tokens or block.part == "span":
                longest = self.levels[block.level].max_length or 1
                floats += self.n_columns(block) * (longest if block.part == "span" else 1)
        return max(1, _FLOATS_AT_ONCE // floats)

    def table(self, block: Block) -> Table:
        """The features of attributes of a block."""
        tables = self._cache.setdefault("tables", {})
        if block.key not in tables:
            tables[block.key] = Table(block.rows, block.columns, self.n_columns(block))
        found: Table = tables[block.key]
        return found

    def _matrix(self, block: Block, values: Floats) -> Floats:
        """(rows, columns) the values at the features, 0 elsewhere."""
        result = np.zeros((self.n_rows(block), self.n_columns(block)))
        result[block.row, block.columns] = values
        return result

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
            if block.tokens and len(block)
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
            if block.level != k or block.always or not len(block):
                continue
            if block.part == "length":
                weights = self._matrix(block, self.weights[where])
                length = product(level.basis.T, weights)
            elif block.part == "span" and level.max_length is not None and inputs.cells[k] is not None:
                n, longest = inputs.data.n_tokens, level.max_length
                places, entries = inputs.spans(k, longest, len(level.span_vocabulary))
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
                scores = self._matrix(block, self.weights[where]).reshape(shape)
        scores[~self.possible[k][part]] = -np.inf
        varying = products.get((k, part))
        if varying is None:
            return scores
        varying += scores.ravel()
        return varying.reshape(len(varying), *shape)

    def batch(self, inputs: NestedInputs, n_jobs: int) -> NestedBatch:
        """The lattices of encoded sequences under the weights; the root is level 0."""
        from scansion.models.nested.inputs import nested

        inputs = nested(inputs)
        products = self._products(inputs, n_jobs)
        persist: list[Any] = [Persistence()]
        transit, init, end = [], [], []
        for k in range(len(self.levels)):
            persist.append(self._persistence(k, products, inputs, n_jobs))
            transit.append(self._clique(k, "transition", products))
            init.append(self._clique(k, "initialisation", products))
            end.append(self._clique(k, "ending", products))
        return NestedBatch(persist, transit, init, end, inputs.data.offsets, children=self.children, n_jobs=n_jobs)

    def lattices(self, inputs: Any, n_jobs: int) -> NestedBatch:
        """The same."""
        return self.batch(inputs, n_jobs)

    def held(self, known: Knowledge) -> Knowledge:
        """What is known, as the lattices hold it: under the root."""
        return known.under_root()

    # ---- expectations ------------------------------------------------------------------------------------------

    def gather(self, inputs: NestedInputs, expected: Any, out: Floats, sign: float, n_jobs: int) -> None:
        """Add the expected value of each feature to `out` (W,), times `sign`.

        Parameters
        ----------
        expected : NestedScores
            Expected numbers, in the shapes of the scores that `batch` gave to the lattices.
        """
        for block, where in self.parts():
            if not len(block):
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
        clique: Floats = which[part][k].reshape(-1, self.n_columns(block))
        return clique

    def _totals(self, block: Block, expected: Any, inputs: NestedInputs, n_jobs: int) -> Floats:
        """(n,) expected values of what is always on, of lengths and of spans."""
        k, level = block.level, self.levels[block.level]
        if block.always:
            which = {"transition": expected.transit, "initialisation": expected.init, "ending": expected.end}
            counts = which[block.part][k]
            totals: Floats = counts.reshape(-1, self.n_columns(block)).sum(axis=0)[block.columns]
            return totals
        persist = expected.persist[k + 1]
        if block.part == "length":
            free = level.max_length is None
            by_length = persist.inside.sum(axis=0)[None] if free else persist.length
            return product(level.basis, by_length)[block.row, block.columns]
        assert level.max_length is not None
        places, entries = inputs.spans(k, level.max_length, len(level.span_vocabulary))
        return entries.counts(self.table(block), persist.spans.reshape(-1, level.size)[places], n_jobs)

    def objective(self, inputs, known, weight):
        from scansion.models.nested.objective import NestedObjective

        return NestedObjective(self, inputs, known, weight, 8, 1)

    def check_known(self, objective: Any, known: Knowledge) -> None:
        """Raise if a known label lies in a parent that excludes it, or repeats where that is excluded."""
        from scansion.models.occurrences import Occurrences

        seen = Occurrences(known, [level.size for level in self.levels])

        def where(t: int) -> tuple[int, int]:
            b = int(np.searchsorted(known.offsets, t, side="right")) - 1
            return b, t - int(known.offsets[b])

        for k, level in enumerate(self.levels):
            parent, child = seen.levels[k], seen.levels[k + 1]
            told = np.flatnonzero((parent.label >= 0) & (child.label >= 0))
            bad = told[~self.children[k][parent.label[told], child.label[told]]]
            if len(bad):
                b, t = where(int(bad[0]))
                above = self.levels[k - 1]
                raise ValueError(
                    f"y[{b}], level {level.name!r}: {level.labels[child.label[bad[0]]]!r} at position {t} lies in "
                    f"{above.labels[parent.label[bad[0]]]!r} of level {above.name!r}, which topology excludes"
                )
            at, column = seen.of(k, "transition")
            wrong = ~self.possible[k]["transition"].ravel()[column]  # repeats, at most
            if wrong.any():
                i = int(at[np.argmax(wrong)])
                b, t = where(i)
                label = level.labels[int(child.label[i])]
                raise ValueError(
                    f"y[{b}], level {level.name!r}: {label!r} at position {t} follows {label!r} under the same parent, "
                    "but repeats is False"
                )

    # ---- names -------------------------------------------------------------------------------------------------

    def n_columns(self, block: Block) -> int:
        """States, pairs or triples."""
        return int(np.prod(self.shape(block.level, block.part), dtype=np.int64))

    def column_names(self, block: Block) -> Sequence[tuple[Any, ...]]:
        """Labels of each column: (label,), (parent, label), or (parent, label, next); the root is None."""
        labels = self.levels[block.level].labels
        parents = self.levels[block.level - 1].labels if block.level else [None]
        if block.part == "transition":
            return [(p, u, v) for p in parents for u in labels for v in labels]
        if block.part in CLIQUES:
            return [(p, u) for p in parents for u in labels]
        return [(u,) for u in labels]

    def clique(self, block: Block, column: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The parent and the labels of a column, with marks where it begins or ends a parent."""
        if block.part not in CLIQUES:
            return None, column
        before = (Mark.START,) * (block.part == "initialisation")
        after = (Mark.END,) * (block.part == "ending")
        return column[0], (*before, *column[1:], *after)

    def _of_labels(self, block: Block) -> bool:
        return block.part not in CLIQUES

    def feature_name(self, part: str, name: str) -> str:
        """An attribute's name with the part of the segment that it is read from."""
        return name if part in ("inside", "length", *CLIQUES) else f"{part}:{name}"

    def by_weight(self, strength: float | Floats) -> float | Floats:
        """A strength for all weights, or one for each: of several, one per level."""
        if isinstance(strength, float):
            return strength
        return np.concatenate([np.zeros(0), *(np.full(len(block), strength[block.level]) for block in self.blocks)])

    # ---- files -------------------------------------------------------------------------------------------------

    def packed_structure(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata that only hierarchical models have: what may lie in what, and follow what."""
        arrays: dict[str, Any] = {}
        for k in range(len(self.levels)):
            arrays[f"{k}.children"] = self.children[k]
            arrays.update({f"{k}.{part}.possible": self.possible[k][part] for part in CLIQUES})
        return arrays, {}

    def block_kinds(self) -> set[tuple[str, bool]]:
        """The parts that blocks can have, and whether they are always on."""
        return {(part, always) for part in CLIQUES for always in (True, False)} | {
            (part, False) for part in (*PERSISTENCE, "length", "span")
        }

    def check_block(self, block: Block) -> None:
        """Every block will do."""


def unpacked(contents: Contents, levels: list[Level], vocabulary: Vocabulary) -> NestedModel:
    """The model in a file, without its features; ValueError or KeyError if something does not fit."""
    level_names([level.name for level in levels])
    model = NestedModel(levels, vocabulary)
    for k, level in enumerate(levels):
        children = contents.mask(f"{k}.children", model.shape(k, "initialisation"))
        possible = {part: contents.mask(f"{k}.{part}.possible", model.shape(k, part)) for part in CLIQUES}
        if (possible["transition"] & ~(children[:, :, None] & children[:, None, :])).any():
            raise ValueError(f"transitions of level {level.name!r} are possible that its topology excludes")
        model.children.append(children)
        model.possible.append(possible)
    return model


def product(a: Floats, b: Floats) -> Floats:
    """Product of two small matrices, whose sums do not depend on NumPy's BLAS."""
    result: Floats = np.einsum("ij,jk->ik", a, b)
    return result
