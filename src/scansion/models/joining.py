"""Two models of one kind as one: all labels, label patterns, features and bounds that either has.

`partial_fit` meets data a batch at a time. The model of a batch has the labels and attributes of the model so far,
under the same numbers, and what is new after them. What a batch does not show is as it was: nothing learnt before is
lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge
from scansion.features.lengths import named_length
from scansion.lattice.patterns import Pattern
from scansion.models.flat_model import FlatModel
from scansion.models.nested_model import CLIQUES, NestedModel
from scansion.models.select_nested import WHOLE, NestedSelection
from scansion.models.weights import Block, Level, Model, row_offsets

__all__ = ["joined"]


def joined(selection: Any, old: Model, new: Model, known: Knowledge) -> Model:
    """The model with everything that either has, its weights 0.

    Parameters
    ----------
    selection : FlatSelection or NestedSelection
    old, new : models
        The new one is of a batch; its labels and attributes begin with those of the old one.
    known : Knowledge
        Of the batch.
    """
    kept = [_lengths(old, new, k) for k in range(len(new.levels))]
    flat = isinstance(new, FlatModel)
    levels = [_level(a, b, *one[:2], flat) for a, b, one in zip(old.levels, new.levels, kept, strict=True)]
    if isinstance(new, FlatModel):
        assert isinstance(old, FlatModel)
        model: Model = _flat(old, new, levels)
    else:
        assert isinstance(old, NestedModel) and isinstance(new, NestedModel)
        model = _nested(selection, old, new, known, levels)
    found: dict[tuple[int, str, bool], list[Ints]] = {}
    for one in (new, old):
        for block in one.blocks:
            if block.part != "length":
                entries = block.row * model.n_columns(block) + _columns(one, block, model)[block.columns]
                found.setdefault(block.key, []).append(entries)
    for key, tables in found.items():
        place = Block(*key, np.zeros(1, np.int64), np.zeros(0, np.int32))
        row, column = np.divmod(np.unique(np.concatenate(tables)), model.n_columns(place))
        model.blocks.append(replace(place, rows=row_offsets(row, model.n_rows(place)), columns=column.astype(np.int32)))
    model.blocks.extend(block for *_, block in kept if block is not None)
    model.weights = np.zeros(model.n_weights)
    return model


def _columns(one: Model, block: Block, model: Model) -> Ints:
    """The columns of a block of one of the two as the joined model numbers them."""
    if isinstance(model, FlatModel):
        assert isinstance(one, FlatModel)
        if block.part == "span":
            return np.arange(one.n_labels)
        place = {pattern: z for z, pattern in enumerate(model.patterns)}
        return np.array([place.get(pattern, -1) for pattern in one.patterns], np.int64)
    assert isinstance(one, NestedModel) and isinstance(model, NestedModel)
    shape = one.shape(block.level, block.part)
    each = np.unravel_index(np.arange(np.prod(shape)), shape)
    return np.ravel_multi_index(each, model.shape(block.level, block.part)).astype(np.int64)


# ---- levels --------------------------------------------------------------------------------------------------------


def _level(old: Level, new: Level, basis: Floats, names: list[str], by_label: bool) -> Level:
    """Labels, bounds (also of each label) and counts of both."""
    longest = _longest(old, new)
    counts = [_counts(level, new.size) for level in (old, new)]
    width = max(one.shape[1] for one in counts)
    total = np.sum([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in counts], axis=0)
    limits = shortest = None
    if by_label:
        seen = [_seen(level, new.size) for level in (old, new)]
        limits = _wider(_filled(old.limits, old, old.max_length), _filled(new.limits, new, new.max_length), *seen)
        shortest = -_wider(-_filled(old.shortest, old, 1), -_filled(new.shortest, new, 1), *seen)
        limits = limits if (limits < longest).any() else None
        shortest = shortest if (shortest > 1).any() else None
    return replace(
        new,
        max_length=longest,
        basis=basis,
        basis_names=names,
        limits=limits,
        shortest=shortest,
        length_counts=None if new.length_counts is None else total,
    )


def _longest(old: Level, new: Level) -> int | None:
    """Longest segment; None: there is no bound."""
    if old.max_length is None or new.max_length is None:
        return None
    return max(old.max_length, new.max_length)


def _counts(level: Level, size: int) -> Ints:
    """(L, M) segments of each label and length that were seen; labels that a level does not have have none."""
    if level.length_counts is None:
        return np.zeros((size, 1), np.int64)
    return np.pad(level.length_counts, ((0, size - level.size), (0, 0)))


def _seen(level: Level, size: int) -> Bools:
    """(L,) whether a segment of each label was seen."""
    seen: Bools = np.any(_counts(level, size), axis=1)
    return seen


def _filled(bounds: Any, level: Level, default: Any) -> Any:
    """(L,) a bound of each label."""
    return np.full(level.size, default, np.int32) if bounds is None else bounds


def _wider(old: Any, new: Any, before: Bools, now: Bools) -> Any:
    """(L,) bounds of the one that saw a label; of labels that both saw, or neither, the greater ones."""
    had = np.concatenate([old, new[len(old) :]])
    return np.where(before & ~now, had, np.where(now & ~before, new, np.maximum(had, new))).astype(np.int32)


def _length_features(model: Model, k: int) -> Iterator[tuple[str, Floats, int]]:
    """Functions of the length at level k and labels that have them: name, values, label."""
    level = model.levels[k]
    for block in model.blocks:
        if block.part == "length" and block.level == k:
            for row, label in zip(block.row.tolist(), block.columns.tolist(), strict=True):
                yield level.basis_names[row], level.basis[row], label


def _lengths(old: Model, new: Model, k: int) -> tuple[Floats, list[str], Block | None]:
    """Functions of the length at level k, their names and features.

    A label that was seen before keeps its functions; those of the batch come to it for lengths that it had none of.
    """
    a, b = old.levels[k], new.levels[k]
    longest, before = _longest(a, b) or 1, a.basis.shape[1]
    seen = _seen(a, b.size)
    found: dict[str, set[int]] = {}
    for name, _, label in _length_features(old, k):
        found.setdefault(name, set()).add(label)
    for name, values, label in _length_features(new, k):
        if not seen[label] or not values[:before].any():
            found.setdefault(name, set()).add(label)
    basis = np.array([named_length(name, longest) for name in found]).reshape(len(found), longest)
    if not any(block.part == "length" for block in new.blocks):
        return basis, list(found), None
    rows = np.concatenate([[0], np.cumsum([len(labels) for labels in found.values()])]).astype(np.int64)
    columns = np.array([label for labels in found.values() for label in sorted(labels)], np.int32)
    return basis, list(found), Block(k, "length", False, rows, columns)


# ---- flat models ---------------------------------------------------------------------------------------------------


def _flat(old: FlatModel, new: FlatModel, levels: list[Level]) -> FlatModel:
    """Label patterns of both; a pair must not occur if neither allows it."""
    (always, longer, never), (more_always, more_longer, more_never) = map(_patterns, (old, new))
    always = list(dict.fromkeys([*always, *more_always]))
    longer = list(dict.fromkeys([*longer, *more_longer]))
    before = set(never)
    never = [pair for pair in more_never if pair in before or max(pair) >= old.n_labels]
    ends = [_either(getattr(old, name), getattr(new, name)) for name in ("first", "last")]
    patterns = (*((y,) for y in range(new.n_labels)), *always, *longer, *never)
    return FlatModel(
        levels,
        new.vocabulary,
        patterns=patterns,
        segments=new.segments,
        n_forbidden=len(never),
        first=ends[0],
        last=ends[1],
    )


def _patterns(model: FlatModel) -> tuple[list[Pattern], list[Pattern], list[Pattern]]:
    """Patterns of two labels or more: with an always-on feature, without, and those that must not occur."""
    n, last = model.n_labels, len(model.patterns) - model.n_forbidden
    with_feature = {int(z) for block in model.blocks if block.always for z in block.columns}
    always = [model.patterns[z] for z in sorted(with_feature)]
    longer = [model.patterns[z] for z in range(n, last) if z not in with_feature]
    return always, longer, list(model.patterns[last:])


def _either(old: Bools | None, new: Bools | None) -> Bools | None:
    """Labels that may begin, or end, a sequence; None: all."""
    return None if old is None or new is None else _padded(old, new.shape) | new


# ---- nested models -------------------------------------------------------------------------------------------------


def _nested(
    selection: NestedSelection, old: NestedModel, new: NestedModel, known: Knowledge, levels: list[Level]
) -> NestedModel:
    """What may lie in what, and follow what, in either."""
    model = NestedModel(levels, new.vocabulary)
    for k, level in enumerate(levels):
        child = new.children[k]
        if k and (selection.topology == "seen" or (selection.topology is None and known.complete.all())):
            had = _seen(old.levels[k - 1], old.levels[k - 1].size)
            child = _children(old.children[k], child, had, known.levels[k - 1].numbers)
        possible = {"transition": child[:, :, None] & child[:, None, :], "initialisation": child, "ending": child}
        same = np.arange(level.size)
        for part in CLIQUES:
            told = _padded(old.possible[k][part], possible[part].shape) | new.possible[k][part]
            if selection.transitions == "seen" or selection.max_length[k] == WHOLE:
                possible[part] = possible[part] & told
            elif part == "transition" and not told[:, same, same].any():
                possible[part][:, same, same] = False
        model.children.append(child)
        model.possible.append({part: mask.copy() for part, mask in possible.items()})
    return model


def _children(old: Bools, new: Bools, had: Bools, parents: Any) -> Bools:
    """The states that a parent may have as children; had: whether it was seen; parents (N,): those of the batch."""
    shown = np.ones(len(new), np.bool_)
    shown[: len(old)] = np.isin(np.arange(len(old)), parents)
    child = _padded(old, new.shape)
    child[: len(old), old.shape[1] :] = ~had[:, None]  # it may have all
    child[shown] |= new[shown]
    return child


def _padded(mask: Bools, shape: tuple[int, ...]) -> Bools:
    """A mask with False for what is new."""
    return np.pad(mask, [(0, size - had) for size, had in zip(shape, mask.shape, strict=True)])
