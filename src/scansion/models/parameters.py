"""Parameters of estimators: each is declared once, as a field of a dataclass with its type, default and explanation.

Groups of parameters are dataclasses that estimators inherit (`Settings`, those of the learning algorithms, by all of
them); `documented` writes the explanations into the docstring of a class, so that ``help``, completion, type checkers
and scikit-learn's inspection of signatures see all of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats

if TYPE_CHECKING:
    from scansion.training.optimizers import LineSearch

__all__ = [
    "GROUPS",
    "Algorithm",
    "CheckedSettings",
    "Parameters",
    "Settings",
    "Strength",
    "documented",
    "parameter",
    "seed",
    "strengths",
]

Algorithm = Literal["lbfgs", "auto", "l2sgd", "asgd", "mm", "ap", "pa", "arow"]
Strength = float | Floats | dict[str, Any]
GROUPS = ("transitions", "patterns", "lengths", "spans", "intercepts")  # of features, in c1 and c2

Self = TypeVar("Self")
Class = TypeVar("Class", bound=type)

# what None stands for, by algorithm ("": the others); CRFsuite's, where it has the algorithm
_DEFAULTS = {
    "epsilon": {"lbfgs": 1e-5, "": 0.0},
    "delta": {"l2sgd": 1e-6, "": 1e-5},
}

_PLACE = "{parameters}"
_WIDTH = 108


def parameter(default: Any, kind: str, explanation: str) -> Any:
    """A parameter with its default (`dataclasses.MISSING`: it must be given), kind of value and explanation."""
    return dataclasses.field(default=default, metadata={"kind": kind, "explanation": explanation})


def documented(cls: Class) -> Class:
    """Write the parameters of a class into its docstring, where that says ``{parameters}``."""
    lines: list[str] = []
    for field in _fields(cls):
        lines.append(f"{field.name} : {field.metadata['kind']}")
        lines.extend(f"    {line}" for line in _wrapped(field.metadata["explanation"]))
    assert cls.__doc__ is not None
    cls.__doc__ = cls.__doc__.replace(_PLACE, "\n    ".join(lines))
    return cls


def _fields(cls: Any) -> list[dataclasses.Field[Any]]:
    """The parameters of a class in the order of its signature: those by place, then those by keyword."""
    return sorted(
        (field for field in dataclasses.fields(cls) if "kind" in field.metadata), key=lambda f: bool(f.kw_only)
    )


def _wrapped(text: str) -> list[str]:
    """A paragraph in lines; `textwrap` would take longer than all else that loading a model needs."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= _WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


