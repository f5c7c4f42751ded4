"""How far default settings are from the truth: data drawn from known models, fitted and compared with what made them.

Each case draws training and test sequences from a generative model. The truth is that model's own conditional
distribution, a lattice on its log probabilities: no estimator can have a higher expected log likelihood. A fit at the
default settings is told nothing but X and y.

- words: a chain of 5 labels, three words of 40 each a token.
- columns: a chain of 4 labels, six Gaussian columns of very different units, far from zero.
- durations: labels in, helix, out; a helix (17 to 25 tokens) between any two of the others (gamma durations); a letter
  of 20 each a token. What membrane proteins look like.
- long: two labels in turn, 60 to 300 tokens a segment, two noisy Gaussian columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import scansion as sc
from experiments.report import Options, Report, Table, percent
from scansion.metrics import flat_accuracy_score

TITLE = "Learning at default settings, beside the truth that made the data"


@dataclass
class Case:
    """Training and test data, the estimator, and the true lattice of a sequence; y are labels or segments."""

    name: str
    estimator: Any
    X: list[Any]
    y: list[Any]
    X_test: list[Any]
    y_test: list[Any]
    truth: Callable[[Any], Any]
    segments: bool = False
    labels: list[str] = field(default_factory=list)

    def log_likelihood(self) -> float:
        """Of the test data under the truth."""
        number = {name: i for i, name in enumerate(self.labels)}
        total = 0.0
        for x, y in zip(self.X_test, self.y_test, strict=True):
            config = [(u, v, number[k]) for u, v, k in y] if self.segments else np.array([number[k] for k in y])
            total += self.truth(x).log_probability(config)
        return total

    def decoded(self) -> list[Any]:
        """Best answers of the truth for the test data."""
        result = []
        for x in self.X_test:
            best = self.truth(x).viterbi()[0]
            if self.segments:
                result.append([(u, v, self.labels[k]) for u, v, k in best])
            else:
                result.append([self.labels[k] for k in best])
        return result

    def quality(self, answers: list[Any]) -> float:
        """Share of right tokens, or F1 of segments."""
        if not self.segments:
            return float(flat_accuracy_score(self.y_test, answers))
        found = right = wanted = 0
        for mine, theirs in zip(answers, self.y_test, strict=True):
            a, b = {tuple(s) for s in mine}, {tuple(s) for s in theirs}
            found, wanted, right = found + len(a), wanted + len(b), right + len(a & b)
        return 2.0 * right / (found + wanted)


def chain(n: int, length: int, transition: Any, rng: np.random.Generator) -> list[list[int]]:
    """Label numbers of n sequences of a Markov chain that starts anywhere."""
    rows = []
    for _ in range(n):
        row = [int(rng.integers(len(transition)))]
        while len(row) < length:
            row.append(int(rng.choice(len(transition), p=transition[row[-1]])))
        rows.append(row)
    return rows


def words(n: int = 300, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    size, vocabulary, places = 5, 40, 3
    transition = rng.dirichlet(np.full(size, 0.5), size)
    emission = rng.dirichlet(np.full(vocabulary, 0.3), (places, size))
    labels = [f"L{i}" for i in range(size)]

    def sample() -> tuple[Any, Any]:
        y = chain(n, 15, transition, rng)
        X = [[[f"{k}={rng.choice(vocabulary, p=emission[k, s])}" for k in range(places)] for s in row] for row in y]
        return X, [[labels[s] for s in row] for row in y]

    def truth(x: Any) -> Any:
        with np.errstate(divide="ignore"):
            unary = np.array([sum(np.log(emission[int(w[0]), :, int(w[2:])]) for w in token) for token in x])
            return sc.ChainLattice(np.maximum(unary, -700), np.maximum(np.log(transition), -700))

    return Case("words", sc.CRF(), *sample(), *sample(), truth, labels=labels)


def columns(n: int = 200, seed: int = 1) -> Case:
    rng = np.random.default_rng(seed)
    size, width = 4, 6
    transition = 0.7 * np.eye(size) + 0.3 * rng.dirichlet(np.ones(size), size)
    means = rng.normal(size=(size, width))
    unit, origin = 10.0 ** rng.uniform(-3, 3, width), rng.normal(size=width) * 20
    labels = [f"L{i}" for i in range(size)]

    def sample() -> tuple[Any, Any]:
        y = chain(n, 20, transition, rng)
        X = [(means[row] + 1.5 * rng.normal(size=(len(row), width)) + origin) * unit for row in y]
        return X, [[labels[s] for s in row] for row in y]

    def truth(x: Any) -> Any:
        unary = -0.5 * (((x / unit - origin)[:, None] - means) ** 2).sum(-1) / 1.5**2
        return sc.ChainLattice(unary, np.log(transition))

    return Case("columns", sc.CRF(), *sample(), *sample(), truth, labels=labels)


def segmental(
    labels: list[str], durations: Any, transition: Any, emit: Any, score: Any, length: int, n: int, rng: Any
) -> tuple[Any, Any, Any]:
    """Sample function, true lattice: durations (L, M) and transition (L, L) are probabilities.

    The last segment is cut at the end of the sequence, as the truth knows.
    """
    size, longest = durations.shape
    patterns = [(i,) for i in range(size)] + [(i, j) for i in range(size) for j in range(size)]

    def one() -> tuple[Any, Any]:
        t, at, segments = 0, int(rng.integers(size)), []
        while t < length:
            d = 1 + int(rng.choice(longest, p=durations[at]))
            stop = min(length, t + d)
            segments.append((t, stop, labels[at]))
            t, at = stop, int(rng.choice(size, p=transition[at]))
        row = [labels.index(k) for u, v, k in segments for _ in range(v - u)]
        return emit(row), segments

    def sample() -> tuple[Any, Any]:
        X, y = zip(*(one() for _ in range(n)), strict=True)
        return list(X), list(y)

    def truth(x: Any) -> Any:
        unary = score(x)
        total = np.concatenate([np.zeros((1, size)), np.cumsum(unary, axis=0)])
        T = len(unary)
        with np.errstate(divide="ignore"):
            log_d = np.log(durations)
            survival = np.log(np.cumsum(durations[:, ::-1], axis=1)[:, ::-1])  # P(at least so long)
            log_a = np.log(transition)
        scores = np.full((T, longest, len(patterns)), 0.0)
        for d in range(1, longest + 1):
            for t in range(T - d + 1):
                last = t + d == T
                scores[t, d - 1, :size] = total[t + d] - total[t] + (survival if last else log_d)[:, d - 1]
        scores[:, :, size:] = log_a.ravel()
        return sc.SegmentLattice(scores, patterns, size)

    return sample, truth, rng


def durations(n: int = 80, seed: int = 2) -> Case:
    rng = np.random.default_rng(seed)
    labels, longest = ["in", "helix", "out"], 40
    length = np.arange(1, longest + 1)
    gamma = np.exp(2.0 * np.log(length) - length / 4.0)
    helix = ((length >= 17) & (length <= 25)) * (1.0 + (length == 21))
    table = np.array([gamma / gamma.sum(), helix / helix.sum(), gamma / gamma.sum()])
    transition = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    emission = np.exp(3.0 * rng.normal(size=(3, 20)))
    emission /= emission.sum(axis=1, keepdims=True)

    def emit(row: list[int]) -> Any:
        return [[f"r={rng.choice(20, p=emission[s])}"] for s in row]

    def score(x: Any) -> Any:
        return np.log(emission[:, [int(token[0][2:]) for token in x]]).T

    sample, truth, _ = segmental(labels, table, transition, emit, score, 150, n, rng)
    return Case("durations", sc.SemiCRF(max_length=40), *sample(), *sample(), truth, True, labels)


def long(n: int = 20, seed: int = 3) -> Case:
    rng = np.random.default_rng(seed)
    labels, longest = ["rest", "move"], 300
    length = np.arange(1, longest + 1)
    even = (length >= 60) * 1.0
    table = np.array([even / even.sum(), even * length / (even * length).sum()])
    transition = np.array([[0.0, 1.0], [1.0, 0.0]])
    means = np.array([[0.0, 0.0], [0.25, -0.25]])

    def emit(row: list[int]) -> Any:
        return means[row] + rng.normal(size=(len(row), 2))

    def score(x: Any) -> Any:
        return -0.5 * ((x[:, None] - means) ** 2).sum(-1)

    sample, truth, _ = segmental(labels, table, transition, emit, score, 900, n, rng)
    return Case("long", sc.SemiCRF(max_length=300), *sample(), *sample(), truth, True, labels)


CASES = (words, columns, durations, long)


def run(options: Options) -> Report:
    """The table of all cases."""
    report = Report("learning", TITLE)
    header = ("data", "iterations", "processor time, s", "training loss", "test log likelihood", "of the truth")
    table = Table("Default settings", (*header, "quality", "of the truth"))
    for make in CASES:
        case = make(10) if options.quick else make()
        begun = time.process_time()
        fitted = case.estimator.set_params(n_jobs=options.jobs).fit(case.X, case.y)
        took = time.process_time() - begun
        found, true = fitted.log_likelihood(case.X_test, case.y_test), case.log_likelihood()
        mine, theirs = case.quality(fitted.predict(case.X_test)), case.quality(case.decoded())
        options.say(f"  {case.name}: {fitted.n_iter_} iterations, {fitted.message_}")
        table.rows.append(
            (case.name, fitted.n_iter_, f"{took:.1f}", f"{fitted.loss_:.1f}", f"{found:.1f}", f"{true:.1f}")
            + (percent(mine), percent(theirs))
        )
        report.results[case.name] = {
            "iterations": fitted.n_iter_,
            "seconds": took,
            "log_likelihood": [found, true],
            "quality": [mine, theirs],
        }
    report.tables.append(table)
    return report
