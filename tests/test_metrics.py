"""Scores of labels, segments and trajectories; conlleval and scikit-learn as oracles."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scansion import metrics
from scansion.schemes import encode, segments

FLAT = {
    "precision": (metrics.flat_precision_score, sklearn.metrics.precision_score),
    "recall": (metrics.flat_recall_score, sklearn.metrics.recall_score),
    "f1": (metrics.flat_f1_score, sklearn.metrics.f1_score),
}


def flatten(sequences):
    return [label for sequence in sequences for label in sequence]


def paired(labels, min_tokens=0, max_size=6):
    """Two lists of label sequences of equal lengths."""
    pair = st.tuples(st.sampled_from(labels), st.sampled_from(labels))
    corpus = st.lists(st.lists(pair, max_size=max_size), max_size=5)
    split = corpus.map(lambda rows: tuple([[pair[k] for pair in row] for row in rows] for k in (0, 1)))
    return split.filter(lambda sides: len(flatten(sides[0])) >= min_tokens)


def labels_of(tags, types=("X", "Y")):
    return [tag if tag in "O." else f"{tag}-{kind}" for tag in tags for kind in types]


# ---- conlleval as its rules say -------------------------------------------------------------------
# Does a chunk end (start) between two tags if the type stays the same? Row: previous tag, column: current
# tag, ? any other tag. If the type changes, previous tags but O and . end one, current ones start one.
ENDS = """
    B I E O . [ ] ?
B   1 0 0 1 0 0 0 0
I   1 0 0 1 0 0 0 0
E   0 1 1 1 0 0 0 0
O   0 0 0 0 0 0 0 0
.   0 0 0 0 0 0 0 0
[   1 1 1 1 1 1 1 1
]   1 1 1 1 1 1 1 1
?   0 0 0 0 0 0 0 0
"""
STARTS = """
    B I E O . [ ] ?
