"""Targets: labels and segments as numbers, known in full, in part or not at all."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scansion as sc
from scansion.data import encode_labels, encode_segments

LABELS = ["A", "B", "C", "D"]
label = st.sampled_from(LABELS)
entry = st.one_of(label, st.none(), st.sets(label, min_size=1), st.frozensets(label, min_size=1))
sequences = st.lists(st.one_of(st.none(), st.lists(entry, max_size=5)), max_size=5)


def lengths_of(y, size=3):
    return [size if sequence is None else len(sequence) for sequence in y]


def by_sequence(array, lengths):
    return np.split(array, np.cumsum(lengths)[:-1]) if len(lengths) else []


def members(entry, labels):
    """The labels that an entry allows."""
    if entry is None:
        return set(labels)
    return set(entry) if isinstance(entry, (set, frozenset)) else {entry}


# Labels --------------------------------------------------------------------------------------------


@given(sequences)
def test_labels(y):
    lengths = lengths_of(y)
    targets, labels = encode_labels(y, lengths)
    entries = [e for s, n in zip(y, lengths, strict=True) for e in (s if s is not None else [None] * n)]
    appeared = dict.fromkeys(
        one for e in entries if e is not None for one in (sorted(e) if isinstance(e, (set, frozenset)) else [e])
    )
    assert labels == list(appeared)
    assert targets.level.labels.dtype == np.int32
    assert targets.level.ends is None
    allowed = [members(e, labels) for e in entries]
    for t, options in enumerate(allowed):
        one = len(options) == 1 and entries[t] is not None
        assert targets.level.labels[t] == (labels.index(*options) if one else -1)
    assert (targets.level.allowed is not None) == any(
        1 < len(a) for e, a in zip(entries, allowed, strict=True) if e is not None
    )
    if targets.level.allowed is not None:
        assert targets.level.allowed.shape == (len(entries), len(labels))
        assert [{labels[i] for i in np.flatnonzero(row)} for row in targets.level.allowed] == allowed
    for b, row in enumerate(by_sequence(targets.level.labels, lengths)):
        assert targets.complete[b] == (row >= 0).all()
    informed = [e is not None and (len(a) == 1 or len(a) < len(labels)) for e, a in zip(entries, allowed, strict=True)]
    assert targets.known.tolist() == [bool(any(r)) for r in by_sequence(np.array(informed, bool), lengths)]
    assert (targets.complete.shape, targets.known.shape) == ((len(y),), (len(y),))


@given(sequences)
def test_given_labels(y):
    lengths = lengths_of(y)
    targets, labels = encode_labels(y, lengths, LABELS)
    assert labels == LABELS
    learnt, names = encode_labels(y, lengths)
    named = [names[i] if i >= 0 else None for i in learnt.level.labels]
    assert [LABELS[i] if i >= 0 else None for i in targets.level.labels] == named
    assert targets.complete.tolist() == learnt.complete.tolist()


def test_labels_in_order_of_first_appearance():
    targets, labels = encode_labels([["b", "a"], ["c", "a"]], [2, 2])
    assert labels == ["b", "a", "c"]
    assert targets.level.labels.tolist() == [0, 1, 2, 1]
    assert targets.complete.tolist() == [True, True]
    assert targets.known.tolist() == [True, True]


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([[1, 2]], [1, 2]),
        ([(1, "a", ("x", 2), False)], [1, "a", ("x", 2), False]),
        (np.array([[2, 1], [1, 1]]), [2, 1]),
        ([np.array(["b", "a"])], ["b", "a"]),
        ([[np.str_("b"), np.int64(3)]], ["b", 3]),
        ((x for x in [iter("ab")]), ["a", "b"]),
    ],
)
def test_kinds_of_labels(y, expected):
    y = list(y)
    y = [list(sequence) if not isinstance(sequence, np.ndarray) else sequence for sequence in y]
    targets, labels = encode_labels(y, [len(sequence) for sequence in y])
    assert labels == expected
    assert [type(one) for one in labels] == [type(one) for one in expected]
    assert targets.complete.all()


def test_generators():
    targets, labels = encode_labels(((x for x in "ab") for _ in range(2)), [2, 2])
    assert (labels, targets.level.labels.tolist()) == (["a", "b"], [0, 1, 0, 1])


def test_sets_are_numbered_alike_in_every_run():
    code = "from scansion.data import encode_labels; print(encode_labels([[set('zebra') | {1, 10, 2}]], [1])[1])"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert runs == {"[1, 10, 2, 'a', 'b', 'e', 'r', 'z']\n"}


def test_empty_sequences():
    targets, labels = encode_labels([[], None, []], [0, 0, 0])
    assert (targets.level.labels.size, labels) == (0, [])
    assert targets.complete.tolist() == [True] * 3
    assert targets.known.tolist() == [False] * 3
    assert encode_labels([], [])[0].complete.shape == (0,)


def test_a_set_of_all_labels_tells_nothing():
    targets, _ = encode_labels([[{"a", "b"}]], [1])
    assert targets.level.allowed.tolist() == [[True, True]]
    assert targets.known.tolist() == [False]
    targets, _ = encode_labels([[{"a", "b"}]], [1], ["a", "b", "c"])
    assert targets.known.tolist() == [True]


# Segments ------------------------------------------------------------------------------------------


@st.composite
def segmentations(draw):
    """A length and segments within it, with gaps, in any order."""
    size = draw(st.integers(0, 8))
    cuts = sorted(draw(st.sets(st.integers(0, size))) | {0, size})
    spans = [span for span in zip(cuts, cuts[1:], strict=False) if draw(st.booleans())]
    segments = [sc.Segment(start, stop, draw(entry)) for start, stop in spans]
    return size, draw(st.permutations(segments))


@given(st.lists(segmentations(), max_size=4))
def test_segments(y):
    lengths = [size for size, _ in y]
    targets, labels = encode_segments([segments for _, segments in y], lengths)
    assert targets.level.ends.dtype == np.int8
    spans = [stop - start for _, segments in y for start, stop, _ in segments]
    assert targets.level.longest == max(spans, default=0)
    rows = zip(by_sequence(targets.level.labels, lengths), by_sequence(targets.level.ends, lengths), strict=True)
    for b, (row, ends) in enumerate(rows):
        size, segments = y[b]
        expected_ends, expected = [-1] * size, [None] * size
        for start, stop, one in segments:
            expected_ends[start : stop - 1] = [0] * (stop - 1 - start)
            expected_ends[stop - 1] = 1
            expected[start:stop] = [one] * (stop - start)
        for start, _, _ in segments:
            if start:
                expected_ends[start - 1] = 1
        informed = any(end >= 0 for end in expected_ends[:-1])
        if size:
            expected_ends[-1] = 1
        assert ends.tolist() == expected_ends
        plain, _ = encode_labels([expected], [size], labels)
        assert row.tolist() == plain.level.labels.tolist()
        assert targets.complete[b] == (plain.complete[0] and min(expected_ends, default=0) >= 0)
        assert targets.known[b] == (plain.known[0] or informed)


@given(st.lists(st.lists(label, min_size=1, max_size=8), max_size=4))
def test_labels_of_segments(y):
    """Complete labels and the segments of their runs are the same targets."""
    lengths = [len(sequence) for sequence in y]
    runs = []
    for sequence in y:
        cuts = [t for t in range(1, len(sequence)) if sequence[t] != sequence[t - 1]]
        bounds = [0, *cuts, len(sequence)]
        runs.append([(i, j, sequence[i]) for i, j in zip(bounds, bounds[1:], strict=False)])
    one, labels = encode_segments(y, lengths)
    other, names = encode_segments(runs, lengths)
    assert labels == names
    assert one.level.labels.tolist() == other.level.labels.tolist()
    assert one.level.ends.tolist() == other.level.ends.tolist()
    assert one.level.longest == other.level.longest
    assert one.complete.all()
    assert other.complete.all()


def test_boundaries_beside_unknown_labels_are_unknown():
    y = [["a", "a", "b", None, "b", {"a", "b"}, "a"]]
    targets, _ = encode_segments(y, [7])
    assert targets.level.ends.tolist() == [0, 1, -1, -1, -1, -1, 1]
    assert targets.level.labels.tolist() == [0, 0, 1, -1, 1, -1, 0]
    assert targets.complete.tolist() == [False]
    assert targets.level.longest == 2


def test_gaps():
    targets, labels = encode_segments([[(2, 4, "x")], None, []], [6, 2, 2])
    assert labels == ["x"]
    assert targets.level.labels.tolist() == [-1, -1, 0, 0, -1, -1, -1, -1, -1, -1]
    assert targets.level.ends.tolist() == [-1, 1, 0, 1, -1, 1, -1, 1, -1, 1]
    assert targets.known.tolist() == [True, False, False]
    assert targets.complete.tolist() == [False, False, False]


def test_boundaries_alone_are_knowledge():
    targets, labels = encode_segments([[(0, 2, None), (2, 3, None)], [(0, 2, None)]], [3, 2])
    assert labels == []
    assert targets.level.ends.tolist() == [0, 1, 1, 0, 1]
    assert targets.known.tolist() == [True, True]
    assert targets.complete.tolist() == [False, False]


def test_labels_of_segments_are_numbered_by_position():
    assert encode_segments([[(2, 3, "late"), (0, 2, "early")]], [3])[1] == ["early", "late"]


@pytest.mark.parametrize(
    "sequence",
    [
        [sc.Segment(0, 2, 7), sc.Segment(2, 3, 5)],
        [(0, 2, 7), (2, 3, 5)],
        [[0, 2, 7], [2, 3, 5]],
        np.array([[0, 2, 7], [2, 3, 5]]),
        [(np.int64(0), np.int32(2), 7), (2, 3, np.int64(5))],
        iter([(0, 2, 7), (2, 3, 5)]),
    ],
)
def test_kinds_of_segments(sequence):
    targets, labels = encode_segments([sequence], [3])
    assert labels == [7, 5]
    assert targets.level.labels.tolist() == [0, 0, 1]
    assert targets.level.ends.tolist() == [0, 1, 1]


def test_sets_of_labels_of_segments():
    targets, labels = encode_segments([[(0, 2, {"b", "a"}), (2, 3, "c")]], [3])
    assert labels == ["a", "b", "c"]
    assert targets.level.allowed.tolist() == [[True, True, False]] * 2 + [[False, False, True]]
    assert targets.level.labels.tolist() == [-1, -1, 2]


def test_targets_constrain_a_lattice():
    """What targets say is what `constrain` takes."""
    targets, labels = encode_segments([[(1, 3, "x")]], [5], ["x", "y"])
    lattice = sc.SegmentLattice(np.zeros((5, 3, 2)), [(0,), (1,)], len(labels))
    best, _ = lattice.constrain(
        labels=targets.level.labels.astype(np.int64), boundaries=targets.level.ends.astype(np.int64)
    ).viterbi()
    assert sc.Segment(1, 3, 0) in best


# Errors --------------------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("encode", [encode_labels, encode_segments])


@BOTH
@pytest.mark.parametrize(
    ("y", "lengths", "message"),
    [
        ([["a"], ["a", "b"]], [1, 3], r"y\[1\] has 2 labels, but sequence 1 of X has 3 tokens"),
        ([["a"]], [1, 3], "y has 1 sequences, but X has 2"),
        ([["a"], ["b"], ["c"]], [1, 1], "y has 3 sequences, but X has 2"),
        ([["a"], [None, set()]], [1, 2], r"y\[1\]\[1\] is an empty set"),
        ([["a"], [None, {None, "a"}]], [1, 2], r"y\[1\]\[1\] is a set that holds None"),
        ([["a"], [None, float("nan")]], [1, 2], r"y\[1\]\[1\] is the label nan.*None for unknown"),
        ([["a"]], [-1], r"lengths\[0\] = -1"),
        ([["a"]], [1.5], "lengths must be an array of integers"),
    ],
)
def test_wrong_values(encode, y, lengths, message):
    with pytest.raises(ValueError, match=message):
        encode(y, lengths)


@BOTH
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("a", "y must be a list of sequences, got an object of type str"),
        (None, "y must be a list of sequences, got an object of type NoneType"),
        ({"a": 1}, "y must be a list of sequences, got an object of type dict"),
        (["a"], r"y\[0\] must be a list of labels, got the string 'a'"),
        ([{"a"}], r"y\[0\] must be a list of labels, got an object of type set"),
        ([1], r"y\[0\] must be a list of labels, got an object of type int"),
        ([[["a"]]], r"y\[0\]\[0\] is of type list, which cannot be a label"),
        ([[{"a": 1}]], r"y\[0\]\[0\] is of type dict, which cannot be a label"),
    ],
)
def test_wrong_types(encode, y, message):
    with pytest.raises(TypeError, match=message):
        encode(y, [1])


@BOTH
def test_unknown_labels(encode):
    for y in ([["A"], ["B", "Z"]], [["A"], [{"A", "B"}, {"A", "Z"}]]):
        with pytest.raises(ValueError, match=r"y\[1\]\[1\] is the label 'Z', .* labels known: 'A', 'B'$"):
            encode(y, [1, 2], ["A", "B"])
    with pytest.raises(ValueError, match=r"labels known: 0, 1, .*, 19, \.\.\.$"):
        encode([[-5]], [1], list(range(30)))


def test_unknown_labels_of_segments():
    with pytest.raises(ValueError, match=r"y\[0\], segment \(1, 2\), is the label 'Z'.*: 'A'$"):
        encode_segments([[(0, 1, "A"), (1, 2, "Z")]], [2], ["A"])


@BOTH
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", "b", "a"], ValueError, "labels must be distinct, but 'a' comes twice"),
        (["a", None], ValueError, "labels must not hold None"),
        ("ab", TypeError, "labels must be a list of labels, got 'ab'"),
        (3, TypeError, "labels must be a list of labels, got 3"),
    ],
)
def test_wrong_label_lists(encode, labels, error, message):
    with pytest.raises(error, match=message):
        encode([["a"]], [1], labels)


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([(0, 2, "a"), (1, 3, "b")], r"y\[1\] has overlapping segments: \(0, 2, 'a'\) and \(1, 3, 'b'\)"),
        ([(2, 4, "a"), (0, 3, "b")], r"y\[1\] has overlapping segments: \(0, 3, 'b'\) and \(2, 4, 'a'\)"),
        ([(1, 2, "a"), (1, 2, "a")], "overlapping"),
        ([(0, 1, "a"), (3, 6, "a")], r"y\[1\]\[1\] = \(3, 6, 'a'\) leaves sequence 1 of X, which has 5 tokens"),
        ([(-1, 2, "a")], r"y\[1\]\[0\] = \(-1, 2, 'a'\) leaves sequence 1"),
        ([(2, 2, "a")], r"y\[1\]\[0\] = \(2, 2, 'a'\) is empty or reversed"),
        ([(3, 1, "a")], r"y\[1\]\[0\] = \(3, 1, 'a'\) is empty or reversed"),
        ([(0, 1, "a"), "a"], r"y\[1\]\[1\] = 'a' is not a segment \(start, stop, label\)"),
        ([sc.Segment("0", 2, "a")], r"y\[1\]\[0\] = .* is not a segment"),
        ([(0, 4, "a")], r"y\[1\] has a segment \(0, 4\) of 4 tokens, longer than max_length = 3"),
        (list("abbbb"), r"y\[1\] has a segment \(1, 5\) of 4 tokens, longer than max_length = 3"),
    ],
)
def test_wrong_segments(segments, message):
    with pytest.raises(ValueError, match=message):
        encode_segments([[], segments], [1, 5], max_length=3)


def test_wrong_max_length():
    with pytest.raises(ValueError, match="max_length must be at least 1, got 0"):
        encode_segments([], [], max_length=0)
