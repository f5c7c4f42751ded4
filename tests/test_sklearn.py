"""scikit-learn: parameters, clones, searches, pipelines and tags; pickles, copies and model files."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn.exceptions
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import check_is_fitted

import scansion as sc
from scansion import model_file
from scansion.features import Gazetteer
from scansion.model_file import ModelFileError
from scansion.models.fitted import NotFittedError
from scansion.models.packing import json_value

rng = np.random.default_rng(0)
WORDS = [[f"w{rng.integers(12)}" for _ in range(rng.integers(1, 7))] for _ in range(30)]
X = [[{"w": word, "n": float(rng.integers(3))} for word in words] for words in WORDS]
Y = [["ABC"[int(word[1:]) % 3] for word in words] for words in WORDS]
SEGMENTS = [[(t, min(t + 2, len(row)), row[t]) for t in range(0, len(row), 2)] for row in Y]

MADE = {
    "crf": lambda: sc.CRF(max_iterations=20).fit(X, Y),
    "order 2, sparse": lambda: sc.CRF(2, c1=0.3, attribute_orders={"w:w1": (0, 2)}, n_jobs=2).fit(X, Y),
    "patterns": lambda: sc.CRF(patterns=[(sc.BOS, "A"), ("A", "B", sc.EOS)], c2=[0.1, 2.0]).fit(X, Y),
    "semicrf": lambda: sc.SemiCRF(
        2, c1=0.1, length_features=("bins", "log"), attribute_parts={"w": ("start", "end"), "n": "inner"}
    ).fit(X, SEGMENTS),
    "numbers as labels": lambda: sc.CRF(max_iterations=5).fit(X, [[ord(label) for label in row] for row in Y]),
}


@pytest.fixture(scope="module", params=MADE)
def model(request):
    return MADE[request.param]()


def same(one, other):
    """Equal answers, bit for bit."""
    assert other.classes_ == one.classes_
    assert other.predict(X) == one.predict(X)
    assert other.predict_marginals(X) == one.predict_marginals(X)
    assert other.predict_kbest(X[:5], 3) == one.predict_kbest(X[:5], 3)
    assert other.state_features_ == one.state_features_
    assert other.pattern_features_ == one.pattern_features_
    assert other.attribute_pattern_features_ == one.attribute_pattern_features_
    assert other.attributes_ == one.attributes_ and other.size_ == one.size_
    assert other.loss_ == one.loss_ and other.message_ == one.message_


# Files, pickles, copies ---------------------------------------------------------------------------


def test_save_and_load(model, tmp_path):
    path = tmp_path / "model"
    model.save(path)
    again = sc.load(path)
    same(model, again)
    assert type(again) is type(model)
    assert again.get_params() == {name: json_value(value) for name, value in model.get_params().items()}
    again.save(tmp_path / "again")
    same(model, sc.load(tmp_path / "again"))
    assert path.stat().st_size < 30_000


def test_weights_of_zero_are_not_saved(tmp_path):
    crf = sc.CRF(c1=2.0).fit(X, Y)
    crf.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert 0 < crf.size_ < crf.model_.n_weights
    assert again.model_.n_weights - again.model_.n_bias == len(crf.state_features_)
    assert again.model_.vocabulary.names() == [a for a in crf.model_.vocabulary.names() if a in crf.attributes_]
    same(crf, again)


def test_loading_maps_the_file(tmp_path):
    crf = sc.CRF(max_iterations=3).fit(X, Y)
    crf.save(tmp_path / "model")
    weights = sc.load(tmp_path / "model", mmap=True).model_.weights
    assert not weights.flags.writeable and not weights.flags.owndata


def test_segment_features_are_set_again(tmp_path):
    cities = Gazetteer("a", ["w1", "w2 w3"])
    semi = sc.SemiCRF(segment_features=cities, max_iterations=10).fit(X, SEGMENTS)
    semi.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert again.segment_features is None
    with pytest.raises(ValueError, match="trained with segment_features: set this parameter to the same functions"):
        again.predict(X)
    same(semi, again.set_params(segment_features=cities))
    same(semi, pickle.loads(pickle.dumps(semi)))


def test_numpy_parameters_are_saved(tmp_path):
    crf = sc.CRF(np.int64(2), c2=np.float64(0.5), c1=np.array([0.0, 0.1]), min_freq=np.float32(1.0))
    crf.fit(X, Y).save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert (again.order, again.c2, again.c1, again.min_freq) == (2, 0.5, [0.0, 0.1], 1.0)


def test_pickle_and_copy(model):
    same(model, pickle.loads(pickle.dumps(model)))
    same(model, copy.deepcopy(model))
    same(model, copy.copy(model))
    again = pickle.loads(pickle.dumps(model))
    assert again.training_log_ == model.training_log_ and again.n_iter_ == model.n_iter_


def level(meta, **changes):
    meta["levels"][0].update(changes)


def start(meta, arrays, name, change):
    """Change an array of the block of attributes read at the start."""
    number = [block["part"] for block in meta["blocks"]].index("start")
    key = f"block{number}.{name}"
    arrays[key] = change(arrays[key])


MUTATIONS = {
    "no labels": lambda meta, arrays: meta["levels"][0].pop("labels"),
    "labels of the wrong type": lambda meta, arrays: level(meta, labels="ABC"),
    "labels that cannot be": lambda meta, arrays: level(meta, labels=[["A"], "B", "C"]),
    "labels twice": lambda meta, arrays: level(meta, labels=["A", "A", "C"]),
    "too few labels": lambda meta, arrays: level(meta, labels=["A"]),
    "no level": lambda meta, arrays: meta.update(levels=[]),
    "two levels": lambda meta, arrays: meta.update(levels=meta["levels"] * 2),
    "a level without a bound": lambda meta, arrays: level(meta, max_length=None),
    "another kind": lambda meta, arrays: meta.update(segments=not meta["segments"]),
    "no blocks": lambda meta, arrays: meta.update(blocks=[]),
    "strange parts": lambda meta, arrays: meta["blocks"][1].update(part="middle"),
    "parts of a strange type": lambda meta, arrays: meta["blocks"][1].update(part={"start": 1}),
    "max_length 0": lambda meta, arrays: level(meta, max_length=0),
    "max_length huge": lambda meta, arrays: level(meta, max_length=10**15),
    "max_length text": lambda meta, arrays: level(meta, max_length="2"),
    "parameters unknown": lambda meta, arrays: meta["parameters"].update(nonsense=1),
    "parameters a list": lambda meta, arrays: meta.update(parameters=[1]),
    "basis names": lambda meta, arrays: level(meta, basis_names=["x"] * 99),
    "no weights": lambda meta, arrays: arrays.pop("weights"),
    "weights too short": lambda meta, arrays: arrays.update(weights=arrays["weights"][:-1]),
    "weights not finite": lambda meta, arrays: arrays.update(weights=np.full_like(arrays["weights"], np.nan)),
    "weights infinite": lambda meta, arrays: arrays.update(weights=np.full_like(arrays["weights"], -np.inf)),
    "weights of integers": lambda meta, arrays: arrays.update(weights=arrays["weights"].reshape(1, -1)),
    "patterns out of range": lambda meta, arrays: start(meta, arrays, "columns", lambda a: a + 1000),
    "patterns negative": lambda meta, arrays: start(meta, arrays, "columns", lambda a: a - 1000),
    "patterns of floats": lambda meta, arrays: start(meta, arrays, "columns", lambda a: a + 0.5),
    "patterns not ascending": lambda meta, arrays: start(
        meta, arrays, "rows", lambda a: np.minimum(a * 10**6, a[-1])
    ),
    "rows too few": lambda meta, arrays: start(meta, arrays, "rows", lambda a: a[:-1]),
    "rows that decrease": lambda meta, arrays: start(meta, arrays, "rows", lambda a: a[::-1]),
    "symbols out of range": lambda meta, arrays: arrays.update(
        {"patterns.symbols": arrays["patterns.symbols"] + 50}
    ),
    "symbols twice": lambda meta, arrays: arrays.update({"patterns.symbols": arrays["patterns.symbols"] * 0}),
    "cuts too long": lambda meta, arrays: arrays.update({"patterns.offsets": arrays["patterns.offsets"] * 7}),
    "names cut": lambda meta, arrays: arrays.update({"attributes.text": arrays["attributes.text"][:-3]}),
    "names not text": lambda meta, arrays: arrays.update(
        {"attributes.text": np.full_like(arrays["attributes.text"], 255)}
    ),
    "basis missing": lambda meta, arrays: arrays.pop("0.basis"),
    "always-on labels": lambda meta, arrays: arrays.update({"block0.columns": arrays["block0.columns"] * 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_files_that_do_not_fit_together_are_refused(name, tmp_path):
    for made in ("order 2, sparse", "semicrf"):
        estimator = MADE[made]()
        estimator.save(tmp_path / "model")
        stored = model_file.read(tmp_path / "model")
        metadata, arrays = copy.deepcopy(stored.metadata), {k: v.copy() for k, v in stored.arrays.items()}
        MUTATIONS[name](metadata, arrays)
        model_file.write(tmp_path / "altered", stored.kind, metadata, arrays)
        with pytest.raises(ModelFileError, match="does not fit together|has parameters that"):
            sc.load(tmp_path / "altered")


def test_damaged_and_foreign_files(tmp_path):
    path = tmp_path / "model"
    MADE["crf"]().save(path)
    whole = path.read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-100])
    flipped = bytearray(whole)
    flipped[-50] ^= 1
    (tmp_path / "flipped").write_bytes(flipped)
    for name in ("cut", "flipped"):
        with pytest.raises(ModelFileError, match=f"{name}.*(Copy it again|damaged)"):
            sc.load(tmp_path / name)
    model_file.write(tmp_path / "other", "something", {}, {})
    with pytest.raises(ModelFileError, match="holds a model of unknown kind 'something': upgrade scansion"):
        sc.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        sc.load(tmp_path / "nowhere")


# scikit-learn -------------------------------------------------------------------------------------


def test_parameters():
    crf = sc.CRF(2, c1=0.5)
    assert crf.get_params()["order"] == 2 and crf.get_params(deep=False) == crf.get_params()
    assert repr(crf) == "CRF(order=2, c1=0.5)" and repr(sc.SemiCRF()) == "SemiCRF()"
    assert crf.set_params(c2=3.0) is crf and crf.c2 == 3.0
    with pytest.raises(ValueError, match="CRF has no parameter 'c3'; it has order, algorithm, c1"):
        crf.set_params(c1=9.0, c3=1.0)
    assert crf.c1 == 0.5  # all or nothing


def test_clone(model):
    copied = clone(model)
    assert copied.get_params() == model.get_params() and copied is not model
    with pytest.raises(NotFittedError):
        copied.predict(X)


@pytest.mark.parametrize("estimator, y", [(sc.CRF(max_iterations=5), Y), (sc.SemiCRF(max_iterations=5), SEGMENTS)])
def test_cross_validation(estimator, y):
    scores = cross_val_score(estimator, X, y, cv=3)
    assert scores.shape == (3,) and (scores >= 0).all() and (scores <= 1).all()
    by_hand = []
    for train, test in KFold(3).split(X):
        part = clone(estimator).fit([X[i] for i in train], [y[i] for i in train])
        by_hand.append(part.score([X[i] for i in test], [y[i] for i in test]))
    assert_array_equal(scores, by_hand)


def test_grid_search():
    search = GridSearchCV(sc.CRF(max_iterations=10), {"c2": [0.01, 1.0, 100.0], "order": [0, 1]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_["c2"] in (0.01, 1.0)
    assert search.predict(X) == search.best_estimator_.predict(X)
    assert search.score(X, Y) == search.best_estimator_.score(X, Y) > 0.9
    parallel = GridSearchCV(sc.SemiCRF(max_iterations=3), {"c2": [0.1, 1.0]}, cv=3, n_jobs=2).fit(X, SEGMENTS)
    assert parallel.best_score_ > 0


class Featurize(TransformerMixin, BaseEstimator):
    """Words to attributes."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return [[{"w": word, "bias": 1.0} for word in words] for words in X]

    def __sklearn_is_fitted__(self):
        return True


