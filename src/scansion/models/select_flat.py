"""Which features a flat model has: from training data, what is known of its labels, and the estimator's parameters.

Features are those seen in training where labels are known: an attribute and the label pattern that ends there, and
label patterns by themselves. Conventions as in `scansion.models.flat_model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Ints
from scansion.data import Knowledge, Known, Vocabulary, encode_labels, encode_segments
from scansion.features.lengths import check_lengths, label_lengths
from scansion.features.spans import functions
from scansion.lattice.patterns import BOS, EOS, Pattern
from scansion.models.flat_model import PARTS, FlatModel
from scansion.models.inputs import Inputs
from scansion.models.trajectories import label_candidates, labels_to_come, passed_patterns, paths
from scansion.models.weights import Block, Level, row_offsets

if TYPE_CHECKING:
    from scansion.models.flat_estimator import FlatEstimator

__all__ = ["FlatSelection", "by_prefix", "parsed", "seen_patterns"]

Bits = npt.NDArray[np.uint32]
Table = tuple[Ints, npt.NDArray[np.int32]]
Numbers = npt.NDArray[np.int32]
_MAX_ORDER = 31  # orders of attributes are bits of a uint32
_FEW = 10  # a label of which so many segments were seen has twice the slack
_MANY = 10  # neighbouring segments per label, none of which repeats its label, that say it never does


class Seen(NamedTuple):
    """Features of attributes that occur in data: by the part they are read from, and those of spans."""

    tokens: dict[str, Table]
    spans: Table | None


@dataclass(frozen=True)
class FlatSelection:
    """The parameters that choose labels and features, checked; their meaning is in `scansion.CRF`, `scansion.SemiCRF`.

    Attributes
    ----------
    segments : bool
        Segments (SemiCRF) or single positions (CRF).
    names : list of one str
        Names of the levels.
    functions : list of one list
        Functions of spans, by level.
    """

    segments: bool
    order: int
    patterns: Any
    min_freq: tuple[float, ...]  # by order, the last goes on
    bias_order: int | None
    all_possible_states: bool
    all_possible_transitions: bool
    attribute_orders: Mapping[str, int]  # prefix -> bits
    attribute_parts: Mapping[str, int]  # prefix -> bits
    transitions: Any  # "all", "seen", or pairs of labels
    max_length: int | Mapping[Any, int] | None  # None: as seen, by label
    min_length: int | Mapping[Any, int] | None  # likewise
    slack: float
    repeats: bool | None
    split: bool  # segments in y that are too long are cut
    length_features: Any
    functions: list[list[Callable[..., Any]]]
    shown: int = 0  # so many labels had examples before

    names = ("label",)

    @classmethod
    def checked(cls, given: FlatEstimator, segments: bool) -> FlatSelection:
        """From an estimator's parameters, of which some only one of the two kinds has; ValueError if they are wrong."""
        checks.count("order", given.order, 0)
        bias_order = getattr(given, "bias_order", None)
        if bias_order is not None:
            checks.count("bias_order", bias_order, 0)
        patterns = given.patterns
        if patterns is not None and (isinstance(patterns, (str, bytes)) or not isinstance(patterns, Iterable)):
            raise ValueError(f"patterns must be a list of label tuples, got {patterns!r}")
        transitions = given._given("transitions")
        if isinstance(transitions, str) and transitions not in ("all", "seen"):
            raise ValueError(f"transitions must be 'all', 'seen' or pairs of labels, got {transitions!r}")
        slack = getattr(given, "slack", 0.0)
        if not checks.is_number(slack) or slack < 0:
            raise ValueError(f"slack must be a number >= 0, got {slack!r}")
        repeats, long = getattr(given, "repeats", None), getattr(given, "long_segments", "error")
        if not checks.among(repeats, (None, True, False)):
            raise ValueError(f"repeats must be True, False or None, got {repeats!r}")
        if not checks.among(long, ("error", "split")):
            raise ValueError(f"long_segments must be 'error' or 'split', got {long!r}")
        lengths = getattr(given, "length_features", ())
        check_lengths(lengths)
        return cls(
            segments,
            int(given.order),
            patterns,
            _frequencies(given._given("min_freq")),
            None if bias_order is None else int(bias_order),
            bool(given.all_possible_states),
            bool(given.all_possible_transitions),
            parsed("attribute_orders", given.attribute_orders, _order_bits),
            parsed("attribute_parts", getattr(given, "attribute_parts", None), _part_bits),
            transitions,
            _bound("max_length", getattr(given, "max_length", 1)),
            _bound("min_length", 1 if (least := getattr(given, "min_length", None)) is None else least),
            float(slack),
            repeats,
            long == "split",
            lengths,
            [functions("segment_features", getattr(given, "segment_features", None))],
        )

    def least(self, order: int) -> float:
        """Smallest sum of a feature's values in training; CRFsuite's 0 would leave out what sums to less than 0."""
        value = self.min_freq[min(order, len(self.min_freq) - 1)]
        return value if value > 0 else -np.inf

    @property
    def unseen(self) -> bool:
        """Whether features that do not occur can be there at all: as in CRFsuite, `min_freq` leaves them out."""
        return max(self.min_freq) <= 0

    # ---- labels ------------------------------------------------------------------------------------------------

    def encode(
        self, y: Any, lengths: Any, labels: list[list[Any]] | None, bounds: list[int | None], extend: bool = False
    ) -> tuple[Knowledge, list[list[Any]]]:
        """What y says, and the labels of the only level; others than those given are errors unless `extend`."""
        given, (bound,) = None if labels is None else labels[0], bounds
        if not self.segments:
            known, names = encode_labels(y, lengths, given, extend=extend)
            return known, [names]
        known, names = encode_segments(y, lengths, given, extend=extend, max_length=None if self.split else bound)
        if self.split and bound is not None and known.level.longest > bound:
            known = replace(known, levels=(_split(known.level, bound),))
        return known, [names]

    def bounds(self) -> list[int | None]:
        """Longest segment in training, if that was told."""
        return [self.max_length if isinstance(self.max_length, int) else None]

    def levels(self, labels: list[list[Any]], known: Knowledge, old: FlatModel | None) -> list[Level]:
        """The level, with its longest segment and length features."""
        (names,), level = labels, known.level
        if not names:
            raise ValueError("y holds no label at all: there is nothing to learn from")
        limits, shortest = self._limits(names, level, old)
        longest = int(limits.max())
        if old is not None and not isinstance(self.max_length, int):
            longest = max(longest, old.max_length)
        vocabulary = old.level.span_vocabulary.copy() if old is not None else Vocabulary()
        counts = level.length_counts(len(names), longest)
        basis, functions, _ = label_lengths(self.length_features, names, counts)
        return [
            Level(
                self.names[0],
                names,
                longest,
                basis,
                functions,
                vocabulary,
                limits if (limits < longest).any() else None,
                shortest if (shortest > 1).any() else None,
                counts if self.segments else None,
            )
        ]

    def _limits(self, labels: list[Any], known: Known, old: FlatModel | None) -> tuple[Numbers, Numbers]:
        """Longest and shortest segment of each label."""
        size = len(labels)
        start, stop, told = known.segments()
        label, length = known.numbers[start], stop - start
        longest = max(known.longest, old.max_length if old is not None else 0)
        if longest < 1 and not isinstance(self.max_length, int):
            raise ValueError("y holds no segment whose two ends are known: give max_length")
        limits, shortest = np.full(size, longest, np.int64), np.ones(size, np.int64)
        for y in np.unique(label[label >= 0]).tolist():
            mine = length[label == y]  # of some, an end is unknown: they are as long at least
            whole = length[(label == y) & told]
            wider = 1.0 + self.slack * (1.0 + _FEW / len(mine))
            limits[y] = min(np.ceil(mine.max() * wider), longest)
            shortest[y] = max(np.floor(whole.min() / wider), 1) if len(whole) else 1
        for name, given, found, beyond in (
            ("max_length", self.max_length, limits, np.greater),
            ("min_length", self.min_length, shortest, np.less),
        ):
            if isinstance(given, int):
                found[:] = given
            for value, bound in given.items() if isinstance(given, Mapping) else ():
                if value not in labels:
                    raise ValueError(f"{name} names {value!r}, which is no label of the training data")
                found[labels.index(value)] = bound
            wrong = np.flatnonzero(told & (label >= 0) & beyond(length, found[label]))
            if given is not None and wrong.size:
                y, d = int(label[wrong[0]]), int(length[wrong[0]])
                what = f"a segment {labels[y]!r} of {d} tokens"
                raise ValueError(f"y holds {what}, but {name} of that label is {found[y]}")
        if (shortest > limits).any():
            y = int(np.argmax(shortest > limits))
            raise ValueError(f"min_length of {labels[y]!r} is {shortest[y]}, but max_length {limits[y]}")
        return limits.astype(np.int32), shortest.astype(np.int32)

    def _forbidden(self, labels: list[Any], known: Knowledge) -> list[Pattern]:
        """Label patterns that must not occur."""
        level = known.level
        if not self.segments or self.repeats:
            return []
        start, _, told = level.segments()
        label = level.numbers[start]
        # neighbours within a sequence: the boundary between them is not a sequence's end
        beside = told[1:] & told[:-1] & ~np.isin(start[1:], known.offsets)
        same = (label[1:] == label[:-1]) & beside
        if self.repeats is None and not (
            known.complete.all() and (level.merged or (not same.any() and beside.sum() >= _MANY * len(labels)))
        ):
            return []
        if same.any():
            name = labels[int(label[1:][same][0])]
            raise ValueError(f"repeats is False, but in y a segment {name!r} follows another of that label")
        return [(y, y) for y in range(len(labels))]

    def _transitions(self, labels: list[Any], known: Knowledge) -> tuple[set[Pattern], Bools | None, Bools | None]:
        """Pairs of labels that must not occur; the labels that may begin and end a sequence (None: all)."""
        if isinstance(self.transitions, str) and self.transitions == "all":
            return set(), None, None
        n = len(labels)
        begin, end = known.offsets[:-1], known.offsets[1:]
        filled = begin < end
        seen = {*seen_patterns(known, 1, lambda _: 0.0), *passed_patterns(known, 1, len(labels))}
        seen |= {(BOS, y) for y in known.level.numbers[begin[filled]].tolist() if y >= 0}
        seen |= {(y, EOS) for y in known.level.numbers[end[filled] - 1].tolist() if y >= 0}
        seen |= {pair for path in paths(known) for pair in ((BOS, path[0]), (path[-1], EOS))}
        allowed = seen
        if not isinstance(self.transitions, str):
            allowed = set(_given_patterns("transitions", self.transitions, labels))
            for pair in allowed:
                if len(pair) != 2:
                    raise ValueError(f"transitions must be pairs of labels, got {pair!r}")
        first = np.array([(BOS, y) in allowed for y in range(n)])
        last = np.array([(y, EOS) in allowed for y in range(n)])
        pairs: list[Pattern] = [(i, j) for i in range(n) for j in range(n)]
        never = set(pairs) - allowed
        ends = first if first.any() else None, last if last.any() else None
        for a, b in sorted(seen - allowed):
            if (a, b) in never or (a == BOS and ends[0] is not None) or (b == EOS and ends[1] is not None):
                names = tuple(y if y in (BOS, EOS) else labels[y] for y in (a, b))
                raise ValueError(f"transitions do not have {names!r}, which occurs in y")
        return never, *ends

    # ---- features ----------------------------------------------------------------------------------------------

    def select(self, inputs: Inputs, known: Knowledge, levels: list[Level], vocabulary: Vocabulary) -> FlatModel:
        """The model of the features that the parameters choose, with weights of 0."""
        model = self.outline(known, levels, vocabulary)
        unseen = self.without_example(known, levels)
        return self.completed(model, known, [self.occurring(model, inputs, known, unseen)])

    def outline(self, known: Knowledge, levels: list[Level], vocabulary: Vocabulary) -> FlatModel:
        """The model without features of attributes: what depends on labels alone."""
        (level,) = levels
        n = level.size
        excluded, first, last = self._transitions(level.labels, known)
        repeats = self._forbidden(level.labels, known)
        longer = self._longer_patterns(known, level.labels)
        if self.patterns is None:  # what cannot occur needs no weight; repeats among given patterns are allowed
            excluded.update(repeats)
        longer = tuple(p for p in longer if not any(p[i : i + 2] in excluded for i in range(len(p) - 1)))
        never = tuple(sorted(excluded.union(set(repeats).difference(longer))))
        always = longer
        if self.bias_order is not None:  # longer patterns have no always-on feature, only attributes
            always = tuple(p for p in longer if len(p) - 1 <= self.bias_order)
            longer = always + tuple(p for p in longer if len(p) - 1 > self.bias_order)
        patterns = tuple((y,) for y in range(n)) + longer + never
        columns = np.arange(n, n + len(always), dtype=np.int32)
        blocks = [Block(0, "pattern", True, np.array([0, len(always)]), columns)]
        return FlatModel(
            levels,
            vocabulary,
            blocks,
            patterns=patterns,
            segments=self.segments,
            n_forbidden=len(never),
            first=first,
            last=last,
        )

    def occurring(self, model: FlatModel, inputs: Inputs, known: Knowledge, unseen: Sequence[int]) -> Seen:
        """Features of attributes that occur in encoded sequences often enough; unseen: labels without an example."""
        n, found = model.n_labels, Seen({}, None)
        kept, net = inputs.native, model.automaton._native
        orders, parts = self._attributes(model.vocabulary)
        numbers, ends = known.level.numbers, known.level.ends
        for k, part in enumerate(PARTS if self.segments else PARTS[:1]):
            bits = np.where(parts >> k & 1, orders, 0).astype(np.uint32)
            tables: list[Table] = []
            if self.all_possible_states and self.unseen and (bits & 1).any():
                tables.append(_everywhere(bits & 1, np.arange(n)))
                bits &= ~np.uint32(1)
            possible = model.patterns[: len(model.patterns) - model.n_forbidden]
            pairs = [z for z, p in enumerate(possible) if len(p) == 2 and min(p) >= 0]
            if self.all_possible_states and self.unseen and not self.segments and pairs and (bits & 2).any():
                tables.append(_everywhere(bits & 2, np.array(pairs)))
                bits &= ~np.uint32(2)
            for least, some in self._by_frequency(bits):
                tables.append(_core.token_feature_table(kept, net, numbers, ends, k, some, least))
                _check_ends(part, tables[-1], model)
            for candidates, cuts in label_candidates(known, part == "inner", n, unseen):
                tables.append(_core.token_feature_table(kept, net, candidates, cuts, k, bits & np.uint32(1), -np.inf))
            if tables:
                found.tokens[part] = _united(tables, len(model.patterns))
        if inputs.spans[0] is not None:
            size, least = len(model.level.span_vocabulary), self.least(0)
            found = found._replace(spans=_core.cell_feature_table(kept, net, numbers, ends, size, least))
        return found

    def occurring_here(self, model: FlatModel, inputs: Inputs, known: Knowledge, unseen: Sequence[int]) -> list[Seen]:
        """What occurs in one of several shards, for `completed`: once, twice, ... up to `min_freq` times."""
        most = math.ceil(max(self.min_freq))
        if most > 0 and (inputs.data.values is not None or inputs.spans[0] is not None):
            raise ValueError(
                f"min_freq = {max(self.min_freq):g} counts attributes in several parts of the data: for that they must "
                "all have the value 1, and be of tokens"
            )
        steps = [tuple(min(least, float(times)) for least in self.min_freq) for times in range(1, most + 1)]
        chosen = (replace(self, min_freq=least) for least in steps or [self.min_freq])
        return [one.occurring(model, inputs, known, unseen) for one in chosen]

    def after(self, old: FlatModel) -> FlatSelection:
        """The same for a batch of data that follows others."""
        return replace(self, shown=old.n_labels)

    def without_example(self, known: Knowledge, levels: list[Level]) -> list[int]:
        """Labels that no token is known to have, and some may."""
        return labels_to_come(known, levels[0].size, self.shown)

    def completed(self, model: FlatModel, known: Knowledge, found: Sequence[Seen]) -> FlatModel:
        """The model with features of attributes, as of one or several shards, and of lengths.

        Of several shards, a feature that occurs in a shard n times is in n of its tables, if not in all of them: it has
        `min_freq` if and only if so many tables have it.
        """
        blocks, width = list(model.blocks), len(model.patterns)
        needed = np.array(
            [max(1, math.ceil(self.least(len(p) - 1)) if self.least(len(p) - 1) > 0 else 1) for p in model.patterns]
        )
        for part in PARTS:
            tables = [one.tokens[part] for one in found if part in one.tokens]
            if tables:
                blocks.append(Block(0, part, False, *_united(tables, width, needed)))
        lengths = known.level.length_counts(model.n_labels, model.max_length)
        wanted = label_lengths(self.length_features, model.level.labels, lengths)[2]
        blocks.append(Block(0, "length", False, *wanted))
        spans = [one.spans for one in found if one.spans is not None]
        if spans:
            blocks.append(Block(0, "span", False, *_united(spans, width)))
        cache = {"automaton": model.automaton}
        return replace(model, blocks=blocks, weights=np.zeros(0), _cache=cache)

    def _longer_patterns(self, known: Knowledge, labels: list[Any]) -> tuple[Pattern, ...]:
        if self.patterns is not None:
            return _given_patterns("patterns", self.patterns, labels)
        found = seen_patterns(known, self.order, self.least)
        passed = passed_patterns(known, self.order, len(labels), self.shown) - set(found)
        found = sorted([*found, *passed], key=lambda p: (len(p), p)) if passed else found
        if self.all_possible_transitions and self.unseen and self.order >= 1:
            n = len(labels)
            hint = "all_possible_transitions=False has those of y alone"
            checks.memory(f"features of the transitions between all of {n} labels ({hint})", 25 * n * n)  # as tuples
            found = [(i, j) for i in range(n) for j in range(n)] + [p for p in found if len(p) > 2]
        return tuple(found)

    def _attributes(self, vocabulary: Vocabulary) -> tuple[Bits, Bits]:
        """(A,) orders and parts of every attribute, as bits."""
        told = self.attribute_orders or self.attribute_parts
        names = vocabulary.names() if told else [""] * len(vocabulary)
        orders = by_prefix(names, self.attribute_orders, 1)
        start, inside = np.uint32(1 << PARTS.index("start")), np.uint32(1 << PARTS.index("inside"))
        parts = by_prefix(names, self.attribute_parts, 0)
        # attributes of order 1 and more are read where a segment starts, unless told otherwise
        default = np.where(orders & 1, inside, start) if self.segments else start
        return orders, np.where(parts > 0, parts, default).astype(np.uint32)

    def _by_frequency(self, bits: Bits) -> list[tuple[float, Bits]]:
        """Orders of the attributes cut into groups that share a smallest frequency: (frequency, bits (A,))."""
        groups: dict[float, int] = {}
        for order in range(_MAX_ORDER + 1):
            groups[self.least(order)] = groups.get(self.least(order), 0) | 1 << order
        cut = [(least, (bits & np.uint32(mask)).astype(np.uint32)) for least, mask in groups.items()]
        return [(least, some) for least, some in cut if some.any()]


