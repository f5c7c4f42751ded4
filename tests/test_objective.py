"""The native objectives of all kinds of models: losses, gradients and passes of online algorithms, by definition."""

from __future__ import annotations

from typing import Any, NamedTuple

import flat_oracle
import hierarchical_oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from test_hierarchical import CASES, span_dict

import scansion as sc
from scansion import _core
from scansion.models.occurrences import token_entries
from scansion.reference import enumeration as brute
from scansion.reference.online import Example, Pass, log_loss, margin_loss
from scansion.training.optimizers import gradient_check

ALGORITHMS = ("likelihood", "margin", "perceptron", "passive_aggressive")


class Problem(NamedTuple):
    """A model, its objective, and the examples that tell something, by definition."""

    model: Any
    objective: Any
    examples: list[Example]

    def told(self) -> list[Example]:
        return [self.examples[b] for b in self.objective.examples]


def by_token(config: Any) -> list[int]:
    """The labels of a path's positions."""
    return [int(y) for u, v, y in config for _ in range(u, v)]


def nested_problem(case: str, seed: int, hidden: bool, weighted: bool = False, n: int = 5) -> Problem:
    settings = CASES[case]
    given = settings["max_length"]
    limits = [given.get(name) if isinstance(given, dict) else given for name in settings["levels"]]
    bounds = [3 if limit == "free" else limit for limit in limits]
    X, y = hierarchical_oracle.data(seed, settings["levels"], bounds, hidden=hidden, n=n, longest=3)
    weight = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=len(X)) if weighted else None
    model, objective = sc.HierarchicalCRF(**{"repeats": True, **settings}).problem(X, y, weight)
    spans = dict.fromkeys(settings.get("segment_features", ()), span_dict)
    oracle = hierarchical_oracle.Oracle(model, X, y, spans, weight)
    examples = [
        Example(features, kept, np.array([[s for path in c[1:] for s in by_token(path)] for c in configs]), g)
        for (configs, features, kept), g in zip(oracle.rows, oracle.weight, strict=True)
    ]
    return Problem(model, objective, examples)


def flat_problem(order: int, longest: int, seed: int, hidden: bool, weighted: bool = False) -> Problem:
    X, y = flat_oracle.data(seed, longest=longest, partial=hidden, n=5)
    weight = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=len(X)) if weighted else None
    estimator = sc.CRF(order) if longest == 1 else sc.SemiCRF(order, longest, repeats=True)
    found = flat_oracle.Problem.of(estimator, X, y, weight)
    oracle = found.oracle
    examples = [
        Example(counts, known, np.array([brute.label_sequence(c) for c in configs]).reshape(len(configs), -1), g)
        for configs, counts, known, g in zip(oracle.configs, oracle.counts, oracle.open, oracle.weight, strict=True)
    ]
    return Problem(found.model, found.objective, examples)


NESTED = ["two levels", "everything there is", "all parts", "all parts, no bound", "three levels", "one level of steps"]
PROBLEMS = {
    "chain": lambda *args: flat_problem(1, 1, *args),
    "chain of order 2": lambda *args: flat_problem(2, 1, *args),
    "segments": lambda *args: flat_problem(1, 3, *args),
    **{case: lambda *args, case=case: nested_problem(case, *args) for case in NESTED},
}
problems = pytest.mark.parametrize("kind", PROBLEMS)
hidden = pytest.mark.parametrize("hidden", [False, True], ids=["complete", "partial"])


def online(algorithm: str, average: bool = False, **settings: Any) -> Any:
    found = _core.Online(getattr(_core.Algorithm, algorithm))
    found.average = average
    for name, value in {"strength": 0.3, "t0": 7.0, **settings}.items():
        setattr(found, name, value)
    return found


# Losses -------------------------------------------------------------------------------------------


@problems
@hidden
def test_losses_are_those_of_all_configurations(kind, hidden):
    model, objective, _ = problem = PROBLEMS[kind](3, hidden, True)
    w = np.random.default_rng(0).normal(scale=0.7, size=model.n_weights)
    for native, reference in ((objective.log_loss, log_loss), (objective.margin_loss, margin_loss)):
        gradient = np.empty_like(w)
        loss = native(w, gradient, 2)
        wanted, slope = reference(problem.told(), w)
        assert loss == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert_allclose(gradient, slope, rtol=1e-8, atol=1e-9)


def value_and_gradient(objective):
    def function(w):
        gradient = np.empty_like(w)
        return objective.log_loss(w, gradient, 1), gradient

    return function


@pytest.mark.parametrize("case", CASES)
@hidden
def test_gradients_are_those_of_finite_differences(case, hidden):
    """Every part, spans and lengths at levels with and without a bound, partial knowledge, weights of sequences."""
    model, objective, _ = nested_problem(case, 8, hidden, True)
    w = np.random.default_rng(1).normal(scale=0.7, size=model.n_weights)

    assert gradient_check(value_and_gradient(objective), w, n=12) < 1e-6


