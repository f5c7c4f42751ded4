"""The border of nested lattices: shapes, values, constraints and configurations that are refused, and why."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from test_nested import sized

import scansion as sc


def valid(n=5):
    rng = np.random.default_rng(0)
    return {
        "persist": [np.zeros((n, n, 1)), sc.Persistence(inside=rng.normal(size=(n, 2)), length=np.zeros((3, 2))),
                    rng.normal(size=(n, 1, 3))],
        "transit": [rng.normal(size=(1, 2, 2)), rng.normal(size=(n - 1, 2, 3, 3))],
        "init": [rng.normal(size=(1, 2)), rng.normal(size=(n, 2, 3))],
        "end": [rng.normal(size=(1, 2)), rng.normal(size=(2, 3))],
        "children": [np.ones((1, 2), bool), np.ones((2, 3), bool)],
    }  # fmt: skip


def changed(name, d, value):
    given = valid()
    given[name] = [value if i == d else x for i, x in enumerate(given[name])]
    return given


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["transit", "init", "end"])
def test_nan_and_plus_infinity(name, bad):
    array = valid()[name][1].copy()
    array[(1,) * array.ndim] = bad
    with pytest.raises(ValueError, match=rf"{name}\[1\]\[1, 1"):
        sc.NestedLattice(**changed(name, 1, array))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["inside", "start", "stop", "length", "spans"])
def test_nan_and_plus_infinity_in_persistence(part, bad):
    shape = {"length": (3, 2), "spans": (5, 3, 2)}.get(part, (5, 2))
    array = np.zeros(shape)
    array[(1,) * array.ndim] = bad
    with pytest.raises(ValueError, match=rf"persist\[1\]\.{part}\[1, 1"):
        sc.NestedLattice(**changed("persist", 1, sc.Persistence(**{part: array})))


@pytest.mark.parametrize(
    ("name", "d", "value", "match"),
    [
        ("persist", 0, np.zeros((5, 4, 1)), r"persist\[0\].*whole sequence"),
        ("persist", 0, sc.Persistence(inside=np.zeros((5, 1)), max_length=4), r"persist\[0\].*whole sequence"),
        ("persist", 1, np.zeros((5, 2)), r"persist\[1\].*shape"),
        ("persist", 1, np.zeros((5, 0, 2)), r"persist\[1\].*length 1"),
        ("persist", 2, np.zeros((4, 1, 3)), r"persist\[2\].*\(5, M, 3\).*\(4, 1, 3\)"),
        ("persist", 2, np.zeros((5, 1, 0)), r"persist\[2\].*at least one state"),
        ("persist", 1, sc.Persistence(inside=np.zeros((4, 2))), r"persist\[1\]\.inside.*\(5, 2\).*\(4, 2\)"),
        ("persist", 1, sc.Persistence(stop=np.zeros((5, 3))), r"persist\[1\]|init\[0\]|transit\[0\]"),
        ("persist", 1, sc.Persistence(length=np.zeros((0, 2))), r"persist\[1\]\.length.*length 1"),
        ("persist", 1, sc.Persistence(length=np.zeros((2, 2)), max_length=3), r"persist\[1\]\.length.*\(3, 2\)"),
        ("persist", 1, sc.Persistence(inside=np.zeros((5, 2)), max_length=0), r"persist\[1\]\.max_length.*0"),
        ("persist", 1, sc.Persistence(inside=np.zeros((5, 2)), max_length=2.5), r"persist\[1\]\.max_length.*2\.5"),
        ("transit", 0, np.zeros((2, 2)), r"transit\[0\]"),
        ("transit", 1, np.zeros((5, 2, 3, 3)), r"transit\[1\].*\(4, 2, 3, 3\)"),
        ("init", 0, np.zeros((2, 2)), r"init\[0\].*\(1, 2\)"),
        ("end", 1, np.zeros((4, 2, 3)), r"end\[1\].*\(5, 2, 3\)"),
        ("end", 1, np.zeros((2, 3), complex), r"end\[1\].*complex"),
        ("children", 0, np.ones((2, 2), bool), r"children\[0\].*\(1, 2\)"),
        ("children", 1, np.ones((2, 3)), r"children\[1\].*boolean"),
    ],
)
def test_wrong_arguments(name, d, value, match):
    with pytest.raises(ValueError, match=match):
        sc.NestedLattice(**changed(name, d, value))


def test_wrong_numbers_of_levels():
    given = valid()
    with pytest.raises(ValueError, match="transit must have 2 entries"):
        sc.NestedLattice(**{**given, "transit": given["transit"][:1]})
    with pytest.raises(ValueError, match="at least 2 levels"):
        sc.NestedLattice(given["persist"][:1], [], [], [])
    with pytest.raises(ValueError, match="list with one entry per level"):
        sc.NestedLattice(sc.Persistence(), [], [], [])
    with pytest.raises(ValueError, match="length of the sequence"):
        sc.NestedLattice([sc.Persistence(), sc.Persistence()], [np.zeros((1, 2, 2))], *([[np.zeros((1, 2))]] * 2))


def test_states_told_by_cliques_alone():
    persist = [sc.Persistence(), sc.Persistence(), np.zeros((4, 1, 3))]
    given = valid()
    edges = [given["init"][0], np.zeros((2, 3))]
    lattice = sc.NestedLattice(persist, [given["transit"][0], np.zeros((2, 3, 3))], edges, edges)
    assert lattice.sizes == (1, 2, 3)
    assert len(lattice) == 4
    assert "1, 2, 3" in repr(lattice)


@pytest.mark.parametrize("offsets", [None, [0, 4], [0, 6], [1, 5], [0, 5, 3, 5], [0.0, 5.0], []])
def test_wrong_offsets(offsets):
    given = valid()
    given["transit"][1] = np.zeros((2, 3, 3))
    with pytest.raises(ValueError, match=r"offsets|persist\[0\]"):
        sc.NestedBatch(given["persist"], given["transit"], given["init"], given["end"], offsets)


def test_impossible_lattices():
    for name in ("init", "end"):
        lattice = sc.NestedLattice(**changed(name, 0, np.full((1, 2), -np.inf)))
        for question in ("log_partition", "viterbi", "marginals", "entropy", "log_partition_and_gradient"):
            with pytest.raises(ValueError, match="no configuration is possible"):
                getattr(lattice, question)()
        for question in (lattice.kbest, lattice.sample):
            with pytest.raises(ValueError, match="no configuration is possible"):
                question(2)
    with pytest.raises(ValueError, match="no configuration is possible"):
        sc.NestedLattice(**changed("children", 0, np.zeros((1, 2), bool))).log_partition()
    bottom = valid()["persist"][2]
    bottom[3] = -np.inf
    with pytest.raises(ValueError, match="beyond position 3"):
        sc.NestedLattice(**changed("persist", 2, bottom)).log_partition()


@pytest.mark.parametrize(
    ("labels", "boundaries", "match"),
    [
        ({1: [0] * 4}, None, r"level 1: labels"),
        ({1: [0, 0, 2, 0, 0]}, None, r"level 1: labels\[2\] = 2"),
        ({3: [0] * 5}, None, "level 3"),
        ({"x": [0] * 5}, None, "level of labels"),
        (np.zeros(5, int), None, "labels must be a dict"),
        ({1: np.zeros((5, 2), bool)}, None, r"labels\[1\]\[0\] allows no state"),
        (None, {1: [-1, 0, 1, 0, 2]}, r"level 1: boundaries\[4\] = 2"),
        (None, {1: [-1] * 4 + [0]}, r"boundaries\[1\]\[4\] is 0.*always ends"),
        (None, {0: [-1, 1, -1, -1, 1]}, r"boundaries\[0\]\[1\] is 1.*root"),
        (None, {2: [-1, 0, -1, -1, -1]}, r"boundaries\[2\]\[1\] is 0.*length 1"),
        (None, {1: [0, 0, 0, 0, 1]}, "no configuration is possible: the constraints"),
    ],
)
def test_wrong_constraints(labels, boundaries, match):
    with pytest.raises(ValueError, match=match):
        sc.NestedLattice(**valid()).constrain(labels, boundaries)


def test_boundaries_of_two_levels_that_contradict_each_other():
    lattice = sized(5, bounds=(None, None, None))
    with pytest.raises(ValueError, match=r"boundaries\[2\]\[1\] is 0, but a segment of level 1 is known to end"):
        lattice.constrain(boundaries={1: [-1, 1, -1, -1, -1], 2: [-1, 0, -1, -1, -1]})


def test_constraints_as_a_list():
    lattice = sized(5, bounds=(None, 3, 1))
    x = lattice.constrain(labels=[None, [0, -1, -1, -1, 1], None]).log_partition()
    assert x == lattice.constrain(labels={1: [0, -1, -1, -1, 1]}).log_partition()
    assert x == lattice.constrain(labels={-2: [0, -1, -1, -1, -1]}).constrain({1: [-1] * 4 + [1]}).log_partition()


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ([[(0, 5, 0)]], "list of 3 levels"),
        ([[(0, 5, 0)], [(0, 5)], []], r"config\[1\] must be a list of segments"),
        ([[(0, 5, 0)], [(0, 3, 0), (3, 5, 1)], [(t, t + 1, 0) for t in range(4)]], r"config\[2\] covers"),
        ([[(0, 5, 0)], [(0, 5, 0)], [(t, t + 1, 0) for t in range(5)]], r"config\[1\]\[0\].*longer.*3"),
        ([[(0, 5, 0)], [(0, 3, 0), (3, 5, 2)], [(t, t + 1, 0) for t in range(5)]], r"config\[1\]\[1\].*state 2"),
        ([[(0, 3, 0), (3, 5, 0)], [(0, 3, 0), (3, 5, 1)], []], r"config\[0\].*one segment"),
    ],
)
def test_wrong_configurations(config, match):
    with pytest.raises(ValueError, match=match):
        sc.NestedLattice(**valid()).score(config)


def test_children_that_cross_their_parents():
    lattice = sized(5, bounds=(None, 3, 3))
    with pytest.raises(ValueError, match=r"config\[1\]\[0\] = \(0, 3, 0\) stops inside a segment of level 2"):
        lattice.score([[(0, 5, 0)], [(0, 3, 0), (3, 5, 1)], [(0, 2, 0), (2, 5, 1)]])


def test_empty_sequence():
    lattice = sc.NestedLattice(
        [np.zeros((0, 1, 1)), np.zeros((0, 2, 2))], [np.zeros((1, 2, 2))], [np.zeros((1, 2))], [np.zeros((1, 2))]
    )
    assert lattice.log_partition() == lattice.entropy() == 0.0
    assert lattice.viterbi() == ([[], []], 0.0)
    assert lattice.kbest(3) == [([[], []], 0.0)]
    assert lattice.sample(2, 0) == [[[], []]] * 2
    assert lattice.score([[], []]) == 0.0
    assert lattice.marginals().labels[1].shape == (0, 2)


def test_inputs_are_not_modified_and_may_be_strided():
    given = valid()
    twice = {
        name: [np.repeat(a, 2, axis=-1)[..., ::2] if isinstance(a, np.ndarray) else a for a in arrays]
        for name, arrays in given.items()
    }
    for arrays in twice.values():
        for array in arrays:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
    lattice = sc.NestedLattice(**twice)
    assert lattice.log_partition() == sc.NestedLattice(**given).log_partition()
    lattice.log_partition_and_gradient()
    for name, arrays in valid().items():
        for d, array in enumerate(arrays):
            if isinstance(array, np.ndarray):
                assert_array_equal(given[name][d], array)


def test_compressed_is_for_flat_lattices():
    assert not hasattr(sized(3), "compressed")
    with pytest.raises(AttributeError, match="chains and segments"):
        sized(3).compressed()
