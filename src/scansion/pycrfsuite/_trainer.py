"""Training with python-crfsuite's interface: parameters by CRFsuite's names, and its messages."""

from __future__ import annotations

import dataclasses
import math
import os
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats
from scansion.data import Dataset, Vocabulary
from scansion.models.crf import CRF
from scansion.models.flat_model import FlatModel
from scansion.models.foreign import crfsuite
from scansion.models.foreign.assemble import first_order
from scansion.models.weights import Level
from scansion.pycrfsuite._logparser import TrainLogParser
from scansion.pycrfsuite._tagger import encoded
from scansion.training.convergence import ConvergenceWarning
from scansion.training.learn import Development, learn

__all__ = ["BaseTrainer", "CRFSuiteError", "Trainer"]

_UNLIMITED = 2**31 - 1
_ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}


class CRFSuiteError(Exception):
    """Training failed.

    Parameters
    ----------
    code : int
        CRFsuite's number of the error.
    """

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"CRFsuite's error {code}")


class _Parameter(NamedTuple):
    """A parameter of CRFsuite: ours that it is, type and default."""

    name: str
    kind: Callable[[Any], Any]
    default: Any


def _whole(value: Any) -> int:
    return int(float(value))


def _switch(value: Any) -> bool:
    return bool(_whole(value))


_FEATURES = {
    "feature.minfreq": _Parameter("min_freq", float, 0.0),
    "feature.possible_states": _Parameter("all_possible_states", _switch, False),
    "feature.possible_transitions": _Parameter("all_possible_transitions", _switch, False),
}
_PASSES = {
    "max_iterations": _Parameter("max_iterations", _whole, 100),
    "epsilon": _Parameter("epsilon", float, 0.0),
}
_ALGORITHMS: dict[str, tuple[str, dict[str, _Parameter]]] = {
    "lbfgs": (
        "L-BFGS optimization",
        {
            "c1": _Parameter("c1", float, 0.0),
            "c2": _Parameter("c2", float, 1.0),
            "max_iterations": _Parameter("max_iterations", _whole, _UNLIMITED),
            "num_memories": _Parameter("num_memories", _whole, 6),
            "epsilon": _Parameter("epsilon", float, 1e-5),
            "period": _Parameter("period", _whole, 10),
            "delta": _Parameter("delta", float, 1e-5),
            "linesearch": _Parameter("linesearch", str, "MoreThuente"),
            "max_linesearch": _Parameter("max_linesearch", _whole, 20),
        },
    ),
    "l2sgd": (
        "Stochastic Gradient Descent (SGD)",
        {
            "c2": _Parameter("c2", float, 1.0),
            "max_iterations": _Parameter("max_iterations", _whole, 1000),
            "period": _Parameter("period", _whole, 10),
            "delta": _Parameter("delta", float, 1e-6),
            "calibration.eta": _Parameter("calibration_eta", float, 0.1),
            "calibration.rate": _Parameter("calibration_rate", float, 2.0),
            "calibration.samples": _Parameter("calibration_samples", float, 1000.0),
            "calibration.candidates": _Parameter("calibration_candidates", _whole, 10),
            "calibration.max_trials": _Parameter("calibration_max_trials", _whole, 20),
        },
    ),
    "ap": ("Averaged perceptron", _PASSES),
    "pa": (
        "Passive Aggressive",
        {
            "type": _Parameter("pa_type", _whole, 1),
            "c": _Parameter("c", float, 1.0),
            "error_sensitive": _Parameter("error_sensitive", _switch, True),
            "averaging": _Parameter("averaging", _switch, True),
        }
        | _PASSES,
    ),
    "arow": (
        "Adaptive Regularization of Weights (AROW)",
        {"variance": _Parameter("variance", float, 1.0), "gamma": _Parameter("gamma", float, 1.0)} | _PASSES,
    ),
}
_LOGGED_AS = {"period": "stop", "max_linesearch": "linesearch.max_iterations"}  # with lbfgs
_LOGGED_FIRST = ("c1", "c2", "num_memories")