class Parameters:
    """Parameters by keyword, as scikit-learn's clone, Pipeline and GridSearchCV expect them."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [field.name for field in _fields(cls)]

    def _given(self, name: str) -> Any:
        """A parameter; None stands for its default, as in sklearn-crfsuite."""
        value = getattr(self, name)
        return type(self).__dataclass_fields__[name].default if value is None else value  # type: ignore[attr-defined]

    def _check_flags(self) -> None:
        """Raise where a parameter that is yes or no is neither."""
        for field in _fields(self):
            if field.metadata["kind"] == "bool":
                checks.flag(field.name, getattr(self, field.name))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters given to the constructor."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self: Self, **params: Any) -> Self:
        """Change parameters; returns the estimator."""
        assert isinstance(self, Parameters)
        valid = self._parameter_names()
        for name in params:
            if name not in valid:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(valid)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in _fields(type(self))}
        changed = (f"{name}={value!r}" for name, value in self.get_params().items() if not _same(value, defaults[name]))
        return f"{type(self).__name__}({', '.join(changed)})"


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except (ValueError, TypeError):
        return False


@dataclass(repr=False, eq=False)
class Settings(Parameters):
    """Parameters of the algorithms. Estimators inherit them; `checked` has them as the algorithms take them."""

    _: KW_ONLY
    algorithm: Algorithm = parameter(
        "lbfgs",
        '{"lbfgs", "auto", "l2sgd", "asgd", "mm", "ap", "pa", "arow"}',
        "L-BFGS (OWL-QN with c1 > 0), the same after averaged stochastic passes (sooner there where sequences are "
        "many), stochastic gradient, the same averaged, max-margin, averaged perceptron, passive-aggressive, adaptive "
        "regularisation of weights.",
    )
    c1: float | Sequence[float] | Floats | Mapping[str, float] | Literal["cv"] = parameter(
        0.0,
        'float, sequence of float, dict group -> float, or "cv"',
        "Strength of the L1 penalty ``c1 |w|_1``, which makes weights 0; sequences, groups and choice as in `c2`.",
    )
    c2: float | Sequence[float] | Floats | Mapping[str, float] | Literal["cv"] = parameter(
        1.0,
        'float, sequence of float, dict group -> float, or "cv"',
        'Strength of the L2 penalty ``c2 |w|^2``; "cv": chosen among 30 .. 0.003 by the likelihood of sequences that '
        "are left out (`cv`, `cv_results_`). A sequence gives one per order (the last goes on). Groups are "
        '"transitions", "patterns" (of three labels or more), "lengths", "spans", "intercepts", and prefixes of '
        'attributes, of which the longest wins; "" is all the rest, which has the default unless given. Intercepts '
        "have none unless they are named. Where lengths are named, neighbouring ranges are to have similar weights, "
        "``c2 (w_i - w_j)^2``, and small ones only by a tenth of that.",
    )
    intercept: bool | None = parameter(
        None,
        "bool, optional",
        "Whether every label has a weight at every token, of which there is no penalty. None: if there are columns "
        "that are standardised.",
    )
    standardize: bool | None = parameter(
        None,
        "bool, optional",
        "Whether the penalty is on weights of numbers less their mean, divided by their standard deviation, so that "
        "it does not depend on their units; the weights of the model are those of the numbers as they are. True: all "
        "attributes that have other values than 0 and 1; None: those of them that are columns of arrays.",
    )
    expectations: Mapping[Any, Any] | None = parameter(
        None,
        "dict label -> (target, margin), optional",
        "What is expected of labels beyond what y says: the share of tokens that have the label (or one of a tuple of "
        'labels), on all of X, is to be within the margin of the target; or a dict of "share", "count" (segments a '
        'sequence) and "length" (their mean) with such bands. Of `HierarchicalCRF`, a dict level -> such a dict. '
        "With lbfgs only.",
    )
    expectation_strength: float = parameter(
        1.0,
        "float",
        "Of each expectation, the penalty is so many times the tokens times the square of how far it is outside its "
        "band, as a share of the target (of the rest, where the target is a share above one half).",
    )
    cv: Any = parameter(
        3,
        "int, or array",
        'With "cv" as strength: number of folds, or the group of each sequence, of which one is left out at a time.',
    )
    init: Literal["counts"] | None = parameter(
        None,
        '"counts", optional',
        "Start from the weights of a generative model: naive Bayes emissions, transitions and durations, smoothed. The "
        "loss there is `start_loss_`.",
    )
    scores_of: Any = parameter(
        None,
        "sequence of labels, dict attribute -> label, optional",
        "Columns that are scores of labels, in this order: learning starts from the scores themselves, multiplied by "
        "what makes the training data most likely, and the penalty is on what differs from that: c2 times a quarter "
        "of the number of tokens, so that scores are mended rather than learnt by heart. Of "
        "`HierarchicalCRF`, a dict level -> one of these.",
    )
    max_iterations: int | None = parameter(
        None,
        "int or None",
        "Iterations, or passes over the data; None: until converged (at most 1000 passes of l2sgd, asgd, mm, 100 "
        "of ap, pa and arow).",
    )
    num_memories: int = parameter(6, "int", "Steps that L-BFGS remembers to estimate the curvature.")
    epsilon: float | None = parameter(
        None,
        "float, optional",
        "lbfgs stops when the norm of the gradient is below so many times that of the weights (at least 1), 1e-5 "
        "unless given; ap, pa and arow when the loss of a pass is below so much per sequence, 0 unless given: ap and "
        "pa make all passes, arow stops when there are no mistakes.",
    )
    period: int = parameter(10, "int", "Iterations (passes) over which `delta` is measured; 0: it is not.")
    delta: float | None = parameter(
        None,
        "float, optional",
        "lbfgs, l2sgd, asgd and mm stop when `period` iterations lower the loss by less, relative to it; 1e-5 unless "
        "given, 1e-6 for l2sgd.",
    )
    linesearch: LineSearch = parameter(
        "MoreThuente",
        '{"MoreThuente", "Backtracking", "StrongBacktracking"}',
        "How lbfgs chooses the length of a step: until the strong Wolfe conditions hold (More and Thuente's "
        "method), or by halving until the loss falls enough (Armijo's condition), or until the strong Wolfe "
        "conditions hold.",
    )
    max_linesearch: int = parameter(20, "int", "Most evaluations in a line search of lbfgs.")
    calibration_eta: float = parameter(
        0.1, "float", "First learning rate that l2sgd, asgd and mm try on a sample before training."
    )
    calibration_rate: float = parameter(2.0, "float", "Factor between the learning rates that are tried.")
    calibration_samples: int = parameter(1000, "int", "Sequences in the sample on which learning rates are tried.")
    calibration_candidates: int = parameter(
        10, "int", "Most learning rates that are tried; 1: `calibration_eta` is it."
    )
    calibration_max_trials: int = parameter(20, "int", "Most trials of learning rates.")
    pa_type: Literal[0, 1, 2] = parameter(
        1,
        "{0, 1, 2}",
        "Of passive-aggressive: 0 without slack variables, 1 with slack that costs its size, 2 with slack that "
        "costs its square.",
    )
    c: float = parameter(1.0, "float", "Of passive-aggressive: how much a step may change at most (pa_type 1 and 2).")
    error_sensitive: bool = parameter(
        True,
        "bool",
        "Of passive-aggressive: the margin is the square root of the number of wrong labels; False: it is 1.",
    )
    averaging: bool = parameter(True, "bool", "Of passive-aggressive: the weights are the mean of those along the way.")
    variance: float = parameter(1.0, "float", "Of arow: variance of each weight before training.")
    gamma: float = parameter(1.0, "float", "Of arow: how slowly variances fall, > 0.")
    n_jobs: int | None = parameter(1, "int", "Threads, -1 for all processors; results do not depend on it.")
    random_state: Any = parameter(
        None, "int, numpy Generator or RandomState, optional", "Seed of the stochastic algorithms and of `sample`."
    )
    verbose: bool = parameter(False, "bool", "Progress on standard error.")
    warm_start: bool = parameter(False, "bool", "Start from the weights of the last fit.")
    patience: int = parameter(
        10, "int", "With development data: iterations without a better score before training stops."
    )
    rules: Any = parameter(
        None,
        "Rule, text, or sequence of them, optional",
        "What must hold of a whole sequence: every answer keeps these rules, see `scansion.rules`. Stored in model "
        "files.",
    )
    train_with_rules: bool = parameter(
        False, "bool", "Learn under `rules`: the likelihood is that among what keeps them, and y must keep them."
    )

    def checked(self, c1: Strength, c2: Strength) -> CheckedSettings:
        """The same as the algorithms take it; ValueError says what is wrong with it. c1, c2: checked strengths."""
        given = {field.name: self._given(field.name) for field in dataclasses.fields(Settings)}
        given["n_jobs"] = checks.jobs(self.n_jobs)
        if self.max_iterations is not None:
            # 0 means no limit, as in CRFsuite
            given["max_iterations"] = checks.count("max_iterations", self.max_iterations, 0) or None
        from scansion.training.optimizers import LineSearch

        algorithm = given["algorithm"]
        _one_of("algorithm", algorithm, get_args(Algorithm))
        for name, value in _DEFAULTS.items():
            given[name] = value.get(algorithm, value[""]) if given[name] is None else given[name]
        _one_of("linesearch", given["linesearch"], get_args(LineSearch))
        _one_of("pa_type", given["pa_type"], (0, 1, 2))
        for name in ("num_memories", "max_linesearch", "calibration_samples", "calibration_candidates", "patience"):
            checks.count(name, given[name], 1)
        for name in ("period", "calibration_max_trials"):
            checks.count(name, given[name], 0)
        for name in ("epsilon", "delta"):
            _number(name, given[name], ">= 0", lambda x: x >= 0)
        for name in ("calibration_eta", "c", "variance", "gamma"):
            _number(name, given[name], "> 0", lambda x: x > 0)
        _number("calibration_rate", given["calibration_rate"], "> 1", lambda x: x > 1)
        for name in ("intercept", "standardize"):
            if not checks.among(given[name], (None, True, False)):
                raise ValueError(f"{name} must be True, False or None, got {given[name]!r}")
        _number("expectation_strength", given["expectation_strength"], "> 0", lambda x: x > 0)
        if self.expectations is not None and algorithm != "lbfgs":
            raise ValueError(f"algorithm={algorithm!r} knows no expectations: use 'lbfgs'")
        _one_of("init", self.init, (None, "counts"))
        high = max(_numbers(c2, 1.0))
        if algorithm in ("l2sgd", "asgd", "mm") and high <= 0.0:
            raise ValueError(f"algorithm={algorithm!r} needs c2 > 0, which sets its learning rate; got {high}")
        if algorithm not in ("lbfgs", "auto") and max(_numbers(c1, 0.0)) > 0.0:
            raise ValueError(f"algorithm={algorithm!r} has no L1 penalty: set c1=0, or use 'lbfgs'")
        given.update(c1=c1, c2=c2, random_state=seed(self.random_state))
        return CheckedSettings(**given)


@dataclass(repr=False, eq=False)
class CheckedSettings(Settings):
    """The parameters as the algorithms take them; `max_iterations` is None where there is no limit."""

    _: KW_ONLY
    c1: Strength = 0.0  # one strength for all weights, one for each order, or for each group
    c2: Strength = 1.0
    epsilon: float = 1e-5
    delta: float = 1e-5
    n_jobs: int = 1  # threads
    random_state: int = 0  # the seed


def strengths(name: str, value: Any) -> Strength:
    """c1 or c2: a number >= 0, an array of one for each order, or a dict of one for each group."""
    if isinstance(value, Mapping):
        for group, one in value.items():
            if not isinstance(group, str):
                raise ValueError(f"{name} must have names of groups or prefixes of attributes as keys, got {group!r}")
            if not isinstance(one, Mapping) and not (checks.is_number(one) and one >= 0):
                raise ValueError(f"{name} must be a number >= 0 for each group, got {one!r} for {group!r}")
        return {g: strengths(f"{name}[{g!r}]", v) if isinstance(v, Mapping) else float(v) for g, v in value.items()}
    values = value.tolist() if isinstance(value, np.ndarray) else value
    several = isinstance(values, Sequence) and not isinstance(values, str)
    given = list(values) if several else [values]
    if not given or not all(checks.is_number(v) and v >= 0 for v in given):
        raise ValueError(
            f"{name} must be a number >= 0, or one for each order, got {value!r} (or give a dict of groups)"
        )
    return np.array(given, np.float64) if several else float(given[0])


def _numbers(strength: Strength, default: float) -> list[float]:
    """All strengths that are given, of dicts at any depth; the default where these leave some open."""
    if isinstance(strength, dict):
        given = [number for one in strength.values() for number in _numbers(one, default)]
        return given if "" in strength else [*given, default]
    return [float(number) for number in np.atleast_1d(strength)]


def seed(random_state: Any) -> int:
    """A seed from scikit-learn's ways to give one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return 0 if random_state is None else checks.count("random_state", random_state, 0, 2**63 - 1)


def _number(name: str, value: Any, wanted: str, fits: Callable[[float], bool]) -> None:
    if not checks.is_number(value) or not fits(value):
        raise ValueError(f"{name} must be a number {wanted}, got {value!r}")


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if isinstance(value, bool) or not checks.among(value, choices):
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}")
