"""The hierarchical semi-Markov conditional random field: segments inside segments (papers 000 and 003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion import model_file
from scansion._checks import Floats, Ints
from scansion.data import LevelTargets, Targets, Vocabulary, encode, encode_levels, level_names
from scansion.features.lengths import length_basis
from scansion.features.spans import readable, span_cells
from scansion.models.build import length_counts, matches
from scansion.models.learner import Learner, cut, sequence_weights
from scansion.models.levels import Feature, Mark
from scansion.models.levels import Level as PublicLevel
from scansion.models.nested.build import build, carry_over
from scansion.models.nested.checks import check_targets
from scansion.models.nested.inputs import NestedInputs
from scansion.models.nested.model import CLIQUES, Level, NestedModel
from scansion.models.nested.objective import Held, NestedObjective
from scansion.models.nested.packing import pack, unpack
from scansion.models.nested.parameters import NestedRules, by_level
from scansion.segments import ByLevel, Segment
from scansion.training.learn import strengths

__all__ = ["HierarchicalCRF"]

_ALGORITHMS = ("lbfgs", "l2sgd", "asgd")


class HierarchicalCRF(Learner):
    r"""Hierarchical semi-Markov conditional random field: labelled segments inside labelled segments.

    ``P(tree | x) = exp(sum of weighted features of its cliques) / Z``: the root is one segment over everything, each
    segment of a level is cut into a chain of segments of the next (paper 000, equation 12). Features are of four kinds
    (equations 8 to 11): persistence (a segment), transition (two neighbours under one parent), initialisation (a parent
    and its first child) and ending (a parent and its last child).

    Parameters
    ----------
    levels : list of str
        Names of the levels, the top level first. The root above them is added.
    max_length : "auto", int, None, "free", or dict level -> one of these
        Longest segment of a level. 1 makes it a level of single steps; None: the longest seen in training; "free": no
        bound; "auto" (also of levels that a dict leaves out): the longest seen if `length_features` or
        `segment_features` need a bound or if nothing but single steps is seen, else no bound. Levels without a bound
        cost time linear in the length of a sequence, others also grow with their longest segment.
    topology : None, "seen", "all", or dict parent label -> child labels
        Which labels of a level may lie in which of the level above. "seen": those seen in training; "all": all; None:
        "seen" if y is complete, else "all". Of more than two levels a dict has one such dict for each parent level's
        name. Labels that only a dict names are states, too; a parent that it leaves out may have all children.
    repeats : bool, None, or dict level -> bool
        Whether a segment may follow one of the same label under the same parent. None: if it does in y, or if the
        level is one of single steps.
    transitions : {"all", "seen"}
        "seen": transitions, initialisations and endings that do not occur in training are impossible.
    attribute_parts : dict level -> part, parts, or dict prefix -> part or parts
        Where token attributes are read at a level. Of persistence: "inside" (summed over the segment), "start" (at its
        first position), "end" (at its last), "inner" (summed over all but the first). With the label and its parent:
        "transition" (with the label before it; at the first position of the second), "initialisation" (at the parent's
        first position), "ending" (at its last). Prefixes are of attribute names, the longest wins; () is none. Default:
        "inside", for all attributes at all levels.
    length_features : tuple of {"bins", "length", "log"}, or dict level -> such a tuple
        Features of a segment's length with each label. ("length", "log") are the statistics of a gamma distribution, as
        in the paper. Levels without a bound take "length" alone.
    segment_features : dict level -> callable or list of callables, optional
        ``f(x, start, stop) -> dict`` (or list of strings) for each span of at most `max_length` tokens; see
        `scansion.features`. Not stored in model files: set it again after loading.
    algorithm : {"lbfgs", "l2sgd", "asgd"}
        L-BFGS (OWL-QN with c1 > 0), stochastic gradient, the same averaged.
    c1, c2 : float, or dict level -> float
        Strength of the penalties ``c1 |w|_1`` and ``c2 |w|^2``.
    max_iterations : int or None
        Iterations, or passes over the data; None: until converged (at most 1000 passes).
    min_freq : float
        Features of attributes whose summed values in training are below it are left out.
    all_possible_states : bool
        Also features (attribute, label) that do not occur in training.
    all_possible_transitions : bool
        Also always-on features of transitions, initialisations and endings that do not occur in training.
    batch_size : int
        Sequences per step of l2sgd and asgd.
    n_jobs : int
        Threads, -1 for all processors; results do not depend on it.
    random_state, verbose, warm_start, patience, num_memories, epsilon, period, delta, linesearch, max_linesearch, \
