"""A stochastic algorithm that meets its data a batch at a time: one pass over each, the state carried along.

The penalty is that of all examples so far: with n of them, the strength of a step is 2 c2 / n. Rates go on falling with
the steps. Averages of asgd weigh the passes by their numbers, 1, 2, 3, ...: what was learnt first, from little, counts
little (Shamir and Zhang 2013); those of ap and pa weigh all steps alike, as in one pass over everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion._checks import Floats
from scansion.training.learn import Descent, check_range, mistake_driven
from scansion.training.objective import Objective
from scansion.training.penalty import Penalty

if TYPE_CHECKING:
    from scansion.models.parameters import CheckedSettings

__all__ = ["STOCHASTIC", "Stream"]

STOCHASTIC = ("l2sgd", "asgd", "mm", "ap", "pa", "arow")


class Stream:
    """Weights and state of an algorithm between passes.

    Parameters
    ----------
    settings : CheckedSettings
        The algorithm must be one of STOCHASTIC.
    w : (W,)
        Weights to begin with.
    """

    def __init__(self, settings: CheckedSettings, w: Floats) -> None:
        self.algorithm = settings.algorithm
        self.w: Floats = w.copy()
        # what is averaged, or the variances of arow
        self.total: Floats = np.full_like(w, settings.variance if self.algorithm == "arow" else 0.0)
        self.rng = np.random.default_rng(settings.random_state)
        self.t = self.steps = 0.0
        self.rate: float | None = None
        self.examples = self.passes = 0

    def moved(self, carried: Callable[[Floats, Floats], Floats], fresh: Stream) -> Stream:
        """The same with the weights of a larger model; carried(numbers, others): others are for what is new."""
        fresh.w, fresh.total = carried(self.w, fresh.w), carried(self.total, fresh.total)
        for name in ("rng", "t", "steps", "rate", "examples", "passes"):
            setattr(fresh, name, getattr(self, name))
        return fresh

    def current(self) -> Floats:
        """The weights that the algorithm stands for: w, or the mean along the way."""
        if self.algorithm == "asgd" and self.steps:
            return self.total / self.steps
        if self.algorithm in ("ap", "pa") and self.steps:
            return self.w - self.total / self.steps
        return self.w.copy()

    def take(self, objective: Objective, settings: CheckedSettings, penalty: Penalty) -> dict[str, Any]:
        """One pass over the examples of an objective; what to log of it."""
        begun = time.perf_counter()
        before, n = self.examples, len(objective.examples)
        if not n:
            return {"iteration": self.passes, "loss": 0.0, "seconds": 0.0, "dev_score": None}
        self.examples, self.passes = before + n, self.passes + 1
        entry: dict[str, Any] = {"iteration": self.passes}
        if self.algorithm in ("l2sgd", "asgd", "mm"):
            descent = Descent(objective, settings, penalty, self.w, self.examples, self.rng)
            if self.rate is None or before < settings.calibration_samples:
                self.rate = descent.calibrated()
            online = descent.start(self.rate)
            online.average = self.algorithm == "asgd" and self.passes > 1
            fading = (self.passes - 1) / self.passes
            self.total *= fading
            online.t, online.steps = self.t, self.steps * fading
            loss = descent.run(online, descent.order(), self.w, self.total if self.algorithm == "asgd" else np.empty(0))
            loss += descent.cost(self.w) * n / max(1, self.examples)
            entry["rate"] = self.rate
        else:
            online = mistake_driven(settings)
            online.t, online.steps = self.t, self.steps
            loss = objective.run_pass(online, self.rng.permutation(objective.examples), self.w, self.total)
        self.t, self.steps = online.t, online.steps
        check_range(self.w, loss, self.algorithm, self.passes)
        return entry | {"loss": float(loss), "seconds": time.perf_counter() - begun, "dev_score": None}