def _bound(name: str, value: Any) -> int | Mapping[Any, int] | None:
    """Longest or shortest segments as they were given; None: they are taken from the data."""
    if isinstance(value, str) and value != "by label":
        raise ValueError(f"{name} must be a number, None or 'by label', got {value!r}")
    if isinstance(value, Mapping):
        return {label: checks.count(f"{name}[{label!r}]", bound, 1) for label, bound in value.items()}
    return None if value is None or isinstance(value, str) else checks.count(name, value, 1)


def _split(known: Known, longest: int) -> Known:
    """Cut runs of positions that are known to be in one segment after each `longest` of them."""
    assert known.ends is not None
    begins = np.ones(len(known.ends), np.bool_)
    begins[1:] = known.ends[:-1] != 0
    at = np.arange(len(begins))
    inside = at - np.maximum.accumulate(np.where(begins, at, 0))
    ends = np.where((known.ends == 0) & (inside % longest == longest - 1), 1, known.ends).astype(np.int8)
    return replace(known, ends=ends, longest=longest, merged=False)


def _frequencies(min_freq: Any) -> tuple[float, ...]:
    """min_freq as one number per order."""
    several = isinstance(min_freq, (Sequence, np.ndarray)) and not isinstance(min_freq, (str, bytes))
    given = list(min_freq) if several else [min_freq]
    for value in given:
        if not checks.is_number(value) or value < 0:
            raise ValueError(f"min_freq must be a number >= 0, got {min_freq!r} (or give one for each order)")
    if not given:
        raise ValueError("min_freq must be a number >= 0, got none")
    return tuple(map(float, given))


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


