"""Learning under rules: the likelihood is that among the configurations that keep them, log P_R(y | x).

Where the automaton of all rules is small it is taken as it is. Otherwise every sequence has rules of its own, none at
first: after learning, those whose breaking is more probable than a tolerance under the weights are added and learning
goes on from there, until no sequence needs another or its automaton would be too large. What is left out is told for
every sequence; where it is below the tolerance, so is the difference of its loss. The weights on the way do not matter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge
from scansion.data.dataset import gather
from scansion.rules.automata import TooManyStatesError
from scansion.rules.compile import RuleSet, alike
from scansion.rules.restricted import RestrictedCore, probable_rules
from scansion.training.objective import Sum

__all__ = ["RestrictedObjective"]

_TOLERANCE = 1e-3
_FEW_STATES = 32  # of a product that is taken as it is
_MOST_STATES = 300  # of the products of single sequences


class RestrictedObjective:
    """An objective under rules: the sum of those of sequences under the same rules.

    Parameters
    ----------
    model, inputs, known, weight
        As for the objectives of models.
    rules : RuleSet
    """

    def __init__(self, model: Any, inputs: Any, known: Knowledge, weight: Floats | None, rules: RuleSet) -> None:
        if known.trajectories is not None:
            raise ValueError("y holds a Trajectory: such sequences can not be learnt from with train_with_rules")
        self.model, self.inputs, self.known, self.weight = model, inputs, known, weight
        self.rules = replace(rules, tolerance=_TOLERANCE, most_states=_MOST_STATES, lenient=True, _products={})
        self.left_out: Floats = np.zeros(len(inputs))  # bounds on the probability of what breaks a rule all the same
        check_targets(model, inputs, known, rules)
        self.taken: Bools = np.zeros((len(inputs), len(rules)), np.bool_)
        if self._small():
            self.taken[:] = True
        self._build()

    def _small(self) -> bool:
        try:
            self.rules.product(tuple(range(len(self.rules))), _FEW_STATES)
        except TooManyStatesError:
            return False
        return True

    def _build(self) -> None:
        shards, order = [], []
        for taken, sequences in alike(self.taken, np.arange(len(self.inputs))):
            weight = None if self.weight is None else np.ascontiguousarray(self.weight[sequences])
            whole = len(sequences) == len(self.inputs)
            inputs, known = (
                (self.inputs, self.known)
                if whole
                else (
                    self.inputs.take(sequences),
                    self.known.take(sequences),
                )
            )
            machine = self.rules.product(taken) if taken else None
            shards.append(self.model.objective(inputs, known, weight, machine))
            order.append(sequences)
        self.sum = Sum(shards, [len(sequences) for sequences in order])
        self.log_loss, self.margin_loss, self.run_pass = self.sum.log_loss, self.sum.margin_loss, self.sum.run_pass
        self.curvature = self.sum.curvature

    @property
    def examples(self) -> Ints:
        """Numbers of the examples that tell something."""
        return self.sum.examples

    def take(self, w: Floats) -> bool:
        """Add the rules that matter at these weights; whether there were any."""
        if self.taken.all():
            return False
        model = self.model.weighted(w)
        partial = self.known.known & ~self.known.complete
        wanted = np.zeros_like(self.taken)
        self.left_out[:] = 0.0
        for taken, sequences in alike(self.taken, np.flatnonzero(self.known.known)):
            if len(taken) == len(self.rules):
                continue
            batch = model.batch(self.inputs.take(sequences), 1)
            breaking = self._breaking(batch._core, taken)
            some = np.flatnonzero(partial[sequences])
            if some.size:
                held = batch.under(self.known.take(sequences))._core.take(some)
                breaking[some] = np.maximum(breaking[some], self._breaking(held, taken))
            wanted[sequences] = probable_rules(breaking, self.rules.tolerance)
            self.left_out[sequences] = breaking.sum(axis=1)
        wanted &= self.rules.fit_in(self.taken, wanted)[:, None]
        if not wanted.any():
            return False
        self.taken |= wanted
        self._build()
        return True

    def remark(self) -> str:
        """What the message of learning should say of rules that were left out."""
        above = self.left_out > self.rules.tolerance
        if not above.any():
            return ""
        return (
            f"; {int(above.sum())} sequences break further rules with a probability of up to {self.left_out.max():.2g}"
        )

    def _breaking(self, core: Any, taken: tuple[int, ...]) -> Floats:
        """How probable it is that a sequence breaks a rule that is not taken."""
        under = RestrictedCore.of(core, self.rules)
        return under.breaking(np.arange(len(core.offsets) - 1), taken)


def check_targets(model: Any, inputs: Any, known: Knowledge, rules: RuleSet) -> None:
    """Raise if what y says of a sequence breaks a rule."""
    level = known.level
    if model.segments:
        start, _, _ = level.segments()
        labels, offsets = level.numbers[start].astype(np.int64), np.searchsorted(start, known.offsets)
    else:
        labels, offsets = level.numbers.astype(np.int64), known.offsets
    complete = np.flatnonzero(known.complete)
    if complete.size:
        offsets = offsets.astype(np.int64)
        cuts, rows = gather(offsets, complete)
        broken = rules.broken(labels[rows], cuts)
        if broken.any():
            i = int(np.argmax(broken.any(axis=0)))
            rule = rules.parts[int(np.argmax(broken[:, i]))].rule
            raise ValueError(f"y[{complete[i]}] breaks the rule {rule}: with train_with_rules, y must keep all rules")
    partial = np.flatnonzero(known.known & ~known.complete)
    if partial.size:
        part = inputs.take(partial)
        held = model.batch(part, 1).under(known.take(partial))._core
        core = RestrictedCore.of(held, rules)
        impossible = np.flatnonzero(np.diff(core.best(1).firsts) == 0)
        if impossible.size:
            told = core.impossible_rules(int(impossible[0])) or "its own limits"
            raise ValueError(f"y[{partial[impossible[0]]}] leaves no configuration that keeps {told}")