def test_pipeline():
    pipe = make_pipeline(Featurize(), sc.CRF(max_iterations=20)).fit(WORDS, Y)
    assert pipe.score(WORDS, Y) > 0.95 and pipe.predict(WORDS[:2]) == pipe[-1].predict(pipe[0].transform(WORDS[:2]))
    search = GridSearchCV(
        Pipeline([("f", Featurize()), ("crf", sc.CRF(max_iterations=5))]), {"crf__c2": [0.1, 1]}, cv=3
    )
    assert search.fit(WORDS, Y).best_params_.keys() == {"crf__c2"}
    weights = np.linspace(0.5, 1.5, len(Y))
    weighted = pipe.fit(WORDS, Y, crf__sample_weight=weights)
    direct = sc.CRF(max_iterations=20).fit(Featurize().transform(WORDS), Y, sample_weight=weights)
    assert weighted[-1].loss_ == direct.loss_


CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]  # those that do not fit a matrix


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("make", [sc.CRF, sc.SemiCRF])
def test_checks_of_scikit_learn(make, name):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip(f"this scikit-learn has no {name}")
    check(make.__name__, make())


def test_inputs_are_left_alone():
    arrays = [np.arange(6.0).reshape(3, 2) % 4 for _ in range(3)]
    weight = np.ones(3)
    for array in (*arrays, weight):
        array.flags.writeable = False
    y = [["A", "B", "A"], [None, {"A", "B"}, "B"], None]
    before = copy.deepcopy(y)
    crf = sc.CRF().fit(arrays, y, sample_weight=weight)
    crf.predict(arrays, constraints=y)
    assert y == before


