"""What people try first with scikit-learn, data frames and arrays: it works, or says what to do instead."""

import json
import pickle
import warnings

import numpy as np
import pytest

import scansion as sc
from scansion import metrics, schemes
from scansion.data import from_frame

WORDS = {"the": "B-NP", "old": "I-NP", "man": "I-NP", "sees": "O"}


def sentences(n=12, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = ["the", *["old"] * int(rng.integers(3)), "man", *["sees"] * int(rng.integers(3))]
        X.append([{"w": w} for w in words])
        y.append([WORDS[w] for w in words])
    return X, y


# ---- scikit-learn ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", ["folds", "one by one"])
def test_cross_val_predict(cv):
    from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict

    X, y = sentences()
    folds = KFold(3, shuffle=True, random_state=0) if cv == "folds" else LeaveOneOut()
    found = cross_val_predict(sc.CRF(max_iterations=10), X, y, cv=folds)
    assert found.shape == (len(X),) and list(map(len, found)) == list(map(len, y))
    assert metrics.flat_accuracy_score(y, found) == 1.0
    spans = [schemes.covered(schemes.segments(row), len(row)) for row in y]
    semi = sc.SemiCRF(c2=0.01, all_possible_states=True, attribute_parts={"": ("start", "end")})
    segments = cross_val_predict(semi, X, spans, cv=folds)
    assert [list(map(tuple, row)) for row in segments] == spans


def test_answers_are_a_list_to_everything_else():
    X, y = sentences(4)
    found = sc.CRF(max_iterations=5).fit(X, y).predict(X)
    assert isinstance(found, list) and found == list(found) and json.loads(json.dumps(found)) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert np.concatenate(found).tolist() == [label for row in found for label in row]
    same = sc.CRF(max_iterations=5).fit(X[:1] * 2, y[:1] * 2).predict(X[:1] * 2)
    assert np.array(same).shape == np.shape(same) == (2, len(X[0]))
    assert np.concatenate([same, same], axis=0).shape == (4, len(X[0]))  # by name: as NumPy does


@pytest.mark.parametrize("name", ["segment_f1", "accuracy", "sequence_accuracy", "flat_f1", "edit", "f1@50"])
def test_scorers(name):
    from sklearn.model_selection import GridSearchCV, cross_val_score

    X, y = sentences()
    scorer = pickle.loads(pickle.dumps(metrics.scorer(name)))
    best = 100.0 if name == "edit" else 1.0
    assert cross_val_score(sc.CRF(max_iterations=10), X, y, scoring=scorer, cv=3).tolist() == [best] * 3
    search = GridSearchCV(
        sc.CRF(max_iterations=10), {"c2": [0.1]}, scoring={"it": scorer, "f1": metrics.scorer("segment_f1")}, refit="it"
    ).fit(X, y)
    assert search.best_score_ == best and search.cv_results_["mean_test_f1"].tolist() == [1.0]


def test_scorers_are_their_scores():
    y, z = [["B-NP", "I-NP", "O"], ["O", "B-NP"]], [["B-NP", "O", "O"], ["O", "B-NP"]]

    class Fixed:
        def predict(self, X):
            return z

    found = {name: metrics.scorer(name)(Fixed(), None, y) for name in ("segment_f1", "segment_recall", "flat_recall")}
    scores = metrics.segment_scores(y, z)
    assert found["segment_f1"] == scores.f1 == scores.micro.f1 == 0.5
    assert found["segment_recall"] == scores.recall and scores.precision == 0.5
    assert found["flat_recall"] == metrics.flat_recall_score(y, z, average="weighted")
    assert metrics.scorer("boundary_f1", tolerance=1)(Fixed(), None, y) == metrics.boundary_f1_score(y, z, 1)
    assert repr(metrics.scorer("segment_f1", scheme="iob2")) == "scorer('segment_f1', scheme='iob2')"
    with pytest.raises(ValueError, match="unknown score 'f2'; known: segment_f1"):
        metrics.scorer("f2")


def test_readable_forms():
    assert repr(metrics.segment_scores([["B-NP", "O"]], [["B-NP", "O"]])) == (
        "SegmentScores(precision=1.0000, recall=1.0000, f1=1.0000, 1 segments of 1 labels)"
    )
    batch = sc.ChainBatch.from_padded(np.zeros((2, 3, 4)), [3, 1])
    assert repr(batch) == "ChainBatch(2 sequences, 4 positions, 4 labels)"
    assert repr(batch.marginals()) == "ChainMarginals(labels (4, 4); also transitions, transition_counts)"
    segments = sc.SegmentLattice(np.zeros((3, 2, 1)), [(0,)], 1)
    assert repr(segments.marginals()) == ("SegmentMarginals(labels (3, 1), boundaries (3,); also segments, patterns)")


# ---- arrays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_another_number_of_columns_is_an_error(tmp_path, sparse):
    from scipy.sparse import csr_matrix

    make = csr_matrix if sparse else np.asarray
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(5, 3)) for _ in range(4)], [list("aabba")] * 4
    crf = sc.CRF(max_iterations=3).fit([make(x) for x in X], y)
    assert crf.n_features_in_ == 3
    crf.save(tmp_path / "model")
    for model in (crf, sc.load(tmp_path / "model")):
        assert model.predict([make(X[0])]) == crf.predict(X[:1])
        with pytest.raises(ValueError, match="X has 4 columns, but the model was trained on arrays of 3"):
            model.predict([make(np.zeros((2, 4)))])
    with pytest.raises(ValueError, match=r"X\[1\] has 2 columns, but those before have 3"):
        sc.CRF().fit([X[0], X[1][:, :2]], y[:2])
    words = sc.CRF(max_iterations=3).fit(*sentences(3))
    assert words.n_features_in_ is None


