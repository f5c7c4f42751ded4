"""The hierarchical semi-Markov conditional random field: segments inside segments (papers 000 and 003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from scansion import _checks as checks
from scansion import model_file
from scansion._checks import Floats, Ints
from scansion.data.dataset import cut
from scansion.models.estimator import Estimator, total_loss
from scansion.models.inputs import INTERCEPT
from scansion.models.nested_model import CLIQUES, NestedModel, unpacked
from scansion.models.packing import unpack
from scansion.models.parameters import GROUPS, CheckedSettings, Strength, documented, parameter, strengths
from scansion.models.select_nested import NestedSelection, by_level
from scansion.segments import ByLevel, Segment

__all__ = ["HierarchicalCRF"]


@documented
@dataclass(repr=False, eq=False)
class HierarchicalCRF(Estimator):
    r"""Hierarchical semi-Markov conditional random field: labelled segments inside labelled segments.

    ``P(tree | x) = exp(sum of weighted features of its cliques) / Z``: the root is one segment over everything, each
    segment of a level is cut into a chain of segments of the next (paper 000, equation 9). Features are of four kinds
    (equations 68 to 71): persistence (a segment), transition (two neighbours under one parent), initialisation (a
    parent and its first child) and ending (a parent and its last child).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : dict level -> labels
    topology_, state_features_, transition_features_, initialisation_features_, ending_features_, attributes_, \
