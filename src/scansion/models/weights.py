r"""The weights of a model: blocks of features, one layout for all models.

Conventions
-----------
A model has K levels (one for chains and segments), A attributes of tokens and W weights. A feature is a row with a
column of a `Block`. Rows are attributes of tokens, attributes of spans, functions of a segment's length, or one row for
what is always on; columns are what the model ties them to: label patterns, or the cliques of a level. The weight vector
has the features of the blocks one after another, each block row by row with its columns ascending.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from scansion._checks import Floats, Ints
from scansion.data import Vocabulary

if TYPE_CHECKING:
    from scansion.rules.compile import RuleSet
    from scansion.rules.expressions import Rule

__all__ = ["Block", "Feature", "Level", "Mark", "Model", "carried", "carry_over", "find", "row_offsets"]

Numbers = npt.NDArray[np.int32]
Ranked = list[tuple[str, str, float]]  # part, name, weight

Self = TypeVar("Self", bound="Model")

_RULE_STATES = 2000


@dataclass
class Level:
    """One level of a model; chains and segments have one.

    Attributes
    ----------
    name : str
    labels : list
        Its labels, by number.
    max_length : int or None
        Longest segment, 1 for single positions; None: no bound.
    basis : (n, M), or (n, 1) where there is no bound
        Functions of the length; without a bound, constants that are summed over the positions.
    basis_names : list of n
    span_vocabulary : Vocabulary
        Attributes of spans.
    limits : int32 (L,), or None
        Longest segment of each label, at most `max_length`.
    shortest : int32 (L,), or None
        Shortest segment of each label.
    length_counts : int64 (L, M), or None
        How many segments of each length, 1 .. M, training saw; nothing but reports depends on it.
    """

    name: str
    labels: list[Any]
    max_length: int | None
    basis: Floats
    basis_names: list[str]
    span_vocabulary: Vocabulary
    limits: Numbers | None = None
    shortest: Numbers | None = None
    length_counts: Ints | None = None

    @property
    def size(self) -> int:
        """L, the number of labels."""
        return len(self.labels)


@dataclass(frozen=True)
class Block:
    """The features of one part at one level.

    Attributes
    ----------
    level : int
    part : str
        What rows are read from: "start", "inside", "end", "inner" (tokens of a segment), "transition",
        "initialisation", "ending" (tokens beside a boundary), "length", "span", or "pattern" (label patterns).
    always : bool
        Whether they are always on: there is one row.
    rows : int64 (R + 1,)
        Row r has the features ``rows[r]:rows[r + 1]`` of the block.
    columns : int32 (n,)
        Their columns, ascending in each row.
    """

    level: int
    part: str
    always: bool
    rows: Ints
    columns: Numbers

    @property
    def key(self) -> tuple[int, str, bool]:
        """What tells it from other blocks."""
        return self.level, self.part, self.always

    @property
    def tokens(self) -> bool:
        """Whether the rows are attributes of tokens."""
        return not self.always and self.part not in ("length", "span")

    @property
    def row(self) -> Ints:
        """(n,) the row of each feature."""
        row: Ints = np.repeat(np.arange(len(self.rows) - 1), np.diff(self.rows))
        return row

    def __len__(self) -> int:
        return len(self.columns)


class Mark(Enum):
    """The start and the end of a sequence, or of a parent, among labels; unlike BOS and EOS never equal to a label."""

    START = "start"
    END = "end"

    def __str__(self) -> str:
        return str(self.value)


class Feature(NamedTuple):
    """A feature by names.

    Attributes
    ----------
    level : int
    parent : label, or None
        The label of the level above inside which it is.
    labels : tuple of labels and Marks
        One after another.
    attribute : str, or None
        With the part of the segment that it is read from; None: always on.
    weight : float
    """

    level: int
    parent: Any
    labels: tuple[Any, ...]
    attribute: str | None
    weight: float


@dataclass
class Model:
    """Which features exist, and their weights.

    Attributes
    ----------
    levels : list of K Level
    vocabulary : Vocabulary
        The attributes of tokens, by number.
    blocks : list of Block
    weights : (W,)
    """

    levels: list[Level]
    vocabulary: Vocabulary
    blocks: list[Block] = field(default_factory=list)
    weights: Floats = field(default_factory=lambda: np.zeros(0))
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.weights.size == 0:
            self.weights = np.zeros(self.n_weights)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_cache"] = {}
        return state

    def weighted(self: Self, weights: Floats) -> Self:
        """The model with other weights."""
        return replace(self, weights=weights)  # what is cached depends on the features only

    @property
    def n_weights(self) -> int:
        """W."""
        return sum(len(block) for block in self.blocks)

    def orders(self) -> Ints:
        """(W,) the order of each feature."""
        raise NotImplementedError

    def parts(self) -> Iterator[tuple[Block, slice]]:
        """Every block with the place of its weights."""
        at = 0
        for block in self.blocks:
            yield block, slice(at, at + len(block))
            at += len(block)

    def n_rows(self, block: Block) -> int:
        """Number of rows that a block has in this model."""
        if block.always:
            return 1
        level = self.levels[block.level]
        return {"length": len(level.basis_names), "span": len(level.span_vocabulary)}.get(
            block.part, len(self.vocabulary)
        )

    def n_columns(self, block: Block) -> int:
        """Number of columns that a block has in this model."""
        raise NotImplementedError

    # ---- rules -------------------------------------------------------------------------------------------------

    def rule_set(self, rules: tuple[Rule, ...]) -> RuleSet:
        """Rules compiled for the labels of the model; the last ones are kept."""
        if self._cache.get("rules", (None,))[0] != rules:
            # sums that would need too many states leave rules out and say so: one sequence must not stop the others
            compiled = replace(self.compiled(rules), most_states=_RULE_STATES, lenient=True)
            self._cache["rules"] = rules, compiled
        found: RuleSet = self._cache["rules"][1]
        return found

    def compiled(self, rules: tuple[Rule, ...]) -> RuleSet:
        """Rules compiled for the labels of the model."""
        raise NotImplementedError

    # ---- names -------------------------------------------------------------------------------------------------

    def row_names(self, block: Block) -> Sequence[str]:
        """Names of the rows of a block: attributes, or functions of the length."""
        if block.always:
            return [""]
        level = self.levels[block.level]
        if block.part == "length":
            return level.basis_names
        return (level.span_vocabulary if block.part == "span" else self.vocabulary).names()

    def column_names(self, block: Block) -> Sequence[tuple[Any, ...]]:
        """Labels that each column of a block stands for; one label where it is a state."""
        raise NotImplementedError

    def named_features(self) -> Iterator[tuple[Block, str, tuple[Any, ...], float]]:
        """Block, row and column names and weight of all features whose weight is not 0."""
        for block, where in self.parts():
            chosen = np.flatnonzero(self.weights[where])
            if len(chosen):
                rows, columns = self.row_names(block), self.column_names(block)
                values = self.weights[where][chosen].tolist()
                places = zip(block.row[chosen].tolist(), block.columns[chosen].tolist(), values, strict=True)
                yield from ((block, rows[r], columns[c], w) for r, c, w in places)

    def clique(self, block: Block, column: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The parent and the labels, in their order, of a column with this name."""
        raise NotImplementedError

    def feature_name(self, part: str, name: str) -> str:
        """An attribute's name with the part of the segment that it is read from."""
        raise NotImplementedError

    def strongest_features(self, level: int, top: int) -> list[tuple[Ranked, Ranked]]:
        """Of each label of a level, the `top` features of highest weight above 0, and of lowest below.

        Features (part, name, weight) of single labels, whose columns are the labels' numbers; equal weights in the
        order of the weight vector. O(W log W).
        """
        size, found = self.levels[level].size, []
        names: list[tuple[str, Sequence[str]]] = []
        for block, where in self.parts():
            if block.level == level and not block.always and self._of_labels(block):
                chosen = np.flatnonzero((block.columns < size) & (self.weights[where] != 0))
                number = np.full(len(chosen), len(names))
                found.append((number, block.row[chosen], block.columns[chosen], self.weights[where][chosen]))
                names.append((block.part, self.row_names(block)))
        if not found:
            return [([], []) for _ in range(size)]
        number, row, label, weight = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        order = np.lexsort((-weight, label))
        cuts = np.searchsorted(label[order], np.arange(size + 1))

        def ranked(chosen: Ints) -> Ranked:
            places = zip(number[chosen].tolist(), row[chosen].tolist(), weight[chosen].tolist(), strict=True)
            return [(names[k][0], names[k][1][r], w) for k, r, w in places]

        result = []
        for first, last in zip(cuts[:-1], cuts[1:], strict=True):
            zero = first + int(np.searchsorted(-weight[order[first:last]], 0.0))
            against = order[max(zero, last - top) : last][::-1]
            result.append((ranked(order[first : min(zero, first + top)]), ranked(against)))
        return result

    def _of_labels(self, block: Block) -> bool:
        """Whether columns below the number of labels are the labels themselves."""
        raise NotImplementedError


