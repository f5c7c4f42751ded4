"""Which features a hierarchical model has, and its topology: from training data and the estimator's parameters."""

from __future__ import annotations

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import LevelTargets, Vocabulary
from scansion.models.build import _by_prefix
from scansion.models.nested.inputs import NestedInputs
from scansion.models.nested.model import CLIQUES, Block, Level, NestedModel
from scansion.models.nested.occurrences import Occurrences, find, pairs, span_entries
from scansion.models.nested.parameters import ATTRIBUTE_PARTS, NestedRules

__all__ = ["build", "carry_over"]


def build(
    rules: NestedRules, inputs: NestedInputs, targets: LevelTargets, levels: list[Level], vocabulary: Vocabulary
) -> NestedModel:
    """The model of the features that the rules choose, with weights of 0."""
    seen = Occurrences(targets, inputs.data.offsets, [level.size for level in levels])
    children = [_children(rules, k, levels, seen, bool(targets.complete.all())) for k in range(len(levels))]
    model = NestedModel(levels, vocabulary, children, [], [])
    model.possible = [_possible(rules, k, model, seen) for k in range(len(levels))]
    model.blocks = [block for k in range(len(levels)) for block in _blocks(rules, k, model, seen, inputs)]
    model.weights = np.zeros(model.n_weights)
    return model


# ---- topology ------------------------------------------------------------------------------------------------------


def _children(rules: NestedRules, k: int, levels: list[Level], seen: Occurrences, complete: bool) -> Bools:
    size, parents = levels[k].size, levels[k - 1].size if k else 1
    everything = np.ones((parents, size), np.bool_)
    if k == 0 or rules.topology == "all" or (rules.topology is None and not complete):
        return everything
    if isinstance(rules.topology, list):
        given = rules.topology[k]
        mask = np.zeros((parents, size), np.bool_)
        number = {label: i for i, label in enumerate(levels[k].labels)}
        for p, parent in enumerate(levels[k - 1].labels):
            mask[p, [number[label] for label in given.get(parent, levels[k].labels)]] = True
        return mask
    found = pairs(seen.levels[k], seen.levels[k + 1], (parents, size))
    found[~found.any(axis=1)] = True  # nothing is known of the children of such a parent
    return found


def _possible(rules: NestedRules, k: int, model: NestedModel, seen: Occurrences) -> dict[str, Bools]:
    child = model.children[k]
    possible = {
        "transition": child[:, :, None] & child[:, None, :],
        "initialisation": child.copy(),
        "ending": child.copy(),
    }
    if rules.transitions == "seen":
        for part in CLIQUES:
            _, column = seen.of(k, part)
            occurs = np.zeros(possible[part].size, np.bool_)
            occurs[column] = True
            possible[part] &= occurs.reshape(possible[part].shape)
    if not _repeats(rules, k, model, seen):
        size = np.arange(model.levels[k].size)
        possible["transition"][:, size, size] = False
    return possible


def _repeats(rules: NestedRules, k: int, model: NestedModel, seen: Occurrences) -> bool:
    """Whether a segment may follow one of the same label under the same parent."""
    told = rules.repeats[k]
    if told is not None:
        return told
    if model.levels[k].max_length == 1:
        return True
    _, column = seen.of(k, "transition")
    size = model.levels[k].size
    return bool((column // size % size == column % size).any())


# ---- features ------------------------------------------------------------------------------------------------------


def _blocks(rules: NestedRules, k: int, model: NestedModel, seen: Occurrences, inputs: NestedInputs) -> list[Block]:
    level = model.levels[k]
    names = model.vocabulary.names() if rules.attribute_parts[k] else [""] * len(model.vocabulary)
    bits = _by_prefix(names, rules.attribute_parts[k], 1 << ATTRIBUTE_PARTS.index("inside"))
    result: list[Block] = []
    for number, part in enumerate(ATTRIBUTE_PARTS):
        chosen = (bits >> number & 1).astype(np.bool_)
        width = int(np.prod(model.shape(k, part)))
        if part in CLIQUES:
            result.append(Block(k, part, True, width, _always(rules, k, part, model, seen)))
        if chosen.any():
            result.append(Block(k, part, False, width, _attributes(rules, k, part, chosen, model, seen, inputs)))
    if len(level.basis_names):
        result.append(Block(k, "length", False, level.size, np.arange(len(level.basis_names) * level.size)))
    if inputs.cells[k] is not None:
        entry, value = span_entries(level, k, seen, inputs)
        result.append(Block(k, "span", False, level.size, _seen_entries(entry, value, rules)))
    return result


def _always(rules: NestedRules, k: int, part: str, model: NestedModel, seen: Occurrences) -> Ints:
    possible = model.possible[k][part].ravel()
    if not rules.all_possible_transitions:
        _, column = seen.of(k, part)
        counts = np.bincount(column, minlength=len(possible))
        possible = possible & (counts > 0) & (counts >= rules.least)
    return np.flatnonzero(possible).astype(np.int64)


def _attributes(
    rules: NestedRules, k: int, part: str, chosen: Bools, model: NestedModel, seen: Occurrences, inputs: NestedInputs
) -> Ints:
    """The entries of token attributes that are seen with known labels, or all of those that were chosen."""
    width = int(np.prod(model.shape(k, part)))
    if rules.all_possible_states and rules.min_freq <= 0:
        columns = np.flatnonzero(model.possible[k][part].ravel()) if part in CLIQUES else np.arange(width)
        return (np.flatnonzero(chosen)[:, None] * width + columns).ravel().astype(np.int64)
    entry, value = inputs.tokens.expanded(*seen.of(k, part), width)
    index = _seen_entries(entry, value, rules)
    return index[chosen[index // width]]


def _seen_entries(entry: Ints, value: Floats, rules: NestedRules) -> Ints:
    """Entries (attribute, column) that occur, with a summed value that is large enough; ascending."""
    index, number = np.unique(entry, return_inverse=True)
    sums = np.bincount(number.ravel(), value, minlength=len(index))
    return index[sums >= rules.least]


# ---- warm starts ---------------------------------------------------------------------------------------------------


def carry_over(old: NestedModel, new: NestedModel) -> None:
    """Give features of the new model their weights in the old one.

    The new model has the old one's levels and numbers their labels and attributes as the old one did; it may have more.
    """
    places = {block.key: (block, where) for block, where in new.parts()}
    for block, where in old.parts():
        if block.key not in places or not len(block.index):
            continue
        other, target = places[block.key]
        rows, columns = block.index // block.width, block.index % block.width
        column = np.array(np.unravel_index(columns, old.shape(block.level, block.part)))
        column = np.ravel_multi_index(tuple(column), new.shape(block.level, block.part))
        if block.part == "length":
            known = {name: i for i, name in enumerate(new.levels[block.level].basis_names)}
            moved = np.array([known.get(name, -1) for name in old.levels[block.level].basis_names])
            rows = moved[rows]
        wanted = rows * other.width + column
        place, found = find(other.index, wanted)
        found &= rows >= 0
        new.weights[np.arange(target.start, target.stop)[place[found]]] = old.weights[where][found]