def seen_patterns(known: Knowledge, order: int, least: Callable[[int], float]) -> list[Pattern]:
    """Label patterns of length 2 .. order + 1 in unbroken stretches of known segments, least(order) times or more.

    Sorted by length, then by labels.
    """
    start, _, told = known.level.segments()
    stretch = np.cumsum(~told | np.isin(start, known.offsets))[told]
    label = known.level.numbers[start][told].astype(np.int64)
    n_labels = int(label.max(initial=0)) + 1
    found: list[Pattern] = []
    # code[i]: the number of the pattern that begins at segment i, among `names` of its length, which are sorted
    code, names = label, [(y,) for y in range(n_labels)]
    for size in range(2, order + 2):
        last = max(0, len(label) - size + 1)
        whole = stretch[:last] == stretch[len(stretch) - last :]
        longer = code[:last] * n_labels + label[len(label) - last :]
        distinct, number, counts = np.unique(longer[whole], return_inverse=True, return_counts=True)
        if not len(distinct):  # nor are there longer ones
            break
        names = [(*names[k // n_labels], k % n_labels) for k in distinct.tolist()]
        found.extend(name for name, count in zip(names, counts.tolist(), strict=True) if count >= least(size - 1))
        code = np.zeros(last, np.int64)
        code[whole] = number
    return found


def _given_patterns(name: str, patterns: Iterable[Any], labels: list[Any]) -> tuple[Pattern, ...]:
    """Label patterns given by name; those of one label exist anyway."""
    number = {y: i for i, y in enumerate(labels)}
    result: dict[Pattern, None] = {}
    for i, pattern in enumerate(patterns):
        if isinstance(pattern, (str, bytes)) or not isinstance(pattern, Sequence) or not len(pattern):
            raise ValueError(f"{name}[{i}] must be a tuple of labels, got {pattern!r}")
        body = []
        for k, y in enumerate(pattern):
            if y in number:
                body.append(number[y])
            elif (y == BOS and k == 0) or (y == EOS and k == len(pattern) - 1):
                body.append(y)
            else:
                raise ValueError(
                    f"{name}[{i}] = {pattern!r}: {y!r} is no label of the training data (BOS may only stand first, "
                    "EOS only last)"
                )
        if len(body) > 1:
            result[tuple(body)] = None
    return tuple(result)


# ---- attributes ----------------------------------------------------------------------------------------------------


def parsed(name: str, rules: Any, parse: Callable[[str, Any], int]) -> dict[str, int]:
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
        if not checks.among(part, PARTS):
            raise ValueError(f"{name} must name parts among {', '.join(PARTS)}, got {part!r}")
        bits |= 1 << PARTS.index(part)
    return bits


def by_prefix(names: Sequence[str], rules: Mapping[str, int], default: int) -> Bits:
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


def _everywhere(wanted: npt.NDArray[Any], columns: Ints) -> Table:
    """Every attribute that is wanted (A,) with every one of the columns."""
    counts = np.where(wanted, len(columns), 0)
    rows = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return rows, np.tile(columns.astype(np.int32), int((counts > 0).sum()))


def _united(tables: Sequence[Table], width: int, needed: Ints | None = None) -> Table:
    """The features of several tables, each once; patterns of a row ascending.

    needed (P,): in how many tables a feature of each pattern must be; one unless given.
    """
    if len(tables) == 1:
        return tables[0]
    n = len(tables[0][0]) - 1
    entries = [np.repeat(np.arange(n), np.diff(rows)) * width + pattern for rows, pattern in tables]
    found, count = np.unique(np.concatenate(entries), return_counts=True)
    if needed is not None:
        found = found[count >= needed[found % width]]
    return row_offsets(found // width, n), (found % width).astype(np.int32)
