"""Lattices under rules against enumeration: every question, every kind of lattice, alone and in batches."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nested_oracle import check_gradient, check_marginals, nested_problems, plain
from numpy.testing import assert_allclose, assert_array_equal
from rules_oracle import any_rule, keeps, kept_rules, runs
from strategies import (
    cases,
    chain_problems,
    check_frequencies,
    parts_problems,
    pattern_problems,
    segment_problems,
)

import scansion as sc
from scansion import rules
from scansion.lattice import compressed
from scansion.models import weights
from scansion.reference import compressed as reference
from scansion.reference import enumeration as brute
from scansion.rules import restricted, training

FLAT = {
    "chain": chain_problems,
    "patterns": pattern_problems,
    "segments": segment_problems,
    "parts": parts_problems,
}
flat_kinds = pytest.mark.parametrize("kind", FLAT)
relaxed = pytest.mark.parametrize("few", [0, 8])  # how many states a product of all rules may have to be taken at once


@dataclass(frozen=True)
class Restricted:
    """A lattice under rules that its witness keeps, beside the list of its configurations."""

    case: object
    rules: list
    lattice: object
    scored: brute.Scored
    atol: float

    @property
    def possible(self):
        return {config: score for config, score in self.scored if score > -np.inf}


def word(config):
    return [label for _, _, label in config]


@st.composite
def restricted_cases(draw, kind, **options):
    case = draw(cases(FLAT[kind](**options)))
    chain = case.is_chain
    chosen = draw(kept_rules(word(case.problem.witness), range(case.problem.n_labels), chain))
    scored = [(c, s) for c, s in case.scored if all(keeps(rule, word(c), chain) for rule in chosen)]
    return Restricted(case, chosen, case.lattice.restrict(*chosen), scored, case.atol)


@flat_kinds
@relaxed
@settings(max_examples=8)
@given(st.data())
def test_sums(kind, few, data):
    a = data.draw(restricted_cases(kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restricted, "_FEW_STATES", few)
        p = a.case.problem
        log_z = brute.log_partition(a.scored)
        assert_allclose(a.lattice.log_partition(), log_z, rtol=1e-12, atol=a.atol)
        assert 0.0 <= a.lattice.left_out <= 1e-10
        held = a.lattice.log_partition() - a.case.lattice.log_partition()
        assert_allclose(held, log_z - brute.log_partition(a.case.scored), rtol=0, atol=10 * a.atol)
        assert_allclose(a.lattice.entropy(), brute.entropy(a.scored), rtol=1e-10, atol=10 * a.atol)
        answer = a.lattice.marginals()
        assert_allclose(answer.labels, brute.label_marginals(a.scored, p.n_times, p.n_labels), rtol=0, atol=10 * a.atol)
        if kind == "chain":
            expected = brute.transition_marginals(a.scored, p.n_times, p.n_labels)
            assert_allclose(answer.transitions, expected, rtol=0, atol=10 * a.atol)
            assert_allclose(answer.transition_counts, expected.sum(axis=0), rtol=0, atol=10 * a.atol)
            return
        if kind == "parts":
            expected = brute.part_gradients(a.scored, p.patterns, p.n_times, p.max_length)
            for name in p.parts:
                total = getattr(expected, name)
                total = total.sum(axis=0) if p.parts[name].ndim == 1 else total
                assert_allclose(getattr(answer.patterns, name), total, rtol=0, atol=10 * a.atol)
        else:
            expected = brute.pattern_marginals(a.scored, p.patterns, p.n_times, p.max_length)
            found = answer.patterns if kind == "segments" else answer.patterns[:, None]
            assert_allclose(found, expected, rtol=0, atol=10 * a.atol)
        if kind != "patterns":
            expected = brute.segment_marginals(a.scored, p.n_times, p.max_length, p.n_labels)
            assert_allclose(answer.segments, expected, rtol=0, atol=10 * a.atol)
            assert_allclose(answer.boundaries, brute.boundary_marginals(a.scored, p.n_times), rtol=0, atol=10 * a.atol)


@flat_kinds
@settings(max_examples=12)
@given(st.data(), st.sampled_from([1, 2, 5, 10_000]))
def test_best(kind, data, k):
    a = data.draw(restricted_cases(kind))
    best, score = a.lattice.viterbi()
    top = max(a.possible.values())
    assert_allclose(score, top, rtol=1e-12, atol=a.atol)
    assert_allclose(a.possible[brute.config_of(best)], top, rtol=1e-12, atol=a.atol)
    if a.case.is_chain:
        assert_array_equal(a.lattice._batch.best_labels(), best)
    found = a.lattice.kbest(k)
    expected = sorted(a.possible.values(), reverse=True)[:k]
    assert len({brute.config_of(config) for config, _ in found}) == len(found) == len(expected)
    assert_allclose([s for _, s in found], expected, rtol=1e-12, atol=a.atol)
    assert_allclose([a.possible[brute.config_of(c)] for c, _ in found], expected, rtol=1e-12, atol=a.atol)


@flat_kinds
@settings(max_examples=12)
@given(st.data())
def test_ties_are_broken_from_the_end(kind, data):
    a = data.draw(restricted_cases(kind, kinds=("integer",)))
    config, score = brute.best(list(a.possible.items()))
    best, value = a.lattice.viterbi()
    assert brute.config_of(best) == config and value == score


@flat_kinds
@settings(max_examples=8)
@given(st.data())
def test_scores_and_samples(kind, data):
    a = data.draw(restricted_cases(kind))
    log_z, listed = brute.log_partition(a.scored), [config for config, _ in a.case.problem.scored]
    for config in listed[:: max(1, len(listed) // 15)]:
        expected = a.possible.get(config, -np.inf)
        assert_allclose(a.lattice.score(a.case.native(config)), expected, rtol=1e-12, atol=a.atol)
        value = a.lattice.log_probability(a.case.native(config))
        assert_allclose(value, expected - log_z, rtol=1e-12, atol=2 * a.atol)
    drawn = a.lattice.sample(5, np.random.default_rng(0))
    assert len(drawn) == 5 and all(brute.config_of(config) in a.possible for config in drawn)


@flat_kinds
@settings(max_examples=8)
@given(st.data())
def test_most_accurate(kind, data):
    """Of what keeps the rules, nothing has more positions that are expected to be right."""
    a = data.draw(restricted_cases(kind))
    table = brute.label_marginals(a.scored, a.case.problem.n_times, a.case.problem.n_labels)
    gain = {config: sum(table[t, y] for u, v, y in config for t in range(u, v)) for config in a.possible}
    found, value = a.lattice.most_accurate()
    assert_allclose(gain[brute.config_of(found)], max(gain.values()), rtol=0, atol=10 * a.atol + 1e-6)
    assert_allclose(value, max(gain.values()), rtol=0, atol=10 * a.atol + 1e-5)


@flat_kinds
@settings(max_examples=8)
@given(st.data())
def test_trajectories(kind, data):
    a = data.draw(restricted_cases(kind, min_times=1))
    known = reference.trajectories(a.scored, a.case.is_chain)
    answer, p = a.lattice.compressed(), a.case.problem
    expected = reference.length_distribution(known, p.n_times)
    assert_allclose(answer.lengths, expected, rtol=0, atol=10 * a.atol)
    for trajectory, q in list(known.items())[:8]:
        assert_allclose(np.exp(answer.log_probability(trajectory)), q, rtol=10 * a.atol, atol=1e-12)
    best = answer.best(3)
    assert_allclose(best.probabilities, sorted(known.values(), reverse=True)[: len(best)], rtol=1e-8, atol=1e-9)
    assert expected[len(answer.predict())] >= expected.max() - 10 * a.atol


@flat_kinds
@settings(max_examples=8)
@given(st.data())
def test_constraints_and_rules_in_either_order(kind, data):
    a = data.draw(restricted_cases(kind))
    assume(a.case.known is not None)
    other = a.case.problem.lattice().restrict(*a.rules).constrain(**a.case.known.as_kwargs())
    assert_allclose(other.log_partition(), a.lattice.log_partition(), rtol=1e-12, atol=a.atol)
    one_by_one = a.case.lattice
    for rule in a.rules:
        one_by_one = one_by_one.restrict(str(rule))
    assert_allclose(one_by_one.log_partition(), a.lattice.log_partition(), rtol=1e-12, atol=a.atol)


# Nested ----------------------------------------------------------------------------------------------------------


def nested_words(tree, level, within):
    """The words of a level: one for each segment of the level `within`."""
    if within == 0:
        return [[label for _, _, label in tree[level]]]
    return [[y for u, _, y in tree[level] if begin <= u < end] for begin, end, _ in tree[within]]


@st.composite
def nested_cases(draw):
    p = draw(nested_problems())
    chosen, places = [], []
    witness = draw(st.sampled_from(p.scored))[0]
    for _ in range(draw(st.integers(1, 2))):
        level = draw(st.integers(1, len(p.sizes) - 1))
        within = draw(st.integers(0, level - 1))
        rule = draw(any_rule(range(p.sizes[level]), level=level, **({"within": within} if within else {})))
        fits = [keeps(rule, one, False) for one in nested_words(witness, level, within)]
        if not all(fits) and any(fits):
            continue  # inside some segments it holds, inside others it does not: neither it nor its opposite does
        chosen.append(rule if all(fits) else ~rule)
        places.append((level, within))
    scored = [
        (tree, score)
        for tree, score in p.scored
        if all(
            keeps(rule, one, False)
            for rule, place in zip(chosen, places, strict=True)
            for one in nested_words(tree, *place)
        )
    ]
    return p, chosen, scored


@settings(max_examples=15)
@given(nested_cases())
def test_nested_lattices(drawn):
    p, chosen, scored = drawn
    assume(chosen)
    lattice = p.lattice().restrict(*chosen)
    possible = dict(scored)
    assert_allclose(lattice.log_partition(), brute.log_partition(scored), rtol=1e-12, atol=p.atol)
    assert_allclose(lattice.entropy(), brute.entropy(scored), rtol=1e-10, atol=10 * p.atol)
    best, score = lattice.viterbi()
    assert_allclose(score, max(possible.values()), rtol=1e-12, atol=p.atol)
    assert_allclose(possible[plain(best)], score, rtol=1e-12, atol=p.atol)
    found = lattice.kbest(4)
    assert_allclose([s for _, s in found], sorted(possible.values(), reverse=True)[:4], rtol=1e-12, atol=p.atol)
    assert len({plain(config) for config, _ in found}) == len(found)
    assert all(plain(config) in possible for config in lattice.sample(4, 0))
    for tree, free in p.scored[:: max(1, len(p.scored) // 10)]:
        expected = free if tree in possible else -np.inf
        assert_allclose(lattice.score(list(tree)), expected, rtol=1e-12, atol=p.atol)
    check_marginals(_under_rules(p, scored), lattice.marginals())
    check_gradient(_under_rules(p, scored), lattice.log_partition_and_gradient()[1])


def _under_rules(problem, scored):
    """The problem with fewer trees."""
    changed = replace(problem)
    vars(changed)["scored"] = scored
    vars(changed).pop("expected", None)
    return changed


def test_nested_relaxation_is_the_full_product(monkeypatch):
    rng = np.random.default_rng(9)
    offsets = np.array([0, 4, 4, 9, 12])
    batch = sc.NestedBatch(
        [rng.normal(size=(12, 5, 1)), rng.normal(size=(12, 4, 3)), rng.normal(size=(12, 3, 4))],
        [rng.normal(size=(1, 3, 3)), rng.normal(size=(3, 4, 4))],
        [rng.normal(size=(1, 3)), rng.normal(size=(3, 4))],
        [rng.normal(size=(1, 3)), rng.normal(size=(3, 4))],
        offsets,
    )
    chosen = [
        rules.at_most_once(0, 1, level=1),
        rules.at_most_once(1, 2, level=2),
        rules.never(3, 0, level=2, within=1),
    ]
    some = batch.restrict(*chosen)
    core = some._core
    full = core._under(core.unrestricted, tuple(range(len(core.rules))))
    assert len(core.groups()) > 1, "the test needs sequences under different rules"
    assert_allclose(some.log_partition(), full.log_partitions(1), rtol=0, atol=1e-9)
    assert_allclose(some.viterbi()[1], full.best(1).scores, rtol=1e-12)
    answer, whole = some.marginals(), full.posteriors(1, spans=[False] * 3, cliques="time", parts=False)
    for d in range(3):
        assert_allclose(answer.labels[d], whole["labels"][d], rtol=0, atol=1e-9)
        assert_allclose(answer.boundaries[d], whole["boundaries"][d], rtol=0, atol=1e-9)
    assert_allclose(answer.transit[1], whole["transit"][1], rtol=0, atol=1e-9)
    assert_allclose(some[2].log_partition(), some.log_partition()[2], rtol=1e-12)
    for tree, score in some.kbest(3)[2]:
        assert_allclose(some[2].score(tree), score, rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (rules.once(0), "must name the level that it speaks of, as in level=1"),
        (rules.once(0, level=3), "names the level 3; the levels are 0..2"),
        (rules.once(0, level="x"), "names the level 'x'"),
        (rules.once(0, level=1, within=1), "holds within 1, which is not a level above 1"),
        (rules.once(0, level=1) | rules.once(0, level=2), "speaks of several levels"),
        (rules.once(3, level=1), "names 3, which is no label here; there are 0, 1"),
        (rules.once(0, level=1, scheme="iob2"), "about tags"),
    ],
)
def test_rules_of_nested_lattices_that_are_wrong(rule, message):
    lattice = sc.NestedLattice(
        [np.zeros((2, 2, 1)), np.zeros((2, 2, 2)), np.zeros((2, 1, 2))],
        [np.zeros((1, 2, 2)), np.zeros((2, 2, 2))],
        [np.zeros((1, 2)), np.zeros((2, 2))],
        [np.zeros((1, 2)), np.zeros((2, 2))],
    )
    with pytest.raises(ValueError, match=message):
        lattice.restrict(rule)


# Many rules ------------------------------------------------------------------------------------------------------


def chains(seed, lengths, n_labels, scale=2.0):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    unary = scale * rng.normal(size=(offsets[-1], n_labels))
    return sc.ChainBatch(unary, offsets, rng.normal(size=(n_labels, n_labels)), n_jobs=1)


@pytest.mark.parametrize("scale", [0.3, 2.0, 8.0])
def test_relaxation_is_the_full_product(monkeypatch, scale):
    batch = chains(3, [0, 1, 5, 9, 4, 7], 6, scale)
    rule = rules.at_most_once(*range(6))
    monkeypatch.setattr(restricted, "_FEW_STATES", 10_000)
    full = batch.restrict(rule)
    product = full._core._under(full._core.unrestricted, tuple(range(6)))
    monkeypatch.setattr(restricted, "_FEW_STATES", 0)
    some = batch.restrict(rule)
    configs, scores = some.viterbi()
    best = product.best(1)
    assert_allclose(scores, best.scores, rtol=1e-12)
    assert_array_equal(np.concatenate(configs), best.steps[:, 2])
    for found, packed in ((some.kbest(7), product.kbest(7, 1)),):
        assert_allclose([s for row in found for _, s in row], packed.scores, rtol=1e-12)
    assert_allclose(some.log_partition(), full.log_partition(), rtol=0, atol=2e-10)
    assert (some.left_out <= 1e-10).all() and (full.left_out == 0).all()
    assert_allclose(some.marginals().labels, full.marginals().labels, rtol=0, atol=4e-10)
    assert_allclose(some.marginals().transition_counts, full.marginals().transition_counts, rtol=0, atol=1e-8)
    assert_allclose(some.entropy(), full.entropy(), rtol=0, atol=1e-7)


def test_a_larger_tolerance_takes_fewer_rules_and_says_what_it_leaves_out():
    batch = chains(4, [6] * 5, 8, 3.0)
    rule = rules.at_most_once(*range(8))
    exact = batch.restrict(rule).log_partition()
    loose = batch.restrict(rule, tolerance=0.3)
    assert (loose.left_out <= 0.3).all() and loose.left_out.max() > 1e-6
    assert (loose.log_partition() >= exact - 1e-9).all()
    assert (loose.log_partition() - exact <= -np.log1p(-loose.left_out) + 1e-9).all()
    for row in loose.sample(200, 0):  # samples keep all rules whatever is left out of sums
        assert all(keeps(rule, labels.tolist(), True) for labels in row)


def test_samples_have_the_restricted_distribution():
    rng = np.random.default_rng(5)
    unary, transition = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    rule = rules.at_most_once(0, 1)
    scored = [(c, s) for c, s in brute.enumerate_chain(unary, transition) if keeps(rule, word(c), True)]
    lattice = sc.ChainLattice(unary, transition)
    check_frequencies(lattice.restrict(rule).sample(20_000, 1), scored)
    check_frequencies(lattice.restrict(rule, tolerance=0.9).sample(3_000, 1), scored)


def test_batches_and_threads():
    batch = chains(6, [3, 0, 8, 1, 5, 6], 5)
    rule = rules.at_most_once(*range(5)) & rules.before(0, 3)
    whole = batch.restrict(rule)
    again = sc.ChainBatch._of(whole._core, 2)
    for b in range(len(batch)):
        one = batch[b].restrict(rule)
        assert_allclose(whole.log_partition()[b], one.log_partition(), rtol=1e-13)
        assert_array_equal(whole.viterbi()[0][b], one.viterbi()[0])
        assert_allclose(whole[b].entropy(), one.entropy(), rtol=1e-12)
    assert_array_equal(again.log_partition(), whole.log_partition())
    assert_array_equal(again.marginals().labels, whole.marginals().labels)
    for a, b in zip(again.sample(3, 2), whole.sample(3, 2), strict=True):
        assert_array_equal(a, b)
    found = compressed.best_all(whole)
    for b in range(len(batch)):
        assert found[b].trajectories[0] == batch[b].restrict(rule).compressed().best().trajectories[0]


def test_twenty_five_rules_are_no_blow_up():
    batch = chains(7, [12] * 20, 25, 6.0)
    rule = rules.at_most_once(*range(25))
    configs, scores = batch.restrict(rule).viterbi()
    free = batch.viterbi()
    assert all(keeps(rule, config.tolist(), True) for config in configs)
    assert (scores <= free[1] + 1e-9).all() and (scores < free[1] - 1e-9).any()
    with pytest.raises(ValueError, match=r"these rules together need more than 50 states: at_most_once\(\d+\)"):
        batch.restrict(rule, max_states=50).log_partition()


def test_scheme_rules_on_long_sequences():
    tags = ("O", "B-x", "I-x", "B-y", "I-y")
    rng = np.random.default_rng(8)
    lattice = sc.ChainLattice(rng.normal(size=(4000, 5)), rng.normal(size=(5, 5)))
    number = {tag: i for i, tag in enumerate(tags)}
    rule = rules.never(number["O"], number["I-x"]) & rules.never(number["O"], number["I-y"])
    answer = lattice.restrict(rule)
    best = answer.viterbi()[0]
    assert not ((best[:-1] == 0) & np.isin(best[1:], [2, 4])).any()
    assert np.isfinite(answer.log_partition()) and answer.log_partition() < lattice.log_partition()
    counted = lattice.restrict(rules.at_most(3, 1))
    assert keeps(rules.at_most(3, 1), counted.viterbi()[0].tolist(), True)
    assert np.isfinite(counted.log_partition())


# Errors ----------------------------------------------------------------------------------------------------------


def test_what_nothing_keeps():
    lattice = sc.ChainLattice(np.zeros((3, 2)), np.zeros((2, 2)))
    for nothing in (rules.at_least(4, 0), rules.once(0) & rules.at_least(2, 0), rules.regular("0 0 0")):
        for question in ("log_partition", "viterbi", "marginals", "entropy"):
            with pytest.raises(ValueError, match="no configuration is possible: the scores and the rules leave none"):
                getattr(lattice.restrict(nothing), question)()
        with pytest.raises(ValueError, match="no configuration is possible"):
            lattice.restrict(nothing).sample(2, 0)
        with pytest.raises(ValueError, match="no configuration is possible"):
            lattice.restrict(nothing).kbest(3)


def test_empty_sequences():
    empty = sc.ChainLattice(np.zeros((0, 2)), np.zeros((2, 2)))
    assert empty.restrict(rules.at_most_once(0)).log_partition() == 0.0
    assert len(empty.restrict(rules.at_most_once(0)).viterbi()[0]) == 0
    for question in ("log_partition", "viterbi"):
        with pytest.raises(ValueError, match="no configuration is possible"):
            getattr(empty.restrict(rules.once(0)), question)()


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((), {}, "at least one rule"),
        ((rules.once(2),), {}, "names 2, which is no label here; there are 0, 1"),
        ((rules.once("a"),), {}, "names 'a'"),
        ((3,), {}, "rules must be rules or their text, got 3"),
        ((rules.once(0, level=1),), {}, "names a level"),
        ((rules.scheme("iob2"),), {}, "does not go with these labels"),
        ((rules.once(0),), {"tolerance": 2.0}, "tolerance must be"),
        ((rules.once(0),), {"max_states": 0}, "max_states must be at least 1"),
    ],
)
def test_arguments(given, options, message):
    lattice = sc.ChainLattice(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=message):
        lattice.restrict(*given, **options)


# Estimators ------------------------------------------------------------------------------------------------------

LABELS = ("a", "b", "c")


def sequences(seed, n=12, longest=6):
    rng = np.random.default_rng(seed)
    y = [[LABELS[i] for i in rng.integers(3, size=rng.integers(1, longest + 1))] for _ in range(n)]
    X = [[{"w": f"{label}{rng.integers(2)}", "v": str(rng.integers(3))} for label in row] for row in y]
    return X, y


@pytest.mark.parametrize(
    "model", [sc.CRF(), sc.CRF(order=2), sc.CRF(order=2, engine="sum-difference"), sc.SemiCRF(), sc.SemiCRF(order=2)]
)
def test_estimators_answer_as_their_restricted_lattices(model):
    X, y = sequences(1)
    model = type(model)(**model.get_params()).fit(X, y)
    chosen = [rules.at_most_once("a", "b"), "before(c, a)"]
    names = [rules.at_most_once(*map(model.classes_.index, "ab"))]
    names.append(rules.before(model.classes_.index("c"), model.classes_.index("a")))
    found, kbest = model.predict(X, rules=chosen), model.predict_kbest(X, 3, rules=chosen)
    marginals, routes = model.predict_marginals(X, rules=chosen), model.predict_compressed(X, "best", rules=chosen)
    drawn = model.sample(X, 2, 0, rules=chosen)
    chain, broken = isinstance(model, sc.CRF), 0
    for b, x in enumerate(X):
        lattice = model.lattice(x).restrict(*names)
        assert found[b] == model._named(lattice.viterbi()[0]) == kbest[b][0][0] == model.predict_single(x, rules=chosen)
        assert_allclose(kbest[b][0][1], lattice.log_probability(lattice.viterbi()[0]), rtol=1e-9, atol=1e-9)
        table = [[row[label] for label in model.classes_] for row in marginals[b]]
        assert_allclose(table, lattice.marginals().labels, rtol=0, atol=1e-9)
        assert routes[b] == [model.classes_[i] for i in lattice.compressed().best().trajectories[0]]
        for answer in (found[b], *drawn[b]):
            labels = answer if chain else [segment.label for segment in answer]
            assert all(keeps(rules.parse(str(rule)), labels, chain) for rule in chosen)
        broken += found[b] != model.predict_single(x)
        held = model.lattice(x, rules=chosen)
        assert_allclose(held.log_partition(), lattice.log_partition(), rtol=1e-12)
    assert broken, "the rules change nothing: the test says nothing"


def test_a_model_keeps_its_rules(tmp_path):
    X, y = sequences(2)
    chosen = [rules.at_most_once("a") | rules.first("b"), "at_most(1, c)"]
    model = sc.CRF(rules=chosen).fit(X, y)
    assert model.predict(X) == sc.CRF().fit(X, y).predict(X, rules=chosen) != model.predict(X, rules=[])
    assert model.score(X, y) <= sc.CRF().fit(X, y).score(X, y)
    model.save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert again.rules == [chosen[0], rules.at_most(1, "c")]
    assert again.predict(X) == model.predict(X)
    one = sc.CRF(rules=rules.once("a")).fit(X, y)
    one.save(tmp_path / "one")
    assert sc.load(tmp_path / "one").rules == rules.once("a")


def test_constraints_go_with_rules():
    X, y = sequences(3, longest=5)
    model = sc.CRF().fit(X, y)
    told = [[None] * (len(row) - 1) + [row[-1]] for row in y]
    for row, known in zip(model.predict(X, constraints=told, rules=rules.at_most_once("a")), told, strict=True):
        assert row[-1] == known[-1] and keeps(rules.at_most_once("a"), row, True)
    with pytest.raises(ValueError, match=r"constraints\[1\] leaves no configuration that keeps first\(a\)"):
        model.predict(X[:2], constraints=[None, ["b", *[None] * (len(X[1]) - 1)]], rules="first(a)")


def test_rules_of_estimators_that_are_wrong(tmp_path):
    X, y = sequences(4)
    model = sc.CRF().fit(X, y)
    with pytest.raises(ValueError, match="names 'd', which is no label here"):
        model.predict(X, rules=rules.once("d"))
    with pytest.raises(ValueError, match="there is no rule 'twice'"):
        model.predict(X, rules="twice(a)")
    with pytest.raises(ValueError, match="rules must be rules or their text, got 3"):
        model.predict(X, rules=3)


# Learning --------------------------------------------------------------------------------------------------------


def learning_problem(model, seed, chosen, partial=False):
    """An objective under rules, and y that keeps them."""
    X, y = sequences(seed, n=20, longest=5)
    chain = isinstance(model, sc.CRF)
    kept = [all(keeps(rules.parse(str(rule)), row if chain else runs(row), chain) for rule in chosen) for row in y]
    X, y = ([row for row, fits in zip(rows, kept, strict=True) if fits] for rows in (X, y))
    assert len(y) >= 3
    if partial:
        y = [[None if (b + t) % 2 else label for t, label in enumerate(row)] for b, row in enumerate(y)]
    model = type(model)(**model.get_params()).set_params(rules=chosen, train_with_rules=True)
    return model, X, y


def log_losses(model, X, y, w):
    """The loss by the lattices under rules."""
    model.model_ = model.model_.weighted(w)
    return -model.log_likelihood(X, y)


def assert_loss_and_gradient(model, X, y, objective, rng, atol):
    """The loss is that of lattices under rules, the gradient that of finite differences."""
    w = rng.normal(size=model.model_.n_weights)
    gradient = np.empty_like(w)
    loss = objective.log_loss(w, gradient, 1)
    assert_allclose(loss, log_losses(model, X, y, w), rtol=1e-10)
    for i in rng.choice(len(w), size=6, replace=False):
        step = np.zeros_like(w)
        step[i] = 1e-5
        slope = (log_losses(model, X, y, w + step) - log_losses(model, X, y, w - step)) / 2e-5
        assert_allclose(gradient[i], slope, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("model", [sc.CRF(), sc.CRF(order=2), sc.SemiCRF(), sc.SemiCRF(order=2, max_length=3)])
def test_training_under_rules_maximises_the_restricted_likelihood(model, partial):
    chosen = [rules.at_most(2, "a"), "never(b, c)"]
    model, X, y = learning_problem(model, 5, chosen, partial)
    model.model_, objective = model.problem(X, y)
    assert objective.taken.all()
    rng = np.random.default_rng(0)
    assert_loss_and_gradient(model, X, y, objective, rng, atol=1e-7)


def test_rules_are_taken_where_they_matter(monkeypatch):
    """Without the product of all rules, learning ends at the same optimum."""
    chosen = [rules.at_most_once("a", "b", "c"), "before(a, c)"]
    model, X, y = learning_problem(sc.CRF(c2=0.1, epsilon=1e-9, delta=1e-13), 6, chosen)
    exact = type(model)(**model.get_params()).fit(X, y)
    monkeypatch.setattr(training, "_FEW_STATES", 0)
    monkeypatch.setattr(training, "_TOLERANCE", 1e-5)
    monkeypatch.setattr(restricted, "_FEW_STATES", 0)
    relaxed_ = type(model)(**model.get_params()).fit(X, y)
    free = sc.CRF(c2=0.1, epsilon=1e-9, delta=1e-13).fit(X, y)
    assert_allclose(relaxed_.loss_, exact.loss_, rtol=0, atol=len(X) * 2e-5)
    assert_allclose(relaxed_.model_.weights, exact.model_.weights, rtol=0, atol=1e-2)
    assert free.loss_ > exact.loss_ + 1e-3
    assert exact.log_likelihood(X, y) > free.log_likelihood(X, y) + 1e-3


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "mm"])
def test_online_algorithms_learn_under_rules(algorithm):
    model, X, y = learning_problem(sc.CRF(max_iterations=10, algorithm=algorithm), 7, ["at_most_once(a)"])
    model.fit(X, y)
    assert all(keeps(rules.at_most_once("a"), row, True) for row in model.predict(X))
    assert model.score(X, y) > 0.6


def test_y_that_breaks_a_rule():
    X = [[{"w": "1"}] * 3, [{"w": "2"}] * 3]
    y = [["a", "b", "b"], ["a", "b", "a"]]
    for model in (sc.CRF, sc.SemiCRF):
        with pytest.raises(ValueError, match=r"y\[1\] breaks the rule at_most_once\(a\)"):
            model(rules="at_most_once(b, a)", train_with_rules=True).fit(X, y)
    with pytest.raises(ValueError, match=r"y\[1\] leaves no configuration that keeps at_most_once\(a\)"):
        sc.CRF(rules="at_most_once(a)", train_with_rules=True).fit(X, [y[0], ["a", {"b", "c"}, "a"]])
    with pytest.raises(ValueError, match="train_with_rules needs rules"):
        sc.CRF(train_with_rules=True).fit(X, y)
    with pytest.raises(ValueError, match="there is no rule 'nothing'"):
        sc.CRF(rules="nothing(a)").fit(X, y)
    with pytest.raises(ValueError, match="Trajectory"):
        sc.CRF(rules="once(a)", train_with_rules=True).fit(X, [y[0], sc.Trajectory(["a", "b"])])
    with pytest.raises(ValueError, match="grow does not go with train_with_rules"):
        sc.CRF(rules="once(a)", train_with_rules=True, grow=3).fit(X, y)


def test_estimators_warn_where_sums_leave_rules_out(monkeypatch):
    X, y = sequences(8, longest=6)
    model = sc.CRF(c2=10.0).fit(X, y)
    monkeypatch.setattr(restricted, "_FEW_STATES", 0)
    chosen = [rules.at_most_once(*LABELS), rules.before("c", "a"), rules.never("b", "a")]
    exact = model.predict_marginals(X, rules=chosen)
    monkeypatch.setattr(weights, "_RULE_STATES", 3)
    model.model_._cache.pop("rules")
    with pytest.warns(
        RuntimeWarning, match="sequences break rules that sums had to leave out, with a probability of up"
    ):
        rough = model.predict_marginals(X, rules=chosen)
    off = max(abs(a[k] - b[k]) for r, s in zip(exact, rough, strict=True) for a, b in zip(r, s, strict=True) for k in a)
    assert 1e-6 < off < 0.5
    monkeypatch.undo()
    model.model_._cache.pop("rules")
    for found in (model.predict(X, rules=chosen), [drawn[0] for drawn in model.sample(X, 1, 0, rules=chosen)]):
        assert all(keeps(rule, row, True) for rule in chosen for row in found)


@pytest.mark.parametrize("partial", [False, True])
def test_nested_training_maximises_the_restricted_likelihood(partial):
    rng = np.random.default_rng(3)
    lows = ("a", "b", "c")
    X, y = [], []
    for _ in range(12):
        cuts = sorted({0, 5, *rng.integers(1, 5, size=2).tolist()})
        low = [(u, v, lows[rng.integers(3)]) for u, v in zip(cuts, cuts[1:], strict=False)]
        top = [(0, cuts[1], "x"), (cuts[1], 5, "y")] if len(cuts) > 2 else [(0, 5, "x")]
        X.append([{"w": label, "v": str(rng.integers(3))} for u, v, label in low for _ in range(u, v)])
        y.append([top, low])
    chosen = [
        rules.at_most_once("a", level="low"),
        rules.never("b", "c", level="low", within="top"),
        rules.first("x", level="top"),
    ]
    options = {"levels": ["top", "low"], "max_length": {"top": "free", "low": 5}, "c2": 0.1}
    free = sc.HierarchicalCRF(**options, max_iterations=2).fit(X, y)
    kept = [b for b, broken in enumerate(free.broken_rules(y, chosen)) if not broken]
    assert 3 <= len(kept) < len(y)
    wrong = next(b for b in range(len(y)) if b not in kept)
    with pytest.raises(ValueError, match=rf"y\[{wrong}\] breaks the rule"):
        sc.HierarchicalCRF(**options, rules=chosen, train_with_rules=True).fit(X, y)
    X, y = [X[b] for b in kept], [y[b] for b in kept]
    if partial:
        y = [[top[:1] if b % 2 else top, low[1:]] for b, (top, low) in enumerate(y)]
    model = sc.HierarchicalCRF(**options, rules=chosen, train_with_rules=True)
    model.model_, objective = model.problem(X, y)
    assert_loss_and_gradient(model, X, y, objective, rng, atol=1e-6)
    if not partial:
        model.fit(X, y)
        assert model.log_likelihood(X, y) > sc.HierarchicalCRF(**options).fit(X, y).log_likelihood(X, y, rules=chosen)
        assert not any(model.broken_rules(model.predict(X)))
    with pytest.raises(ValueError, match="needs algorithm='lbfgs'"):
        model.set_params(algorithm="l2sgd").fit(X, y)


def test_nested_constraints_go_with_rules():
    """What is known comes as numbers of labels from estimators, and as sets of them from lattices."""
    X = [[{"w": str(t)} for t in range(4)]] * 2
    y = [[[(0, 2, "x"), (2, 4, "y")], [(0, 1, "a"), (1, 2, "b"), (2, 3, "a"), (3, 4, "b")]]] * 2
    model = sc.HierarchicalCRF(levels=["top", "low"], max_iterations=3).fit(X, y)
    once = rules.at_most_once("a", level="low", within="top")
    known = [[y[0][0], [(0, 1, "a")]], None]
    for answer in model.predict(X, constraints=known, rules=once):
        assert not model.broken_rules([answer], once)[0]
    found = model.predict(X, constraints=known, rules=once)[0]
    assert found[0] == y[0][0] and found[1][0] == (0, 1, "a")
    with pytest.raises(
        ValueError, match=r"constraints\[0\] leaves no configuration that keeps at_most_once\(a, level=low\)"
    ):
        model.predict(X, constraints=[y[0], None], rules=rules.at_most_once("a", level="low"))