B   1 0 0 0 0 1 1 0
I   1 0 0 0 0 1 1 0
E   0 1 1 0 0 1 1 0
O   1 1 1 0 0 1 1 0
.   0 0 0 0 0 1 1 0
[   0 0 0 0 0 1 1 0
]   0 0 0 0 0 1 1 0
?   0 0 0 0 0 1 1 0
"""


def by_grid(grid, before, tag):
    header, *rows = [line.split() for line in grid.strip().splitlines()]
    before, tag = (x if x in header else "?" for x in (before, tag))
    return next(row[1 + header.index(tag)] == "1" for row in rows if row[0] == before)


def chunk_ends(before, tag, kind_before, kind):
    return by_grid(ENDS, before, tag) or (before not in ("O", ".") and kind_before != kind)


def chunk_starts(before, tag, kind_before, kind):
    return by_grid(STARTS, before, tag) or (tag not in ("O", ".") and kind_before != kind)


def tokens_of(labels):
    """Tags and types between two sentence boundaries, which count as O."""
    pairs = [label.partition("-")[::2] for label in labels]
    return [("O", ""), *pairs, ("O", "")]


def starts_and_ends(labels):
    starts, ends = [], []
    tokens = tokens_of(labels)
    for t, ((before, kind_before), (tag, kind)) in enumerate(zip(tokens, tokens[1:], strict=False)):
        if chunk_starts(before, tag, kind_before, kind):
            starts.append((t, kind))
        if chunk_ends(before, tag, kind_before, kind):
            ends.append(t)
    return starts, ends


def conlleval_counts(y_true, y_pred):
    """Per type: correct, found and true chunks, walking along both columns at once as the script does."""
    counts = {}

    def add(kind, column):
        counts.setdefault(kind, [0, 0, 0])[column] += 1

    for true, pred in zip(y_true, y_pred, strict=True):
        columns = tokens_of(true), tokens_of(pred)
        running = False  # inside a chunk that both have started together
        for t in range(1, len(true) + 2):
            steps = [(side[t - 1][0], side[t][0], side[t - 1][1], side[t][1]) for side in columns]
            ends = [chunk_ends(*step) for step in steps]
            starts = [chunk_starts(*step) for step in steps]
            (_, _, true_before, true_kind), (_, _, pred_before, pred_kind) = steps
            if running:
                if all(ends) and true_before == pred_before:
                    running = False
                    add(true_before, 0)
                elif ends[0] != ends[1] or true_kind != pred_kind:
                    running = False
            if all(starts) and true_kind == pred_kind:
                running = True
            if starts[1]:
                add(pred_kind, 1)
            if starts[0]:
                add(true_kind, 2)
    return counts


@pytest.mark.parametrize("tags", ["BIO", "IEO", "BIEO", "O.[]", "BIEO."])
def test_conlleval_scheme_reads_by_the_rules(tags):
    @given(st.lists(st.sampled_from(labels_of(tags)), max_size=12))
    def check(labels):
        starts, ends = starts_and_ends(labels)
        found = segments(labels, "conlleval")
        assert [(s.start, s.label) for s in found] == starts
        assert [s.stop for s in found] == ends

    check()


@given(st.lists(st.sampled_from(labels_of("BIEO.[]SX")), max_size=12))
def test_conlleval_scheme_starts_chunks_by_the_rules_whatever_the_tags(labels):
    starts, ends = starts_and_ends(labels)
    found = segments(labels, "conlleval")
    assert [(s.start, s.label) for s in found] == starts
    assert {s.stop for s in found} <= {*ends, *(t for t, _ in starts), len(labels)}


@pytest.mark.parametrize(("tags", "scheme"), [("BIO", "iob1"), ("BIO", "iob2"), ("IEO", "ioe1"), ("IEO", "ioe2")])
def test_iob_and_ioe_read_by_the_rules(tags, scheme):
    @given(st.lists(st.sampled_from(labels_of(tags)), max_size=12))
    def check(labels):
        starts, ends = starts_and_ends(labels)
        assert [(s.start, s.label) for s in segments(labels, scheme)] == starts
        assert [s.stop for s in segments(labels, scheme)] == ends

    check()


@given(st.lists(st.sampled_from(labels_of("BIESO")), max_size=12))
def test_iobes_reads_by_the_rules_once_its_boundaries_are_spelled_out(labels):
    """The rules lack S, and E before B: there a change of type says what the tags say in IOBES."""
    spelled, boundaries, before = [], 0, "O"
    for tag, kind in tokens_of(labels)[1:-1]:
        boundaries += before in "ES" or tag in "BS"
        spelled.append("O" if tag == "O" else f"{tag.replace('S', 'I')}-{kind}{boundaries}")
        before = tag
    starts, ends = starts_and_ends(spelled)
    found = segments(labels, "iobes")
    assert [(s.start, s.label) for s in found] == [(t, kind[:1]) for t, kind in starts]
    assert [s.stop for s in found] == ends
    bilou = [label.replace("E-", "L-").replace("S-", "U-") for label in labels]
    assert segments(bilou, "bilou") == segments(labels, "bioes") == found


@pytest.mark.parametrize(
    ("tags", "schemes"),
    [
        ("BIO", ["conlleval", "iob1", "iob2"]),
        ("IEO", ["conlleval", "ioe1", "ioe2"]),
        ("BIEO", ["conlleval"]),
        ("O.[]", ["conlleval"]),
    ],
)
def test_segment_scores_count_as_conlleval(tags, schemes):
    @given(paired(labels_of(tags), max_size=10))
    def check(sides):
        expected = conlleval_counts(*sides)
        for scheme in schemes:
            found = metrics.segment_scores(*sides, scheme).labels
            assert {k: [s.tp, s.tp + s.fp, s.support] for k, s in found.items()} == expected

    check()


def test_conlleval_report_by_hand():
    # Phrases: NP 0-2 right, VP 2-3 right, NP 4-6 cut short, PP missed; a VP out of nowhere.
    y_true = [["B-NP", "I-NP", "B-VP", "O", "B-NP", "I-NP"], ["B-PP", "O"]]
    y_pred = [["B-NP", "I-NP", "B-VP", "O", "B-NP", "O"], ["O", "B-VP"]]
    assert metrics.conlleval(y_true, y_pred) == (
        "processed 8 tokens with 4 phrases; found: 4 phrases; correct: 2.\n"
        "accuracy:  62.50%; precision:  50.00%; recall:  50.00%; FB1:  50.00\n"
        "               NP: precision:  50.00%; recall:  50.00%; FB1:  50.00  2\n"
        "               PP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0\n"
        "               VP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2\n"
    )
    scores = metrics.segment_scores(y_true, y_pred)
    assert str(scores) == metrics.conlleval(y_true, y_pred)
    assert scores.labels["VP"] == metrics.Score(1, 1, 0, 0.5, 1.0, 2 / 3, 1)
    assert scores.micro == metrics.Score(2, 2, 2, 0.5, 0.5, 0.5, 4)
    assert scores.macro[:3] == scores.weighted[:3] == (2, 2, 2)
    np.testing.assert_allclose(scores.macro[3:], [1 / 3, 0.5, (0.5 + 2 / 3) / 3, 4], rtol=1e-14)
    np.testing.assert_allclose(scores.weighted[3:], [0.375, 0.5, (1 + 2 / 3) / 4, 4], rtol=1e-14)
    assert scores.accuracy == 0.625
    assert scores.n_tokens == 8


@given(paired(labels_of("BIO")))
def test_conlleval_report_shows_the_scores(sides):
    scores = metrics.segment_scores(*sides)
    numbers = [float(x) for x in re.findall(r"(?:accuracy|precision|recall|FB1): +([\d.]+)", str(scores))]
    if scores.n_tokens:
        rows = [scores.micro, *scores.labels.values()]
        expected = [scores.accuracy, *(x for row in rows for x in (row.precision, row.recall, row.f1))]
        np.testing.assert_allclose(numbers, 100 * np.array(expected), rtol=0, atol=0.005 + 1e-9)
    else:
        assert numbers == []


# ---- segments -------------------------------------------------------------------------------------
@given(paired(labels_of("BIESO")))
def test_label_lists_and_segment_lists_score_alike(sides):
    by_labels = metrics.segment_scores(*sides, "iobes")
    true, pred = ([segments(labels, "iobes") for labels in side] for side in sides)
    plain = [[list(segment) for segment in sequence] for sequence in pred]
    mixed = [(sides[0], pred), (true, sides[1])] if any(true) and any(pred) else []
    for a, b in ((true, pred), (true, plain), *mixed):
        scores = metrics.segment_scores(a, b, "iobes")
        assert scores.labels == by_labels.labels
        assert scores.micro == by_labels.micro
        assert scores.accuracy is None or scores.accuracy == by_labels.accuracy


@settings(deadline=None)
@given(paired(labels_of("BIESO"), min_tokens=1))
def test_segment_scores_by_property(sides):
    y_true, y_pred = sides
    scores = metrics.segment_scores(y_true, y_pred, "iobes")
    swapped = metrics.segment_scores(y_pred, y_true, "iobes")
    assert (scores.micro.precision, scores.micro.recall) == (swapped.micro.recall, swapped.micro.precision)
    assert scores.micro.f1 == swapped.micro.f1
    assert scores.micro.support == sum(len(segments(labels, "iobes")) for labels in y_true)
    for score in (*scores.labels.values(), scores.micro):
        p, r = score.precision, score.recall
        np.testing.assert_allclose(score.f1, 2 * p * r / (p + r) if p + r else 0.0, rtol=1e-14)
    # Sets of (sequence, segment) as a binary problem for scikit-learn.
    sets = [{(i, s) for i, y in enumerate(side) for s in segments(y, "iobes")} for side in sides]
    items = sorted(sets[0] | sets[1])
    table = [[int(item in side) for item in items] for side in sets]
    if items:
        expected = sklearn.metrics.f1_score(*table, zero_division=0)
        np.testing.assert_allclose(scores.micro.f1, expected, rtol=1e-14)
    perfect = metrics.segment_scores(y_true, y_true, "iobes")
    assert perfect.micro.f1 == perfect.macro.f1 == (1.0 if perfect.labels else 0.0)


def test_segment_scores_without_anything():
    for y in ([], [[]], [["O"]]):
        scores = metrics.segment_scores(y, y)
        assert scores.labels == {}
        assert scores.micro == scores.macro == scores.weighted == (0, 0, 0, 0.0, 0.0, 0.0, 0)
    assert scores.accuracy == 1.0
    assert metrics.segment_scores([], []).accuracy == 0.0
    assert str(metrics.segment_scores([], [])) == "processed 0 tokens with 0 phrases; found: 0 phrases; correct: 0.\n"
    assert metrics.segment_scores([[(0, 1, "A")]], [[]]).labels["A"].fn == 1
    assert metrics.segment_scores([[]], [[(0, 1, "A")]]).labels["A"].fp == 1


def test_segment_scores_of_segments_print_without_accuracy():
    text = str(metrics.segment_scores([[(0, 1, 7)]], [[(0, 1, 7), (1, 2, 10)]]))
    assert text.startswith("processed 1 phrases; found: 2 phrases; correct: 1.\nprecision:  50.00%; recall: 100.00%")


def test_segment_scores_pass_the_reading_on():
    y = [["NP-B", "NP-I"]]
    assert list(metrics.segment_scores(y, y, suffix=True).labels) == ["NP"]
    plain = [["O", "A", "A"]]
    assert list(metrics.segment_scores(plain, plain, "plain").labels) == ["A", "O"]
    assert list(metrics.segment_scores(plain, plain, "plain", outside="O").labels) == ["A"]
    with pytest.raises(ValueError, match=r"y_pred\[1\]: label 'I-X' at position 1 is malformed iob2"):
        metrics.segment_scores([["O"], ["O", "O"]], [["O"], ["O", "I-X"]], strict=True)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([["O"]], [], "y_true has 1 sequences, y_pred has 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sequence 1: y_true has 2 labels, y_pred has 1"),
        ([["O", "O"]], [[]], "sequence 0: y_true has 2 labels, y_pred has 0"),
        ([["O", "NN"]], [["O", "O"]], r"y_true\[0\]: label 'NN' at position 1"),
        ([["O"]], [[(0, 2, "A")]], r"y_pred\[0\]: segment 0 is \(0, 2, 'A'\); expected .* <= 1, the length"),
        ([[(0, 2, "A"), (1, 3, "A")]], [[]], r"y_true\[0\]: .*overlap"),
        ([[(0, 2, "A"), "O"]], [[]], r"y_true\[0\]: segment 1 is 'O'"),
        ([[(2, 2, "A")]], [[]], r"y_true\[0\]: segment 0 is \(2, 2, 'A'\)"),
        ([[(0, 2, ["A"])]], [[]], r"y_true\[0\]: a label has no hash"),
    ],
)
def test_segment_score_errors(y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        metrics.segment_scores(y_true, y_pred)


# ---- tokens ---------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(
    paired(["a", "b", "c"], min_tokens=1),
    st.sampled_from(["micro", "macro", "weighted", None]),
    st.sampled_from([0.0, 1.0, math.nan]),
    st.sampled_from([None, ["a", "b"], ["c", "z", "a"], ["z"]]),
    st.booleans(),
)
def test_flat_scores_equal_scikit_learn(sides, average, zero_division, labels, weighted):
    flat = [flatten(side) for side in sides]
    weight = np.linspace(0.5, 2, len(flat[0])) if weighted else None
    options = {"average": average, "zero_division": zero_division, "labels": labels, "sample_weight": weight}
    for ours, theirs in FLAT.values():
        np.testing.assert_allclose(ours(*sides, **options), theirs(*flat, **options), rtol=1e-12, atol=0)
    for beta in (0.5, 2.0):
        ours = metrics.flat_fbeta_score(*sides, beta, **options)
        theirs = sklearn.metrics.fbeta_score(*flat, beta=beta, **options)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0)


@settings(deadline=None)
@given(paired([0, 1], min_tokens=1), st.sampled_from([0.0, 1.0]))
def test_binary_scores_equal_scikit_learn(sides, zero_division):
    flat = [flatten(side) for side in sides]
    for ours, theirs in FLAT.values():
        expected = theirs(*flat, zero_division=zero_division)
        np.testing.assert_allclose(ours(*sides, zero_division=zero_division), expected, rtol=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    paired(["B-x", "I-x", "O"], min_tokens=1),
    st.sampled_from([None, ["B-x", "I-x"], ["O", "I-x", "B-x", "a long name of a label"]]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([2, 4]),
    st.booleans(),
)
@example(([["accuracy", "b"]], [["accuracy", "accuracy"]]), None, 0.0, 2, False)
def test_report_equals_scikit_learn(sides, labels, zero_division, digits, weighted):
    flat = [flatten(side) for side in sides]
    options = {"labels": labels, "zero_division": zero_division}
    if weighted:
        options["sample_weight"] = [1 + i % 3 for i in range(len(flat[0]))]
    theirs = sklearn.metrics.classification_report
    if "accuracy" not in flat[0]:  # a label of that name is lost in a dictionary
        ours = metrics.flat_classification_report(*sides, output_dict=True, **options)
        expected = theirs(*flat, output_dict=True, **options)
        assert ours.keys() == expected.keys()
        for name, row in expected.items():
            assert ours[name] == pytest.approx(row, rel=1e-12)
    ours = metrics.flat_classification_report(*sides, digits=digits, **options)
    expected = theirs(*flat, digits=digits, **options)
    if any(t == p for t, p in zip(*flat, strict=True)) and not weighted:
        assert ours == expected
    else:  # scikit-learn turns the support into floats when nothing is right
        assert re.sub(r" +([0-9]+)(\.0)?\n", r" \1\n", ours) == re.sub(r" +([0-9]+)(\.0)?\n", r" \1\n", expected)


def test_report_by_hand():
    report = metrics.flat_classification_report([["a", "b"], ["b"]], [["a", "a"], ["b"]], target_names=["A", "B"])
    assert (
        report.split()
        == (
            "precision recall f1-score support A 0.50 1.00 0.67 1 B 1.00 0.50 0.67 2 "
            "accuracy 0.67 3 macro avg 0.75 0.75 0.67 3 weighted avg 0.83 0.67 0.67 3"
        ).split()
    )
    assert metrics.flat_classification_report([], [], zero_division=0).count("0.00") == 7
    with pytest.raises(ValueError, match="target_names has 1 names for 2 labels"):
        metrics.flat_classification_report([["a", "b"]], [["a", "b"]], target_names=["A"])


@settings(deadline=None)
@given(paired(["a", "b"]))
def test_accuracies(sides):
    y_true, y_pred = sides
    flat = [flatten(side) for side in sides]
    expected = sklearn.metrics.accuracy_score(*flat) if flat[0] else 0.0
    np.testing.assert_allclose(metrics.flat_accuracy_score(y_true, y_pred), expected, rtol=1e-14)
    right = [t == p for t, p in zip(y_true, y_pred, strict=True)]
    expected = np.mean(right) if right else 0.0
    np.testing.assert_allclose(metrics.sequence_accuracy_score(y_true, y_pred), expected, rtol=1e-14)


def test_flat_scores_without_tokens():
    assert metrics.flat_accuracy_score([], []) == metrics.sequence_accuracy_score([], []) == 0.0
    assert metrics.flat_f1_score([[]], [[]], average="macro", zero_division=0) == 0.0
    assert metrics.flat_f1_score([], [], average="micro", zero_division=1) == 1.0
    assert metrics.flat_f1_score([], [], average=None, zero_division=0).shape == (0,)
    assert math.isnan(metrics.flat_f1_score([], [], average="weighted", zero_division=math.nan))


def test_zero_division_warns_by_default():
    for score, name in ((metrics.flat_precision_score, "precision"), (metrics.flat_f1_score, "F-score")):
        with pytest.warns(RuntimeWarning, match=f"{name} is 0 / 0"):
            values = score([["a"]], [["a"]], labels=["a", "b"], average=None)
        np.testing.assert_array_equal(values, [1.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.flat_recall_score([["a", "b"]], [["a", "a"]], average="macro") == 0.5


def test_arrays_are_sequences():
    y = [np.array([0, 1, 1]), np.array([1])]
    assert metrics.flat_f1_score(y, [np.array([0, 1, 0]), [1]]) == 0.8
    assert metrics.sequence_accuracy_score(y, [[0, 1, 1], [0]]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: metrics.flat_accuracy_score(y, [["a"]]), "y_true has 2 sequences, y_pred has 1"),
        (
            lambda y: metrics.sequence_accuracy_score(y, [["a", "b"], []]),
            "sequence 1: y_true has 1 labels, y_pred",
        ),
        (lambda y: metrics.flat_f1_score(y, y), "average='binary' is for two labels, not 3"),
        (lambda y: metrics.flat_f1_score(y[:1], y[:1]), r"pos_label is 1, but the labels are \['a', 'b'\]"),
        (lambda y: metrics.flat_f1_score(y, y, average="samples"), "average is 'samples'"),
        (lambda y: metrics.flat_f1_score(y, y, average="micro", zero_division=2), "zero_division is 2"),
        (lambda y: metrics.flat_f1_score(y, y, average="micro", labels=["a", "a"]), "labels has repeats"),
        (
            lambda y: metrics.flat_f1_score(y, y, average="micro", sample_weight=[1]),
            r"sample_weight must have shape \(3,\), got \(1,\)",
        ),
        (lambda y: metrics.flat_fbeta_score(y, y, -1, average="micro"), "beta is -1"),
        (
            lambda y: metrics.flat_f1_score(y, [["a", None], ["c"]], average="micro"),
            r"y_pred\[0\]\[1\] is None",
        ),
        (
            lambda y: metrics.flat_f1_score([["a"], [["b"]]], [["a"], ["a"]], average="micro"),
            r"y_true\[1\]\[0\] is",
        ),
    ],
)
def test_flat_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call([["a", "b"], ["c"]])


# ---- trajectories ---------------------------------------------------------------------------------
def distance_by_recursion(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(
        distance_by_recursion(a[1:], b[1:]) + (a[0] != b[0]),
        distance_by_recursion(a[1:], b) + 1,
        distance_by_recursion(a, b[1:]) + 1,
    )


short_words = st.text("abc", max_size=5)


@given(short_words, short_words)
def test_edit_distance_equals_its_definition(a, b):
    assert metrics.edit_distance(a, b) == distance_by_recursion(a, b)


words = st.lists(st.integers(0, 3), max_size=30)


@given(words, words, words)
def test_edit_distance_is_a_metric(a, b, c):
    d = metrics.edit_distance
    assert d(a, a) == 0
    assert d(a, b) == d(b, a)
    assert (d(a, b) == 0) == (a == b)
    assert d(a, c) <= d(a, b) + d(b, c)
    assert abs(len(a) - len(b)) <= d(a, b) <= max(len(a), len(b))


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [("kitten", "sitting", 3), ("intention", "execution", 5), ("", "abc", 3), ("", "", 0)],
)
def test_edit_distance_by_hand(a, b, distance):
    assert metrics.edit_distance(a, b) == distance


@given(words)
def test_compress(labels):
    merged = metrics.compress(labels)
    assert metrics.compress(merged) == merged
    assert all(a != b for a, b in zip(merged, merged[1:], strict=False))
    assert merged == [s.label for s in segments(labels, "plain")]
    assert metrics.compress([x for x in labels for _ in range(3)]) == merged
    assert set(merged) == set(labels)


def test_trajectory_scores_by_hand():
    y_true = ["aabbb", "ccd", "aa"]  # ab, cd, a
    y_pred = ["ab", "cad", "b"]  # distances 0/2, 1/3, 1/1
    eds = metrics.edit_distance_score(y_true, y_pred)
    np.testing.assert_allclose(eds, 100 - 100 * (0 + 1 / 3 + 1) / 3, rtol=1e-14)
    np.testing.assert_allclose(metrics.exact_match_score(y_true, y_pred), 100 / 3, rtol=1e-14)
    assert metrics.exact_match_score(["aab"], ["ab"], merge=False) == 0.0
    np.testing.assert_allclose(metrics.edit_distance_score(["aab"], ["ab"], merge=False), 100 - 100 / 3, rtol=1e-14)


@given(paired(["a", "b", "c"]))
def test_trajectory_scores_by_property(sides):
    y_true, y_pred = sides
    eds, exact = metrics.edit_distance_score(y_true, y_pred), metrics.exact_match_score(y_true, y_pred)
    assert -1e-12 <= exact <= eds + 1e-12 <= 100 + 1e-12
    np.testing.assert_allclose(metrics.edit_distance_score(y_pred, y_true), eds, rtol=1e-12)
    assert exact >= 100 * metrics.sequence_accuracy_score(y_true, y_pred) - 1e-12


def test_trajectory_scores_without_anything():
    assert metrics.edit_distance_score([], []) == metrics.exact_match_score([], []) == 0.0
    assert metrics.edit_distance_score([[]], [[]]) == metrics.exact_match_score([[]], [[]]) == 100.0
    assert metrics.edit_distance_score([[]], [["a"]]) == 0.0
    with pytest.raises(ValueError, match="y_true has 1 sequences, y_pred has 2"):
        metrics.exact_match_score([["a"]], [["a"], ["b"]])


# ---- significance ---------------------------------------------------------------------------------
def micro_f1(y_true, y_pred):
    return metrics.segment_scores(y_true, y_pred).micro.f1


def systems(n, rng, error_a, error_b):
    """A truth and two systems that turn segments into O with the given probabilities."""
    y_true = [encode([(0, 2, "X"), (3, 4, "Y"), (4, 6, "X")], 7) for _ in range(n)]

    def spoil(labels, error):
        return encode([s for s in segments(labels) if rng.random() >= error], len(labels))

    return y_true, [spoil(y, error_a) for y in y_true], [spoil(y, error_b) for y in y_true]


def exact_p(y_true, a, b):
    """All 2^N shuffles."""
    n, observed, count = len(y_true), abs(micro_f1(y_true, a) - micro_f1(y_true, b)), 0
    for bits in range(2**n):
        sides = [[(x, y)[(bits >> i & 1) ^ k] for i, (x, y) in enumerate(zip(a, b, strict=True))] for k in (0, 1)]
        count += abs(micro_f1(y_true, sides[0]) - micro_f1(y_true, sides[1])) >= observed - 1e-12
    return count / 2**n


def test_randomization_test_estimates_the_exact_one():
    data = systems(8, np.random.default_rng(3), 0.1, 0.5)
    expected = exact_p(*data)
    assert 0.01 < expected < 0.5
    result = metrics.randomization_test(*data, n=20_000, seed=1)
    assert result.difference == micro_f1(*data[:2]) - micro_f1(data[0], data[2])
    np.testing.assert_allclose(result.p_value, expected, atol=4 * math.sqrt(expected / 20_000))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12))
def test_fast_path_equals_a_call_per_trial(seed, n):
    data = systems(n, np.random.default_rng(seed), 0.2, 0.4)
    fast = metrics.randomization_test(*data, n=50, seed=seed)
    slow = metrics.randomization_test(*data, micro_f1, 50, seed)
    assert fast.p_value == slow.p_value
    np.testing.assert_allclose(fast.difference, slow.difference, rtol=0, atol=1e-15)


def test_randomization_test_by_property():
    y_true, a, b = systems(60, np.random.default_rng(0), 0.1, 0.6)
    result = metrics.randomization_test(y_true, a, b, n=999, seed=5)
    assert result == metrics.randomization_test(y_true, a, b, n=999, seed=5)
    assert result == metrics.randomization_test(y_true, a, b, n=999, seed=np.random.default_rng(5))
    assert result.p_value == 0.001  # (0 + 1) / (999 + 1)
    assert result.difference > 0.2
    back = metrics.randomization_test(y_true, b, a, n=999, seed=5)
    assert back == (result.p_value, -result.difference)
    assert metrics.randomization_test(y_true, a, a, n=99) == (1.0, 0.0)
    assert metrics.randomization_test(y_true, a, b, n=0).p_value == 1.0
    by_segments = [[segments(labels) for labels in side] for side in (y_true, a, b)]
    assert metrics.randomization_test(*by_segments, n=999, seed=5) == result
    accuracy = metrics.randomization_test(y_true, a, b, metrics.flat_accuracy_score, n=199)
    assert accuracy.p_value == 0.005


def test_randomization_by_segments_estimates_the_exact_one():
    """All ways to give the segments that only one system has to either of the two."""
    y_true, a, b = systems(5, np.random.default_rng(6), 0.3, 0.5)
    sides = [[set(segments(labels)) for labels in side] for side in (y_true, a, b)]
    only = [(i, s) for i in range(5) for s in sides[1][i] ^ sides[2][i]]
    both = sum(len(x & y) for x, y in zip(*sides[1:], strict=True))
    total, found = sum(map(len, sides[0])), []
    for bits in range(2 ** len(only)):
        sizes = [both + sum((bits >> k & 1) == side for k in range(len(only))) for side in (0, 1)]
        # every segment of these systems is right
        found.append(2 * sizes[0] / (total + sizes[0]) - 2 * sizes[1] / (total + sizes[1]))
    observed = micro_f1(y_true, a) - micro_f1(y_true, b)
    more = np.array(found) * np.sign(observed) > abs(observed) + 1e-12
    two = np.abs(found) >= abs(observed) - 1e-12
    for one_sided, expected in ((True, more.mean()), (False, two.mean())):
        result = metrics.randomization_test(y_true, a, b, n=20_000, seed=1, unit="segment", one_sided=one_sided)
        assert 0.0 < expected < 0.5
        np.testing.assert_allclose(result.difference, observed, rtol=1e-12)
        np.testing.assert_allclose(result.p_value, expected, atol=4 * math.sqrt(expected / 20_000))
    assert metrics.randomization_test(y_true, a, a, n=99, unit="segment", one_sided=True) == (1.0, 0.0)


def test_randomization_test_p_values_are_valid():
    """Under the null hypothesis P(p' <= alpha) <= alpha."""
    rng = np.random.default_rng(11)
    p = [metrics.randomization_test(*systems(15, rng, 0.3, 0.3), n=99, seed=i).p_value for i in range(300)]
    for alpha in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p) <= alpha) <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 300)