def test_threads_of_python_may_ask_at_once(model):
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: (model.predict(X), model.predict_marginals(X)), range(8)))
    assert all(answer == (model.predict(X), model.predict_marginals(X)) for answer in answers)


def test_tags():
    for estimator in (sc.CRF(), sc.SemiCRF()):
        tags = get_tags(estimator)
        assert tags.estimator_type is None and tags.target_tags.required and not tags.input_tags.two_d_array
        assert not is_classifier(estimator)


def test_check_is_fitted(model):
    check_is_fitted(model)
    fresh = clone(model)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(fresh)
    for ask in (
        lambda: fresh.predict(X),
        lambda: fresh.predict_marginals(X),
        lambda: fresh.classes_,
        lambda: fresh.size_,
        lambda: fresh.save("nowhere"),
        lambda: fresh.lattice(X[0]),
        lambda: fresh.log_likelihood(X, Y),
    ):
        with pytest.raises(sklearn.exceptions.NotFittedError, match="not fitted yet: call fit first") as caught:
            ask()
        assert isinstance(caught.value, NotFittedError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), sklearn.exceptions.NotFittedError)
    assert not hasattr(fresh, "classes_")


def test_scikit_learn_is_not_imported():
    code = (
        "import sys, scansion as sc, warnings; warnings.simplefilter('error')\n"
        "crf = sc.CRF().fit([[['a'], ['b']]], [['A', 'B']]); crf.predict([[['a']]])\n"
        "try: sc.CRF().predict([])\n"
        "except ValueError as error: assert type(error).__module__ == 'scansion.models.fitted', error\n"
        "assert 'sklearn' not in sys.modules and 'scipy' not in sys.modules, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
