"""Targets by level: reading, nesting, what levels say of each other, columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import scansion as sc
from scansion import Segment
from scansion.data import encode_levels, level_names, levels_from_columns

LEVELS = ["top", "low"]


def encoded(y, sizes, **settings):
    return encode_levels(y, sizes, settings.pop("levels", LEVELS), **settings)


def ends(targets):
    return [level.ends.tolist() for level in targets.levels]


def test_segments_by_level():
    y = [{"top": [(0, 3, "A"), (3, 4, "B")], "low": [(0, 1, "x"), (1, 3, "y"), (3, 4, "x")]}]
    targets, labels = encoded(y, [4])
    assert labels == [["A", "B"], ["x", "y"]]
    assert [level.labels.tolist() for level in targets.levels] == [[0, 0, 0, 1], [0, 1, 1, 0]]
    assert ends(targets) == [[0, 0, 1, 1], [1, 0, 1, 1]]
    assert targets.complete.tolist() == [True] and targets.known.tolist() == [True]
    assert [level.longest for level in targets.levels] == [3, 2]


def test_a_list_is_by_order_of_the_levels():
    segments = [[(0, 2, "A")], [(0, 1, "x"), (1, 2, "y")]]
    one, _ = encoded([segments], [2])
    other, _ = encoded([{"low": segments[1], "top": segments[0]}], [2])
    assert ends(one) == ends(other) == [[0, 1], [1, 1]]


def test_boundaries_go_down_and_the_inside_goes_up():
    y = [{"top": [(1, 2, "A")], "low": [(3, 5, "x")]}]
    targets, _ = encoded(y, [6])
    # the top level ends at 0 and at 1, hence the lower one does; the lower one is inside at 3, hence the upper one is
    assert ends(targets) == [[1, 1, -1, 0, -1, 1], [1, 1, 1, 0, 1, 1]]
    assert not targets.complete[0] and targets.known[0]


def test_what_follows_from_other_levels_may_complete_a_sequence():
    y = [{"top": {"labels": ["A", "A", "B"], "boundaries": [None, 1, None]}, "low": [(0, 2, "x"), (2, 3, "x")]}]
    targets, _ = encoded(y, [3])
    assert targets.complete[0]
    assert ends(targets) == [[0, 1, 1], [0, 1, 1]]


def test_columns_of_labels_and_single_steps():
    column = ["a", "a", "b", None]
    merged, _ = encoded([[column]], [4], levels=["one"])
    assert ends(merged) == [[0, 1, -1, 1]] and merged.levels[0].longest == 2
    single, _ = encoded([[column]], [4], levels=["one"], max_lengths=[1])
    assert ends(single) == [[1, 1, 1, 1]] and single.levels[0].longest == 1


def test_boundaries_above_cut_runs_of_equal_labels():
    y = [{"top": ["A", "A", "B"], "low": ["x", "x", "x"]}]
    targets, _ = encoded(y, [3])
    assert ends(targets) == [[0, 1, 1], [0, 1, 1]] and targets.complete[0]
    assert levels_from_columns({name: [y[0][name]] for name in LEVELS})[0]["low"] == [(0, 2, "x"), (2, 3, "x")]
    columns = {"top": [["A", "B", None]], "low": [["O", "O", "O"]]}
    found = levels_from_columns(columns, {"low": "iob2"})[0]
    assert found["top"] == {"labels": ["A", "B", None], "boundaries": [1, None, None]}
    assert found["low"] == [(0, 1, "O"), (1, 3, "O")]


def test_unknown_levels_sequences_and_sets():
    y = [None, {"low": None}, {"low": [{"x", "y"}, "z"]}, {"top": []}, [None, ["x"]]]
    targets, labels = encoded(y, [1, 1, 2, 1, 1], max_lengths=[None, 1])
    assert labels == [[], ["x", "y", "z"]]
    assert targets.known.tolist() == [False, False, True, False, True]
    assert not targets.complete.any()
    assert_array_equal(targets.levels[1].allowed[2], [True, True, False])


def test_empty_sequences():
    targets, _ = encoded([{"top": [], "low": []}, {"top": [(0, 1, "A")], "low": ["x"]}], [0, 1])
    assert targets.complete.tolist() == [True, True] and targets.known.tolist() == [False, True]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([{"top": [(0, 2, "A"), (2, 4, "B")], "low": [(0, 1, "x"), (1, 3, "y")]}],
         r"y\[0\] does not nest: at level 'low' the segment \(1, 3, 'y'\) goes on after position 1, where at "
         r"level 'top' the segment \(0, 2, 'A'\) ends"),
        ([{"top": {"boundaries": [None, 1, None, None]}, "low": [(1, 3, None)]}], r"segment \(1, 3, None\) goes on"),
        ([{"tip": []}], r"y\[0\] has the level 'tip', which is not one of the levels: top, low"),
        ([[(0, 1, "A"), (1, 4, "B")]], r"y\[0\] is a list of segments: give one such list per level \(top, low\)"),
        ([[[]]], r"y\[0\] has 1 entries, but there are 2 levels"),
        (["ab"], r"y\[0\] must be a dict level -> segments"),
        ([7], r"y\[0\] must be a dict level -> segments"),
        ([{"top": [(0, 5, "A")]}], r"level 'top': y\[0\]\[0\] = \(0, 5, 'A'\) leaves sequence 0"),
        ([{"low": [(0, 3, "x"), (2, 4, "x")]}], r"level 'low': y\[0\] has overlapping segments"),
        ([{"low": ["x"]}], r"level 'low': y\[0\] has 1 labels, but sequence 0 of X has 4 tokens"),
        ([{"low": {"label": ["x"]}}], r"level 'low': y\[0\] has the key 'label': what is known of a level is"),
        ([{"low": {"boundaries": [1]}}], r"level 'low': y\[0\] has 1 boundaries"),
        ([{"low": {"boundaries": [1, 2, 0, 1]}}], r"level 'low': y\[0\], boundary 1, is 2: it must be 1, 0 or None"),
        ([{"low": {"boundaries": [1, 1, 0, 0]}}], r"level 'low': y\[0\], boundary 3, is 0"),
        ([None, None], "y has 2 sequences, but X has 1"),
    ],
)  # fmt: skip
def test_errors_name_sequence_level_and_segment(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        encoded(y, [4])


def test_errors_of_bounds_and_labels():
    with pytest.raises(ValueError, match=r"level 'top': y\[1\] has a segment \(1, 4\) of 3 tokens, longer"):
        encoded([None, {"top": [(0, 1, "A"), (1, 4, "A")]}], [2, 4], max_lengths=[2, None])
    with pytest.raises(ValueError, match=r"level 'low': y\[0\] has a segment over positions 1 and 2, longer"):
        encoded([{"low": [(1, 3, "x")]}], [4], max_lengths=[None, 1])
    with pytest.raises(ValueError, match=r"level 'low': y\[0\]\[1\] is the label 'z', which is not one of"):
        encoded([{"low": ["x", "z"]}], [2], labels=[["A"], ["x", "y"]])


@pytest.mark.parametrize("names", ["ab", 3, [], ["a", "a"], [1], [""]])
def test_names_of_levels(names):
    with pytest.raises(ValueError, match="levels must be"):
        level_names(names)


# Columns ------------------------------------------------------------------------------------------


def test_columns_of_every_scheme():
    columns = {"chunk": [["B-NP", "I-NP", "O", "O"], []], "run": [["a", "a", "b", "b"], []], "pos": [list("DNVP"), []]}
    y = levels_from_columns(columns, {"chunk": "iob2", "pos": "tokens"})
    assert y[1] == {"chunk": [], "run": [], "pos": []}
    assert y[0]["chunk"] == [(0, 2, "NP"), (2, 4, "O")]
    assert y[0]["run"] == [(0, 2, "a"), (2, 4, "b")]
    assert y[0]["pos"] == [(t, t + 1, label) for t, label in enumerate("DNVP")]
    apart = levels_from_columns({"chunk": columns["chunk"]}, "iob2", outside="none", outside_runs=False)
    assert apart[0]["chunk"] == [Segment(0, 2, "NP"), Segment(2, 3, "none"), Segment(3, 4, "none")]


def test_columns_with_unknown_labels():
    y = levels_from_columns({"chunk": [["U-A", None, "B-B", "L-B", "O"]]}, "bilou")
    assert y[0]["chunk"] == {"labels": ["A", None, "B", "B", "O"], "boundaries": [None, None, 0, 1, 1]}
    targets, _ = encode_levels(y, [5], ["chunk"])
    assert ends(targets) == [[-1, -1, 0, 1, 1]]


@pytest.mark.parametrize(
    ("columns", "schemes", "message"),
    [
        ({"a": [["x"]], "b": [["x"], ["y"]]}, "plain", "column 'b' has 2 sequences, but 'a' has 1"),
        ({"a": [["x"]], "b": [["x", "y"]]}, "plain", "sequence 0: column 'b' has 2 labels, but 'a' has 1"),
        ({"a": [["x", "y"]], "b": [["B-z", "I-z"]]}, {"b": "iob2"}, r"y\[0\] does not nest"),
        ({"a": [["Z-NP"]]}, "iob2", "sequence 0: label 'Z-NP' at position 0"),
        ({"a": [["x"]]}, "ibo", "unknown scheme 'ibo'"),
        ({"a": [["x"]]}, {"b": "plain"}, "schemes has the level 'b', which is not one of the columns: a"),
        ({}, "plain", "levels must be"),
    ],
)
def test_errors_of_columns(columns, schemes, message):
    with pytest.raises(ValueError, match=message):
        levels_from_columns(columns, schemes)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans(), st.booleans()), max_size=8))
def test_columns_and_segments_say_the_same(rows):
    """Nested segments, written as tags and read again."""
    size = len(rows)
    top, low = [], []
    for t, (a, b, _, _) in enumerate(rows):
        new = t == 0 or rows[t - 1][2]
        if new:
            top.append([t, t + 1, f"A{a}"])
        else:
            top[-1][1] += 1
        if new or rows[t - 1][3]:
            low.append([t, t + 1, f"b{b}"])
        else:
            low[-1][1] += 1
    y = [{"top": list(map(tuple, top)), "low": list(map(tuple, low))}]
    columns = {name: [sc.schemes.encode(y[0][name], size, "bilou")] for name in LEVELS}
    assert levels_from_columns(columns, "bilou") == y
    targets, _ = encoded(y, [size])
    assert targets.complete.all()
    for k, name in enumerate(LEVELS):
        assert np.flatnonzero(targets.levels[k].ends).tolist() == [v - 1 for _, v, _ in y[0][name]]