calibration_eta, calibration_rate, calibration_samples, calibration_candidates, calibration_max_trials
        As in `CRF`.

    Attributes
    ----------
    classes_ : dict level -> labels
    topology_, state_features_, transition_features_, initialisation_features_, ending_features_, attributes_, size_
        What was learnt.
    max_length_ : dict level -> longest segment, None for no bound
    training_log_, loss_, n_iter_, message_
        As in `CRF`.

    Notes
    -----
    y has one entry per sequence: a dict level -> target, or a list of one target per level. A target is a list of
    segments ``(start, stop, label)``, gaps being unknown; or one label per token, None for unknown, equal neighbours
    being one segment (at a level of single steps, each is one); or a dict of what is known token by token,
    ``{"labels": [...], "boundaries": [...]}``, a boundary being 1 (a segment ends here), 0 or None; or None. Labels may
    be None or sets anywhere. `levels_from_columns` makes y from columns of labels.

    `predict` returns for each sequence one list of `Segment` per level, found by place or by the level's name
    (``answer[0]``, ``answer["step"]``), and takes what is known as `constraints`, in the form of y. There is no
    `predict_compressed`: trajectories are defined for chains and segments, not for trees.

    With `sample_weight`, sequences of equal weight are computed together: many different weights are slow.

    Examples
    --------
    >>> X = [[{"w": w} for w in "we eat fish . we sleep".split()]]
    >>> y = [{"day": [(0, 4, "meal"), (4, 6, "rest")], "step": ["who", "do", "what", "stop", "who", "do"]}]
    >>> model = HierarchicalCRF(["day", "step"], max_length={"step": 1}, c2=0.01).fit(X, y)
    >>> model.predict(X)[0]["day"]
    [Segment(start=0, stop=4, label='meal'), Segment(start=4, stop=6, label='rest')]
    """

    _kind = "hierarchical"
    model_: NestedModel

    def __init__(
        self,
        levels: Any,
        *,
        max_length: Any = "auto",
        topology: Any = None,
        repeats: Any = None,
        transitions: str = "all",
        attribute_parts: Mapping[str, Any] | None = None,
        length_features: Any = (),
        segment_features: Mapping[str, Any] | None = None,
        algorithm: str = "lbfgs",
        c1: Any = 0.0,
        c2: Any = 1.0,
        max_iterations: int | None = None,
        min_freq: float = 0.0,
        all_possible_states: bool = False,
        all_possible_transitions: bool = True,
        batch_size: int = 8,
        num_memories: int = 6,
        epsilon: float = 1e-5,
        period: int = 10,
        delta: float = 1e-5,
        linesearch: str = "MoreThuente",
        max_linesearch: int = 20,
        calibration_eta: float = 0.1,
        calibration_rate: float = 2.0,
        calibration_samples: int = 1000,
        calibration_candidates: int = 10,
        calibration_max_trials: int = 20,
        n_jobs: int | None = 1,
        random_state: int | None = None,
        verbose: bool = False,
        warm_start: bool = False,
        patience: int = 10,
    ) -> None:
        self.levels = levels
        self.max_length = max_length
        self.topology = topology
        self.repeats = repeats
        self.transitions = transitions
        self.attribute_parts = attribute_parts
        self.length_features = length_features
        self.segment_features = segment_features
        self.algorithm = algorithm
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.batch_size = batch_size
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.patience = patience

    # ---- parameters --------------------------------------------------------------------------------------------

    def _rules(self) -> NestedRules:
        return NestedRules.checked(self.get_params())

    def _check(self) -> None:
        if self.algorithm not in _ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(_ALGORITHMS)}, got {self.algorithm!r}")
        checks.count("batch_size", self.batch_size, 1)
        self._rules()

    def _strength(self, name: str) -> float | Floats:
        values = by_level(level_names(self.levels), name, getattr(self, name), 0.0 if name == "c1" else 1.0)
        for value in values:
            if not isinstance(strengths(name, value), float):
                raise ValueError(f"{name} must be a number >= 0, or a dict level -> number, got {value!r}")
        if len(set(values)) == 1:
            return float(values[0])
        return np.array(values, np.float64)

    def _by_weight(self, strength: float | Floats, model: NestedModel) -> float | Floats:
        if isinstance(strength, float):
            return strength
        each = [np.full(len(block.index), strength[block.level]) for block in model.blocks]
        return np.concatenate([*each, np.zeros(0)])

    # ---- fit ---------------------------------------------------------------------------------------------------

    def _problem(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[NestedModel, NestedObjective, Ints]:
        rules = self._rules()
        old: NestedModel | None = getattr(self, "model_", None) if self.warm_start else None
        if old is not None and [level.name for level in old.levels] != rules.levels:
            raise ValueError(f"warm_start needs the levels of the last fit, {[level.name for level in old.levels]}")
        X = readable(X) if any(rules.functions) else X
        data = encode(X, old.vocabulary.copy() if old is not None else None)
        if len(data) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        weight = sequence_weights(sample_weight, len(data))
        before = [[] if old is None else old.levels[k].labels for k in range(len(rules.levels))]
        known = [list(dict.fromkeys([*labels, *rules.labels(k)])) for k, labels in enumerate(before)]
        targets, labels = encode_levels(y, data.lengths, rules.levels, known, extend=True, max_lengths=rules.bounds)
        levels = [_level(rules, k, labels[k], targets.levels[k], old) for k in range(len(labels))]
        for level, one in zip(levels, targets.levels, strict=True):
            level.length_counts = length_counts(one, level.size, level.max_length or max(one.longest, 1))
        cells = [
            span_cells(X, f, level.cell_vocabulary, level.max_length, False) if f and level.max_length else None
            for f, level in zip(rules.functions, levels, strict=True)
        ]
        inputs = NestedInputs(data, tuple(cells))
        model = build(rules, inputs, targets, levels, data.vocabulary)
        if old is not None:
            carry_over(old, model)
        check_targets(model, targets, data.offsets)
        n_jobs = checks.jobs(self.n_jobs)
        objective = NestedObjective(model, inputs, targets, weight, self.batch_size, n_jobs)
        bad = objective.impossible()
        if bad is not None:
            raise _no_tree(f"y[{bad[0]}]", bad[1])
        return model, objective, np.flatnonzero(targets.known)

    # ---- predict -----------------------------------------------------------------------------------------------

    def _inputs(self, X: Any) -> NestedInputs:
        if isinstance(X, NestedInputs):
            return X
        model = self._model
        chosen = self._rules().functions
        X = readable(X) if any(chosen) else X
        data = encode(X, model.vocabulary, frozen=True)
        cells = []
        for f, level in zip(chosen, model.levels, strict=True):
            if len(level.cell_vocabulary) and not f:
                raise ValueError(
                    f"the model was trained with segment_features of level {level.name!r}: set this parameter to the "
                    "same functions"
                )
            some = len(level.cell_vocabulary) > 0 and level.max_length is not None
            cells.append(span_cells(X, f, level.cell_vocabulary, level.max_length, True) if some else None)
        return NestedInputs(data, tuple(cells))

    def _encoded(self, y: Any, inputs: NestedInputs, extend: bool = False) -> LevelTargets:
        """Encoded y. extend: labels that the model does not know, and segments too long for it, are no errors."""
        model = self._model
        limits = [level.max_length for level in model.levels]
        return encode_levels(
            y,
            inputs.data.lengths,
            [level.name for level in model.levels],
            [level.labels for level in model.levels],
            extend=extend,
            max_lengths=[limit if limit == 1 or not extend else None for limit in limits],
        )[0]

    def _held(self, known: Any, inputs: NestedInputs) -> Held:
        return Held(self._encoded(known, inputs), [level.size for level in self._model.levels])

    def _constrained(self, batch: Any, held: Held, rows: slice) -> Any:
        return held.constrain(batch, rows)

    def _check_possible(self, batch: Any, first: int, name: str) -> None:
        dead = np.flatnonzero(batch._core.log_partitions(batch.n_jobs) == -np.inf)
        if dead.size:
            raise _no_tree(f"{name}[{first + int(dead[0])}]", batch._core.furthest(int(dead[0])))

    def _tokens_at_once(self) -> int:
        model: NestedModel = self._model
        return min(super()._tokens_at_once(), model.tokens_at_once())

    def _named(self, config: Any) -> ByLevel:
        levels = self._model.levels
        entries = (
            [Segment(u, v, level.labels[s]) for u, v, s in segments]
            for level, segments in zip(levels, config[1:], strict=True)
        )
        return ByLevel(entries, [level.name for level in levels])

    def _answers(self, batch: Any) -> list[Any]:
        return [self._named(config) for config in batch.viterbi()[0]]

    def predict_marginals(self, X: Any, constraints: Any = None) -> list[ByLevel]:
        """Label probabilities: for each sequence and level, for each position a dict label -> probability."""
        levels = self._model.levels

        def marginals(batch: Any) -> list[ByLevel]:
            found = batch.marginals().labels
            columns = [
                cut([dict(zip(level.labels, row, strict=True)) for row in found[k + 1].tolist()], batch.offsets)
                for k, level in enumerate(levels)
            ]
            names = [level.name for level in levels]
            return [ByLevel(rows, names) for rows in zip(*columns, strict=True)]

        return self._ask(X, marginals, constraints)

    def predict_marginals_single(self, x: Any) -> ByLevel:
        """Label probabilities of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_compressed(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Not defined for nested segments."""
        raise NotImplementedError(
            "trajectories are defined for chains and segments, not for segments inside segments: take the labels of "
            "one level of predict(X), or train a CRF or SemiCRF on that level"
        )

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Log probability of what y says, summed over the sequences; what is unknown is summed out."""
        inputs = self._inputs(X)
        held = self._ask(inputs, lambda batch: batch.log_partition().tolist(), y)
        free = self._ask(inputs, lambda batch: batch.log_partition().tolist())
        return float(np.sum(np.array(held) - np.array(free)))

    def scores(self, X: Any, y: Any, constraints: Any = None) -> dict[str, dict[str, float]]:
        """Quality of the predictions (under `constraints`, as in `predict`) by level.

        Returns
        -------
        dict level -> {"accuracy": ..., "f1": ...}
            Share of the tokens with the right label, and micro-averaged F1 of the segments, whose span and label must
            both be right. What is predicted where y is unknown does not count (of a set, each label is right); nan
            where y says nothing of a level.
        """
        inputs = self._inputs(X)
        targets = self._encoded(y, inputs, extend=True)
        best = self._ask(inputs, lambda batch: batch.viterbi()[0], constraints)
        offsets, n = inputs.data.offsets, inputs.data.n_tokens
        result: dict[str, dict[str, float]] = {}
        for k, level in enumerate(self._model.levels):
            one = targets.levels[k]
            steps = np.array(
                [(u + first, v + first, s) for config, first in zip(best, offsets.tolist(), strict=False)
                 for u, v, s in config[k + 1]], np.int64
            ).reshape(-1, 3)  # fmt: skip
            guess = np.repeat(steps[:, 2], steps[:, 1] - steps[:, 0])
            if one.allowed is None:
                told, right = one.labels >= 0, one.labels == guess
            else:
                told, right = ~one.allowed.all(axis=1) | (one.labels >= 0), one.allowed[np.arange(n), guess]
            wanted, compared, hits = matches(one, steps)
            result[level.name] = {
                "accuracy": float(right[told].mean()) if told.any() else np.nan,
                "f1": 2.0 * hits / (wanted + compared) if wanted else np.nan,
            }
        return result

    def score(self, X: Any, y: Any, level: str | None = None) -> float:
        """Micro-averaged F1 of the segments of one level, or its mean over the levels; see `scores`."""
        found = self.scores(X, y)
        if level is not None and level not in found:
            raise ValueError(f"level must be one of {', '.join(found)}, got {level!r}")
        values = [one["f1"] for name, one in found.items() if level in (None, name) and one["f1"] == one["f1"]]
        if not values:
            raise ValueError("y holds no segment whose label and ends are known: there is nothing to compare with")
        return float(np.mean(values))

    def lattices(self, X: Any, constraints: Any = None) -> Any:
        """The lattices of all sequences as one `NestedBatch`: arrays in place of dicts and lists.

        Level 0 is the root, with one state; level k + 1 is the k-th of `levels`, whose states are indices of
        ``classes_``.
        """
        inputs = self._inputs(X)
        batch = self._model.batch(inputs, checks.jobs(self.n_jobs))
        if constraints is not None:
            batch = self._held(constraints, inputs).constrain(batch, slice(None))
            self._check_possible(batch, 0, "constraints")
        return batch

    # ---- what was learnt ---------------------------------------------------------------------------------------

    @property
    def classes_(self) -> dict[str, list[Any]]:
        """The labels of each level, in the order of first appearance in training."""
        return {level.name: list(level.labels) for level in self._model.levels}

    @property
    def levels_(self) -> list[PublicLevel]:
        """The levels of the labels, the top level first."""
        return [PublicLevel(level.name, list(level.labels), level.max_length) for level in self._model.levels]

    def by_level(self, told: Any) -> list[Any]:
        """What the estimator tells of all levels, one entry for each of `levels_`."""
        return [told.get(name, {}) for name in self._level_names] if isinstance(told, Mapping) else list(told)

    def level_features(self, single: bool = True) -> Iterator[Feature]:
        """The features with a weight other than 0; single: also those of one label."""
        if single:
            places = {name: k for k, name in enumerate(self._level_names)}
            for (name, attribute, label), w in self.state_features_.items():
                yield Feature(places[name], None, (label,), attribute, w)
        ends: tuple[tuple[str, tuple[Any, ...], tuple[Any, ...]], ...] = (
            ("initialisation", (Mark.START,), ()),
            ("transition", (), ()),
            ("ending", (), (Mark.END,)),
        )
        for part, before, after in ends:
            for block, row, (parent, *labels), w in self._model.named_features():
                if block.part == part:
                    yield Feature(block.level, parent, (*before, *labels, *after), None if block.always else row, w)

    @property
    def max_length_(self) -> dict[str, int | None]:
        """Longest segment of each level; None: no bound."""
        return {level.name: level.max_length for level in self._model.levels}

    @property
    def length_counts_(self) -> dict[str, dict[Any, Ints]]:
        """Level -> label -> (M,) how many of its segments in training had the length 1 .. M.

        Empty for a model from a file that was written without them.
        """
        return {
            level.name: dict(zip(level.labels, level.length_counts.copy(), strict=True))
            for level in self._model.levels
            if level.length_counts is not None
        }

    def strongest_features(
        self, top: int = 20
    ) -> dict[str, dict[Any, tuple[list[tuple[str, float]], list[tuple[str, float]]]]]:
        """Level -> label -> its `top` strongest attributes for it, and against it, as (name, weight), strongest first.

        Names as in `state_features_`.
        """
        top = checks.count("top", top, 0)
        found: dict[str, dict[Any, list[tuple[str, float]]]] = {
            name: {label: [] for label in labels} for name, labels in self.classes_.items()
        }
        for (level, name, label), w in self.state_features_.items():
            found[level][label].append((name, w))
        return {
            level: {
                label: (
                    sorted((f for f in rows if f[1] > 0), key=lambda f: -f[1])[:top],
                    sorted((f for f in rows if f[1] < 0), key=lambda f: f[1])[:top],
                )
                for label, rows in by_label.items()
            }
            for level, by_label in found.items()
        }

    @property
    def topology_(self) -> dict[str, dict[Any, list[Any]]]:
        """Parent level -> parent label -> labels of the next level that it may have as children."""
        model, result = self._model, {}
        for k in range(1, len(model.levels)):
            above, here = model.levels[k - 1], model.levels[k]
            result[above.name] = {
                parent: [here.labels[u] for u in np.flatnonzero(row).tolist()]
                for parent, row in zip(above.labels, model.children[k], strict=True)
            }
        return result

    @property
    def attributes_(self) -> list[str]:
        """Names of the token attributes that have a feature with a weight other than 0, sorted."""
        return sorted({row for block, row, _, _ in self._model.named_features() if block.tokens})

    @property
    def size_(self) -> int:
        """Number of weights other than 0."""
        return int(np.count_nonzero(self._model.weights))

    @property
    def state_features_(self) -> dict[tuple[str, str, Any], float]:
        """(level, attribute, label) -> weight of persistence features, for weights other than 0.

        What is not summed over the inside has its part before the name: "start:", "end:", "inner:", "span:" (of
        `segment_features`), or is a length.
        """
        names = self._level_names
        return {
            (names[block.level], row if block.part in ("inside", "length") else f"{block.part}:{row}", column[0]): w
            for block, row, column, w in self._model.named_features()
            if block.part not in CLIQUES
        }

    @property
    def _level_names(self) -> list[str]:
        return [level.name for level in self._model.levels]

    def _cliques(self, part: str) -> dict[tuple[Any, ...], float]:
        names = self._level_names
        return {
            (names[block.level], *column, *(() if block.always else (row,))): w
            for block, row, column, w in self._model.named_features()
            if block.part == part
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """(level, parent, label, next label) -> weight other than 0; with attributes, their name comes last.

        Parents of the top level are None, the root.
        """
        return self._cliques("transition")

    @property
    def initialisation_features_(self) -> dict[tuple[Any, ...], float]:
        """(level, parent, first label) -> weight other than 0; with attributes, their name comes last."""
        return self._cliques("initialisation")

    @property
    def ending_features_(self) -> dict[tuple[Any, ...], float]:
        """(level, parent, last label) -> weight other than 0; with attributes, their name comes last."""
        return self._cliques("ending")

    # ---- files -------------------------------------------------------------------------------------------------

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return pack(self._model)

    @classmethod
    def _unpacked(cls, stored: model_file.ModelFile) -> NestedModel:
        return unpack(stored.metadata, stored.arrays)


def _no_tree(what: str, furthest: int) -> ValueError:
    return ValueError(
        f"{what} leaves no tree: none gets beyond position {furthest} with what is known there and what the model "
        "allows (topology, transitions, repeats, max_length)"
    )


def _level(rules: NestedRules, k: int, labels: list[Any], targets: Targets, old: NestedModel | None) -> Level:
    """A level with its longest segment and length features."""
    if not labels:
        raise ValueError(f"y holds no label of level {rules.levels[k]!r}: give them by topology, or leave it out")
    before = 0 if old is None else old.levels[k].max_length or 0
    longest = rules.longest(k, max(targets.longest, before), bool(targets.complete.all()))
    vocabulary = old.levels[k].cell_vocabulary.copy() if old is not None else Vocabulary()
    return Level(rules.levels[k], labels, longest, *length_basis(rules.length_features[k], longest or 1), vocabulary)