def test_equal_sequences_count_as_often_as_they_occur():
    X, y = flat_oracle.data(5, n=6)
    _, partial = flat_oracle.data(5, n=6, partial=True)
    model, once = sc.CRF().problem([*X, *X], [*y, *partial], np.r_[np.full(6, 1.75), np.ones(6)])
    weights = np.r_[np.ones(12), np.full(6, 0.75)]
    _, twice = sc.CRF().problem([*X, *X, *X], [*y, *partial, *y], weights)
    w = np.random.default_rng(0).normal(size=model.weights.size)
    (wanted, slope), (loss, gradient) = value_and_gradient(once)(w), value_and_gradient(twice)(w)
    assert loss == pytest.approx(wanted, rel=1e-12)
    assert_allclose(gradient, slope, rtol=1e-10, atol=1e-12)


def log_likelihood_of(model, w, X, y):
    crf = sc.CRF(max_iterations=1).fit(X, y)
    crf.model_ = model.weighted(w)
    return crf.log_likelihood(X, y)


def test_the_same_attributes_in_other_places_are_another_sequence():
    X = [[["a", "b"], ["c"]], [["a"], ["b", "c"]], [["a", "b"], ["c"]]]
    y = [["A", "B"]] * 3
    model, objective = sc.CRF().problem(X, y)
    w = np.random.default_rng(1).normal(size=model.weights.size)
    loss, _ = value_and_gradient(objective)(w)
    assert loss == pytest.approx(-log_likelihood_of(model, w, X, y), rel=1e-12)
    assert gradient_check(value_and_gradient(objective), w) < 1e-6


@pytest.mark.parametrize("values", [(True, False), (True, False, 2.5, -1.0), (0.5, 3.0)])
def test_values_of_attributes(values):
    rng = np.random.default_rng(3)
    X = [[{name: values[rng.integers(len(values))] for name in "abcd"} for _ in range(4)] for _ in range(12)]
    y = [[str(int(rng.integers(3))) for _ in x] for x in X]
    model, objective = sc.CRF().problem(X, y)
    w = rng.normal(size=model.weights.size)
    loss, _ = value_and_gradient(objective)(w)
    assert loss == pytest.approx(-log_likelihood_of(model, w, X, y), rel=1e-12)
    assert gradient_check(value_and_gradient(objective), w) < 1e-6


@problems
def test_log_partitions(kind):
    model, objective, examples = PROBLEMS[kind](5, True)
    w = np.random.default_rng(2).normal(size=model.n_weights)
    for known in (False, True):
        found = np.empty(len(examples))
        objective.native.log_partitions(w, known, found, 2)
        wanted = [np.logaddexp.reduce((one.features @ w)[one.known if known else slice(None)]) for one in examples]
        assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_weights_that_are_too_large_have_an_infinite_loss():
    model, objective, _ = nested_problem("everything there is", 0, True)
    gradient = np.empty(model.n_weights)
    for value in (1e200, np.nan, -np.inf):
        w = np.full(model.n_weights, value)
        assert objective.log_loss(w, gradient, 1) == np.inf
        assert objective.margin_loss(w, gradient, 1) == np.inf
        for algorithm in ALGORITHMS:
            assert objective.run_pass(online(algorithm), objective.examples, w.copy(), np.empty(0)) == np.inf


# Passes -------------------------------------------------------------------------------------------


