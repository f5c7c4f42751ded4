"""HierarchicalCRF: model files, hostile ones too, pickles, copies, and scikit-learn's conventions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import sklearn.exceptions
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

import scansion as sc
from scansion import model_file
from scansion.model_file import ModelFileError
from scansion.models.fitted import NotFittedError
from scansion.models.packing import json_value

rng = np.random.default_rng(0)
WORDS = [[f"w{rng.integers(9)}" for _ in range(rng.integers(2, 6))] for _ in range(12)]
X = [[{"w": word, "n": float(rng.integers(3))} for word in words] for words in WORDS]
LOW = [["abc"[int(word[1:]) % 3] for word in words] for words in WORDS]
Y = [{"top": [(0, 1, "A"), (1, len(row), "B")], "low": row} for row in LOW]


def first_word(x, start, stop):
    """An attribute of a span."""
    return [x[start]["w"]]


PARTS = {"top": {"w": ("start", "end"), "n": "inner"}, "low": ("inside", "transition", "initialisation", "ending")}
MADE = {
    "plain": {"max_length": {"low": 1}},
    "no bound": {"max_length": "free", "length_features": "length", "topology": "all"},
    "sparse, with parts": {
        "c1": 0.05,
        "c2": 0.01,
        "attribute_parts": PARTS,
        "length_features": {"top": ("bins", "log")},
    },
    "spans": {"segment_features": {"top": first_word}, "c1": 0.01},
}


def made(name):
    return sc.HierarchicalCRF(["top", "low"], max_iterations=8, **MADE[name])


@pytest.fixture(scope="module", params=MADE)
def model(request):
    return made(request.param).fit(X, Y)


def same(one, other):
    """Equal answers, bit for bit."""
    assert other.classes_ == one.classes_ and other.topology_ == one.topology_
    assert other.max_length_ == one.max_length_
    assert other.predict(X) == one.predict(X)
    assert other.predict_marginals(X) == one.predict_marginals(X)
    assert other.predict_kbest(X[:2], 2) == one.predict_kbest(X[:2], 2)
    for name in ("state_features_", "transition_features_", "initialisation_features_", "ending_features_"):
        assert getattr(other, name) == getattr(one, name)
    assert other.attributes_ == one.attributes_ and other.size_ == one.size_
    assert other.loss_ == one.loss_ and other.message_ == one.message_


# Files, pickles, copies ---------------------------------------------------------------------------


def test_save_and_load(model, tmp_path):
    model.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert type(again) is sc.HierarchicalCRF
    left_out = {"segment_features"} if model.segment_features else set()
    wanted = {name: json_value(value) for name, value in model.get_params().items() if name not in left_out}
    assert {name: value for name, value in again.get_params().items() if name not in left_out} == wanted
    if left_out:
        with pytest.raises(ValueError, match="the model was trained with segment_features of level 'top'"):
            again.predict(X)
        again.set_params(segment_features=model.segment_features)
    same(model, again)
    again.save(tmp_path / "again")
    assert (tmp_path / "model").stat().st_size < 40_000


def test_weights_of_zero_are_not_saved(tmp_path):
    model = made("sparse, with parts").fit(X, Y)
    model.save(tmp_path / "model")
    stored = sc.load(tmp_path / "model").model_
    assert stored.n_weights == model.size_ < model.model_.n_weights
    assert set(stored.vocabulary.names()) == set(model.attributes_)


def test_pickles_and_copies(model):
    if model.segment_features is None:
        same(model, pickle.loads(pickle.dumps(model)))
    same(model, copy.deepcopy(model))


def test_labels_that_a_file_does_not_hold(tmp_path):
    y = [{"top": row["top"], "low": [(label,) for label in row["low"]]} for row in Y]
    with pytest.raises(TypeError, match="only str and int labels can be saved"):
        sc.HierarchicalCRF(["top", "low"], max_iterations=1).fit(X, y).save(tmp_path / "model")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    made("sparse, with parts").fit(X, Y).save(path)
    return model_file.read(path)


def change_metadata(key, value):
    def change(metadata, arrays):
        metadata[key] = value

    return change


def change_level(key, value):
    def change(metadata, arrays):
        metadata["levels"][0][key] = value

    return change


def change_block(key, value):
    def change(metadata, arrays):
        metadata["blocks"][0][key] = value

    return change


def change_array(name, value):
    def change(metadata, arrays):
        arrays[name] = value(arrays[name])

    return change


def drop(name):
    def change(metadata, arrays):
        del arrays[name]

    return change


def twice(metadata, arrays):
    metadata["blocks"][1] = dict(metadata["blocks"][0])
    for part in ("rows", "columns"):
        arrays[f"block1.{part}"] = arrays[f"block0.{part}"]


def not_ascending(metadata, arrays):
    number = next(i for i, block in enumerate(metadata["blocks"]) if block["always"])
    arrays[f"block{number}.columns"] = arrays[f"block{number}.columns"][::-1].copy()


HOSTILE = {
    "no levels": change_metadata("levels", []),
    "levels are not a list": change_metadata("levels", "top"),
    "a level is not a dict": change_metadata("levels", [3]),
    "levels of one name": change_level("name", "low"),
    "a name that is none": change_level("name", 3),
    "no labels": change_level("labels", []),
    "labels twice": change_level("labels", ["A", "A"]),
    "more labels": change_level("labels", ["A", "B", "C"]),
    "labels of a strange type": change_level("labels", [1.5, 2.5]),
    "a length below 1": change_level("max_length", 0),
    "a length of another kind": change_level("max_length", "long"),
    "a length that does not fit": change_level("max_length", 2**40),
    "no bound with lengths": change_level("max_length", None),
    "names of lengths": change_level("basis_names", ["a"]),
    "blocks are not a list": change_metadata("blocks", {}),
    "a block that is none": change_metadata("blocks", [3]),
    "a part that is none": change_block("part", "middle"),
    "a part that is not text": change_block("part", ["inside"]),
    "a level that is none": change_block("level", 7),
    "a level below 0": change_block("level", -1),
    "always is a number": change_block("always", 1),
    "always on, but not a clique": change_block("always", True),
    "a block twice": twice,
    "columns beyond the end": change_array("block0.columns", lambda a: a + 10**9),
    "columns below 0": change_array("block0.columns", lambda a: a - 10**6),
    "columns that do not ascend": not_ascending,
    "columns of floats": change_array("block0.columns", lambda a: a.astype(float)),
    "rows that do not ascend": change_array("block0.rows", lambda a: a[::-1].copy()),
    "fewer rows": change_array("block0.rows", lambda a: a[:-1].copy()),
    "fewer weights": change_array("weights", lambda a: a[:-1].copy()),
    "weights of nan": change_array("weights", lambda a: a * np.nan),
    "weights of -inf": change_array("weights", lambda a: a - np.inf),
    "weights by two": change_array("weights", lambda a: np.stack([a, a])),
    "a topology of another shape": change_array("1.children", lambda a: a[:, :-1].copy()),
    "a topology of numbers": change_array("1.children", lambda a: a.astype(np.int64)),
    "transitions outside the topology": change_array("1.children", lambda a: np.zeros_like(a)),
    "a basis of nan": change_array("0.basis", lambda a: a * np.nan),
    "no weights": drop("weights"),
    "no columns": drop("block0.columns"),
    "no topology": drop("0.children"),
    "no transitions": drop("1.transition.possible"),
    "no attributes": drop("attributes.text"),
    "text that is cut": change_array("attributes.text", lambda a: a[:-1].copy()),
    "unknown parameters": change_metadata("parameters", {"order": 3}),
    "parameters are a list": change_metadata("parameters", []),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(stored, case, tmp_path):
    metadata, arrays = copy.deepcopy(stored.metadata), dict(stored.arrays)
    HOSTILE[case](metadata, arrays)
    model_file.write(tmp_path / "bad", stored.kind, metadata, arrays)
    with pytest.raises(ModelFileError):
        sc.load(tmp_path / "bad")


# scikit-learn -------------------------------------------------------------------------------------


def test_parameters_and_clones():
    model = made("sparse, with parts")
    again = clone(model)
    assert again.get_params() == model.get_params() and not hasattr(again, "model_")
    assert again.set_params(c2=3.0).c2 == 3.0
    with pytest.raises(ValueError, match="HierarchicalCRF has no parameter 'order'"):
        model.set_params(order=2)
    assert repr(sc.HierarchicalCRF(["a"], c1=2.0)) == "HierarchicalCRF(levels=['a'], c1=2.0)"
    assert not is_classifier(model)


def test_questions_before_fit():
    model = made("plain")
    for ask in (model.predict, model.predict_marginals, model.lattices):
        with pytest.raises(NotFittedError, match="this HierarchicalCRF is not fitted yet"):
            ask(X)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(model)


def test_searches_and_pipelines():
    search = GridSearchCV(made("plain").set_params(max_iterations=3), {"c2": [0.1, 1e6]}, cv=2, error_score="raise")
    search.fit(X, Y)
    assert search.best_params_ == {"c2": 0.1}
    assert len(cross_val_score(made("no bound").set_params(max_iterations=2), X, Y, cv=2)) == 2
    pipeline = make_pipeline(FunctionTransformer(list), made("plain").set_params(max_iterations=3)).fit(X, Y)
    assert pipeline.score(X, Y) == pipeline[-1].score(X, Y)
