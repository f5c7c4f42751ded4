"""`partial_fit`: one pass of a stochastic algorithm over a batch, with a model that grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion._checks import Floats
from scansion.data.partitions import Partitions
from scansion.models.estimator import refuse
from scansion.models.inputs import columns_of
from scansion.models.units import Moments, moments
from scansion.models.weights import Model, carried
from scansion.training.stream import STOCHASTIC, Stream

if TYPE_CHECKING:
    from scansion.models.estimator import Estimator

__all__ = ["partial_fit"]


@dataclass
class _State:
    """What goes on from call to call, and the model that it belongs to."""

    model: Model
    stream: Stream
    moments: Moments


def partial_fit(estimator: Estimator, X: Any, y: Any, sample_weight: Any) -> None:
    """See `Estimator.partial_fit`."""
    settings = estimator.settings()
    if settings.algorithm not in STOCHASTIC:
        names = ", ".join(map(repr, STOCHASTIC))
        raise ValueError(f"partial_fit makes passes: algorithm must be one of {names}, got {settings.algorithm!r}")
    refuse(estimator, "partial_fit")
    if isinstance(X, Partitions):
        raise TypeError("X comes in parts: give partial_fit one part at a time")
    columns, wanted = columns_of(X), estimator.n_features_in_
    if columns is not None and wanted is not None and columns != wanted:
        raise ValueError(f"X has {columns} columns, but the model was trained on arrays of {wanted}")
    model, objective = estimator.problem(X, y, sample_weight, more=True)
    seen = moments(model, objective.inputs)  # type: ignore[attr-defined]
    stream, log = Stream(settings, model.weights), []
    state: _State | None = getattr(estimator, "_partial", None)
    if state is not None and state.model is estimator.model_ and state.stream.algorithm == settings.algorithm:
        before = state.model
        stream = state.stream.moved(lambda values, others: carried(values, before, model, others), stream)
        seen, log = _padded(state.moments, seen) + seen, estimator.training_log_
    penalty, _ = estimator._penalty(model, settings, objective, seen=seen)
    entry = stream.take(objective, settings, penalty)
    message = f"{stream.passes} passes of partial_fit over {stream.examples} sequences"
    estimator._finish(model.weighted(stream.current()), [*log, entry], entry["loss"], message)
    estimator._partial = _State(estimator.model_, stream, seen)  # type: ignore[attr-defined]
    if columns is not None:
        estimator.n_features_in_ = columns


def _padded(old: Moments, new: Moments) -> Moments:
    """The moments so far, with zeros for the attributes that are new."""

    def longer(values: Floats, like: Floats) -> Floats:
        return np.pad(values, (0, len(like) - len(values)))

    counts, sums, squares = (longer(getattr(old, name), new.counts) for name in ("counts", "sums", "squares"))
    none = np.zeros(0), np.zeros(0)
    spans = {}
    for k, (like, _) in new.spans.items():
        count, square = old.spans.get(k, none)
        spans[k] = longer(count, like), longer(square, like)
    told = [one.columns for one in (old, new) if one.columns is not None]
    columns = np.unique(np.concatenate(told)) if told else None
    return Moments(old.tokens, counts, sums, squares, spans, columns)
