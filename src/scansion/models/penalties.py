"""Which penalty each weight has: c1 and c2 by group of features.

Groups are named: "transitions" (always-on features of two labels), "patterns" (of more; without it, "transitions"
counts), "lengths", "spans", "intercepts"; any other name is a prefix of attributes of tokens, of which the longest
wins, and "" stands for all that is left. Of a hierarchical model levels are named beside groups, with a number or with
groups of their own, prefixes among them. Intercepts have no penalty unless they are named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scansion._checks import Floats, Ints
from scansion.models.inputs import INTERCEPT
from scansion.models.parameters import GROUPS
from scansion.models.select_flat import by_prefix
from scansion.models.weights import Block, Model
from scansion.training.penalty import Walk

__all__ = ["by_weight", "walk"]

_LENGTH_RIDGE = 0.1  # of the strength of lengths, on the weights themselves: their sum is left open by a walk


def by_weight(model: Model, strength: float | Floats | Mapping[str, Any], default: float) -> float | Floats:
    """One strength for all weights, or (W,): of an array, one per order, the last goes on; default: of what is left."""
    if not isinstance(strength, (float, np.ndarray)):
        parts = [_of_block(model, block, strength, default) for block in model.blocks]
        return np.concatenate([np.zeros(0), *parts])
    each = strength
    if isinstance(strength, np.ndarray):
        each = strength[np.minimum(model.orders(), len(strength) - 1)]
    intercepts = _intercepts(model)
    if not len(intercepts):
        return each
    each = np.array(np.broadcast_to(each, model.n_weights), np.float64)
    each[intercepts] = 0.0
    return each


def _of_block(model: Model, block: Block, groups: Mapping[str, Any], default: float) -> Floats:
    """(n,) the strengths of a block's weights."""
    level = model.levels[block.level].name
    if level in groups and (len(model.levels) > 1 or level not in GROUPS):
        own = groups[level]
        if not isinstance(own, Mapping):
            own = {"": own}
        groups = {**{k: v for k, v in groups.items() if not isinstance(v, Mapping)}, **own}
    rest = groups.get("", default)
    if block.part in ("length", "span"):
        return np.full(len(block), groups.get("lengths" if block.part == "length" else "spans", rest), np.float64)
    if block.always:
        sizes = np.array([len(model.clique(block, name)[1]) for name in model.column_names(block)], np.int64)
        transitions = groups.get("transitions", rest)
        longer = groups.get("patterns", transitions)
        each: Floats = np.where(sizes[block.columns] > 2, longer, transitions).astype(np.float64)
        return each
    prefixes = [key for key in groups if key not in GROUPS and not isinstance(groups[key], Mapping)]
    values = np.array([rest, *(groups[key] for key in prefixes)], np.float64)
    by_row = np.zeros(model.n_rows(block), np.int64)
    if prefixes:
        by_row = by_prefix(model.row_names(block), {key: i + 1 for i, key in enumerate(prefixes)}, 0).astype(np.int64)
    result: Floats = values[by_row][block.row]
    place = model.vocabulary.index(INTERCEPT)
    result[block.row == place] = groups.get("intercepts", 0.0)
    return result


def _intercepts(model: Model) -> Ints:
    """Numbers of the weights of the intercept."""
    place = model.vocabulary.index(INTERCEPT)
    found = [np.zeros(0, np.int64)]
    if place >= 0:
        found += [where.start + np.flatnonzero(block.row == place) for block, where in model.parts() if block.tokens]
    return np.concatenate(found)


def walk(
    model: Model, strength: float | Floats | Mapping[str, Any], c2: float | Floats
) -> tuple[float | Floats, Walk | None]:
    """c2 and a random walk on the weights of neighbouring lengths: indicators of ranges that follow one another.

    Where "lengths" are named, they are held together by their strength and, so that all of them together are not free,
    pulled to 0 by a tenth of it.
    """
    if not isinstance(strength, Mapping) or not _named("lengths", strength):
        return c2, None
    left, right = [], []
    for block, where in model.parts():
        if block.part == "length" and len(block):
            for r, s in _neighbours(model.levels[block.level].basis):
                first, second = (np.flatnonzero(block.row == k) for k in (r, s))
                _, a, b = np.intersect1d(block.columns[first], block.columns[second], return_indices=True)
                left.append(where.start + first[a])
                right.append(where.start + second[b])
    if not left:
        return c2, None
    i, j = np.concatenate(left), np.concatenate(right)
    each = np.array(np.broadcast_to(c2, model.n_weights), np.float64)
    held = 0.5 * (each[i] + each[j])
    each[np.union1d(i, j)] *= _LENGTH_RIDGE
    return each, Walk(i, j, held)


def _named(group: str, strength: Mapping[str, Any]) -> bool:
    """Whether a group is named, at some level."""
    return group in strength or any(isinstance(one, Mapping) and group in one for one in strength.values())


def _neighbours(basis: Floats) -> list[tuple[int, int]]:
    """Functions of the length (n, M) that indicate ranges, with those whose range begins where theirs ends."""
    begins: dict[int, list[int]] = {}
    ends: dict[int, int] = {}
    for r, row in enumerate(basis):
        on = np.flatnonzero(row)
        if len(on) and (row[on] == 1.0).all() and on[-1] - on[0] + 1 == len(on):
            begins.setdefault(int(on[0]), []).append(r)
            ends[r] = int(on[-1]) + 1
    return [(r, s) for r, stop in ends.items() for s in begins.get(stop, [])]
