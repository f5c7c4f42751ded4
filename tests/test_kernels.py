"""The native kernels themselves: their exponential, their instruction sets, and when they leave linear space."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import scansion as sc
from scansion import _core
from scansion.reference import chain, segment
from scansion.reference import enumeration as brute

# The exponential -----------------------------------------------------------------------------------


def exponential(x):
    out = np.full(len(x), np.nan)
    _core.exp(np.asarray(x, dtype=np.float64), out)
    return out


def in_ulps(x):
    """Error of the kernels' exponential in units of the last place."""
    expected = np.array([math.exp(value) for value in x])
    return np.abs(exponential(x) - expected) / np.spacing(expected)


def test_exponential_of_many_numbers():
    rng = np.random.default_rng(0)
    for x in (
        rng.uniform(-708.0, 709.0, size=200_000),
        rng.uniform(-1.0, 1.0, size=50_000),
        rng.normal(size=50_000) * 1e-9,
        np.linspace(-708.0, 709.0, 50_001),
    ):
        assert in_ulps(x).max() <= 2.0


def test_exponential_where_its_reduction_switches():
    halves = (np.arange(-2042, 2046) / 2.0) * math.log(2.0)
    for shift in (-1e-12, -1e-15, 0.0, 1e-15, 1e-12):
        x = halves + shift
        assert in_ulps(x[(x >= -708.0) & (x <= 709.0)]).max() <= 2.0


def test_exponential_at_the_edges():
    edges = [0.0, -0.0, 5e-324, -5e-324, 1e-300, -1e-300, 709.0, np.nextafter(709.0, 0.0), -708.0]
    assert in_ulps(edges).max() <= 2.0
    assert_array_equal(exponential([0.0, -0.0]), 1.0)
    assert_array_equal(exponential([-np.inf, -1e308, -1e4, -745.0, np.nextafter(-708.0, -np.inf)]), 0.0)


@pytest.mark.parametrize("size", range(14))
def test_exponential_of_every_length(size):
    x = np.linspace(-3.0, 3.0, size)
    assert_allclose(exponential(x), np.exp(x), rtol=1e-15, atol=0)


@given(st.floats(-708.0, 709.0))
def test_exponential(x):
    assert in_ulps([x]).max() <= 2.0


# Instruction sets ----------------------------------------------------------------------------------

ANSWERS = """
import json, sys
import numpy as np
import scansion as sc
from scansion import _core

rng = np.random.default_rng(0)
answers = {"instruction set": _core.instruction_set()}

def keep(name, lattice):
    marginals = lattice.marginals()
    numbers = [lattice.log_partition(), lattice.entropy(), lattice.viterbi()[1]]
    answers[name] = [numbers, marginals.labels.ravel().tolist()]
    for part in ("boundaries", "segments", "transition_counts"):
        try:
            answers[name].append(getattr(marginals, part).ravel().tolist())
        except AttributeError:
            pass

for n_labels in (1, 2, 3, 4, 5, 7, 8, 23, 30):
    transition = rng.normal(size=(n_labels, n_labels))
    keep(f"chain of {n_labels}", sc.ChainLattice(rng.normal(size=(40, n_labels)), transition))
keep("transitions by time", sc.ChainLattice(rng.normal(size=(40, 6)), rng.normal(size=(39, 6, 6))))
transition = rng.normal(size=(5, 5))
transition[rng.random((5, 5)) < 0.3] = -np.inf
np.fill_diagonal(transition, 0.0)
keep("forbidden transitions", sc.ChainLattice(rng.normal(size=(60, 5)), transition))
keep("large scores", sc.ChainLattice(rng.normal(size=(60, 5)) * 300, transition * 100))
for n_labels in (2, 5):
    patterns = [(y,) for y in range(n_labels)] + [(a, b) for a in range(n_labels) for b in range(n_labels)]
    scores = rng.normal(size=(30, 4, len(patterns)))
    keep(f"segments of {n_labels}", sc.SegmentLattice(scores, patterns, n_labels))
    parts = {"start": rng.normal(size=len(patterns)), "inside": np.zeros((50, len(patterns))),
             "length": np.zeros((7, len(patterns)))}
    parts["inside"][:, :n_labels] = rng.normal(size=(50, n_labels))
    parts["length"][:, :n_labels] = rng.normal(size=(7, n_labels))
    keep(f"additive segments of {n_labels}", sc.SegmentLattice.from_parts(patterns, n_labels, 7, **parts))
keep("third order", sc.ChainLattice.from_patterns(rng.normal(size=(30, 4)), [(0,), (1, 0), (0, 1, 0), (1, 1, 0, 0)], 2))
json.dump(answers, sys.stdout)
"""


