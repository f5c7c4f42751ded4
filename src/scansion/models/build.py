"""Which features a flat model has: from training data, what is known of its labels, and the estimator's parameters.

Features are those seen in training where labels are known: an attribute and the label pattern that ends there, and
label patterns by themselves. Conventions as in `scansion.models.flat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data import Targets, Vocabulary
from scansion.lattice.patterns import BOS, EOS, Pattern
from scansion.models.flat import PARTS, FlatModel, Inputs, Table, native_data
from scansion.models.trajectories import label_candidates, passed_patterns

__all__ = ["FeatureRules", "build", "carry_over", "known_segments", "length_counts", "matches"]

Bits = npt.NDArray[np.uint32]
_MAX_ORDER = 31  # orders of attributes are bits of a uint32


@dataclass(frozen=True)
class FeatureRules:
    """The parameters that choose features, checked; their meaning is in `scansion.CRF` and `scansion.SemiCRF`."""

    order: int
    patterns: Any
    min_freq: tuple[float, ...]  # by order, the last goes on
    bias_order: int | None
    all_possible_states: bool
    all_possible_transitions: bool
    attribute_orders: Mapping[str, int]  # prefix -> bits
    attribute_parts: Mapping[str, int]  # prefix -> bits

    @classmethod
    def checked(
        cls,
        order: Any,
        patterns: Any,
        min_freq: Any,
        bias_order: Any,
        all_possible_states: Any,
        all_possible_transitions: Any,
        attribute_orders: Any,
        attribute_parts: Any,
    ) -> FeatureRules:
        """From an estimator's parameters; ValueError says what is wrong with them."""
        checks.count("order", order, 0)
        if bias_order is not None:
            checks.count("bias_order", bias_order, 0)
        if patterns is not None and (isinstance(patterns, (str, bytes)) or not isinstance(patterns, Iterable)):
            raise ValueError(f"patterns must be a list of label tuples, got {patterns!r}")
        return cls(
            int(order),
            patterns,
            _frequencies(min_freq),
            None if bias_order is None else int(bias_order),
            bool(all_possible_states),
            bool(all_possible_transitions),
            _parsed("attribute_orders", attribute_orders, _order_bits),
            _parsed("attribute_parts", attribute_parts, _part_bits),
        )

    def least(self, order: int) -> float:
        """Smallest sum of a feature's values in training; CRFsuite's 0 would leave out what sums to less than 0."""
        value = self.min_freq[min(order, len(self.min_freq) - 1)]
        return value if value > 0 else -np.inf

    @property
    def unseen(self) -> bool:
        """Whether features that do not occur can be there at all: as in CRFsuite, `min_freq` leaves them out."""
        return max(self.min_freq) <= 0


def build(
    rules: FeatureRules,
    inputs: Inputs,
    cell_vocabulary: Vocabulary,
    targets: Targets,
    labels: list[Any],
    max_length: int,
    basis: tuple[Floats, list[str]],
    forbidden: Sequence[Pattern] = (),
    limits: npt.NDArray[np.int32] | None = None,
) -> FlatModel:
    """The model of the features that the rules choose, with weights of 0."""
    data, segments, n = inputs.data, targets.ends is not None, len(labels)
    longer = _longer_patterns(rules, targets, data.offsets, labels)
    excluded = set(forbidden)
    if rules.patterns is None:  # what cannot occur needs no weight; patterns that were given are allowed
        longer = tuple(p for p in longer if not any(p[i : i + 2] in excluded for i in range(len(p) - 1)))
    never = tuple(p for p in forbidden if p not in longer)
    silent: tuple[Pattern, ...] = ()
    if rules.bias_order is not None:
        silent = tuple(p for p in longer if len(p) - 1 > rules.bias_order)
        longer = tuple(p for p in longer if len(p) - 1 <= rules.bias_order) + silent
    patterns = tuple((y,) for y in range(n)) + longer + never
    nothing = np.zeros(len(cell_vocabulary) + 1, np.int64), np.zeros(0, np.int32)
    model = FlatModel(
        labels, data.vocabulary, patterns, segments, max_length, {}, basis[0], basis[1], cell_vocabulary, nothing
    )
    model.n_forbidden, model.n_silent, model.limits = len(never), len(silent), limits
    kept, net = native_data(inputs), model.automaton._native
    orders, parts = _attribute_rules(rules, data.vocabulary, segments)
    tables: dict[str, Table] = {}
    for k, part in enumerate(PARTS if segments else PARTS[:1]):
        bits = np.where(parts >> k & 1, orders, 0).astype(np.uint32)
        if rules.all_possible_states and rules.unseen and (bits & 1).any():
            tables[part] = _all_states(bits, n)
            bits &= ~np.uint32(1)
        for least, some in _by_frequency(rules, bits):
            table = _core.token_feature_table(kept, net, targets.labels, targets.ends, k, some, least)
            _check_ends(part, table, model)
            tables[part] = _merged(tables[part], table) if part in tables else table
        for candidates, ends in label_candidates(targets, data.offsets, whole=part == "inner"):
            table = _core.token_feature_table(kept, net, candidates, ends, k, bits & np.uint32(1), -np.inf)
            tables[part] = _united(tables[part], table) if part in tables else table
    cell_table = nothing
    if inputs.cells is not None:
        attributes = len(cell_vocabulary)
        cell_table = _core.cell_feature_table(kept, net, targets.labels, targets.ends, attributes, rules.least(0))
    return model.with_tables(tables, cell_table)


