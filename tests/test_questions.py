"""Every question of every kind of lattice, against the enumeration of all configurations."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from nested_oracle import nested_problems, plain
from numpy.testing import assert_allclose
from strategies import cases, chain_problems, parts_problems, pattern_problems, segment_problems

import scansion as sc
from scansion.reference import enumeration as brute

FLAT = {
    "chain": chain_problems,
    "patterns": pattern_problems,
    "segments": segment_problems,
    "parts": parts_problems,
}
KINDS = (*FLAT, "nested")


@dataclass(frozen=True)
class Asked:
    """A lattice beside the list of its configurations with their scores."""

    lattice: Any
    free: Any  # without what is known
    possible: dict[Any, float]
    listed: list[Any]  # configurations, also of score -inf and inconsistent ones
    free_scored: brute.Scored
    atol: float
    native: Any  # a listed configuration as the lattice takes it
    listed_as: Any  # a configuration of the lattice as it is listed


@st.composite
def asked(draw: st.DrawFn, kind: str, **options: Any) -> Asked:
    if kind == "nested":
        p = draw(nested_problems(**options))
        free = replace(p, labels={}, boundaries={})
        listed = [tree for tree, _ in p.listed]
        return Asked(p.lattice(), free.lattice(), dict(p.scored), listed, free.scored, p.atol, list, plain)
    case = draw(cases(FLAT[kind](**options)))
    p = case.problem
    possible = {config: score for config, score in case.scored if score > -np.inf}
    listed = [config for config, _ in p.scored]
    return Asked(case.lattice, p.lattice(), possible, listed, p.scored, p.atol, case.native, brute.config_of)


kinds = pytest.mark.parametrize("kind", KINDS)
flat_kinds = pytest.mark.parametrize("kind", list(FLAT))


@kinds
@given(st.data())
def test_log_partition(kind, data):
    a = data.draw(asked(kind))
    value = a.lattice.log_partition()
    assert isinstance(value, float)
    assert_allclose(value, brute.log_partition(list(a.possible.items())), rtol=1e-12, atol=a.atol)


@kinds
@given(st.data())
def test_viterbi(kind, data):
    a = data.draw(asked(kind))
    best, score = a.lattice.viterbi()
    top = max(a.possible.values())
    assert isinstance(score, float)
    assert_allclose(score, top, rtol=1e-12, atol=a.atol)
    assert_allclose(a.possible[a.listed_as(best)], top, rtol=1e-12, atol=a.atol)
    assert_allclose(a.lattice.score(best), score, rtol=1e-12, atol=a.atol)


@flat_kinds
@given(st.data())
def test_viterbi_breaks_ties_from_the_end(kind, data):
    a = data.draw(asked(kind, kinds=("integer", "coarse")))
    config, score = brute.best(list(a.possible.items()))
    best, value = a.lattice.viterbi()
    assert a.listed_as(best) == config
    assert value == score


@kinds
@given(st.data(), st.sampled_from([1, 2, 3, 10, 10_000]))
def test_kbest(kind, data, k):
    """Sorted, distinct, each with its own score, and no better configuration left out; the first is Viterbi's."""
    a = data.draw(asked(kind))
    answer = a.lattice.kbest(k)
    expected = sorted(a.possible.values(), reverse=True)[:k]
    configs = [a.listed_as(config) for config, _ in answer]
    scores = [score for _, score in answer]
    assert len(set(configs)) == len(answer) == len(expected)
    assert scores == sorted(scores, reverse=True)
    assert_allclose(scores, expected, rtol=1e-12, atol=a.atol)
    assert_allclose(scores, [a.possible[config] for config in configs], rtol=1e-12, atol=a.atol)
    best, value = a.lattice.viterbi()
    assert_allclose(scores[0], value, rtol=1e-12, atol=a.atol)
    assert_allclose(a.lattice.score(best), a.lattice.score(answer[0][0]), rtol=1e-12, atol=a.atol)