@problems
@hidden
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("batch", [1, 2, 8])
def test_passes_are_those_of_the_definition(kind, hidden, algorithm, batch):
    model, objective, _ = problem = PROBLEMS[kind](6, hidden, True)
    objective.native.set_batches(batch, 1)
    rng = np.random.default_rng(batch)
    order = rng.permutation(objective.examples)
    w = rng.normal(scale=0.5, size=model.n_weights)  # not zero: no ties
    reference = Pass(algorithm, w.copy(), strength=0.3, t0=7.0)
    state, total = online(algorithm, average=True), np.zeros_like(w)
    for _ in range(2):
        loss = objective.run_pass(state, order, w, total)
        assert loss == pytest.approx(reference.run([problem.examples[b] for b in order], batch), rel=1e-8, abs=1e-9)
    assert state.t == reference.t
    assert_allclose(w * state.scale, reference.w, rtol=1e-8, atol=1e-9)
    decays = algorithm in ("likelihood", "margin")
    mean = total / state.steps if decays else w - total / state.steps
    assert_allclose(mean, np.mean(reference.averaged, axis=0), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("pa_type", [0, 1, 2])
@pytest.mark.parametrize("error_sensitive", [False, True])
def test_passive_aggressive_steps(pa_type, error_sensitive):
    settings = {"pa_type": pa_type, "error_sensitive": error_sensitive}
    model, objective, _ = problem = nested_problem("all parts", 2, True)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    reference = Pass("passive_aggressive", w.copy(), c=0.02, **settings)
    state = online("passive_aggressive", aggressiveness=0.02, **settings)
    objective.native.set_batches(1, 1)
    loss = objective.run_pass(state, objective.examples, w, np.empty(0))
    assert loss == pytest.approx(reference.run(problem.told(), 1), rel=1e-9)
    assert_allclose(w, reference.w, rtol=1e-9, atol=1e-10)


@problems
@hidden
@pytest.mark.parametrize("batch", [1, 3])
def test_arow_steps(kind, hidden, batch):
    model, objective, _ = problem = PROBLEMS[kind](6, hidden, True)
    objective.native.set_batches(batch, 1)
    rng = np.random.default_rng(batch)
    order = rng.permutation(objective.examples)
    w, variance = rng.normal(scale=0.5, size=model.n_weights), np.full(model.n_weights, 0.7)
    reference = Pass("arow", w.copy(), gamma=0.4, variance=variance.copy())
    state = online("arow", gamma=0.4)
    for _ in range(2):
        loss = objective.run_pass(state, order, w, variance)
        assert loss == pytest.approx(reference.run([problem.examples[b] for b in order], batch), rel=1e-8, abs=1e-9)
    assert_allclose(w, reference.w, rtol=1e-8, atol=1e-9)
    assert_allclose(variance, reference.variance, rtol=1e-8, atol=1e-9)
    with pytest.raises(ValueError, match="as long as w"):
        objective.run_pass(state, order, w, np.empty(0))


def test_a_pass_touches_the_features_of_its_sequences_alone():
    X, y = hierarchical_oracle.data(1, ["top", "low"], [3, 2], n=6, longest=4)
    X[0] = [{f"only {name}": value for name, value in token.items()} for token in X[0]]
    model, objective = sc.HierarchicalCRF(["top", "low"], max_length=3, repeats=True).problem(X, y)
    names = [row for block, _ in model.parts() for row in np.array(model.row_names(block), object)[block.row]]
    apart = np.array([name.startswith("only ") for name in names])
    assert apart.any() and not apart.all()
    for algorithm in ALGORITHMS:
        w = np.random.default_rng(0).normal(size=model.n_weights)
        before, state = w.copy(), online(algorithm)
        objective.run_pass(state, np.array([0, 0]), w, np.empty(0))
        others = np.array([not name.startswith("only ") and name in hierarchical_oracle.ATTRIBUTES for name in names])
        assert_array_equal(w[others], before[others])
        assert (w[apart] != before[apart]).any()


# Threads ------------------------------------------------------------------------------------------


def larger(kind: str) -> tuple[Any, Any]:
    """A model and an objective on some more sequences, of all attributes 1 or with values."""
    rng = np.random.default_rng(4)
    names = [f"w{i}" for i in range(12)]
    X = [[{str(rng.choice(names)): 1.0, "bias": 1.0} for _ in range(rng.integers(1, 9))] for _ in range(40)]
    if "values" in kind:
        X = [[{name: float(rng.normal()) for name in token} for token in x] for x in X]
    if "flat" in kind:
        return sc.CRF(2 if "order" in kind else 1).problem(X, [[str(rng.choice(list("ABC"))) for _ in x] for x in X])
    y = [hierarchical_oracle.tree(rng, len(x), ["top", "low"], [4, 2]) for x in X]
    y[1::3] = [hierarchical_oracle.partial(rng, row, len(x)) for row, x in zip(y[1::3], X[1::3], strict=True)]
    parts = {"low": ("inside", "transition", "ending"), "top": ("start", "inner")}
    free = {"max_length": "free"} if "free" in kind else {"max_length": 4, "length_features": ("log",)}
    model = sc.HierarchicalCRF(["top", "low"], attribute_parts=parts, repeats=True, topology="all", **free)
    return model.problem(X, y, rng.choice([0.0, 0.5, 2.0], size=len(X)))


@pytest.mark.parametrize("kind", ["flat", "flat order", "nested", "nested free", "nested values"])
def test_the_number_of_threads_changes_no_bit(kind):
    model, objective = larger(kind)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    answers = []
    for threads in (1, 2, 5):
        found = []
        for name in ("log_loss", "margin_loss"):
            gradient = np.empty_like(w)
            found += [np.float64(getattr(objective, name)(w, gradient, threads)).tobytes(), gradient.tobytes()]
        for known in (False, True):
            log_z = np.empty(40)
            objective.native.log_partitions(w, known, log_z, threads)
            found.append(log_z.tobytes())
        for algorithm in ALGORITHMS:
            for batch in (1, 7):
                objective.native.set_batches(batch, threads)
                v, total = w.copy(), np.zeros_like(w)
                state = online(algorithm, average=True)
                loss = objective.run_pass(state, np.arange(40), v, total)
                found += [np.float64(loss).tobytes(), v.tobytes(), total.tobytes(), state.scale, state.steps]
        answers.append(found)
    assert answers[0] == answers[1] == answers[2]


# Attributes and weights ---------------------------------------------------------------------------


class Tokens(NamedTuple):
    """Items with attributes, some features (attribute, column), and both as dense matrices."""

    offsets: np.ndarray
    ids: np.ndarray
    values: np.ndarray | None
    rows: np.ndarray
    columns: np.ndarray
    dense: np.ndarray  # (items, attributes)
    there: np.ndarray  # (attributes, width) whether there is a feature
    rng: np.random.Generator


@st.composite
def tokens(draw) -> Tokens:
    seed = draw(st.integers(0, 2**32 - 1))
    items, attributes, width = draw(st.integers(0, 9)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=items)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    ids = rng.integers(0, attributes, size=offsets[-1]).astype(np.int32)
    values = rng.normal(size=len(ids)) if draw(st.booleans()) else None
    there = rng.random((attributes, width)) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    rows = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(there)[1].astype(np.int32)
    for array in (offsets, ids, values, rows, columns):
        if array is not None:
            array.flags.writeable = False
    dense = np.zeros((items, attributes))
    np.add.at(dense, (np.repeat(np.arange(items), counts), ids), 1.0 if values is None else values)
    return Tokens(offsets, ids, values, rows, columns, dense, there, rng)


def steps_of(problem: Tokens) -> tuple[Any, Any]:
    """Every item a sequence of one token, in one level of single steps whose states are the columns."""
    width = problem.there.shape[1]
    ones = np.ones((1, width), np.uint8)
    model = _core.NestedModel([1], [(ones, np.ones((1, width, width), np.uint8), ones, ones)], len(problem.columns))
    if len(problem.columns):
        model.set_features(0, 0, problem.rows, problem.columns, 0)
    sequences = np.arange(len(problem.dense) + 1)
    return model, _core.EncodedData(sequences, problem.offsets, problem.ids, problem.values)


@given(tokens())
def test_scores_are_products_with_a_matrix_of_weights(problem):
    model, data = steps_of(problem)
    w = problem.rng.normal(size=len(problem.columns))
    matrix = np.zeros(problem.there.shape)
    matrix[problem.there] = w
    found = []
    for threads in (1, 3):
        width = problem.there.shape[1]
        inside = np.zeros((len(problem.dense), width))
        cliques = np.zeros((1, width, width)), np.zeros((1, width)), np.zeros((1, width))
        _core.nested_score_arrays(model, data, w, [(inside, None, None, None, None)], [cliques], threads)
        found.append(inside)
    assert_allclose(found[0], problem.dense @ matrix, rtol=1e-12, atol=1e-12)
    assert_array_equal(found[1], found[0])


@given(tokens())
def test_counts_are_products_with_the_transposed_matrix(problem):
    """The gradient of single steps: what is expected minus what is known, times the attributes."""
    model, data = steps_of(problem)
    items, width = len(problem.dense), problem.there.shape[1]
    w = problem.rng.normal(size=len(problem.columns))
    matrix = np.zeros(problem.there.shape)
    matrix[problem.there] = w
    labels = problem.rng.integers(0, width, size=items).astype(np.int32)
    ends, status = np.ones(items, np.int8), np.full(items, 2, np.uint8)
    weight = problem.rng.random(items)
    objective = _core.NestedObjective(model, data, [labels], [ends], [None], status, weight)
    found = []
    for threads in (1, 3):
        gradient = np.empty(len(w))
        objective.log_loss(w, gradient, threads)
        found.append(gradient)
    scores = problem.dense @ matrix
    counts = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    counts[np.arange(items), labels] -= 1.0
    wanted = problem.dense.T @ (counts * weight[:, None])
    assert_allclose(found[0], wanted[problem.there], rtol=1e-10, atol=1e-12)
    assert_array_equal(found[1], found[0])


@given(tokens())
def test_entries_of_items_with_columns(problem):
    data = sc.data.encode([])
    data = type(data)._trusted(
        np.array([0, len(problem.dense)]), problem.offsets, problem.ids, problem.values, data.vocabulary
    )
    attributes, width = problem.there.shape
    items = problem.rng.integers(0, max(1, len(problem.dense)), size=5 if len(problem.dense) else 0)
    columns = problem.rng.integers(0, width, size=len(items))
    found = np.zeros(attributes * width)
    entry, value = token_entries(data, items, columns, width)
    np.add.at(found, entry, value)
    wanted = np.zeros((attributes, width))
    for item, column in zip(items, columns, strict=True):
        wanted[:, column] += problem.dense[item]
    assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-12, atol=1e-12)
