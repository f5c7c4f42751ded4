"""Learning under rules: the likelihood is that among the configurations that keep them, log P_R(y | x).

Where the automaton of all rules is small it is taken as it is. Otherwise every sequence has rules of its own, none at
first: after learning, those whose breaking is more probable than a tolerance under the weights are added and learning
goes on from there, until no sequence needs another. What is left out then is below the tolerance for every sequence,
and so are the differences of the losses; the weights on the way do not matter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge
from scansion.data.dataset import gather
from scansion.rules.automata import TooManyStatesError
from scansion.rules.compile import RuleSet
from scansion.rules.restricted import RestrictedCore, alike
from scansion.training.objective import Sum

__all__ = ["RestrictedObjective"]

_TOLERANCE = 1e-5
_FEW_STATES = 32  # of a product that is taken as it is


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
        self.rules = replace(rules, tolerance=_TOLERANCE)
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

    @property
    def examples(self) -> Ints:
        """Numbers of the examples that tell something."""
        return self.sum.examples

    def take(self, w: Floats) -> bool:
        """Add the rules that matter at these weights; whether there were any."""
        if self.taken.all():
            return False
        model, more = self.model.weighted(w), []
        partial = self.known.known & ~self.known.complete
        first = 0
        for rows, part in self.inputs.blocks(100_000):
            batch = model.batch(part, 1)
            found = RestrictedCore.of(batch._core, self.rules).summed_rules
            some = np.flatnonzero(partial[first : first + len(batch)])
            if some.size:
                held = batch.under(self.known.rows(rows, batch.offsets))._core.take(some)
                found[some] |= RestrictedCore.of(held, self.rules).summed_rules
            more.append(found)
            first += len(batch)
        wanted = np.concatenate(more) & self.known.known[:, None]
        if not (wanted & ~self.taken).any():
            return False
        self.taken |= wanted
        self._build()
        return True


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
