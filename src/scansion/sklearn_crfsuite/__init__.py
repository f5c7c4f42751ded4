"""sklearn-crfsuite's interface: `CRF`, `metrics` and `scorers` for programs that were written for it.

    from scansion.sklearn_crfsuite import CRF, metrics, scorers       # in place of: from sklearn_crfsuite import ...

`scansion.CRF` takes the same parameters, and has the same methods and attributes; this one also answers in the same
types.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion.models import crf
from scansion.models.foreign import crfsuite

__all__ = ["CRF"]


class CRF(crf.CRF):
    """`scansion.CRF` whose answers have the types of sklearn-crfsuite's.

    `predict` and `predict_marginals` give arrays of objects, a list for each sequence; attributes are None before
    `fit`; `size_` is the size in bytes of CRFsuite's file of the model.
    """

    def predict(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """As of `scansion.CRF`, in an array of objects."""
        return _array(super().predict(X, *args, **kwargs))

    def predict_single(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The most probable labels of one sequence, a list."""
        return super().predict([x], None, *args, **kwargs)[0]

    def predict_marginals_single(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Label probabilities of one sequence, a list."""
        return super().predict_marginals([x], None, *args, **kwargs)[0]

    def predict_marginals(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """As of `scansion.CRF`, in an array of objects."""
        return _array(super().predict_marginals(X, *args, **kwargs))

    def __getattribute__(self, name: str) -> Any:
        if name in _NONE_BEFORE_FIT and not self.__sklearn_is_fitted__():
            return None
        return super().__getattribute__(name)

    @property
    def size_(self) -> int:
        """Bytes of CRFsuite's file of the model."""
        return len(crfsuite.content(self._model))


_NONE_BEFORE_FIT = frozenset(
    ("attributes_", "classes_", "num_attributes_", "size_", "state_features_", "tagger_", "training_log_")
    + ("transition_features_",)
)


def _array(answers: list[Any]) -> Any:
    """(B,) objects; NumPy would make a table of lists of equal lengths, as sklearn-crfsuite's predict does."""
    return np.array(answers, dtype=object)
