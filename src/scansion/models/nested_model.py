r"""Hierarchical models: from encoded sequences and weights to lattices, and to objectives for training.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge, Vocabulary, level_names
from scansion.lattice.nested import NestedBatch, Persistence
from scansion.models.inputs import Inputs
from scansion.models.packing import Contents
from scansion.models.weights import Block, Level, Mark, Model
from scansion.rules.compile import RuleSet
from scansion.rules.expressions import Rule

if TYPE_CHECKING:
    from scansion.training.objective import NativeObjective

__all__ = ["CLIQUES", "PERSISTENCE", "NestedModel", "unpacked"]

PERSISTENCE = ("inside", "start", "end", "inner")
CLIQUES = ("transition", "initialisation", "ending")
_PARTS = (*PERSISTENCE, *CLIQUES, "length", "span")  # by their numbers in native code

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
    hidden : list of int
        Levels that training guesses (`scansion.models.hidden`); not in files.
    """

    children: list[Bools] = field(default_factory=list)
    possible: list[dict[str, Bools]] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)

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

    @property
    def native(self) -> _core.NestedModel:
        """The layout for the native code."""
        if "native" not in self._cache:
            bounds = [level.max_length or 0 for level in self.levels]
            masks: Any = [
                [np.ascontiguousarray(mask).view(np.uint8) for mask in (child, *(may[part] for part in CLIQUES))]
                for child, may in zip(self.children, self.possible, strict=True)
            ]
            native = _core.NestedModel(bounds, masks, self.n_weights)
            for k, level in enumerate(self.levels):
                native.set_basis(k, np.ascontiguousarray(level.basis))
            for block, where in self.parts():
                if len(block):
                    put = native.set_always if block.always else native.set_features
                    put(block.level, _PARTS.index(block.part), block.rows, block.columns, where.start)
            self._cache["native"] = native
        result: _core.NestedModel = self._cache["native"]
        return result

    # ---- lattices ----------------------------------------------------------------------------------------------

    def batch(self, inputs: Inputs, n_jobs: int) -> NestedBatch:
        """The lattices of encoded sequences under the weights; the root is level 0."""
        n = inputs.data.n_tokens
        there = {(block.level, block.part) for block in self.blocks if not block.always and len(block)}

        def array(k: int, parts: tuple[str, ...], *shape: int) -> Floats | None:
            """Zeros if level k has features of one of the parts."""
            return np.zeros(shape) if any((k, part) in there for part in parts) else None

        persist, cliques = [], []
        for k, level in enumerate(self.levels):
            size, longest = level.size, level.max_length
            inside = array(k, ("inside", "inner") if longest else ("inside", "inner", "length"), n, size)
            start, stop = array(k, ("start", "inner"), n, size), array(k, ("end",), n, size)
            length = array(k, ("length",), longest, size) if longest else None
            spans = array(k, ("span",), n, longest, size) if longest and inputs.spans[k] is not None else None
            persist.append(Persistence(inside, start, stop, length, spans, longest))
            shapes = [(part, self.shape(k, part)) for part in CLIQUES]
            transit, init, end = (np.zeros((n, *s) if (k, part) in there else s) for part, s in shapes)
            cliques.append((transit, init, end))
        _core.nested_score_arrays(
            self.native, inputs.native, self.weights, [one[:-1] for one in persist], cliques, n_jobs
        )
        persist.insert(0, Persistence())  # of the root
        transits, inits, ends = map(list, zip(*cliques, strict=True))
        return NestedBatch(persist, transits, inits, ends, inputs.data.offsets, self.children, n_jobs)

    def lattices(self, inputs: Any, n_jobs: int) -> NestedBatch:
        """The same."""
        return self.batch(inputs, n_jobs)

    def held(self, known: Knowledge) -> Knowledge:
        """What is known, as the lattices hold it: under the root."""
        return known.under_root()

    # ---- objectives --------------------------------------------------------------------------------------------

    def objective(self, inputs: Inputs, known: Knowledge, weight: Floats | None) -> NativeObjective:
        """The objective on encoded sequences; weight (B,) of each sequence."""
        from scansion.training.objective import NativeObjective

        status = np.where(known.complete, 2, np.where(known.known, 1, 0)).astype(np.uint8)
        labels = [level.numbers for level in known.levels]
        ends = [level.ends for level in known.levels if level.ends is not None]
        allowed = [
            None if one.allowed is None else one.bytes(level.size)
            for one, level in zip(known.levels, self.levels, strict=True)
        ]
        native = _core.NestedObjective(self.native, inputs.native, labels, ends, allowed, status, weight)
        return NativeObjective(native, np.flatnonzero(known.known), inputs, known)

    def warn_of_symmetry(self, known: Knowledge) -> None:
        """Warn of labels that nothing tells apart: weights that start equal stay equal."""
        for k, (level, told) in enumerate(zip(self.levels, known.levels, strict=True)):
            mask = told.mask(level.size)
            if level.size < 2 or k in self.hidden or (mask is not None and not mask.all()):
                continue
            around = self.children[k].T
            if k + 1 < len(self.levels):
                around = np.hstack([around, self.children[k + 1]])
            _, first, number = np.unique(around, axis=0, return_index=True, return_inverse=True)
            alike = np.flatnonzero(first[number.ravel()] != np.arange(level.size))
            if alike.size:
                labels = [level.labels[first[number.ravel()[alike[0]]]], level.labels[alike[0]]]
                checks.warn(
                    f"y says nothing of the labels of level {level.name!r}, and training starts from equal weights: "
                    f"{labels[0]!r} and {labels[1]!r} cannot come to differ. Name the level in `hidden`, label a few "
                    "tokens, or start from a model that tells them apart (warm_start)",
                )

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
            wrong = ~self.possible[k]["transition"].ravel()[column]  # of repeats, or of whole sequences
            if wrong.any():
                i = int(at[np.argmax(wrong)])
                b, t = where(i)
                label, before = (level.labels[int(child.label[at])] for at in (i, i - 1))
                why = "max_length is 'whole'" if label != before else "repeats is False or max_length is 'whole'"
                raise ValueError(
                    f"y[{b}], level {level.name!r}: {label!r} at position {t} follows {before!r} under the same parent"
                    f", but {why}"
                )

    def compiled(self, rules: tuple[Rule, ...]) -> RuleSet:
        """Rules compiled for the labels of the levels."""
        from scansion.rules.nested import nested_rules

        return nested_rules(rules, [[None], *(level.labels for level in self.levels)], [v.name for v in self.levels])

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

    def orders(self) -> Ints:
        """(W,) the order of each feature: 1 of transitions, 0 of others."""
        sizes = [np.full(len(block), block.part == "transition", np.int64) for block in self.blocks]
        return np.concatenate([np.zeros(0, np.int64), *sizes])

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