def test_randomization_test_does_not_depend_on_chunks():
    size, n = 50_000, 60  # 20 trials at a time
    rng = np.random.default_rng(8)
    hits = rng.random((2, size)) < 0.5
    systems_ab = [[["B-X"] if hit else ["O"] for hit in row] for row in hits.tolist()]
    result = metrics.randomization_test([["B-X"]] * size, *systems_ab, n=n, seed=4)
    swaps = np.random.default_rng(4).random((n, size)) < 0.5
    shuffled = np.stack([np.where(swaps, hits[1], hits[0]).sum(1), np.where(swaps, hits[0], hits[1]).sum(1)])
    f1 = 2 * shuffled / (size + shuffled)
    observed = np.subtract(*(2 * hits.sum(1) / (size + hits.sum(1))))
    n_c = np.count_nonzero(np.abs(f1[0] - f1[1]) >= abs(observed) - 1e-12)
    assert 0 < n_c < n
    assert result.p_value == (n_c + 1) / (n + 1)
    np.testing.assert_allclose(result.difference, observed, rtol=1e-12)


def test_randomization_test_without_anything_and_errors():
    assert metrics.randomization_test([], [], []) == (1.0, 0.0)
    assert metrics.randomization_test([], [], [], unit="segment") == (1.0, 0.0)
    with pytest.raises(ValueError, match="unit is 'token'"):
        metrics.randomization_test([], [], [], unit="token")
    with pytest.raises(ValueError, match="another score has no segments"):
        metrics.randomization_test([], [], [], micro_f1, unit="segment")
    with pytest.raises(ValueError, match="y_true has 1 sequences, pred_b has 2"):
        metrics.randomization_test([["O"]], [["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sequence 0: y_true has 1 labels, pred_a has 2"):
        metrics.randomization_test([["O"]], [["O", "O"]], [["O"]])
    with pytest.raises(ValueError, match=r"pred_b\[0\]: label 'x' at position 0"):
        metrics.randomization_test([["O"]], [["O"]], [["x"]])
    with pytest.raises(ValueError, match="score is 'bleu'"):
        metrics.randomization_test([["O"]], [["O"]], [["O"]], "bleu")
    with pytest.raises(ValueError, match="n must be at least 0, got -1"):
        metrics.randomization_test([["O"]], [["O"]], [["O"]], n=-1)


def test_metrics_do_not_import_scikit_learn():
    code = "import sys, scansion.metrics; sys.exit(bool({'sklearn', 'scipy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- action segmentation --------------------------------------------------------------------------


def overlap_by_hand(true, pred, overlap):
    """As the literature's code does: an array of overlaps, its largest entry, hits."""
    tp = fp = fn = 0
    for one, other in zip(true, pred, strict=True):
        wanted = segments(one, "plain")
        hits = np.zeros(len(wanted), bool)
        for p in segments(other, "plain"):
            common = np.minimum(p.stop, [w.stop for w in wanted]) - np.maximum(p.start, [w.start for w in wanted])
            union = np.maximum(p.stop, [w.stop for w in wanted]) - np.minimum(p.start, [w.start for w in wanted])
            shares = common / union * np.array([w.label == p.label for w in wanted])
            best = int(np.argmax(shares))
            if shares[best] >= overlap and not hits[best]:
                hits[best] = True
                tp += 1
            else:
                fp += 1
        fn += int(len(hits) - hits.sum())
    return tp, fp, fn


frames = st.integers(1, 12).flatmap(lambda n: st.tuples(*[st.text("abc", min_size=n, max_size=n)] * 2))


@given(st.lists(frames, min_size=1, max_size=4), st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_overlap_scores(pairs, overlap):
    true, pred = zip(*pairs, strict=True)
    score = metrics.overlap_scores(true, pred, overlap)
    assert (score.tp, score.fp, score.fn) == overlap_by_hand(true, pred, overlap)
    given_segments = [[tuple(s) for s in segments(row, "plain")] for row in pred]
    assert metrics.overlap_scores(true, given_segments, overlap) == score
    assert metrics.overlap_scores(true, true, overlap).f1 == 1.0
    exact = metrics.segment_scores(list(map(list, true)), list(map(list, pred)), "plain").micro
    assert overlap != 1.0 or score == exact


def test_action_scores():
    scores = metrics.action_scores(["aaaabbbbcc"], ["aabbbbbbbb"])
    assert scores.accuracy == pytest.approx(60) and scores.mean_accuracy == pytest.approx(100 * (0.5 + 1 + 0) / 3)
    assert scores.edit == pytest.approx(100 * 2 / 3)
    assert scores.f1 == {10: pytest.approx(80), 25: pytest.approx(80), 50: pytest.approx(80)}
    assert str(scores).startswith("F1@10 80.0  F1@25 80.0  F1@50 80.0  edit 66.7  accuracy 60.0")
    without = metrics.action_scores(["aaaabbbbcc"], ["aabbbbbbbb"], ignore="c")
    assert without.f1[50] == pytest.approx(100) and without.edit == 100 and without.accuracy == scores.accuracy
    spans = [[(0, 2, "a"), (2, 10, "b")]]
    assert metrics.action_scores(["aaaabbbbcc"], spans) == scores
    with pytest.raises(ValueError, match="y_true has 10 labels, y_pred has 9"):
        metrics.action_scores(["aaaabbbbcc"], ["aabbbbbbb"])
    with pytest.raises(ValueError, match="overlap is 0"):
        metrics.overlap_scores(["a"], ["a"], 0)


def test_relaxed_boundaries():
    true, pred = ["aaaabbbb"], ["aaabbbbb"]
    assert [metrics.relaxed_accuracy_score(true, pred, n) for n in (0, 1)] == [7 / 8, 1.0]
    assert (
        metrics.relaxed_accuracy_score(["aaaa"], ["abab"], 3) == 0.5
        and metrics.relaxed_accuracy_score([], [], 1) == 0.0
    )
    assert [metrics.boundary_f1_score(true, pred, n) for n in (0, 1)] == [0.0, 1.0]
    assert metrics.boundary_f1_score(["aabbcc"], ["aaabcc"], 1) == 1.0
    assert metrics.boundary_f1_score(["aabb"], ["abab"], 1) == pytest.approx(0.5)  # one of three
    for score in (metrics.relaxed_accuracy_score, metrics.boundary_f1_score):
        with pytest.raises(ValueError, match="tolerance must be at least 0, got -1"):
            score(true, pred, -1)