levels_, size_
        What was learnt.
    max_length_ : dict level -> longest segment, None for no bound
    training_log_ : list of dict
        One for each iteration: iteration, loss, gradient_norm, active, dev_score, seconds.
    loss_, n_iter_, message_
        The loss at the end, the number of iterations, and why training ended.

    Notes
    -----
    y has one entry per sequence: a dict level -> target, or a list of one target per level. A target is a list of
    segments ``(start, stop, label)``, gaps being unknown; or one label per token, None for unknown, equal neighbours
    being one segment (at a level of single steps, each is one); or a dict of what is known token by token,
    ``{"labels": [...], "boundaries": [...]}``, a boundary being 1 (a segment ends here), 0 or None; or the label of the
    whole sequence, where `max_length` is "whole"; or None. Labels may be None or sets anywhere. `levels_from_columns`
    makes y from columns of labels.

    `predict` returns for each sequence one list of `Segment` per level, found by place or by the level's name
    (``answer[0]``, ``answer["step"]``), and takes what is known as `constraints`, in the form of y. There is no
    `predict_compressed`: trajectories are defined for chains and segments, not for trees.

    Examples
    --------
    >>> X = [[{"w": w} for w in "we eat fish . we sleep".split()]]
    >>> y = [{"day": [(0, 4, "meal"), (4, 6, "rest")], "step": ["who", "do", "what", "stop", "who", "do"]}]
    >>> model = HierarchicalCRF(["day", "step"], max_length={"step": 1}, c2=0.01).fit(X, y)
    >>> model.predict(X)[0]["day"]
    [Segment(start=0, stop=4, label='meal'), Segment(start=4, stop=6, label='rest')]
    """

    levels: Any = parameter(
        MISSING, "list of str", "Names of the levels, the top level first. The root above them is added."
    )
    _: KW_ONLY
    max_length: Any = parameter(
        "auto",
        '"auto", int, None, "free", "whole", or dict level -> one of these',
        "Longest segment of a level. 1 makes it a level of single steps; None: the longest seen in training; "
        '"free": no bound; "whole": as long as the segment above it, so that at the top level each sequence has one '
        'label, and the model is a classifier of sequences as well; "auto" (also of levels that a dict leaves out): '
        "the longest seen if `length_features` or `segment_features` need a bound or if nothing but single steps is "
        "seen, else no bound. Levels without a bound cost time linear in the length of a sequence, others also grow "
        "with their longest segment.",
    )
    hidden: Mapping[str, Any] | None = parameter(
        None,
        "dict level -> int or list of labels, optional",
        "Levels that y says nothing of, and how many labels they have, or which. They are learnt through what y says "
        "of other levels, from guesses by what surrounds each token.",
    )
    restarts: int = parameter(
        5, "int", "Guesses of the hidden levels that learning starts from, drawn by `random_state`; the best is kept."
    )
    topology: Any = parameter(
        None,
        'None, "seen", "all", or dict parent label -> child labels',
        'Which labels of a level may lie in which of the level above. "seen": those seen in training; "all": all; '
        'None: "seen" if y is complete, else "all". Of more than two levels a dict has one such dict for each '
        "parent level's name. Labels that only a dict names are states, too; a parent that it leaves out may have "
        "all children.",
    )
    repeats: Any = parameter(
        None,
        "bool, None, or dict level -> bool",
        "Whether a segment may follow one of the same label under the same parent. None: if it does in y, or if the "
        "level is one of single steps.",
    )
    transitions: Literal["all", "seen"] = parameter(
        "all",
        '{"all", "seen"}',
        '"seen": transitions, initialisations and endings that do not occur in training are impossible.',
    )
    attribute_parts: Mapping[str, Any] | None = parameter(
        None,
        "dict level -> part, parts, or dict prefix -> part or parts",
        'Where token attributes are read at a level. Of persistence: "inside" (summed over the segment), "start" '
        '(at its first position), "end" (at its last), "inner" (summed over all but the first). With the label and '
        'its parent: "transition" (with the label before it; at the first position of the second), '
        '"initialisation" (at the parent\'s first position), "ending" (at its last). Prefixes are of attribute '
        'names, the longest wins; () is none. Default: "inside", for all attributes at all levels.',
    )
    length_features: Any = parameter(
        (),
        'tuple of {"bins", "length", "log"}, or dict level -> such a tuple',
        'Features of a segment\'s length with each label. ("length", "log") are the statistics of a gamma '
        'distribution, as in the paper. Levels without a bound take "length" alone.',
    )
    segment_features: Mapping[str, Any] | None = parameter(
        None,
        "dict level -> callable or list of callables, optional",
        "``f(x, start, stop) -> dict`` (or list of strings) for each span of at most `max_length` tokens; see "
        "`scansion.features`. Not stored in model files: set it again after loading.",
    )
    c1: float | Mapping[str, Any] | Literal["cv"] = parameter(
        0.0,
        "float, or dict group or level -> float",
        "Strength of the penalty ``c1 |w|_1``, which makes weights 0; groups as in `c2`.",
    )
    c2: float | Mapping[str, Any] | Literal["cv"] = parameter(
        1.0,
        "float, or dict group or level -> float",
        'Strength of the penalty ``c2 |w|^2``, by level or by group as in `CRF` ("transitions" are all cliques of more '
        "than one label); a level may have groups of its own in a dict.",
    )
    min_freq: float = parameter(
        0.0, "float", "Features of attributes whose summed values in training are below it are left out."
    )
    all_possible_states: bool = parameter(
        False, "bool", "Also features (attribute, label) that do not occur in training."
    )
    all_possible_transitions: bool = parameter(
        True,
        "bool",
        "Also always-on features of transitions, initialisations and endings that do not occur in training.",
    )
    batch_size: int | None = parameter(
        None,
        "int, optional",
        "Sequences per step of the online algorithms. None: 8 of l2sgd, asgd and auto, 1 of the others.",
    )

    _kind: ClassVar[str] = "hierarchical"
    predict_compressed = checks.Absent(
        "trajectories are defined for chains and segments, not for segments inside segments: take the labels of one "
        "level of predict(X), or train a CRF or SemiCRF on that level"
    )

    def _selection(self) -> NestedSelection:
        self._check_flags()
        return NestedSelection.checked(self)

    def _strength(self, name: str) -> Strength:
        value = self._given(name)
        found = strengths(name, value)
        if isinstance(found, np.ndarray):
            raise ValueError(f"{name} must be a number >= 0, or a dict level -> number (or groups), got {value!r}")
        if isinstance(found, dict):
            by_level(self._selection().names, name, {k: v for k, v in found.items() if k not in ("", *GROUPS)})
        return found

    def _tuned(self, model: Any, objective: Any) -> Any:
        """The objective takes `batch_size` sequences at a time in passes over them."""
        size = self.batch_size or (8 if self.algorithm in ("l2sgd", "asgd", "auto") else 1)
        objective.native.set_batches(size, checks.jobs(self.n_jobs))
        return objective

    def _starts(self, model: Any, objective: Any, penalty: Any, settings: CheckedSettings) -> Iterator[Floats]:
        """One start for each guess of the hidden levels."""
        if not model.hidden or model.weights.any():
            yield from super()._starts(model, objective, penalty, settings)
            return
        from scansion.models.hidden import guesses
        from scansion.models.starts import counted

        loss = total_loss(objective, penalty, settings.n_jobs)
        for guess in guesses(model, objective.inputs, objective.known, self.restarts, settings.random_state):
            yield counted(model, objective.inputs, guess, loss)[0]

    def _look_at(self, model: Any, objective: Any, n_jobs: int) -> None:
        if model.hidden:
            from scansion.models.hidden import warn_of_unlearnt

            warn_of_unlearnt(model, objective.inputs, objective.known, n_jobs)

    def settings(self) -> CheckedSettings:
        """The parameters of learning, checked."""
        settings = super().settings()
        checks.count("restarts", self.restarts, 1)
        if self.hidden and any(checks.among(strength, ("cv",)) for strength in (self.c1, self.c2)):
            raise ValueError("'cv' as strength does not go with hidden levels: give a number")
        if self.batch_size is not None:
            checks.count("batch_size", self.batch_size, 1)
        if self.train_with_rules and self.algorithm != "lbfgs":
            raise ValueError(f"train_with_rules of a HierarchicalCRF needs algorithm='lbfgs', got {self.algorithm!r}")
        return settings

    def expectations_by_level(self, names: list[Any]) -> list[Any]:
        """`expectations` of each level."""
        return by_level(
            self._selection().names, "expectations", {} if self.expectations is None else self.expectations, {}
        )

    def scores_by_level(self) -> list[Any]:
        """`scores_of` of each level."""
        return by_level(self._selection().names, "scores_of", {} if self.scores_of is None else self.scores_of)

    # ---- questions ---------------------------------------------------------------------------------------------

    def _by_level(self, entries: Any) -> ByLevel:
        return ByLevel(entries, [level.name for level in self._model.levels])

    def by_level(self, told: Any) -> list[Any]:
        """What the estimator tells of all levels, one entry for each of `levels_`."""
        names = [level.name for level in self._model.levels]
        return [told.get(name, {}) for name in names] if isinstance(told, Mapping) else list(told)

    def _named(self, config: Any) -> ByLevel:
        levels = zip(self._model.levels, config[1:], strict=True)
        return self._by_level([Segment(u, v, level.labels[s]) for u, v, s in one] for level, one in levels)

    def _packed(self, levels: list[Any], size: int) -> Any:
        return [[(0, size, 0)] if size else [], *levels]

    def _told(self, found: Any) -> ByLevel:
        return self._by_level([level.tolist() for level in found[1:]])

    def predict_marginals(self, X: Any, constraints: Any = None, rules: Any = None) -> list[ByLevel]:
        """Label probabilities: for each sequence and level, for each position a dict label -> probability."""
        levels = self._model.levels

        def marginals(batch: Any) -> list[ByLevel]:
            found = batch.marginals().labels
            columns = [
                cut([dict(zip(level.labels, row, strict=True)) for row in found[k + 1].tolist()], batch.offsets)
                for k, level in enumerate(levels)
            ]
            return [self._by_level(rows) for rows in zip(*columns, strict=True)]

        return self.ask(X, marginals, constraints, rules)

    def predict_marginals_single(self, x: Any, rules: Any = None) -> ByLevel:
        """Label probabilities of one sequence."""
        return self.predict_marginals([x], rules=rules)[0]

    def scores(self, X: Any, y: Any, constraints: Any = None, rules: Any = None) -> dict[str, dict[str, float]]:
        """Quality of the predictions (under `constraints` and `rules`, as in `predict`) by level.

        Returns
        -------
        dict level -> {"accuracy": ..., "f1": ...}
            Share of the tokens with the right label, and micro-averaged F1 of the segments, whose span and label must
            both be right. What is predicted where y is unknown does not count (of a set, each label is right); nan
            where y says nothing of a level.
        """
        inputs = self._inputs(X)
        known, labels = self._known(y, inputs, extend=True)
        best = self.ask(inputs, lambda batch: batch.viterbi()[0], constraints, rules)
        firsts = inputs.data.offsets.tolist()
        result: dict[str, dict[str, float]] = {}
        for k, (level, one) in enumerate(zip(self._model.levels, known.levels, strict=True)):
            placed = (
                (u + first, v + first, s)
                for config, first in zip(best, firsts, strict=False)
                for u, v, s in config[k + 1]
            )
            steps = np.array(list(placed), np.int64).reshape(-1, 3)
            guess = np.repeat(steps[:, 2], steps[:, 1] - steps[:, 0])
            wanted, compared, right = one.matches(steps)
            result[level.name] = {
                "accuracy": one.accuracy(guess, len(labels[k])),
                "f1": 2.0 * right / (wanted + compared) if wanted else np.nan,
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

    # ---- what was learnt ---------------------------------------------------------------------------------------

    @property
    def classes_(self) -> dict[str, list[Any]]:
        """The labels of each level, in the order of first appearance in training."""
        return {level.name: list(level.labels) for level in self._model.levels}

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
        return {level.name: self._strongest(k, top) for k, level in enumerate(self._model.levels)}

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
    def state_features_(self) -> dict[tuple[str, str, Any], float]:
        """(level, attribute, label) -> weight of persistence features, for weights other than 0.

        What is not summed over the inside has its part before the name: "start:", "end:", "inner:", "span:" (of
        `segment_features`), or is a length.
        """
        model = self._model
        return {
            (model.levels[block.level].name, model.feature_name(block.part, row), column[0]): w
            for block, row, column, w in model.named_features()
            if block.part not in CLIQUES and row != INTERCEPT
        }

    def _cliques(self, part: str) -> dict[tuple[Any, ...], float]:
        model = self._model
        return {
            (model.levels[block.level].name, *column, *(() if block.always else (row,))): w
            for block, row, column, w in model.named_features()
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

    @classmethod
    def _unpacked(cls, stored: model_file.ModelFile) -> NestedModel:
        model: NestedModel = unpack(stored, unpacked)
        names, parameters = [level.name for level in model.levels], stored.metadata.get("parameters")
        if not isinstance(parameters, dict) or parameters.get("levels") != names:
            raise model_file.ModelFileError(
                f"the model file has other levels in its parameters than {names}: save it again"
            )
        return model