# ---- tags given to a model of segments -------------------------------------------------------------------------------


def test_tags_given_to_a_model_of_segments():
    X, y = sentences()
    with pytest.warns(UserWarning, match=r"look like tags .*\[schemes\.covered\(schemes\.segments"):
        sc.SemiCRF(max_iterations=1).fit(X, y)
    spans = [schemes.covered(schemes.segments(tags, "iob2"), len(tags)) for tags in y]  # the remedy
    semi = sc.SemiCRF(c2=0.01, all_possible_states=True, attribute_parts={"": ("start", "end")})
    assert semi.fit(X, spans).score(X, spans) == 1.0


# ---- warnings --------------------------------------------------------------------------------------------------------


def test_warnings_name_the_line_that_they_are_about():
    X, y = sentences()
    for call in (
        lambda: sc.CRF(max_iterations=1).fit(X, y),
        lambda: sc.SemiCRF(max_iterations=1).fit(X, y),
        lambda: sc.CRF(min_freq=1, all_possible_states=True).fit(X, y),
        lambda: sc.metrics.flat_precision_score([["a"]], [["b"]], average="macro"),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        assert told and {one.filename for one in told} == {__file__}


# ---- data frames -----------------------------------------------------------------------------------------------------


class Polars:
    """As much of a polars DataFrame as is used."""

    def __init__(self, data):
        self.data, self.columns = data, list(data)

    def __len__(self):
        return len(next(iter(self.data.values())))

    def __getitem__(self, name):
        return type("Series", (), {"to_list": lambda _, cells=self.data[name]: list(cells)})()

    def to_dicts(self):
        raise AssertionError


def library(name):
    return pytest.importorskip(name, reason=f"{name} is not installed: its frames are not tried")


@pytest.mark.parametrize("kind", ["pandas", "polars", "what is used of polars"])
def test_frames_with_a_group_column(kind):
    make = Polars if " " in kind else library(kind).DataFrame
    data = {
        "id": [1, 1, 2, 1],
        "word": ["the", "man", "the", "sees"],
        "size": [3.0, None, 3.0, 4.0],
        "tag": ["D", "N", None, "V"],
    }
    X, y = from_frame(make(data), group="id", labels="tag")
    assert X == [
        [{"word": "the", "size": 3.0}, {"word": "man"}, {"word": "sees", "size": 4.0}],
        [{"word": "the", "size": 3.0}],
    ]
    assert y == [["D", "N", "V"], [None]]
    assert from_frame(make(data), "id", columns=["word"]) == ([[{"word": "the"}, {"word": "man"}, {"word": "sees"}],
                                                               [{"word": "the"}]], None)  # fmt: skip
    levels = from_frame(make(data), "id", labels=["tag", "word"], columns=["size"])[1]
    assert levels[0] == {"tag": ["D", "N", "V"], "word": ["the", "man", "sees"]}
    crf = sc.CRF(max_iterations=5).fit(X, y)
    assert crf.predict([make({name: cells[:2] for name, cells in data.items() if name in ("word", "size")})]) == [
        crf.predict([X[0][:2]])[0]
    ]
    with pytest.raises(ValueError, match="no column 'nope'; it has id, word, size, tag"):
        from_frame(make(data), "nope")
    with pytest.raises(TypeError, match=r"from_frame\(frame, group=..., labels=...\)"):
        crf.predict(make(data))
    with pytest.raises(ValueError, match="row 0 has nothing in the column 'id'"):
        from_frame(make({"id": [None], "word": ["a"]}), "id")
    with pytest.raises(TypeError, match="must be a DataFrame"):
        from_frame(data, "id")


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_columns_of_frames(name):
    """A column of lists as X and as y, a column of labels as one target."""
    frames = library(name)
    X, y = sentences(4)
    frame = frames.DataFrame({"X": X, "y": y})
    crf = sc.CRF(max_iterations=5).fit(frame["X"], frame["y"])
    assert crf.predict(frame["X"]) == sc.CRF(max_iterations=5).fit(X, y).predict(X)
    again = sc.CRF(max_iterations=5).fit(X, [frames.Series(row) for row in y])
    assert again.loss_ == crf.loss_


# ---- help ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sc.CRF, sc.SemiCRF, sc.HierarchicalCRF])
def test_help_explains_itself(kind):
    """No parameter is explained by another page."""
    for thing in (kind, kind.fit, kind.predict, kind.sample):
        for words in ("As in", "as in fit", "as in predict", "as in `Estimator", "see Learner"):
            assert words not in thing.__doc__
    for name in ("X", "y", "X_dev", "sample_weight"):
        assert f"{name}" in kind.fit.__doc__
