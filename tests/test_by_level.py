"""What estimators tell by level: the same questions to all kinds of models; flat ones have one level."""

import numpy as np
import pytest

import scansion as sc
from scansion.models.weights import Feature, Mark

X = [[["w=the", "b"], ["w=old"], ["w=man"]], [["w=the"], ["w=boats", "b"]]]
SEGMENTS = [[(0, 2, "D"), (2, 3, "N")], [(0, 1, "D"), (1, 2, "N")]]
LABELS = [["D", "D", "N"], ["D", "N"]]
TREES = [[[(0, len(x), "S")], segments] for x, segments in zip(X, SEGMENTS, strict=True)]

MODELS = {
    "crf": lambda: sc.CRF(order=2, attribute_orders={"b": (0, 1)}, max_iterations=5).fit(X, LABELS),
    "semicrf": lambda: sc.SemiCRF(length_features="bins", max_iterations=5).fit(X, SEGMENTS),
    "hierarchical": lambda: sc.HierarchicalCRF(
        ["sentence", "part"],
        attribute_parts={"part": {"": "inside", "b": "transition"}},
        max_length={"sentence": "free", "part": None},
        max_iterations=5,
    ).fit(X, TREES),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def test_levels():
    models = [make() for make in MODELS.values()]
    found = [[(level.name, level.labels, level.max_length) for level in model.levels_] for model in models]
    labels = ["D", "N"]
    assert found == [[("label", labels, 1)], [("label", labels, 2)], [("sentence", ["S"], None), ("part", labels, 2)]]
    assert [model.segments_ for model in models] == [False, True, True]


@pytest.mark.parametrize("kind", [sc.CRF, sc.SemiCRF, lambda: sc.HierarchicalCRF(["a"])])
def test_levels_need_a_fitted_model(kind):
    with pytest.raises(ValueError, match="not fitted"):
        _ = kind().levels_


def test_answers_by_level(model):
    for x, answer in zip(X, model.predict(X), strict=True):
        levels = model.by_level(answer)
        assert len(levels) == len(model.levels_)
        for level, found in zip(model.levels_, levels, strict=True):
            labels = [y for u, v, y in found for _ in range(u, v)] if model.segments_ else found
            assert len(labels) == len(x) and set(labels) <= set(level.labels)


def test_marginals_by_level(model):
    tables = model.level_marginals(X)
    assert [table.shape for table in tables] == [(5, len(level.labels)) for level in model.levels_]
    told = [model.by_level(rows) for rows in model.predict_marginals(X)]
    for k, (level, table) in enumerate(zip(model.levels_, tables, strict=True)):
        expected = [[row[label] for label in level.labels] for rows in told for row in rows[k]]
        np.testing.assert_allclose(table, expected, rtol=1e-12, atol=1e-300)
    known = model.predict(X)
    for table in model.level_marginals(X, constraints=known):
        np.testing.assert_allclose(table.max(axis=1), 1.0, rtol=1e-9)
    assert [table.shape[0] for table in model.level_marginals([])] == [0] * len(model.levels_)


def test_what_is_told_by_level(model):
    assert model.by_level(model.classes_) == [level.labels for level in model.levels_]
    for level, features in zip(model.levels_, model.by_level(model.strongest_features(3)), strict=True):
        assert list(features) == level.labels
    if model.segments_:
        for level, counts in zip(model.levels_, model.by_level(model.length_counts_), strict=True):
            assert list(counts) == level.labels


def test_features_are_all_there_once(model):
    features = list(model.level_features())
    assert all(isinstance(f, Feature) and f.weight for f in features)
    assert len(features) == len({f[:4] for f in features}) == model.size_
    assert [f for f in features if len(f.labels) > 1] == list(model.level_features(single=False))
    for f in features:
        level = model.levels_[f.level]
        assert all(isinstance(y, Mark) or y in level.labels for y in f.labels)
        assert (f.parent is None) == (f.level == 0 or len(f.labels) == 1)


def test_features_of_a_hierarchy():
    model = MODELS["hierarchical"]()
    features = {f[:4]: f.weight for f in model.level_features()}
    for (level, parent, first, *attribute), w in model.initialisation_features_.items():
        k = ["sentence", "part"].index(level)
        assert features[k, parent, (Mark.START, first), attribute[0] if attribute else None] == w
    for (level, parent, last, *attribute), w in model.ending_features_.items():
        k = ["sentence", "part"].index(level)
        assert features[k, parent, (last, Mark.END), attribute[0] if attribute else None] == w
    assert any(f.attribute == "b" and f.labels == ("D", "N") for f in model.level_features(single=False))


def test_marks_are_no_labels():
    """BOS is a number, and so may a label be."""
    y = [[0, 1, 0], [1, 0]]
    model = sc.CRF(patterns=[(sc.BOS, 0), (0, 1), (1, sc.EOS)], max_iterations=3).fit(X, y)
    patterns = {f.labels for f in model.level_features(single=False)}
    assert (Mark.START, 0) in patterns and (0, 1) in patterns
    numbers = sc.CRF(max_iterations=3).fit(X, [[sc.BOS, 1, sc.BOS], [1, sc.BOS]])
    assert {f.labels for f in numbers.level_features(single=False)} == set(numbers.pattern_features_)
    assert str(Mark.START) == "start"