class BaseTrainer:
    """Keeps sequences and trains models of them; `message` receives CRFsuite's messages.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, optional
    params : dict, optional
        As of `set_params`.
    verbose : bool
        Print the messages.
    """

    verbose: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Ready for use even if a subclass does not call ``__init__``, as python-crfsuite has it."""
        self = super().__new__(cls)
        self.verbose = None
        self.clear()
        self.select("lbfgs")
        return self

    def __init__(
        self, algorithm: str | None = None, params: dict[str, Any] | None = None, verbose: bool = True
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    # ---- sequences ---------------------------------------------------------------------------------------------

    def append(self, xseq: Any, yseq: Iterable[str], group: int = 0) -> None:
        """Add a sequence.

        Parameters
        ----------
        xseq : ItemSequence, or iterable of items as there
        yseq : iterable of str
            As many labels as items.
        group : int
            The number of its group; `train` can leave one out and test on it.
        """
        data = Dataset._trusted(*encoded(xseq, self._vocabulary, False), self._vocabulary)
        labels = [_text(y) for y in yseq]
        if len(labels) != data.n_tokens:
            raise ValueError(f"The numbers of items and labels differ: |x| = {data.n_tokens}, |y| = {len(labels)}")
        self._sequences.append((data, labels, checks.count("group", group, -checks.MOST_COUNT)))
        self._labels.update(dict.fromkeys(labels))

    def clear(self) -> None:
        """Remove all sequences."""
        self._vocabulary = Vocabulary()
        self._sequences: list[tuple[Dataset, list[str], int]] = []
        self._labels: dict[str, None] = {}

    # ---- parameters --------------------------------------------------------------------------------------------

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose an algorithm; its parameters have their defaults."""
        name = str(algorithm).lower()
        name = _ALIASES.get(name, name)
        if name not in _ALGORITHMS or not checks.among(type, ("crf1d",)):
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}")
        self._algorithm = name
        self._known = _FEATURES | _ALGORITHMS[name][1]
        self._values = {key: parameter.default for key, parameter in self._known.items()}

    def params(self) -> list[str]:
        """Names of the parameters of the algorithm."""
        return list(self._known)

    def set_params(self, params: dict[str, Any]) -> None:
        """Set parameters by name."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """All parameters by name."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str, value: Any) -> None:
        """Set a parameter."""
        if name not in self._known:
            raise ValueError(f"Parameter not found: {name} = {value}")
        try:
            self._values[name] = self._known[name].kind(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be a number, got {value!r}") from None

    def get(self, name: str) -> Any:
        """The value of a parameter."""
        if name not in self._known:
            raise ValueError(f"Parameter not found: {name}")
        return self._values[name]

    def help(self, name: str) -> str:
        """What a parameter is."""
        if name not in self._known:
            raise ValueError(f"Parameter not found: {name}")
        fields = {field.name: field for field in dataclasses.fields(CRF)}
        text: str = fields[self._known[name].name].metadata["explanation"]
        return text

    # ---- training ----------------------------------------------------------------------------------------------

    def train(self, model: str | os.PathLike[str], holdout: int = -1) -> None:
        """Train on the sequences and write a model file of CRFsuite.

        Parameters
        ----------
        model : path
            Empty: nothing is written.
        holdout : int
            Test on the sequences of this group after each iteration, and leave them out of training; -1: on none.
        """
        self._before_train()
        if holdout >= 0:
            self._say(f"Holdout group: {holdout + 1}\n", "\n")
        crf = CRF(algorithm=self._algorithm, **self._parameters())  # type: ignore[arg-type]
        self._say("Feature generation\n", "type: CRF1d\n")
        for name in _FEATURES:
            self._setting(name, name)
        begun = time.process_time()
        train = [(x, y) for x, y, group in self._sequences if group != holdout]
        problem = self._problem(crf, train) if train else None
        for percent in range(0, 102, 2):
            self._say("." if percent % 10 else str(percent // 10))
        n_features = 0 if problem is None else problem.model.n_weights
        self._say("\n", f"Number of features: {n_features}\n", f"Seconds required: {_since(begun)}\n", "\n")
        title, parameters = _ALGORITHMS[self._algorithm]
        self._say(f"{title}\n")
        for name in sorted(parameters, key=lambda name: name not in _LOGGED_FIRST):
            if not name.startswith("calibration."):
                self._setting(name, _LOGGED_AS.get(name, name) if self._algorithm == "lbfgs" else name)
        self._say("\n")
        begun = time.process_time()
        if problem is None or not n_features:
            self._say(f"{title} terminated with error code (-1020)\n")
            learnt: Any = _nothing(list(self._labels)) if problem is None else problem.model
        else:
            settings = crf.settings()
            watch = _Watch(self, crf, problem.model, [(x, y) for x, y, group in self._sequences if group == holdout])
            found = _learnt(problem, crf, settings, watch)
            if self._algorithm in ("lbfgs", "l2sgd"):
                name = "L-BFGS" if self._algorithm == "lbfgs" else "SGD"
                self._say(f"{name} terminated: {found.message}\n")
            elif "mistakes" in found.message:
                self._say("Terminated with the stopping criterion\n", "\n")
            learnt = problem.model.weighted(found.weights)
        self._say(f"Total seconds required for training: {_since(begun)}\n", "\n")
        self._store(learnt, model)

    def _parameters(self) -> dict[str, Any]:
        """The parameters by our names."""
        given = {self._known[name].name: value for name, value in self._values.items()}
        if given["max_iterations"] in (0, _UNLIMITED):
            given["max_iterations"] = None
        if "calibration_samples" in given:
            given["calibration_samples"] = int(given["calibration_samples"])
        return given

    def _problem(self, crf: CRF, train: list[tuple[Dataset, list[str]]]) -> Any:
        """What is to be learnt; labels of the sequences that are held out are labels, too."""
        X, y = _joined([x for x, _ in train], self._vocabulary), [labels for _, labels in train]
        if len(self._labels) > len({label for labels in y for label in labels}):
            nothing = np.zeros(0, np.int64)
            features = (nothing, nothing, np.zeros(0))
            crf.model_ = first_order(list(self._labels), self._vocabulary, features, features)
            crf.warm_start = True
        return crf.problem(X, y)

    def _store(self, model: Any, path: str | os.PathLike[str]) -> None:
        begun = time.process_time()
        kept = np.flatnonzero(model.weights)
        rows = [block.row[np.flatnonzero(model.weights[where])] for block, where in model.parts() if block.tokens]
        active = len(np.unique(np.concatenate([np.zeros(0, np.int64), *rows])))
        n = len(model.labels)
        self._say(
            "Storing the model\n",
            f"Number of active features: {len(kept)} ({model.n_weights})\n",
            f"Number of active attributes: {active} ({len(model.vocabulary)})\n",
            f"Number of active labels: {n} ({n})\n",
            "Writing labels\n",
            "Writing attributes\n",
            "Writing feature references for transitions\n",
            "Writing feature references for attributes\n",
        )
        if path:
            crfsuite.write(model, path)
        self._say(f"Seconds required: {_since(begun)}\n", "\n")

    def _setting(self, name: str, shown: str) -> None:
        value = self._values[name]
        self._say(f"{shown}: {value:f}\n" if isinstance(value, float) else f"{shown}: {_plain(value)}\n")

    def _say(self, *messages: str) -> None:
        for message in messages:
            self.message(message)

    def _before_train(self) -> None:
        pass

    def message(self, message: str) -> None:
        """Receive a message; prints it if `verbose`."""
        if self.verbose:
            print(message, end="")


class Trainer(BaseTrainer):
    """Trains models; messages become records.

    Parameters
    ----------
    algorithm, params, verbose : as of `BaseTrainer`

    Attributes
    ----------
    logparser : TrainLogParser or None
        The records of the last training: ``logparser.iterations``, ``logparser.last_iteration``.

    Examples
    --------
    >>> trainer = Trainer("ap", {"max_iterations": 5}, verbose=False)
    >>> trainer.append([{"w": "the"}, {"w": "cat"}], ["D", "N"])
    >>> trainer.train("")
    >>> len(trainer.logparser.iterations)
    5
    """

    logparser: TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        """Receive a message, and call the method ``on_...`` of the event that it ends if `verbose`."""
        assert self.logparser is not None
        event = self.logparser.feed(message)
        if not self.verbose or event is None:
            return
        log = self.logparser.last_log
        if event == "featgen_progress":
            self.on_featgen_progress(log, self.logparser.featgen_percent)
        elif event == "iteration":
            assert self.logparser.last_iteration is not None
            self.on_iteration(log, self.logparser.last_iteration)
        else:
            getattr(self, f"on_{event}")(log)

    def on_start(self, log: str) -> None:
        """Training began."""
        print(log, end="")

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """So much of the features was found."""
        print(log, end="")

    def on_featgen_end(self, log: str) -> None:
        """The features were found."""
        print(log, end="")

    def on_prepared(self, log: str) -> None:
        """The algorithm begins."""
        print(log, end="")

    def on_prepare_error(self, log: str) -> None:
        """The algorithm could not begin."""
        print(log, end="")

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """An iteration was made; its record is in info."""
        print(log, end="")

    def on_optimization_end(self, log: str) -> None:
        """The algorithm has ended."""
        print(log, end="")

    def on_end(self, log: str) -> None:
        """The model was stored."""
        print(log, end="")


class _Watch(Development):
    """Tells the messages of each iteration, and how good the model is on what was held out. Never stops training."""

    def __init__(self, trainer: BaseTrainer, crf: CRF, model: FlatModel, held: list[tuple[Dataset, list[str]]]) -> None:
        super().__init__()
        self.trainer, self.model, self.seen = trainer, model, model.weights
        self.probe = CRF()
        self.data = _joined([x for x, _ in held], trainer._vocabulary) if held else None
        number = {label: i for i, label in enumerate(model.labels)}
        self.labels = np.array([number.get(label, len(number)) for _, y in held for label in y], np.int64)

    def look(self, weights: Floats) -> tuple[float | None, bool]:
        """Remember the weights."""
        self.seen = weights
        return None, False

    def update(self, entry: dict[str, Any]) -> None:
        """Tell an iteration."""
        algorithm, say = self.trainer._algorithm, self.trainer._say
        say(f"***** {'Epoch' if algorithm == 'l2sgd' else 'Iteration'} #{entry['iteration']} *****\n")
        say(f"Loss: {entry['loss']:f}\n")
        norm = math.sqrt(float(self.seen @ self.seen))
        say(f"Feature {'L2-norm' if algorithm == 'l2sgd' else 'norm'}: {norm:f}\n")
        if algorithm == "lbfgs":
            say(
                f"Error norm: {entry['gradient_norm']:f}\n",
                f"Active features: {entry['active']}\n",
                f"Line search trials: {entry['trials']}\n",
                f"Line search step: {entry['step']:f}\n",
            )
        say(f"Seconds required for this iteration: {entry['seconds']:.3f}\n")
        if self.data is not None:
            say(*self._evaluation(self.data))
        say("\n")

    def _evaluation(self, data: Dataset) -> list[str]:
        n = self.model.n_labels
        self.probe.model_ = self.model.weighted(self.seen)
        guess = self.probe._best(self.probe._inputs(data))
        right = guess == self.labels
        match, model, ref = (np.bincount(x, minlength=n + 1)[:n] for x in (guess[right], guess, self.labels))
        lines = ["Performance by label (#match, #model, #ref) (precision, recall, F1):\n"]
        shares = np.zeros((n, 3))
        for y, label in enumerate(self.model.labels):
            counts = f"    {label}: ({match[y]}, {model[y]}, {ref[y]})"
            if not ref[y]:
                lines.append(f"{counts} (******, ******, ******)\n")
                continue
            precision, recall = match[y] / max(1, model[y]), match[y] / ref[y]
            shares[y] = precision, recall, 2 * precision * recall / max(1e-300, precision + recall)
            lines.append(f"{counts} ({shares[y, 0]:.4f}, {shares[y, 1]:.4f}, {shares[y, 2]:.4f})\n")
        macro = shares.mean(axis=0)
        whole = int(np.logical_and.reduceat(right, data.offsets[:-1][data.lengths > 0]).sum()) if len(right) else 0
        whole += int((data.lengths == 0).sum())
        lines.append(f"Macro-average precision, recall, F1: ({macro[0]:f}, {macro[1]:f}, {macro[2]:f})\n")
        for name, good, total in (("Item", int(right.sum()), len(right)), ("Instance", whole, len(data))):
            lines.append(f"{name} accuracy: {good} / {total} ({good / max(1, total):.4f})\n")
        return lines


def _learnt(problem: Any, crf: CRF, settings: Any, watch: _Watch) -> Any:
    """Run the algorithm with CRFsuite's steps, in no coordinates but its own, its stopping rules, and no warnings."""
    start = problem.model.weights
    if settings.algorithm == "lbfgs":  # ours takes epsilon relative to the loss at the start, in thousands
        loss = problem.objective.log_loss(start, np.empty_like(start), 1)
        settings.epsilon *= 1000.0 / max(loss, 1e-300)
    penalty, _ = crf._penalty(problem.model, settings, problem.objective)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return learn(problem.objective, start, settings, penalty, None, watch, watch)  # type: ignore[arg-type]


def _text(label: Any) -> str:
    if isinstance(label, bytes):
        return label.decode("utf-8")
    if not isinstance(label, str):
        raise TypeError(f"labels must be strings, got {label!r} of type {type(label).__name__}")
    return label


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _since(begun: float) -> str:
    return f"{time.process_time() - begun:.3f}"


def _nothing(labels: list[str]) -> FlatModel:
    """A model without features, as CRFsuite writes one if there are no sequences."""
    return FlatModel([Level("label", labels, 1, np.zeros((0, 1)), [], Vocabulary())], Vocabulary())


def _joined(parts: list[Dataset], vocabulary: Vocabulary) -> Dataset:
    """Sequences as one data set."""
    names = ("offsets", "token_offsets")
    lengths = [np.concatenate([np.diff(getattr(part, name)) for part in parts]) for name in names]
    offsets, tokens = (np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) for sizes in lengths)
    values = None
    if any(part.values is not None for part in parts):
        values = np.concatenate([np.ones(len(part.ids)) if part.values is None else part.values for part in parts])
    return Dataset._trusted(offsets, tokens, np.concatenate([part.ids for part in parts]), values, vocabulary)
