"""Engines for chains of any order: the pattern automaton (paper 001) and Sum-Difference (paper 002).

Both are exact and give the same results. The automaton costs a few operations for each state and pattern,
Sum-Difference for each pattern alive at a position; first-order chains have a kernel of their own, which goes by the
automaton's name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Ints
from scansion.data import Knowledge
from scansion.models.flat_model import FlatModel
from scansion.models.inputs import Inputs

__all__ = ["ENGINES", "best_labels", "check", "decodes_alive", "resolve"]

ENGINES = ("auto", "automaton", "sum-difference")

# cost of a pattern in units of an arc: with scores of its own at each position it also needs an exponential
_SHARED, _LOCAL = 1.0, 8.0


def check(engine: Any) -> None:
    """Raise unless it is an engine's name."""
    if not checks.among(engine, ENGINES):
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")


def resolve(engine: str, model: FlatModel, inputs: Inputs | None = None) -> str:
    """The engine that "auto" stands for: the one with fewer operations per position.

    inputs: sequences to count the patterns in that are alive, if the model was not trained just now.
    """
    if model.bounded and not model.dense:  # Sum-Difference has no transitions that are ruled out
        if engine == "sum-difference":
            raise ValueError("engine='sum-difference' takes all transitions: use engine='auto', or transitions='all'")
        return "automaton"
    if engine != "auto":
        return engine
    if model.dense:
        return "automaton"
    arcs = model.automaton.n_states * model.n_labels
    patterns = model.alive(inputs) * (_LOCAL if model.varying else _SHARED)
    return "sum-difference" if patterns < arcs else "automaton"


def decodes_alive(engine: str, model: FlatModel, inputs: Inputs | None = None) -> bool:
    """Whether best labels are found among the patterns alive at each position: where these differ.

    Elsewhere the automaton's sums over ranges of states cost no more.
    """
    return model.varying and resolve(engine, model, inputs) == "sum-difference"


def best_labels(model: FlatModel, inputs: Inputs, held: Knowledge | None, n_jobs: int) -> Ints:
    """(N,) best labels by algorithms 4 and 5 of paper 002; a sequence that begins with -1 is impossible."""
    n = inputs.data.n_tokens
    allowed = None if held is None else held.level.bytes(model.n_labels)
    nothing = np.zeros(len(inputs), np.uint8)
    labels = np.full(n, -1, np.int32)
    objective = _core.FlatObjective(model.native, inputs.native, labels, None, nothing, allowed, None, None, None)
    out = np.zeros(n, np.int32)
    objective.decode(model.weights, allowed is not None, out, n_jobs)
    return out.astype(np.int64)
