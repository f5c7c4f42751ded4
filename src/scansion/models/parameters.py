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

__all__ = ["Algorithm", "Parameters", "CheckedSettings", "Settings", "documented", "parameter", "seed", "strengths"]

Algorithm = Literal["lbfgs", "l2sgd", "asgd", "mm", "ap", "pa"]

Self = TypeVar("Self")
Class = TypeVar("Class", bound=type)

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
        '{"lbfgs", "l2sgd", "asgd", "mm", "ap", "pa"}',
        "L-BFGS (OWL-QN with c1 > 0), stochastic gradient, the same averaged, max-margin, averaged perceptron, "
        "passive-aggressive.",
    )
    c1: float | Sequence[float] | Floats | Mapping[str, float] = parameter(
        0.0,
        "float, or sequence of float",
        "Strength of the penalty ``c1 |w|_1``, which makes weights 0; a sequence gives one per order (the last "
        "goes on).",
    )
    c2: float | Sequence[float] | Floats | Mapping[str, float] = parameter(
        1.0,
        "float, or sequence of float",
        "Strength of the penalty ``c2 |w|^2``; a sequence gives one per order (the last goes on).",
    )
    max_iterations: int | None = parameter(
        None,
        "int or None",
        "Iterations, or passes over the data; None: until converged (at most 1000 passes of l2sgd, asgd, mm, 100 "
        "of ap and pa).",
    )
    num_memories: int = parameter(6, "int", "Steps that L-BFGS remembers to estimate the curvature.")
    epsilon: float = parameter(
        1e-5,
        "float",
        "lbfgs stops when the norm of the gradient is below so many times that of the weights (at least 1); ap and "
        "pa when the loss of a pass is below so much per sequence.",
    )
    period: int = parameter(10, "int", "Iterations (passes) over which `delta` is measured; 0: it is not.")
    delta: float = parameter(
        1e-5, "float", "lbfgs, l2sgd, asgd and mm stop when `period` iterations lower the loss by less, relative to it."
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

    def checked(self, c1: float | Floats, c2: float | Floats) -> CheckedSettings:
        """The same as the algorithms take it; ValueError says what is wrong with it. c1, c2: checked strengths."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(Settings)}
        given["n_jobs"] = checks.jobs(self.n_jobs)
        if self.max_iterations is not None:
            # 0 means no limit, as in CRFsuite
            given["max_iterations"] = checks.count("max_iterations", self.max_iterations, 0) or None
        from scansion.training.optimizers import LineSearch

        _one_of("algorithm", self.algorithm, get_args(Algorithm))
        _one_of("linesearch", self.linesearch, get_args(LineSearch))
        _one_of("pa_type", self.pa_type, (0, 1, 2))
        for name in ("num_memories", "max_linesearch", "calibration_samples", "calibration_candidates", "patience"):
            checks.count(name, getattr(self, name), 1)
        for name in ("period", "calibration_max_trials"):
            checks.count(name, getattr(self, name), 0)
        for name in ("epsilon", "delta"):
            _number(name, getattr(self, name), ">= 0", lambda x: x >= 0)
        for name in ("calibration_eta", "c"):
            _number(name, getattr(self, name), "> 0", lambda x: x > 0)
        _number("calibration_rate", self.calibration_rate, "> 1", lambda x: x > 1)
        low, high = np.min(c2), np.max(c2)
        if self.algorithm in ("l2sgd", "asgd", "mm"):
            if low <= 0.0:
                raise ValueError(f"algorithm={self.algorithm!r} needs c2 > 0, which sets its learning rate; got {low}")
            if low != high:
                raise ValueError(f"algorithm={self.algorithm!r} takes one c2 for all orders, got several; use 'lbfgs'")
        if self.algorithm != "lbfgs" and np.max(c1) > 0.0:
            raise ValueError(f"algorithm={self.algorithm!r} has no L1 penalty: set c1=0, or use 'lbfgs'")
        given.update(c1=c1, c2=c2, random_state=seed(self.random_state))
        return CheckedSettings(**given)


@dataclass(repr=False, eq=False)
class CheckedSettings(Settings):
    """The parameters as the algorithms take them; `max_iterations` is None where there is no limit."""

    _: KW_ONLY
    c1: float | Floats = 0.0  # one strength for all weights, or one for each
    c2: float | Floats = 1.0
    n_jobs: int = 1  # threads
    random_state: int = 0  # the seed


def strengths(name: str, value: Any) -> float | Floats:
    """c1 or c2: a number >= 0, or an array of one for each order."""
    values = value.tolist() if isinstance(value, np.ndarray) else value
    several = isinstance(values, Sequence) and not isinstance(values, str)
    given = list(values) if several else [values]
    if not given or not all(checks.is_number(v) and v >= 0 for v in given):
        raise ValueError(f"{name} must be a number >= 0, or one for each order, got {value!r}")
    return np.array(given, np.float64) if several else float(given[0])


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
    if isinstance(value, bool) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}")