@kinds
@given(st.data())
def test_score_and_log_probability(kind, data):
    """Of possible, impossible and inconsistent configurations."""
    a = data.draw(asked(kind))
    log_z = brute.log_partition(list(a.possible.items()))
    for config in a.listed[:: max(1, len(a.listed) // 20)]:
        expected = a.possible.get(config, -np.inf)
        assert_allclose(a.lattice.score(a.native(config)), expected, rtol=1e-12, atol=a.atol)
        value = a.lattice.log_probability(a.native(config))
        assert_allclose(value, expected - log_z, rtol=1e-12, atol=2 * a.atol)


@kinds
@given(st.data())
def test_segment_probabilities(kind, data):
    """Of possible configurations and of others: the share of those that have the segment (chains: the label)."""
    a = data.draw(asked(kind))
    log_z = brute.log_partition(list(a.possible.items()))
    mass: dict[Any, float] = {}
    for config, score in a.possible.items():
        for d, level in enumerate(config if kind == "nested" else [config]):
            for segment in level:
                mass[(d, *segment)] = mass.get((d, *segment), 0.0) + float(np.exp(score - log_z))
    for config in a.listed[:: max(1, len(a.listed) // 7)]:
        found = a.lattice.segment_probabilities(a.native(config))
        levels = config if kind == "nested" else [config]
        for d, (level, p) in enumerate(zip(levels, found if kind == "nested" else [found], strict=True)):
            assert_allclose(p, [mass.get((d, *segment), 0.0) for segment in level], rtol=1e-9, atol=1e-9 + a.atol)


@kinds
@given(st.data())
def test_entropy(kind, data):
    a = data.draw(asked(kind))
    value = a.lattice.entropy()
    assert isinstance(value, float)
    assert_allclose(value, brute.entropy(list(a.possible.items())), rtol=1e-10, atol=10 * a.atol)


@kinds
@given(st.data())
def test_most_accurate(kind, data):
    """A possible configuration, of which none has more positions expected to be right."""
    a = data.draw(asked(kind))
    scored = list(a.possible.items())

    def cells(config):
        levels = config if kind == "nested" else [config]
        return [(d, t, y) for d, level in enumerate(levels) for u, v, y in level for t in range(u, v)]

    right: dict[Any, float] = {}
    for (config, _), p in zip(scored, brute.probabilities(scored), strict=True):
        for cell in cells(config):
            right[cell] = right.get(cell, 0.0) + p
    expected = {config: sum(right[cell] for cell in cells(config)) for config in a.possible}
    best, accuracy = a.lattice.most_accurate()
    assert isinstance(accuracy, float)
    tolerance = 1e-7 + 100 * a.atol
    assert_allclose(expected[a.listed_as(best)], max(expected.values()), rtol=0, atol=tolerance)
    assert_allclose(accuracy, max(expected.values()), rtol=0, atol=tolerance)


@kinds
@given(st.data())
def test_samples_are_possible(kind, data):
    a = data.draw(asked(kind))
    drawn = a.lattice.sample(5, np.random.default_rng(0))
    assert len(drawn) == 5
    assert all(a.listed_as(config) in a.possible for config in drawn)
    again = a.lattice.sample(5, np.random.default_rng(0))
    assert [a.listed_as(config) for config in again] == [a.listed_as(config) for config in drawn]


@kinds
@given(st.data())
def test_confidence_of_a_constraint(kind, data):
    a = data.draw(asked(kind))
    probabilities = brute.probabilities(a.free_scored)
    pairs = zip(a.free_scored, probabilities, strict=True)
    expected = sum(p for (config, _), p in pairs if config in a.possible)
    confidence = np.exp(a.lattice.log_partition() - a.free.log_partition())
    assert_allclose(confidence, expected, rtol=1e-6, atol=10 * a.atol)


@kinds
@given(st.data())
def test_label_marginals(kind, data):
    a = data.draw(asked(kind))
    answer, scored = a.lattice.marginals(), list(a.possible.items())
    found = answer.labels if kind == "nested" else [answer.labels]
    for d, labels in enumerate(found):
        level = [(config[d] if kind == "nested" else config, score) for config, score in scored]
        assert_allclose(labels, brute.label_marginals(level, *labels.shape), rtol=0, atol=10 * a.atol)
        assert_allclose(labels.sum(axis=1), 1.0, rtol=0, atol=10 * a.atol)
        assert (labels >= 0.0).all() and (labels <= 1.0 + 10 * a.atol).all()


@kinds
@given(st.data())
def test_a_batch_of_one_answers_as_the_lattice(kind, data):
    a = data.draw(asked(kind))
    batch, lattice = a.lattice._batch, a.lattice
    assert len(batch) == 1 and batch.log_partition().tolist() == [lattice.log_partition()]
    configs, scores = batch.viterbi()
    assert a.listed_as(configs[0]) == a.listed_as(lattice.viterbi()[0]) and scores.tolist() == [lattice.viterbi()[1]]
    assert batch.score(configs).tolist() == [lattice.score(configs[0])]
    assert batch.entropy().tolist() == [lattice.entropy()]
    assert batch[0].log_partition() == lattice.log_partition()


@flat_kinds
@given(st.data())
def test_constraining_twice_intersects(kind, data):
    problem = data.draw(FLAT[kind]())
    chain = kind in ("chain", "patterns")
    first, second = (data.draw(strategies.known(problem.witness, problem.n_labels, chain=chain)) for _ in range(2))
    lattice = problem.lattice().constrain(**first.as_kwargs()).constrain(**second.as_kwargs())
    scored = brute.constrain(problem.scored, first.labels, first.boundaries)
    scored = brute.constrain(scored, second.labels, second.boundaries)
    assert_allclose(lattice.log_partition(), brute.log_partition(scored), rtol=1e-12, atol=problem.atol)


@flat_kinds
@given(st.data())
def test_constraints_leave_the_lattice_alone(kind, data):
    problem = data.draw(FLAT[kind]())
    lattice = problem.lattice()
    before = lattice.log_partition()
    lattice.constrain(labels=np.array(brute.label_sequence(problem.witness), dtype=np.int64))
    assert lattice.log_partition() == before


def test_kinds_have_their_own_questions_only():
    nested = sc.NestedLattice(
        [np.zeros((2, 2, 1)), np.zeros((2, 1, 2))], [np.zeros((1, 2, 2))], *[[np.zeros((1, 2))]] * 2
    )
    assert not hasattr(nested, "compressed") and hasattr(sc.ChainLattice, "compressed")
    assert not hasattr(sc.ChainLattice, "log_partition_and_gradient")
