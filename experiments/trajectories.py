"""Ways to say what a sequence goes through, by the two scores of paper 004: what its three experiments share."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.figures import curves
from experiments.report import Figure, Options, Table, spread
from scansion import CRF, SemiCRF
from scansion.lattice.compressed import best_all
from scansion.metrics import compress, edit_distance_score, exact_match_score

METHODS = ("joint", "marginal", "SemiCRF", "compressed", "places", "best")
SCORES = {"exact": "Exact score", "eds": "Edit-distance score"}
SEEDS = 5
C2 = 0.1
EXPLAINED = (
    "joint: the best labelling, compressed. marginal: the best label at each position, compressed. SemiCRF: labels of "
    "the best segmentation, of a semi-Markov CRF trained on the same sequences, with segments as long as there. "
    "compressed: the paper's labelling, which need not be possible. places: the best possible trajectory under the "
    "paper's marginals. best: the most probable trajectory, by search. All but SemiCRF ask one CRF. Both are trained "
    f"until they converge (1e-5, c2 = {C2})."
)

Trajectories = list[list[Any]]


@dataclass(frozen=True)
class Data:
    """Observations and labels for training, observations and true trajectories for test."""

    train_x: Sequence[Any]
    train_y: Sequence[Sequence[Any]]
    test_x: Sequence[Any]
    truth: Sequence[Sequence[Any]]


@dataclass
class Answers:
    """The trajectories that each method gives, their scores, seconds, and how training went."""

    truth: Sequence[Sequence[Any]]
    found: dict[str, Trajectories]
    seconds: dict[str, float]
    proven: float
    iterations: dict[str, int]
    longest: int

    def score(self, method: str, chosen: Sequence[int] | None = None) -> dict[str, float]:
        """Both scores in percent, of some of the sequences."""
        numbers = range(len(self.truth)) if chosen is None else chosen
        truth, found = [self.truth[i] for i in numbers], [self.found[method][i] for i in numbers]
        return {
            "exact": round(float(exact_match_score(truth, found)), 2),
            "eds": round(float(edit_distance_score(truth, found)), 2),
        }

    def results(self) -> dict[str, Any]:
        scored = {name: {**self.score(name), "seconds": round(self.seconds[name], 2)} for name in METHODS}
        return {**scored, "proven": self.proven, "iterations": self.iterations, "longest segment": self.longest}


def ask(options: Options, data: Data, budget: int = 20_000, **semi: Any) -> Answers:
    """Train both models and ask all methods; semi: parameters of the SemiCRF."""
    limit = 10 if options.quick else None
    shared = {"c2": C2, "max_iterations": limit, "n_jobs": options.jobs}
    crf = CRF(all_possible_transitions=True, **shared).fit(data.train_x, data.train_y)
    labels = np.array(crf.classes_, dtype=object)
    batch = crf.lattices(data.test_x)
    semi_crf = SemiCRF(**{**shared, **semi})
    proven: list[bool] = []

    def segments() -> Trajectories:
        semi_crf.fit(data.train_x, data.train_y)
        return [compress(s.label for s in config) for config in semi_crf.predict(data.test_x)]

    def best() -> Trajectories:
        found = best_all(batch, 1, budget)
        proven.extend(one.proven for one in found)
        return [labels[list(one.trajectories[0])].tolist() for one in found]

    questions: dict[str, Callable[[], Trajectories]] = {
        "joint": lambda: [compress(y) for y in crf.predict(data.test_x)],
        "marginal": lambda: [compress(y) for y in crf.predict(data.test_x, decode="marginal")],
        "SemiCRF": segments,
        "compressed": lambda: crf.predict_compressed(data.test_x, "paper"),
        "places": lambda: crf.predict_compressed(data.test_x),
        "best": best,
    }
    found, seconds = {}, {}
    for name, question in questions.items():
        begin = time.perf_counter()
        found[name] = question()
        seconds[name] = time.perf_counter() - begin
    answers = Answers(
        data.truth,
        found,
        seconds,
        100 * statistics.fmean(proven),
        {"CRF": crf.n_iter_, "SemiCRF": semi_crf.n_iter_},
        int(semi_crf.model_.max_length),
    )
    options.say("    " + ", ".join(f"{name} {answers.score(name)['exact']:.1f}" for name in METHODS))
    return answers


# ---- reports: results are condition -> one dict of results for each simulation -------------------------------------

Results = Mapping[Any, Sequence[Mapping[str, Any]]]


def values(runs: Sequence[Mapping[str, Any]], method: str, score: str) -> list[float]:
    return [float(run[method][score]) for run in runs]


def tables(results: Results, first: str) -> list[Table]:
    """Both scores by condition, and by how much the paper's labelling is ahead, simulation by simulation."""
    n = len(next(iter(results.values())))
    out = []
    for score, title in SCORES.items():
        table = Table(f"{title}, percent, mean ± standard deviation of {n} runs:", [first, *METHODS])
        for condition, runs in results.items():
            table.rows.append([condition, *(spread(values(runs, name, score)) for name in METHODS)])
        out.append(table)
    others = ("joint", "marginal", "SemiCRF")
    header = [first, *(f"{title.split()[0]}: {name}" for title in SCORES.values() for name in others)]
    table = Table(
        "By how much compressed is ahead, run by run, mean ± standard deviation (runs in which it is):", header
    )
    for condition, runs in results.items():
        cells = []
        for score in SCORES:
            for name in others:
                pairs = zip(values(runs, "compressed", score), values(runs, name, score), strict=True)
                gains = [a - b for a, b in pairs]
                cells.append(f"{spread(gains)} ({sum(gain > 0 for gain in gains)} of {len(gains)})")
        table.rows.append([condition, *cells])
    out.append(table)
    return out


def figure(results: Results, x: str, caption: str) -> Figure:
    """Both scores by condition."""

    def draw() -> Any:
        panels = {
            f"{title}, %": {name: {at: values(runs, name, score) for at, runs in results.items()} for name in METHODS}
            for score, title in SCORES.items()
        }
        return curves(panels, x, "")

    return Figure("scores", caption, draw)
