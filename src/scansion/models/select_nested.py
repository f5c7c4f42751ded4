"""Which features a hierarchical model has, and its topology: from training data and the estimator's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge, Vocabulary, encode_levels, level_names
from scansion.features.lengths import length_basis
from scansion.features.spans import functions
from scansion.models.inputs import Inputs
from scansion.models.nested_model import CLIQUES, PERSISTENCE, NestedModel
from scansion.models.occurrences import Occurrences, pairs, span_entries, token_entries
from scansion.models.select_flat import by_prefix, parsed
from scansion.models.weights import Block, Level, row_offsets

if TYPE_CHECKING:
    from scansion.models.hierarchical import HierarchicalCRF

__all__ = ["NestedSelection", "by_level"]

ATTRIBUTE_PARTS = (*PERSISTENCE, *CLIQUES)
AUTO, FREE, WHOLE = "auto", "free", "whole"
# parameters that are given by level alone
_DICTS = {"segment_features": "function f(x, start, stop)", "attribute_parts": "parts", "hidden": "number of labels"}


class Seen(dict[tuple[int, str], tuple[Ints, Floats]]):
    """Level and part -> features of attributes that occur there: attribute * columns + column, and summed values."""


@dataclass(frozen=True)
class NestedSelection:
    """The parameters that choose levels, topology and features, checked; see `scansion.HierarchicalCRF`.

    Attributes
    ----------
    names : K names of levels
    max_length : K of int, None (the longest seen), "free", "whole", "auto"
    hidden : K lists of labels, empty where the level is not hidden
    topology : None, "seen", "all", or K dicts parent label -> child labels (of the root: an empty one)
    repeats : K of True, False, None
    transitions : "all" or "seen"
    attribute_parts : K dicts prefix -> bits, one for each of ATTRIBUTE_PARTS
    length_features : K tuples
    functions : K lists of functions of spans
    min_freq : float
    all_possible_states, all_possible_transitions : bool
    """

    names: list[str]
    max_length: list[int | str | None]
    hidden: list[list[Any]]
    topology: Any
    repeats: list[bool | None]
    transitions: str
    attribute_parts: list[dict[str, int]]
    length_features: list[tuple[str, ...]]
    functions: list[list[Callable[..., Any]]]
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool

    @classmethod
    def checked(cls, given: HierarchicalCRF) -> NestedSelection:
        """From an estimator's parameters; ValueError says what is wrong with them."""
        names = level_names(given.levels)

        def each(name: str, default: Any = None) -> list[Any]:
            return by_level(names, name, getattr(given, name), default)

        limits = [_limit(value) for value in each("max_length", AUTO)]
        lengths = [_lengths(*one) for one in zip(names, limits, each("length_features", ()), strict=True)]
        for name, kind in _DICTS.items():
            value = getattr(given, name)
            if value is not None and not isinstance(value, Mapping):
                raise ValueError(f"{name} must be a dict level -> {kind}, got {value!r}")
        chosen = [functions("segment_features", one) for one in each("segment_features")]
        for name, limit, some in zip(names, limits, chosen, strict=True):
            if some and limit in (FREE, WHOLE):
                raise ValueError(f"level {name!r} has segment_features, which need a max_length other than {limit!r}")
        for value in each("repeats"):
            if not (value is None or isinstance(value, (bool, np.bool_))):
                raise ValueError(f"repeats must be True, False or None, got {value!r}")
        if not checks.among(given.transitions, ("all", "seen")):
            raise ValueError(f"transitions must be 'all' or 'seen', got {given.transitions!r}")
        least = given._given("min_freq")
        if not checks.is_number(least) or least < 0:
            raise ValueError(f"min_freq must be a number >= 0, got {least!r}")
        return cls(
            names,
            limits,
            [_hidden(name, one) for name, one in zip(names, each("hidden"), strict=True)],
            _topology(names, given.topology),
            each("repeats"),
            given.transitions,
            [_parts(name, one) for name, one in zip(names, each("attribute_parts"), strict=True)],
            lengths,
            chosen,
            float(least),
            bool(given.all_possible_states),
            bool(given.all_possible_transitions),
        )

    @property
    def least(self) -> float:
        """Smallest sum of a feature's values in training."""
        return self.min_freq if self.min_freq > 0 else -np.inf

    def _longest(self, k: int, seen: int, steps: bool) -> int | None:
        """Longest segment of level k, None for no bound; seen: that of the longest in y, 0 if none is known.

        steps: whether there is nothing but single steps.
        """
        limit = self.max_length[k]
        if limit == AUTO:
            additive = not self.functions[k] and set(self.length_features[k]) <= {"length"}
            limit = FREE if additive and not steps else None
        if limit is None and seen < 1:
            raise ValueError(f"y holds no segment of level {self.names[k]!r} whose two ends are known: give max_length")
        return seen if limit is None else limit if isinstance(limit, int) else None

    def _labels(self, k: int) -> list[Any]:
        """Labels of level k that the parameters name."""
        found: dict[Any, None] = dict.fromkeys(self.hidden[k])
        if isinstance(self.topology, list):
            if k + 1 < len(self.names):
                found.update(dict.fromkeys(self.topology[k + 1]))
            for children in self.topology[k].values():
                found.update(dict.fromkeys(children))
        return list(found)

    # ---- labels ------------------------------------------------------------------------------------------------

    def bounds(self) -> list[int | None]:
        """Longest segment by level where it was given as a number."""
        return [limit if isinstance(limit, int) else None for limit in self.max_length]

    def encode(
        self, y: Any, lengths: Any, labels: list[list[Any]] | None, bounds: list[int | None], extend: bool = False
    ) -> tuple[Knowledge, list[list[Any]]]:
        """What y says, and the labels of each level; others than those given are errors unless `extend`."""
        before = [[]] * len(self.names) if labels is None else labels
        known = [list(dict.fromkeys([*one, *self._labels(k)])) for k, one in enumerate(before)] if extend else labels
        whole = [all(one == WHOLE for one in self.max_length[: k + 1]) for k in range(len(self.names))]
        return encode_levels(y, lengths, self.names, known, extend=extend, max_lengths=bounds, whole=whole)

    def levels(self, labels: list[list[Any]], known: Knowledge, old: NestedModel | None) -> list[Level]:
        """The levels, each with its longest segment and length features."""
        return [
            self._level(k, labels[k], known, None if old is None else old.levels[k]) for k in range(len(self.names))
        ]

    def _level(self, k: int, labels: list[Any], known: Knowledge, old: Level | None) -> Level:
        if not labels:
            raise ValueError(f"y holds no label of level {self.names[k]!r}: give them by topology, or leave it out")
        seen, alone = known.levels[k], Knowledge((known.levels[k],), known.offsets)
        before = 0 if old is None else old.max_length or 0
        free = old is not None and old.max_length is None
        most = max(seen.longest, before)
        longest = self._longest(k, most, most == 1 and not free and bool(alone.complete.all()))
        vocabulary = old.span_vocabulary.copy() if old is not None else Vocabulary()
        basis = length_basis(self.length_features[k], longest or 1)
        counts = seen.length_counts(len(labels), longest or max(seen.longest, 1))
        return Level(self.names[k], labels, longest, *basis, vocabulary, length_counts=counts)

    # ---- features ----------------------------------------------------------------------------------------------

    def select(self, inputs: Inputs, known: Knowledge, levels: list[Level], vocabulary: Vocabulary) -> NestedModel:
        """The model of the features that the parameters choose, with weights of 0."""
        model = self.outline(known, levels, vocabulary)
        return self.completed(model, known, self.occurring_here(model, inputs, known, ()))

    def outline(self, known: Knowledge, levels: list[Level], vocabulary: Vocabulary) -> NestedModel:
        """The model without features: what depends on labels alone."""
        seen = Occurrences(known, [level.size for level in levels])
        everything = bool(known.complete.all())
        children = [self._children(k, levels, seen, everything) for k in range(len(levels))]
        hidden = [k for k, labels in enumerate(self.hidden) if labels]
        model = NestedModel(levels, vocabulary, children=children, hidden=hidden)
        model.possible = [self._possible(k, model, seen) for k in range(len(levels))]
        return model

    def after(self, old: NestedModel) -> NestedSelection:
        """The same for a batch of data that follows others."""
        return self

    def without_example(self, known: Knowledge, levels: list[Level]) -> list[int]:
        """Labels whose features are not those that occur: none."""
        return []

    def occurring_here(self, model: NestedModel, inputs: Inputs, known: Knowledge, unseen: Sequence[int]) -> list[Seen]:
        """Features of attributes that occur in a shard, for `completed`: entries, ascending, and summed values."""
        seen, found = Occurrences(known, [level.size for level in model.levels]), Seen()
        for k, level in enumerate(model.levels):
            bits = self._parts_of(k, model)
            for number, part in enumerate(ATTRIBUTE_PARTS):
                if (bits >> number & 1).any() and not self._everything(k, part):
                    width = int(np.prod(model.shape(k, part)))
                    found[k, part] = _summed(*token_entries(inputs.data, *seen.of(k, part), width))
            if inputs.spans[k] is not None:
                found[k, "span"] = _summed(*span_entries(level, k, seen, inputs))
        return [found]

    def completed(self, model: NestedModel, known: Knowledge, found: Sequence[Seen]) -> NestedModel:
        """The model with the features that occur in one or several shards."""
        seen = Occurrences(known, [level.size for level in model.levels])
        kept = {key: self._often([one[key] for one in found]) for key in found[0]}
        model.blocks = [block for k in range(len(model.levels)) for block in self._blocks(k, model, seen, kept)]
        model.weights = np.zeros(model.n_weights)
        return model

    def _children(self, k: int, levels: list[Level], seen: Occurrences, complete: bool) -> Bools:
        size, parents = levels[k].size, levels[k - 1].size if k else 1
        everything = np.ones((parents, size), np.bool_)
        if k == 0 or self.topology == "all" or (self.topology is None and not complete):
            return everything
        if isinstance(self.topology, list):
            given = self.topology[k]
            mask = np.zeros((parents, size), np.bool_)
            number = {label: i for i, label in enumerate(levels[k].labels)}
            for p, parent in enumerate(levels[k - 1].labels):
                mask[p, [number[label] for label in given.get(parent, levels[k].labels)]] = True
            return mask
        found = pairs(seen.levels[k], seen.levels[k + 1], (parents, size))
        found[~found.any(axis=1)] = True  # nothing is known of the children of such a parent
        return found

    def _possible(self, k: int, model: NestedModel, seen: Occurrences) -> dict[str, Bools]:
        child = model.children[k]
        possible = {
            "transition": child[:, :, None] & child[:, None, :],
            "initialisation": child.copy(),
            "ending": child.copy(),
        }
        if self.transitions == "seen" and not self._touches_hidden(k):
            for part in CLIQUES:
                _, column = seen.of(k, part)
                occurs = np.zeros(possible[part].size, np.bool_)
                occurs[column] = True
                possible[part] &= occurs.reshape(possible[part].shape)
        if self.max_length[k] == WHOLE:
            possible["transition"][:] = False  # nothing follows: it ends where its parent does
        elif not self._repeats(k, model, seen):
            size = np.arange(model.levels[k].size)
            possible["transition"][:, size, size] = False
        return possible

    def _repeats(self, k: int, model: NestedModel, seen: Occurrences) -> bool:
        """Whether a segment may follow one of the same label under the same parent."""
        told = self.repeats[k]
        if told is not None:
            return told
        if model.levels[k].max_length == 1:
            return True
        if k and self.hidden[k - 1]:  # which may be around both
            child = seen.levels[k + 1]
            at = np.flatnonzero(child.starts & (child.label >= 0) & ~seen.levels[0].starts)
            return bool((child.label[at] == child.label[at - 1]).any())
        _, column = seen.of(k, "transition")
        size = model.levels[k].size
        return bool((column // size % size == column % size).any())

    def _touches_hidden(self, k: int) -> bool:
        """Whether the cliques of level k hold labels of a hidden one."""
        return bool(self.hidden[k] or (k and self.hidden[k - 1]))

    def _everything(self, k: int, part: str) -> bool:
        """Whether all features of attributes are there, seen or not."""
        hidden = self._touches_hidden(k) if part in CLIQUES else bool(self.hidden[k])
        return hidden or (self.all_possible_states and self.min_freq <= 0)

    def _parts_of(self, k: int, model: NestedModel) -> Any:
        """(A,) parts of level k that every attribute is read from, as bits."""
        names = model.vocabulary.names() if self.attribute_parts[k] else [""] * len(model.vocabulary)
        return by_prefix(names, self.attribute_parts[k], 1 << ATTRIBUTE_PARTS.index("inside"))

    def _blocks(self, k: int, model: NestedModel, seen: Occurrences, kept: dict[tuple[int, str], Ints]) -> list[Block]:
        level, bits = model.levels[k], self._parts_of(k, model)
        result: list[Block] = []
        for number, part in enumerate(ATTRIBUTE_PARTS):
            chosen = (bits >> number & 1).astype(np.bool_)
            if part in CLIQUES:
                result.append(_block(model, k, part, True, self._always(k, part, model, seen)))
            if chosen.any():
                result.append(_block(model, k, part, False, self._attributes(k, part, chosen, model, kept)))
        if len(level.basis_names):
            result.append(_block(model, k, "length", False, np.arange(len(level.basis_names) * level.size)))
        if (k, "span") in kept:
            result.append(_block(model, k, "span", False, kept[k, "span"]))
        return result

    def _always(self, k: int, part: str, model: NestedModel, seen: Occurrences) -> Ints:
        possible = model.possible[k][part].ravel()
        if not self.all_possible_transitions and not self._touches_hidden(k):
            _, column = seen.of(k, part)
            counts = np.bincount(column, minlength=len(possible))
            possible = possible & (counts > 0) & (counts >= self.least)
        return np.flatnonzero(possible).astype(np.int64)

    def _attributes(
        self, k: int, part: str, chosen: Bools, model: NestedModel, kept: dict[tuple[int, str], Ints]
    ) -> Ints:
        """The entries of token attributes that are seen with known labels, or all of those that were chosen."""
        width = int(np.prod(model.shape(k, part)))
        if self._everything(k, part):
            columns = np.flatnonzero(model.possible[k][part].ravel()) if part in CLIQUES else np.arange(width)
            return (np.flatnonzero(chosen)[:, None] * width + columns).ravel().astype(np.int64)
        index = kept[k, part]
        return index[chosen[index // width]]

    def _often(self, found: list[tuple[Ints, Floats]]) -> Ints:
        """Entries (attribute, column) whose summed value over the shards is large enough; ascending."""
        index, sums = found[0] if len(found) == 1 else _summed(*map(np.concatenate, zip(*found, strict=True)))
        return index[sums >= self.least]


def _summed(entry: Ints, value: Floats) -> tuple[Ints, Floats]:
    """The distinct entries, ascending, and the sums of their values."""
    index, number = np.unique(entry, return_inverse=True)
    return index, np.bincount(number.ravel(), value, minlength=len(index)).astype(np.float64)


def _block(model: NestedModel, level: int, part: str, always: bool, index: Ints) -> Block:
    """A block of features, from row * columns + column, ascending."""
    empty = Block(level, part, always, np.zeros(1, np.int64), np.zeros(0, np.int32))
    row, columns = np.divmod(index, model.n_columns(empty))
    return Block(level, part, always, row_offsets(row, model.n_rows(empty)), columns.astype(np.int32))


def by_level(names: list[str], name: str, value: Any, default: Any = None) -> list[Any]:
    """A parameter that is one value for all levels, or a dict of them."""
    if not isinstance(value, Mapping):
        return [value] * len(names)
    for level in value:
        if level not in names:
            raise ValueError(f"{name} has the level {level!r}, which is not one of the levels: {', '.join(names)}")
    return [value.get(level, default) for level in names]


def _hidden(level: str, given: Any) -> list[Any]:
    """The labels of a hidden level; none: it is not hidden."""
    if given is None:
        return []
    if checks.is_number(given):
        return [f"{level} {i + 1}" for i in range(checks.count(f"hidden[{level!r}]", given, 1))]
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or not list(given):
        raise ValueError(f"hidden[{level!r}] must be a number of labels, or a list of them, got {given!r}")
    return list(dict.fromkeys(given))


def _limit(value: Any) -> int | str | None:
    if isinstance(value, str) and value not in (AUTO, FREE, WHOLE):
        raise ValueError(f"max_length must be a number, None, {AUTO!r}, {FREE!r} or {WHOLE!r}, got {value!r}")
    return value if value is None or isinstance(value, str) else checks.count("max_length", value, 1)


def _lengths(name: str, limit: int | str | None, wanted: Any) -> tuple[str, ...]:
    if wanted is None:
        wanted = ()
    if not isinstance(wanted, (str, Iterable)):
        raise ValueError(f"length_features must be among 'bins', 'length', 'log', got {wanted!r}")
    chosen = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    length_basis(chosen, 1)
    if limit in (FREE, WHOLE) and set(chosen) - {"length"}:
        raise ValueError(
            f"level {name!r} has no bound on its length (max_length={limit!r}): of length_features it can have "
            f"'length' alone, got {wanted!r}"
        )
    return chosen


def _topology(names: list[str], given: Any) -> Any:
    if given is None or (isinstance(given, str) and given in ("seen", "all")):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"topology must be None, 'seen', 'all' or a dict parent -> children, got {given!r}")
    parents = names[:-1]
    if given and all(level in parents and isinstance(entry, Mapping) for level, entry in given.items()):
        tables = [given.get(level, {}) for level in parents]
    elif len(names) == 2:
        tables = [given]
    else:
        raise ValueError(
            f"topology of {len(names)} levels must have one dict parent -> children for each level that has one below "
            f"it ({', '.join(parents) or 'none has'}), got {given!r}"
        )
    for table in tables:
        for parent, children in table.items():
            if isinstance(children, (str, bytes)) or not isinstance(children, Iterable) or not list(children):
                raise ValueError(f"topology[{parent!r}] must be a list of child labels, got {children!r}")
    return [{}, *({p: list(children) for p, children in table.items()} for table in tables)]


def _parts(level: str, given: Any) -> dict[str, int]:
    """Prefix -> bits of one level."""
    rules = given if given is None or isinstance(given, Mapping) else {"": given}

    def bits(name: str, value: Any) -> int:
        parts = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
        result = 0
        for part in parts:
            if not checks.among(part, ATTRIBUTE_PARTS):
                raise ValueError(f"{name} must name parts among {', '.join(ATTRIBUTE_PARTS)}, got {part!r}")
            result |= 1 << ATTRIBUTE_PARTS.index(part)
        return result

    return parsed(f"attribute_parts[{level!r}]", rules, bits)
