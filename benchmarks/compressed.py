"""Times compressed inference against Viterbi, and its growth with sequence length, labels and trajectory length.

    python benchmarks/compressed.py             # the case of the paper's size: 30 labels, 200 positions, 400 sequences
    python benchmarks/compressed.py --quick

Then one evaluation of loss and gradient where nothing but a trajectory is known of a sequence, by its places.

One thread. Every time is processor time, the best of several calls ("best", the search, of one). The lattices are
those of noisy sequences of ten places.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import scansion as sc
from scansion.lattice.compressed import best_all, predict_all


def lattices(sequences: int, length: int, labels: int, seed: int = 0, places: int = 10) -> sc.ChainBatch:
    """Scores of labels that lead by 2 where they are right, with noise of variance 1; changing costs 4."""
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(sequences * length, labels))
    for b in range(sequences):
        cuts = np.sort(rng.integers(1, length, size=places - 1))
        truth = rng.integers(0, labels, size=places)[np.searchsorted(cuts, np.arange(length), side="right")]
        unary[b * length + np.arange(length), truth] += 2.0
    transition = np.full((labels, labels), -4.0)
    np.fill_diagonal(transition, 0.0)
    return sc.ChainBatch(unary, np.arange(sequences + 1) * length, transition)


def clock(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best, answer = np.inf, None
    for _ in range(repeats):
        begin = time.process_time()
        answer = function()
        best = min(best, time.process_time() - begin)
    return best, answer


def all_lengths(batch: sc.ChainBatch, longest: int) -> None:
    for b in range(len(batch)):
        batch[b].compressed(longest).lengths  # noqa: B018


def row(sequences: int, length: int, labels: int, longest: int, repeats: int, budget: int) -> None:
    batch = lattices(sequences, length, labels)
    viterbi, _ = clock(batch.best_labels, repeats)
    lengths, _ = clock(lambda: all_lengths(batch, longest), repeats)
    paper, _ = clock(lambda: predict_all(batch, longest), repeats)
    search, found = clock(lambda: best_all(batch, 1, budget, longest), 1)
    proven = np.mean([one.proven for one in found])
    prefixes = np.mean([one.expanded for one in found])
    print(
        f"| {sequences} | {length} | {labels} | {longest} | {1e3 * viterbi:.1f} | {1e3 * lengths:.0f} "
        f"| {1e3 * paper:.0f} | {paper / viterbi:.0f} | {1e3 * search:.0f} | {prefixes:.0f} | {100 * proven:.0f} % |",
        flush=True,
    )


def learning(name: str, estimator: Any, length: int, places: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    x = [{f"a{k}": 1.0} for k in rng.integers(30, size=length)]
    labels = [f"L{k}" for k in np.cumsum(rng.integers(1, 20, size=places)) % 20]
    model, objective = estimator.problem([x], [sc.Trajectory(labels)])
    w = 0.1 * rng.normal(size=model.n_weights)
    log_z, gradient = np.empty(1), np.empty_like(w)
    known, _ = clock(lambda: objective.native.log_partitions(w, True, log_z, 1), repeats)
    both, _ = clock(lambda: objective.log_loss(w, gradient, 1), repeats)
    print(f"| {name} | {length} | {places} | {1e3 * known:.1f} | {1e3 * both:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sequences and repeats")
    parser.add_argument("--budget", type=int, default=2000, help="prefixes that the search may take up")
    given = parser.parse_args()
    n, repeats = (20, 1) if given.quick else (400, 3)
    some = max(10, n // 8)
    print(f"milliseconds; search with a budget of {given.budget} prefixes\n")
    print("| sequences | T | labels | up to | Viterbi | lengths | labelling | / Viterbi | search | prefixes | proven |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    row(n, 200, 30, 20, repeats, given.budget)
    for length in (100, 400, 800):
        row(some, length, 30, 20, repeats, given.budget)
    for labels in (8, 15, 60):
        row(some, 200, labels, 20, repeats, given.budget)
    for longest in (10, 40, 80):
        row(some, 200, 30, longest, repeats, given.budget)
    print("\n| model, 20 labels | T | places | log P(trajectory) | loss and gradient |")
    print("| --- | --- | --- | --- | --- |")
    models = {"chain": sc.CRF(), "chain of order 3": sc.CRF(order=3), "segments up to 10": sc.SemiCRF(max_length=10)}
    for name, estimator in models.items():
        for places in (100, 200) if given.quick else (100, 200, 400, 1000):
            learning(name, estimator, 2 * places, places, repeats)


if __name__ == "__main__":
    main()
