"""What `predict` returns: a list, one entry a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Answers"]


class Answers(list[Any]):
    """A list of answers that NumPy joins as one entry a sequence.

    scikit-learn's ``cross_val_predict`` joins the answers of its folds by ``np.concatenate``, which knows no ragged
    lists. Everything else of NumPy sees the list that it is.
    """

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.concatenate and args and not kwargs and not isinstance(args[0], Answers):
            joined = [answer for answers in args[0] for answer in answers]
            result = np.empty(len(joined), object)
            result[:] = joined
            return result
        return function(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Answers):
        return list(value)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value