def _frequencies(min_freq: Any) -> tuple[float, ...]:
    """min_freq as one number per order."""
    several = isinstance(min_freq, (Sequence, np.ndarray)) and not isinstance(min_freq, (str, bytes))
    given = list(min_freq) if several else [min_freq]
    for value in given:
        if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < np.inf:
            raise ValueError(f"min_freq must be a number >= 0, got {min_freq!r} (or give one for each order)")
    if not given:
        raise ValueError("min_freq must be a number >= 0, got none")
    return tuple(map(float, given))


def _by_frequency(rules: FeatureRules, bits: Bits) -> list[tuple[float, Bits]]:
    """Orders of the attributes cut into groups that share a smallest frequency: (frequency, bits (A,))."""
    groups: dict[float, int] = {}
    for order in range(_MAX_ORDER + 1):
        groups[rules.least(order)] = groups.get(rules.least(order), 0) | 1 << order
    cut = [(least, (bits & np.uint32(mask)).astype(np.uint32)) for least, mask in groups.items()]
    return [(least, some) for least, some in cut if some.any()]


def _check_ends(part: str, table: Table, model: FlatModel) -> None:
    """Raise where kernels would not read a feature: at patterns that end in EOS they know a segment's start only."""
    if part == "start":
        return
    for z in np.unique(table[1]).tolist():
        if model.patterns[z][-1] == EOS:
            raise ValueError(
                f"the pattern {model.pattern_name(z)!r} ends in EOS: attributes tied to it can be read at the start of "
                f"a segment only, but attribute_parts say {part!r}"
            )


# ---- label patterns ------------------------------------------------------------------------------------------------


def _longer_patterns(rules: FeatureRules, targets: Targets, offsets: Ints, labels: list[Any]) -> tuple[Pattern, ...]:
    if rules.patterns is not None:
        return _given_patterns(rules.patterns, labels)
    found = _seen_patterns(targets, offsets, rules.order, rules.least)
    passed = passed_patterns(targets, rules.order) - set(found)
    found = sorted([*found, *passed], key=lambda p: (len(p), p)) if passed else found
    if rules.all_possible_transitions and rules.unseen and rules.order >= 1:
        n = len(labels)
        found = [(i, j) for i in range(n) for j in range(n)] + [p for p in found if len(p) > 2]
    return tuple(found)


def known_segments(targets: Targets) -> tuple[Ints, Ints, Bools]:
    """Start and stop of all segments (or positions) that targets tell of, and whether label and extent are known."""
    n = len(targets.labels)
    if targets.ends is None:
        at = np.arange(n)
        return at, at + 1, targets.labels >= 0
    begins = np.ones(n, np.bool_)
    begins[1:] = targets.ends[:-1] != 0  # the last position of a sequence has 1
    start = np.flatnonzero(begins)
    stop = np.append(start[1:], n) if n else start
    return start, stop, (targets.labels[start] >= 0) & (targets.ends[stop - 1] == 1)


