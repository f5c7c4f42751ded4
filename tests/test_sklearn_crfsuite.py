"""sklearn-crfsuite's interface: of `scansion.CRF`, and in its own types."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite as theirs
import pytest
from test_foreign import X, Y

import scansion as sc
from scansion import sklearn_crfsuite
from scansion.models.fitted import NotFittedError

KINDS = (sc.CRF, sklearn_crfsuite.CRF)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_argument_may_be_the_algorithm(kind: Any) -> None:
    from sklearn.base import clone

    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        crf = kind(algorithm)
        assert (crf.algorithm, crf.order) == (algorithm, 1)
        assert clone(crf).get_params() == crf.get_params()
    assert kind(2).order == 2 and kind(2).algorithm == "lbfgs"
    with pytest.raises(ValueError, match="order must be an integer, got 'newton'"):
        kind("newton").fit(X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_development_data_by_place(kind: Any) -> None:
    crf = kind("ap", max_iterations=3).fit(X, Y, X[:3], Y[:3])
    assert all(entry["dev_score"] is not None for entry in crf.training_log_)
    with pytest.raises(ValueError, match="together"):
        kind().fit(X, Y, X)


@pytest.mark.parametrize("kind", KINDS)
def test_taggers_and_attributes(kind: Any) -> None:
    crf = kind(max_iterations=5).fit(X, Y)
    tagger = crf.tagger_
    assert tagger.labels() == crf.classes_
    assert tagger.tag(X[0]) == list(crf.predict(X[:1])[0]) == crf.predict_single(X[0])
    assert tagger.info().state_features == crf.state_features_
    assert crf.num_attributes_ == len(crf.attributes_) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_model_files(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.crfsuite"
    crf = kind(model_filename=str(path), keep_tempfiles=True, max_iterations=10)
    with pytest.raises(FileNotFoundError):
        crf.predict(X)
    crf.fit(X, Y)
    tagger = theirs.Tagger()
    tagger.open(str(path))
    assert tagger.tag(X[0]) == crf.predict_single(X[0])
    other = kind(model_filename=path)
    assert other.predict_single(X[0]) == crf.predict_single(X[0])
    assert pickle.loads(pickle.dumps(other)).score(X, Y) == crf.score(X, Y)
    other.set_params(model_filename=None, max_iterations=1).fit(X[:2], Y[:2])  # what was read is no fit to go on from
    assert other.n_iter_ == 1
    sc.SemiCRF(max_iterations=1).fit(X, Y).save(path)
    with pytest.raises(ValueError, match="holds a SemiCRF, not a CRF"):
        kind(model_filename=path).predict(X)


def test_answers_have_the_same_types() -> None:
    crf = sklearn_crfsuite.CRF(max_iterations=5)
    for name in ("tagger_", "size_", "classes_", "num_attributes_", "attributes_", "state_features_"):
        assert getattr(crf, name) is None
    assert crf.transition_features_ is None and crf.training_log_ is None
    with pytest.raises(NotFittedError):
        sc.CRF().classes_  # noqa: B018
    crf.fit(X, Y)
    for answer in (crf.predict(X), crf.predict_marginals(X)):
        assert isinstance(answer, np.ndarray) and answer.shape == (len(X),) and isinstance(answer[0], list)
    assert crf.size_ > 1000
    plain = sc.CRF(max_iterations=5).fit(X, Y)
    assert list(crf.predict(X)) == plain.predict(X) and crf.score(X, Y) == plain.score(X, Y)


def test_metrics_and_scorers() -> None:
    from scansion.sklearn_crfsuite import metrics, scorers

    assert metrics.sequence_accuracy_score([[1, 2], [3]], [[3], [1, 2]]) == 0
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.sequence_accuracy_score([[1, 2], [3]], [[1, 2], [4]]) == 0.5
    crf = sklearn_crfsuite.CRF(max_iterations=5).fit(X, Y)
    assert scorers.flat_accuracy(crf, X, Y) == crf.score(X, Y)
    assert scorers.sequence_accuracy(crf, X, Y) == metrics.sequence_accuracy_score(Y, crf.predict(X))