def answers_of(isa):
    environment = {name: value for name, value in os.environ.items() if name != "SCANSION_ISA"}
    if isa:
        environment["SCANSION_ISA"] = isa
    done = subprocess.run([sys.executable, "-c", ANSWERS], env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_instruction_sets_agree():
    default, baseline = answers_of(None), answers_of("baseline")
    assert baseline.pop("instruction set") == "baseline"
    assert default.pop("instruction set") in ("avx2", "baseline")
    assert default.keys() == baseline.keys()
    for name, arrays in default.items():
        for array, other in zip(arrays, baseline[name], strict=True):
            assert_allclose(array, other, rtol=1e-12, atol=1e-15, err_msg=name)


def test_instruction_set_in_use():
    assert _core.instruction_set() in ("avx2", "baseline")


# Leaving linear space ------------------------------------------------------------------------------


def escaped(lattice):
    """How many sequences needed the log-space kernel."""
    return lattice._batch._core.posteriors(1)["escaped"]


def check_chain(lattice, unary, transition, start=None, end=None, atol=1e-9):
    with np.errstate(invalid="ignore"):
        expected = chain.forward_backward(unary, transition, start, end)
    assert_allclose(lattice.log_partition(), expected.log_partition, rtol=1e-12, atol=atol)
    answer = lattice.marginals()
    assert_allclose(answer.labels, expected.labels, rtol=0, atol=atol)
    assert_allclose(answer.transitions, expected.transitions, rtol=0, atol=atol)
    counts = expected.transitions.sum(axis=0)
    assert_allclose(answer.transition_counts, counts, rtol=0, atol=len(unary) * atol)


def check_segments(lattice, scores, patterns, n_labels, atol=1e-9):
    net = segment.pattern_automaton(patterns, n_labels)
    with np.errstate(invalid="ignore"):
        psi = segment.arc_scores(net, scores)
        log_z, expected = segment.log_partition(net, psi), segment.marginals(net, psi)
    assert_allclose(lattice.log_partition(), log_z, rtol=1e-12, atol=atol)
    answer = lattice.marginals()
    assert_allclose(answer.labels, expected.labels, rtol=0, atol=atol)
    assert_allclose(answer.segments, expected.segments, rtol=0, atol=atol)
    assert_allclose(answer.boundaries, expected.boundaries, rtol=0, atol=atol)
    if isinstance(answer.patterns, np.ndarray):
        assert_allclose(answer.patterns, expected.patterns, rtol=0, atol=atol)


@pytest.mark.parametrize("gap", [10.0, 100.0, 1000.0, 1e4])
@pytest.mark.parametrize("n_times", [3, 20])
def test_trap_that_is_left_out_at_the_end(gap, n_times):
    """Label 0 is far better at every position, never left again, and forbidden at the last one."""
    unary = np.random.default_rng(0).normal(size=(n_times, 3))
    unary[:, 0] += gap
    unary[-1, 0] = -np.inf
    transition = np.array([[0.0, -np.inf, -np.inf], [0.1, 0.2, 0.3], [0.4, -0.2, 0.1]])
    lattice = sc.ChainLattice(unary, transition)
    assert escaped(lattice) == (gap * (n_times - 1) > 700.0)
    check_chain(lattice, unary, transition)


@pytest.mark.parametrize("gap", [0.0, 2.0, 400.0, 2000.0])
@pytest.mark.parametrize("n_times", [8, 60])
def test_left_to_right_model_that_would_rather_stay(gap, n_times):
    n_labels = 6
    transition = np.full((n_labels, n_labels), -np.inf)
    for i in range(n_labels):
        transition[i, i : i + 2] = -0.5
    start, end = np.full((2, n_labels), -np.inf)
    start[0] = end[-1] = 0.0
    unary = np.random.default_rng(1).normal(size=(n_times, n_labels)) - gap * np.arange(n_labels)
    lattice = sc.ChainLattice(unary, transition, start=start, end=end)
    assert escaped(lattice) == (gap >= 400.0)
    check_chain(lattice, unary, transition, start, end)


@pytest.mark.parametrize("by_time", [False, True])
def test_only_path_is_far_from_the_best_prefixes(by_time):
    """Each position prefers a label from which the next label cannot be reached."""
    n_times, n_labels = 25, 4
    rng = np.random.default_rng(2)
    transition = np.full((n_times - 1, n_labels, n_labels), -np.inf)
    transition[:, 0, 0] = 0.0
    transition[:, 0, 1:] = rng.normal(size=(n_times - 1, n_labels - 1))
    unary = np.concatenate([np.zeros((n_times, 1)), np.full((n_times, n_labels - 1), 900.0)], axis=1)
    unary[-1] = rng.normal(size=n_labels)
    if not by_time:
        transition = transition[0]
    lattice = sc.ChainLattice(unary, transition)
    assert escaped(lattice) == 1
    check_chain(lattice, unary, transition)


def test_ranges_beyond_a_double_without_forbidden_transitions():
    """Where every transition is possible and of moderate range, nothing that vanishes can matter."""
    rng = np.random.default_rng(3)
    unary = rng.choice([-1e4, 0.0, 1e4], size=(50, 5)) + rng.normal(size=(50, 5))
    transition = rng.normal(size=(5, 5))
    lattice = sc.ChainLattice(unary, transition)
    assert escaped(lattice) == 0
    check_chain(lattice, unary, transition)


def test_transitions_of_huge_range():
    rng = np.random.default_rng(4)
    unary = rng.normal(size=(50, 5)) * 3000.0
    transition = rng.normal(size=(5, 5)) * 3000.0
    lattice = sc.ChainLattice(unary, transition)
    assert escaped(lattice) == 1
    check_chain(lattice, unary, transition, atol=1e-7)


def test_only_the_sequences_that_need_it():
    rng = np.random.default_rng(5)
    transition = np.array([[0.0, -np.inf], [0.5, 0.5]])
    unary = rng.normal(size=(40, 2))
    unary[10:20, 0] += 800.0
    unary[19, 0] = -np.inf
    batch = sc.ChainBatch(unary, [0, 10, 20, 30, 40], transition)
    assert batch._core.posteriors(1)["escaped"] == 1
    counts = batch.marginals().transition_counts
    alone = sum(batch[b].marginals().transitions.sum(axis=0) for b in range(4))
    assert_allclose(counts, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gap", [1.0, 300.0, 1000.0])
def test_segments_after_a_trap(gap):
    """The best segments end in a label that no other may follow, and that may not end the sequence."""
    n_times, longest, n_labels = 14, 3, 2
    patterns = [(0,), (1,), (0, 1), (0, brute.EOS)]
    scores = np.random.default_rng(6).normal(size=(n_times, longest, len(patterns)))
    scores[:, :, 0] += gap
    scores[:, :, 2:] = -np.inf
    lattice = sc.SegmentLattice(scores, patterns, n_labels)
    assert escaped(lattice) == (gap >= 300.0)
    check_segments(lattice, scores, patterns, n_labels)


@pytest.mark.parametrize("shortest", [1, 4, 6])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_segments_of_least_length(shortest, scale):
    """Lengths below the least are forbidden, so some positions cannot be a boundary at all."""
    n_times, longest, n_labels = 18, 7, 2
    patterns = [(0,), (1,), (0, 1), (1, 0)]
    rng = np.random.default_rng(7)
    inside = np.zeros((n_times, len(patterns)))
    inside[:, :2] = rng.normal(size=(n_times, 2)) * scale
    start = np.array([0.0, 0.0, 0.3, -0.3])
    length = np.zeros((longest, len(patterns)))
    length[: shortest - 1, :2] = -np.inf
    lattice = sc.SegmentLattice.from_parts(patterns, n_labels, longest, start=start, inside=inside, length=length)
    assert escaped(lattice) == 0
    scores = brute.expand_parts(n_times, len(patterns), longest, start=start, inside=inside, length=length)
    check_segments(lattice, scores, patterns, n_labels)


@pytest.mark.parametrize("order", [2, 3])
def test_segments_of_huge_range(order):
    rng = np.random.default_rng(8)
    patterns = [(0,), (1,), (2,), (0, 1), (1, 0), (2, 2), (0, 1, 2)][: 3 + 2 * order - (order == 2)]
    scores = rng.normal(size=(15, 4, len(patterns))) * 3000.0
    lattice = sc.SegmentLattice(scores, patterns, 3)
    check_segments(lattice, scores, patterns, 3, atol=1e-7)


TAME = {
    "dense": lambda rng: sc.ChainLattice(rng.normal(size=(2000, 7)) * 3.0, rng.normal(size=(7, 7)) * 3.0),
    "by time": lambda rng: sc.ChainLattice(rng.normal(size=(300, 7)), rng.normal(size=(299, 7, 7))),
    "BIO": lambda rng: sc.ChainLattice(
        rng.normal(size=(2000, 3)) * 3.0, [[0.1, -np.inf, 0.2], [0.3, 0.4, 0.5], [0.1, 0.9, -0.3]]
    ),
    "fixed labels": lambda rng: sc.ChainLattice(rng.normal(size=(100, 4)), rng.normal(size=(4, 4))).constrain(
        labels=np.where(np.arange(100) % 3 == 0, 1, -1)
    ),
    "third order": lambda rng: sc.ChainLattice.from_patterns(
        rng.normal(size=(300, 4)), [(0,), (1, 0), (0, 1, 0), (1, 1, 0, 0)], 2
    ),
    "full segments": lambda rng: sc.SegmentLattice(
        rng.normal(size=(200, 6, 6)), [(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)], 2
    ),
    "additive segments": lambda rng: sc.SegmentLattice.from_parts(
        [(0,), (1,), (0, 1)], 2, 30, start=rng.normal(size=3), inside=rng.normal(size=(2000, 3)) * [1, 1, 0]
    ),
    "boundaries": lambda rng: sc.SegmentLattice.from_parts(
        [(0,), (1,), (0, 1)], 2, 30, inside=rng.normal(size=(90, 3))
    ).constrain(boundaries=np.where(np.arange(90) % 9 == 8, 1, -1)),
}


@pytest.mark.parametrize("name", TAME)
def test_tame_scores_stay_in_linear_space(name):
    assert escaped(TAME[name](np.random.default_rng(9))) == 0


@st.composite
def rough_chains(draw):
    """Chains of all ranges, with forbidden scores, on which one labelling is always possible."""
    n_times, n_labels = draw(st.integers(1, 40)), draw(st.integers(1, 7))
    spread = [draw(st.sampled_from([1.0, 30.0, 200.0, 460.0, 700.0, 3000.0])) for _ in range(2)]
    forbidden = [draw(st.sampled_from([0.0, 0.0, 0.2, 0.6])) for _ in range(2)]
    by_time, one_sided = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = (n_times, n_labels), (n_times - 1, n_labels, n_labels)
    tables = [rng.normal(size=s) if not one_sided else -rng.exponential(size=s) for s in shapes]
    kept = [rng.random(s) >= f for s, f in zip(shapes, forbidden, strict=True)]
    y = rng.integers(0, n_labels, size=n_times)
    kept[0][np.arange(n_times), y] = True
    kept[1][np.arange(n_times - 1), y[:-1], y[1:]] = True
    if not by_time:
        tables[1] = tables[1][0] if n_times > 1 else np.zeros((n_labels, n_labels))
        kept[1] = kept[1].any(axis=0) if n_times > 1 else np.ones((n_labels, n_labels), dtype=np.bool_)
    return tuple(np.where(k, t * s, -np.inf) for k, t, s in zip(kept, tables, spread, strict=True))


@given(rough_chains())
def test_rough_chains_equal_the_log_space_recursion(scores):
    unary, transition = scores
    check_chain(sc.ChainLattice(unary, transition), unary, transition, atol=1e-8)