def matches(targets: Targets, guess: Ints) -> tuple[int, int, int]:
    """How many segments are known, how many of the predicted ones (n, 3) compare with them, how many are in both.

    Predicted are start, stop and label by rows of the targets; those that touch what is unknown do not compare.
    """
    start, stop, known = known_segments(targets)
    wanted = np.stack([start, stop, targets.labels[start]], axis=1)[known]
    unknown = np.concatenate([[0], np.cumsum(np.repeat(~known, stop - start))])
    guess = guess[unknown[guess[:, 0]] == unknown[guess[:, 1]]]
    right = len(set(map(tuple, wanted.tolist())) & set(map(tuple, guess.tolist())))
    return len(wanted), len(guess), right


def length_counts(targets: Targets, n_labels: int, max_length: int) -> Ints:
    """(L, M) number of known segments of each label and length 1 .. M."""
    start, stop, known = known_segments(targets)
    cell = targets.labels[start].astype(np.int64) * max_length + (stop - start - 1)
    keep = known & (stop - start <= max_length)
    return np.bincount(cell[keep], minlength=n_labels * max_length).reshape(n_labels, max_length).astype(np.int64)


def _seen_patterns(targets: Targets, offsets: Ints, order: int, least: Callable[[int], float]) -> list[Pattern]:
    """Label patterns of length 2 .. order + 1 in unbroken stretches of known segments, least(order) times or more.

    Sorted by length, then by labels.
    """
    start, _, known = known_segments(targets)
    stretch = np.cumsum(~known | np.isin(start, offsets))[known]
    label = targets.labels[start][known].astype(np.int64)
    n_labels = int(label.max(initial=0)) + 1
    found: list[Pattern] = []
    # code[i]: the number of the pattern that begins at segment i, among `names` of its length, which are sorted
    code, names = label, [(y,) for y in range(n_labels)]
    for size in range(2, order + 2):
        last = max(0, len(label) - size + 1)
        whole = stretch[:last] == stretch[len(stretch) - last :]
        longer = code[:last] * n_labels + label[len(label) - last :]
        distinct, number, counts = np.unique(longer[whole], return_inverse=True, return_counts=True)
        names = [(*names[k // n_labels], k % n_labels) for k in distinct.tolist()]
        found.extend(name for name, count in zip(names, counts.tolist(), strict=True) if count >= least(size - 1))
        code = np.zeros(last, np.int64)
        code[whole] = number
    return found


def _given_patterns(patterns: Iterable[Any], labels: list[Any]) -> tuple[Pattern, ...]:
    """Label patterns given by name; those of one label exist anyway."""
    number = {y: i for i, y in enumerate(labels)}
    result: dict[Pattern, None] = {}
    for i, pattern in enumerate(patterns):
        if isinstance(pattern, (str, bytes)) or not isinstance(pattern, Sequence) or not len(pattern):
            raise ValueError(f"patterns[{i}] must be a tuple of labels, got {pattern!r}")
        body = []
        for k, y in enumerate(pattern):
            if y in number:
                body.append(number[y])
            elif (y == BOS and k == 0) or (y == EOS and k == len(pattern) - 1):
                body.append(y)
            else:
                raise ValueError(
                    f"patterns[{i}] = {pattern!r}: {y!r} is no label of the training data (BOS may only stand first, "
                    "EOS only last)"
                )
        if len(body) > 1:
            result[tuple(body)] = None
    return tuple(result)


# ---- attributes ----------------------------------------------------------------------------------------------------


def _parsed(name: str, rules: Any, parse: Callable[[str, Any], int]) -> dict[str, int]:
    """Rules by prefix with their values as bits."""
    if rules is None:
        return {}
    if not isinstance(rules, Mapping) or not all(isinstance(prefix, str) for prefix in rules):
        raise ValueError(f"{name} must be a dict with attribute prefixes as keys, got {rules!r}")
    return {prefix: parse(f"{name}[{prefix!r}]", value) for prefix, value in rules.items()}


def _order_bits(name: str, value: Any) -> int:
    """Orders as bits: an int or an iterable of ints."""
    orders = tuple(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else (value,)
    if not orders:
        raise ValueError(f"{name} names no order")
    bits = 0
    for order in orders:
        number = checks.count(name, order, 0)
        if number > _MAX_ORDER:
            raise ValueError(f"{name} must be at most {_MAX_ORDER}, got {number}")
        bits |= 1 << number
    return bits


def _part_bits(name: str, value: Any) -> int:
    """Parts as bits: a name or an iterable of names."""
    parts = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if not parts:
        raise ValueError(f"{name} names no part")
    bits = 0
    for part in parts:
        if part not in PARTS:
            raise ValueError(f"{name} must name parts among {', '.join(PARTS)}, got {part!r}")
        bits |= 1 << PARTS.index(part)
    return bits


def _attribute_rules(rules: FeatureRules, vocabulary: Vocabulary, segments: bool) -> tuple[Bits, Bits]:
    """(A,) orders and parts of every attribute, as bits."""
    names = vocabulary.names() if rules.attribute_orders or rules.attribute_parts else [""] * len(vocabulary)
    orders = _by_prefix(names, rules.attribute_orders, 1)
    start, inside = np.uint32(1 << PARTS.index("start")), np.uint32(1 << PARTS.index("inside"))
    parts = _by_prefix(names, rules.attribute_parts, 0)
    # attributes of order 1 and more are read where a segment starts, unless told otherwise
    default = np.where(orders & 1, inside, start) if segments else start
    return orders, np.where(parts > 0, parts, default).astype(np.uint32)


def _by_prefix(names: Sequence[str], rules: Mapping[str, int], default: int) -> Bits:
    """(A,) what the longest matching prefix of each attribute name says, else the default."""
    result = np.full(len(names), default, np.uint32)
    lengths = sorted({len(prefix) for prefix in rules}, reverse=True)
    if lengths:
        for a, name in enumerate(names):
            for length in lengths:
                if name[:length] in rules:
                    result[a] = rules[name[:length]]
                    break
    return result


def _all_states(bits: Bits, n_labels: int) -> Table:
    """Every attribute that has order 0 with every label."""
    counts = np.where(bits & 1, n_labels, 0)
    rows = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return rows, np.tile(np.arange(n_labels, dtype=np.int32), int((counts > 0).sum()))


def _attributes(table: Table) -> Ints:
    """The attribute of each feature."""
    attribute: Ints = np.repeat(np.arange(len(table[0]) - 1), np.diff(table[0]))
    return attribute


def _merged(a: Table, b: Table) -> Table:
    """The features of two tables that have none in common; patterns of a row ascending."""
    attribute = np.concatenate([_attributes(a), _attributes(b)])
    pattern = np.concatenate([a[1], b[1]])
    order = np.lexsort((pattern, attribute))
    return a[0] + b[0], np.ascontiguousarray(pattern[order])


def _united(a: Table, b: Table) -> Table:
    """The features of two tables that may have some in common."""
    rows, pattern = _merged(a, b)
    attribute = _attributes((rows, pattern))
    new = np.ones(len(pattern), np.bool_)
    new[1:] = (np.diff(attribute) != 0) | (np.diff(pattern) != 0)
    counts = np.bincount(attribute[new], minlength=len(rows) - 1)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.ascontiguousarray(pattern[new])


# ---- warm starts ---------------------------------------------------------------------------------------------------


def carry_over(old: FlatModel, new: FlatModel) -> None:
    """Give features of the new model their weights in the old one.

    The new model numbers the old one's labels and attributes as the old one did, and may have more.
    """
    number = {p: z for z, p in enumerate(new.patterns)}
    moved = np.array([number.get(p, -1) for p in old.patterns], np.int64)
    starts = {name: at for name, at, _ in new.blocks()}
    for name, at, size in old.blocks():
        weights = old.weights[at : at + size]
        if not size or name not in starts:
            continue
        if name == "bias":
            target = moved[old.n_labels : old.n_labels + old.n_bias]
            keep = (target >= 0) & (target < new.n_labels + new.n_bias)
            new.weights[target[keep] - new.n_labels] = weights[keep]
        elif name == "length":
            for row, length in enumerate(old.basis_names):
                if length in new.basis_names:
                    first = starts[name] + new.basis_names.index(length) * new.n_labels
                    new.weights[first : first + old.n_labels] = weights[row * old.n_labels : (row + 1) * old.n_labels]
        else:
            table, other = (m.cell_table if name == "cells" else m.tables[name] for m in (old, new))
            width = len(new.patterns)
            keep = moved[table[1]] >= 0
            mine = (_attributes(table) * width + moved[table[1]])[keep]
            theirs = _attributes(other) * width + other[1]
            place = np.searchsorted(theirs, mine)
            place[place == len(theirs)] = 0
            found = theirs[place] == mine if len(theirs) else np.zeros(len(mine), np.bool_)
            new.weights[starts[name] + place[found]] = weights[keep][found]
