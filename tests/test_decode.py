"""What `predict` returns: the most probable configuration, or that with the most positions expected to be right."""

import numpy as np
import pytest

import scansion as sc
from scansion import rules


def data(n_sequences=30, seed=0):
    """Noisy runs of three labels, as tokens; y by token, as segments, and nested in two halves."""
    rng = np.random.default_rng(seed)
    X, labels, segments, nested = [], [], [], []
    for _ in range(n_sequences):
        runs = [(int(y), int(n)) for y, n in zip(rng.integers(3, size=4), rng.integers(1, 4, size=4), strict=True)]
        runs = [run for i, run in enumerate(runs) if i == 0 or run[0] != runs[i - 1][0]]
        y = [str(label) for label, n in runs for _ in range(n)]
        X.append([{f"w{rng.integers(3) if rng.random() < 0.4 else label}": 1.0} for label in y])
        cuts = np.cumsum([0, *(n for _, n in runs)])
        segments.append([(int(a), int(b), str(v)) for a, b, (v, _) in zip(cuts[:-1], cuts[1:], runs, strict=True)])
        half = int(cuts[(len(cuts) - 1) // 2 or 1])
        outer = [(0, half, "A"), (half, len(y), "B")] if half < len(y) else [(0, half, "A")]
        labels.append(y)
        nested.append([outer, segments[-1]])
    return X, labels, segments, nested


def fitted():
    X, labels, segments, nested = data()
    yield X, sc.CRF(order=1, max_iterations=20).fit(X, labels)
    yield X, sc.CRF(order=2, max_iterations=20).fit(X, labels)
    yield X, sc.SemiCRF(max_iterations=20).fit(X, segments)
    yield X, sc.HierarchicalCRF(levels=["outer", "inner"], max_iterations=20).fit(X, nested)


def right(model, x, answer):
    """Positions of the answer expected to be right, over all levels."""
    found = model.lattice(x).marginals().labels
    tables = [found] if isinstance(found, np.ndarray) else found[1:]
    levels = answer if len(tables) > 1 else [answer]
    total = 0.0
    for table, names, level in zip(tables, model.levels_, levels, strict=True):
        number = {label: i for i, label in enumerate(names.labels)}
        for t, one in enumerate(level):
            u, v, y = (t, t + 1, one) if isinstance(one, str) else one
            total += table[u:v, number[y]].sum()
    return total


def test_marginal_decoding_of_every_estimator():
    differs = 0
    for X, model in fitted():
        best, accurate = model.predict(X), model.predict(X, decode="marginal")
        differs += best != accurate
        for x, a, b in zip(X, accurate, best, strict=True):
            assert right(model, x, a) >= right(model, x, b) - 1e-6
            assert model.log_likelihood([x], [a]) > -np.inf
    assert differs >= 2


def test_marginal_decoding_keeps_rules_and_constraints():
    for X, model in fitted():
        if isinstance(model, sc.HierarchicalCRF):
            continue
        rule = rules.never("0", "1")
        for answer in model.predict(X, rules=[rule], decode="marginal"):
            word = [y if isinstance(y, str) else y[2] for y in answer]
            assert ("0", "1") not in list(zip(word[:-1], word[1:], strict=True))
        assert model.predict(X, rules=[rule], decode="marginal") != model.predict(X, decode="marginal")
        known = [["2"] + [None] * (len(x) - 1) for x in X]
        for answer in model.predict(X, constraints=known, decode="marginal"):
            assert (answer[0] if isinstance(answer[0], str) else answer[0][2]) == "2"


def test_unknown_way_of_decoding():
    X, model = next(fitted())
    with pytest.raises(ValueError, match="decode must be 'viterbi' or 'marginal', got 'map'"):
        model.predict(X, decode="map")
