"""What `CRF` and `SemiCRF` share beside `Estimator`: parameters, answers and attributes of models with one level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from scansion import _checks as checks
from scansion import model_file
from scansion.data import Knowledge, Trajectory
from scansion.data.dataset import cut
from scansion.models.estimator import Estimator
from scansion.models.flat_model import FlatModel, unpacked
from scansion.models.inputs import INTERCEPT
from scansion.models.packing import unpack
from scansion.models.parameters import parameter

__all__ = ["FlatEstimator"]


@dataclass(repr=False, eq=False)
class FlatEstimator(Estimator):
    """Parameters, answers and attributes of models with one level."""

    order: int = parameter(
        1,
        "int",
        "Longest dependency between labels (of a `SemiCRF`: of segments): always-on features of the label patterns of "
        "length 2 .. order + 1 seen in training.",
    )
    _: KW_ONLY
    labels: Sequence[Any] | None = parameter(
        None,
        "sequence, optional",
        "Labels that y may never show: they come first among the labels, and one without an example has features with "
        "the attributes of every token that may have it.",
    )
    min_freq: float | Sequence[float] = parameter(
        0.0,
        "float, or sequence of float",
        "Features whose summed values in training are below it are left out; a sequence gives one per order.",
    )
    all_possible_states: bool = parameter(
        False,
        "bool",
        "Also features (attribute, label) that do not occur in training and, of a `CRF`, of attributes on pairs of "
        "labels; not with `min_freq` above 0.",
    )
    all_possible_transitions: bool = parameter(
        False, "bool", "Also features (label, label) that do not occur in training."
    )
    patterns: Any = parameter(
        None,
        "sequence of label tuples, optional",
        "The label patterns to follow in place of those seen; `BOS` allowed first, `EOS` last.",
    )
    transitions: Any = parameter(
        "all",
        '"all", "seen", or sequence of label pairs',
        'Which labels may follow each other, begin and end a sequence at all: "all"; those "seen" in training; or the '
        "pairs given, among them ``(BOS, label)`` and ``(label, EOS)`` (if there are none of these, every label may).",
    )
    attribute_orders: Mapping[str, Any] | None = parameter(
        None,
        "dict prefix -> order or orders, optional",
        "Attributes whose name starts with the prefix go with label patterns of these orders; others with single "
        "labels (order 0). The longest prefix wins.",
    )

    _segments: ClassVar[bool]

    def _selection(self) -> Any:
        from scansion.models.select_flat import FlatSelection

        self._check_flags()
        return FlatSelection.checked(self, self._segments)

    def _at_once(self, x: Any) -> list[Any] | None:
        """The answer for one sequence by a native call of its own, which takes microseconds; None: there is none."""
        raise NotImplementedError

    def predict_single(self, x: Any, rules: Any = None) -> Any:
        """The most probable configuration of one sequence, without what a batch costs; rules as in predict."""
        x = list(x) if hasattr(x, "__next__") else x  # it may be read twice
        plain = rules is None and self.rules is None and self.n_features_in_ is None
        plain = plain and self._model.vocabulary.index(INTERCEPT) < 0
        found = self._at_once(x) if plain and x is not None else None  # the bindings have words of their own for None
        return self.predict([x], rules=rules)[0] if found is None else found

    def _told_labels(self) -> list[list[Any]] | None:
        if self.labels is None:
            return None
        if isinstance(self.labels, (str, bytes)) or len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels must be a list of distinct labels, got {self.labels!r}")
        return [list(self.labels)]

    def _check_examples(self, model: Any, known: Knowledge) -> None:
        """Warn where labels have no example, so that nothing tells when to predict them."""
        from scansion.models.trajectories import unseen_labels
        from scansion.training.convergence import warn

        without = [model.labels[y] for y in unseen_labels(known, model.n_labels)]
        told = {name for key in self.expectations or () for name in (key if isinstance(key, tuple) else (key,))}
        if without and not told:
            warn(
                f"y has no example of the label {without[0]!r}: what is not known may all become of one label. Tell "
                "the share of tokens that labels have (expectations), or show some examples"
            )
        partial = bool((known.known & ~known.complete).any()) and known.trajectories is None
        tags = [label for label in model.labels if isinstance(label, str)]
        if partial and self.labels is None and "O" not in tags and any(tag[:2] == "B-" for tag in tags):
            warn(
                "y leaves tokens unknown (None) and has no 'O': every token will be in an entity. Name all labels, as "
                "in labels=['O', ...], and tell the share of tokens that are in entities (expectations)"
            )

    def predict_marginals(self, X: Any, constraints: Any = None, rules: Any = None) -> list[list[dict[Any, float]]]:
        """Label probabilities: for each sequence and position a dict label -> probability."""
        labels = self._model.labels

        def marginals(batch: Any) -> list[list[dict[Any, float]]]:
            rows = [dict(zip(labels, row, strict=True)) for row in batch.marginals().labels.tolist()]
            return cut(rows, batch.offsets)

        answers: list[list[dict[Any, float]]] = self.ask(X, marginals, constraints, rules)
        return answers

    def predict_marginals_single(self, x: Any, rules: Any = None) -> list[dict[Any, float]]:
        """Label probabilities of one sequence."""
        return self.predict_marginals([x], rules=rules)[0]

    def predict_compressed(
        self,
        X: Any,
        method: str = "places",
        *,
        max_length: int | None = None,
        budget: int | None = 10_000,
        constraints: Any = None,
        rules: Any = None,
    ) -> list[list[Any]]:
        """The trajectory of each sequence: labels without their transition points, runs of equal ones merged.

        Parameters
        ----------
        X : iterable of sequences
            In the form given to `fit`.
        method : {"places", "best", "paper"}
            "places": the most likely length, then, of the trajectories of this length that can occur, the one with the
            most places expected to be right. "best": the most probable trajectory, by best-first search. "paper": the
            most likely length, then the most likely label at each place by itself (paper 004); it may be impossible.
        max_length : int, optional
            Longest trajectory to look at.
        budget : int, optional
            Most prefixes that "best" takes up for a sequence; None: no limit. Where it runs out, the most probable
            trajectory that was met is returned; `lattice(x).compressed().best()` tells whether it is proven.
        constraints : iterable, optional
            What is known of each sequence, in the form of y in `fit`: the answer agrees with it.
        rules : Rule, text, or sequence of them, optional
            What the answer must keep, in place of the parameter `rules` (an empty list: nothing).
        """
        from scansion.lattice.compressed import best_all, predict_all

        if not checks.among(method, ("places", "best", "paper")):
            raise ValueError(f"method must be 'places', 'best' or 'paper', got {method!r}")
        labels = self._model.labels

        def question(batch: Any) -> list[list[Any]]:
            if method == "best":
                found = [best.trajectories[0] if len(best) else () for best in best_all(batch, 1, budget, max_length)]
            else:
                found = predict_all(batch, max_length, raw=method == "paper")
            return [[labels[y] for y in trajectory] for trajectory in found]

        answers: list[list[Any]] = self.ask(X, question, constraints, rules)
        return answers

    def _trajectory_log_likelihood(self, X: Any, y: list[Any], rules: Any) -> tuple[float, list[Any]]:
        """Log probability of the trajectories in y, and y with None in their places."""
        rest = [None if isinstance(one, Trajectory) else one for one in y]
        if not any(isinstance(one, Trajectory) for one in y):
            return 0.0, y
        number = {label: i for i, label in enumerate(self._model.labels)}
        wanted = enumerate(y)

        def question(batch: Any) -> list[float]:
            values = []
            for i, (b, one) in zip(range(len(batch)), wanted, strict=False):
                if isinstance(one, Trajectory):
                    unknown = [label for label in one if label not in number]
                    if unknown:
                        raise ValueError(f"y[{b}] holds the label {unknown[0]!r}, which is not one of those known")
                    values.append(batch[i].compressed().log_probability([number[label] for label in one]))
            return values

        return float(sum(self.ask(X, question, None, rules))), rest

    def log_likelihood(self, X: Any, y: Any, rules: Any = None) -> float:
        """Log probability of what y says, summed over the sequences; unknown labels are summed out.

        With rules, that among what keeps them; y must keep them.
        """
        X = self._inputs(X)
        total, y = self._trajectory_log_likelihood(X, list(y), rules)
        return total + super().log_likelihood(X, y, rules)

    @property
    def classes_(self) -> list[Any]:
        """The labels, in the order of first appearance in training."""
        return list(self._model.labels)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """(attribute, label) -> weight, for weights other than 0, as in python-crfsuite.

        Of segments, what is not summed over the inside has its part before the name: "start:", "end:", "inner:",
        "segment:" (of `segment_features`), or is a length.
        """
        return self._attribute_features(lambda pattern: len(pattern) == 1, lambda pattern: pattern[0])

    @property
    def attribute_pattern_features_(self) -> dict[tuple[str, tuple[Any, ...]], float]:
        """(attribute, label pattern of two or more) -> weight, for weights other than 0; names as above."""
        return self._attribute_features(lambda pattern: len(pattern) > 1, lambda pattern: pattern)

    def _attribute_features(self, wanted: Any, shown: Any) -> dict[tuple[str, Any], float]:
        model = self._model
        return {
            (model.feature_name(block.part, name), shown(pattern)): w
            for block, name, pattern, w in model.named_features()
            if not block.always and name != INTERCEPT and wanted(pattern)
        }

    @property
    def intercepts_(self) -> dict[Any, float]:
        """Label -> weight that it has at every token, where there are such weights (`intercept`)."""
        model = self._model
        plain = "inside" if model.segments else "start"
        found = ((block.part, name, pattern, w) for block, name, pattern, w in model.named_features())
        return {p[0]: w for part, name, p, w in found if name == INTERCEPT and part == plain and len(p) == 1}

    def strongest_features(self, top: int = 20) -> dict[Any, tuple[list[tuple[str, float]], list[tuple[str, float]]]]:
        """Label -> its `top` strongest attributes for it, and against it, as (name, weight), strongest first.

        Names as in `state_features_`, of which this is the quick way to the ends.
        """
        return self._strongest(0, top)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """(label, next label) -> weight, for weights other than 0."""
        return {p: w for p, w in self.pattern_features_.items() if len(p) == 2}

    @property
    def pattern_features_(self) -> dict[tuple[Any, ...], float]:
        """Label pattern -> weight of its always-on feature: two labels or more, weights other than 0."""
        return {pattern: w for block, _, pattern, w in self._model.named_features() if block.always}

    @property
    def patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns longer than one label that the model follows."""
        model = self._model
        return [model.pattern_name(z) for z in range(model.n_labels, len(model.patterns) - model.n_forbidden)]

    @classmethod
    def _unpacked(cls, stored: model_file.ModelFile) -> FlatModel:
        model: FlatModel = unpack(stored, lambda *pieces: unpacked(cls._segments, *pieces))
        return model