def carry_over(old: Model, new: Model) -> None:
    """Give features of the new model their weights in the old one: those of the same block, row and labels.

    The new model has the old one's levels and numbers its attributes as the old one did; it may have more.
    """
    new.weights = carried(old.weights, old, new, new.weights)


def carried(values: Floats, old: Model, new: Model, others: Floats) -> Floats:
    """(W,) numbers of the old model's features where the new one has them, `others` (W,) elsewhere; as `carry_over`."""
    result = others.copy()
    places = {block.key: (block, where) for block, where in new.parts()}
    for block, where in old.parts():
        if block.key not in places or not len(block):
            continue
        other, target = places[block.key]
        row = block.row
        if block.part == "length":
            row = _numbers(old.row_names(block), new.row_names(other))[row]
        column = _numbers(old.column_names(block), new.column_names(other))[block.columns]
        width = new.n_columns(other)
        place, there = find(other.row * width + other.columns, row * width + column)
        there &= (row >= 0) & (column >= 0)
        result[target.start + place[there]] = values[where][there]
    return result


def _numbers(old: Sequence[Any], new: Sequence[Any]) -> Ints:
    """The place of each old name among the new ones; -1: it is not there."""
    number = {name: i for i, name in enumerate(new)}
    return np.array([number.get(name, -1) for name in old], np.int64)


def find(among: Ints, wanted: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Place of each number in an ascending array, and whether it is there."""
    place = np.searchsorted(among, wanted)
    there = place < len(among)
    there[there] = among[place[there]] == wanted[there]
    return place, there


def row_offsets(row: Ints, n_rows: int) -> Ints:
    """(R + 1,) where each row begins, from the ascending rows of features."""
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n_rows))]).astype(np.int64)
