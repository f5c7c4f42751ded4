"""Learning segments inside segments under rules: a model with more states, whose weights are tied.

The states of the levels are joined with those of the rules' automata as in `scansion.rules.nested`. A feature of the
model becomes one for each joined state that stands for its own, all with one weight: the gradient of that weight is the
sum of theirs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scansion._checks import Floats, Ints
from scansion.data import Knowledge
from scansion.data.dataset import gather
from scansion.models.nested_model import CLIQUES, NestedModel
from scansion.models.weights import Block
from scansion.rules.compile import RuleSet
from scansion.rules.nested import Joined, joined
from scansion.rules.restricted import RestrictedCore

__all__ = ["TiedObjective"]

_MOST_STATES = 200  # of the automata


class TiedObjective:
    """The objective of a nested model under rules.

    Parameters
    ----------
    model, inputs, known, weight
        As for the objectives of models.
    rules : RuleSet
        All are taken.
    """

    def __init__(
        self, model: NestedModel, inputs: Any, known: Knowledge, weight: Floats | None, rules: RuleSet
    ) -> None:
        _check_targets(model, inputs, known, rules)
        limited = replace(rules, most_states=_MOST_STATES, lenient=False, _products={})
        tied, self.tie = model, np.arange(model.n_weights)
        labels = [np.arange(level.size) for level in model.levels]
        for level, within, machine in limited.by_level(tuple(range(len(rules)))):
            sizes = [1, *(one.size for one in tied.levels)]
            found = joined(sizes, level, within, machine.reading(labels[level - 1]))
            tied, more = _joined_model(tied, found)
            self.tie = self.tie[more]
            labels = [one[new] for one, new in zip(labels, found.labels[1:], strict=True)]
        objective = tied.objective(inputs, _joined_knowledge(known, labels), weight)
        self.native, self.examples = objective.native, objective.examples
        self.inputs, self.known = inputs, known
        self._tied = tied  # the native code holds its arrays

    def log_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        return self._summed("log_loss", w, gradient, threads)

    def margin_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        return self._summed("margin_loss", w, gradient, threads)

    def _summed(self, name: str, w: Floats, gradient: Floats, threads: int) -> float:
        many = np.empty(len(self.tie))
        loss: float = getattr(self.native, name)(w[self.tie], many, threads)
        gradient[:] = np.bincount(self.tie, weights=many, minlength=len(w))
        return loss

    def take(self, w: Floats) -> bool:
        """All rules are taken from the start."""
        return False

    def remark(self) -> str:
        """Nothing is left out."""
        return ""


def _check_targets(model: NestedModel, inputs: Any, known: Knowledge, rules: RuleSet) -> None:
    """Raise if what y says of a sequence breaks a rule."""
    some = np.flatnonzero(known.known)
    core = RestrictedCore.of(model.batch(inputs.take(some), 1).under(model.held(known.take(some)))._core, rules)
    impossible = np.flatnonzero(np.diff(core.best(1).firsts) == 0)
    if impossible.size:
        told = core.impossible_rules(int(impossible[0])) or "what the model allows"
        raise ValueError(
            f"y[{some[impossible[0]]}] breaks the rule {told}: with train_with_rules, y must keep all rules"
        )


def _joined_model(model: NestedModel, found: Joined) -> tuple[NestedModel, Ints]:
    """The model with joined states, and the feature that each of its features is a copy of."""
    levels = [
        replace(level, labels=list(range(len(label))), length_counts=None, limits=None)
        for level, label in zip(model.levels, found.labels[1:], strict=True)
    ]
    tied = NestedModel(levels, model.vocabulary)
    for k in range(len(levels)):
        above, here = found.labels[k], found.labels[k + 1]
        grid: Any = np.ix_(above, here)
        children = model.children[k][grid] & found.fits[k]
        may, pairs = model.possible[k], children[:, :, None] & children[:, None, :]
        tied.children.append(children)
        tied.possible.append(
            {
                "transition": may["transition"][np.ix_(above, here, here)] & found.follows[k] & pairs,
                "initialisation": may["initialisation"][grid] & found.first[k] & children,
                "ending": may["ending"][grid] & found.last[k] & children,
            }
        )
    ties = [np.zeros(0, np.int64)]
    for block, where in model.parts():
        copies, of = _copies(model, tied, found, block)
        tied.blocks.append(copies)
        ties.append(of + where.start)
    tied.weights = np.zeros(tied.n_weights)
    return tied, np.concatenate(ties)


def _copies(model: NestedModel, tied: NestedModel, found: Joined, block: Block) -> tuple[Block, Ints]:
    """The features of a block on joined states, and the feature that each is a copy of."""
    k, here = block.level, found.labels[block.level + 1]
    if block.part in CLIQUES:
        axes = [found.labels[k], here, here][: len(model.shape(k, block.part))]
        column = np.ravel_multi_index(tuple(np.ix_(*axes)), model.shape(k, block.part)).ravel()
        column = np.where(tied.possible[k][block.part].ravel(), column, model.n_columns(block))  # the last: of none
    else:
        column = here
    order = np.argsort(column, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=model.n_columns(block) + 1))])
    cuts, places = gather(first.astype(np.int64), block.columns.astype(np.int64))
    columns, of = order[places], np.repeat(np.arange(len(block)), np.diff(cuts))
    rows = cuts[block.rows]
    row = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
    ascending = np.lexsort((columns, row))
    changed = replace(block, rows=rows, columns=columns[ascending].astype(np.int32))
    return changed, of[ascending]


def _joined_knowledge(known: Knowledge, labels: list[Ints]) -> Knowledge:
    """What is known, in joined states: sets of them where a state is told."""
    levels = []
    for one, label in zip(known.levels, labels, strict=True):
        size = int(label.max()) + 1
        mask = one.mask(max(size, int(one.numbers.max(initial=-1)) + 1))
        if mask is not None and not (len(label) == size and (np.diff(label) == 1).all()):
            one = replace(
                one, labels=np.full(len(one.numbers), -1, np.int32), allowed=np.ascontiguousarray(mask[:, label])
            )
        levels.append(one)
    return replace(known, levels=tuple(levels))
