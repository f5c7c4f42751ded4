"""Few labels and long durations: nanoseconds per position, length and label; bounds by label; an evaluation of SemiCRF.

    python benchmarks/durations.py                       this version
    python benchmarks/durations.py --beside PYTHON       and another, in turns (the interpreter that has it)

Processor time, one thread, the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import scansion as sc


def clock(function: Callable[[], Any], runs: int) -> float:
    """Seconds of processor time, the best of several runs."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def lattices(runs: int) -> dict[str, float]:
    """Nanoseconds per cell of a lattice of additive scores: log Z, marginals, gradient, best."""
    found = {}
    for labels, longest, length in ((3, 500, 2000), (10, 200, 2000), (30, 100, 2000), (3, 120, 3000), (3, 20, 10000)):
        rng = np.random.default_rng(0)
        patterns = [(y,) for y in range(labels)] + [(i, j) for i in range(labels) for j in range(labels)]
        inside, by_length = np.zeros((length, len(patterns))), np.zeros((longest, len(patterns)))
        inside[:, :labels] = rng.normal(size=(length, labels))
        by_length[:, :labels] = rng.normal(size=(longest, labels))
        start = rng.normal(size=len(patterns))
        lattice = sc.SegmentLattice.from_parts(patterns, labels, longest, start=start, inside=inside, length=by_length)
        core, cell = lattice._batch._core, 1e9 / (length * longest * labels)
        name = f"{labels} labels, longest {longest}"
        found[f"{name}: log Z"] = cell * clock(lattice.log_partition, runs)
        found[f"{name}: marginals"] = cell * clock(lambda core=core: core.posteriors(1), runs)
        found[f"{name}: gradient"] = cell * clock(lambda core=core: core.posteriors(1, gradient=True), runs)
        found[f"{name}: best"] = cell * clock(lattice.viterbi, max(1, runs // 2))
    return found


def long(runs: int) -> dict[str, float]:
    """Milliseconds for one sequence of 100,000 positions, 3 labels, longest segment 1,000."""
    rng = np.random.default_rng(0)
    length, labels, longest = 100_000, 3, 1_000
    patterns = [(y,) for y in range(labels)] + [(i, j) for i in range(labels) for j in range(labels)]
    start, inside = np.zeros((2, length, len(patterns)))
    by_length = np.zeros((longest, len(patterns)))
    start[:, labels:] = rng.normal(size=(length, labels**2))
    inside[:, :labels] = rng.normal(size=(length, labels))
    by_length[:, :labels] = rng.normal(size=(longest, labels))
    found = {}
    for name, least in (("short", 0), ("long", 500)):
        by_length[:least, :labels] = -50.0
        lattice = sc.SegmentLattice.from_parts(patterns, labels, longest, start=start, inside=inside, length=by_length)
        core = lattice._batch._core
        found[f"100,000 positions, {name} segments: log Z"] = 1e3 * clock(
            lambda core=core: core.log_partitions(1), runs
        )
        found[f"100,000 positions, {name} segments: gradient"] = 1e3 * clock(
            lambda core=core: core.posteriors(1, gradient=True), runs
        )
        found[f"100,000 positions, {name} segments: best"] = 1e3 * clock(lattice.viterbi, 1)
    return found


def evaluations(runs: int) -> dict[str, float]:
    """Milliseconds of one loss and gradient: 24 labels, 24,000 tokens; all labels up to the longest, or few of them."""
    found = {}
    for longest, few in ((50, False), (200, False), (900, False), (900, True)):
        rng = np.random.default_rng(0)
        X, y = [], []
        for _ in range(24_000 // 1_200):
            row, at = [], 0
            while at < 1_200:
                label = int(rng.integers(24))
                most = longest if label % 6 == 0 or not few else max(1, longest // 25)
                stop = min(1_200, at + int(rng.integers(1, most + 1)))
                row.append((at, stop, f"y{label}"))
                at = stop
            X.append([[f"w{rng.integers(200)}"] for _ in range(at)])
            y.append(row)
        settings = {"max_length": "by label", "slack": 0} if few else {"max_length": longest}
        if "slack" not in sc.SemiCRF().get_params():
            settings.pop("slack", None)
        plain = {"length_features": "bins", "repeats": True, "all_possible_transitions": True}
        semi = sc.SemiCRF(**settings, **plain, c2=1.0, max_iterations=1)
        model, objective = (semi.problem if hasattr(semi, "problem") else semi._problem)(X, y, None)[:2]
        weights, gradient = 0.1 * rng.normal(size=model.n_weights), np.zeros(model.n_weights)
        native = getattr(objective, "native", objective)
        name = f"SemiCRF, longest {longest}" + (", bounds by label sum to a fifth" if few else "")
        found[f"{name}: evaluation"] = 1e3 * clock(
            lambda n=native, w=weights, g=gradient: n.log_loss(w, g, 1), max(1, runs // 2)
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", help="interpreter that has another version of scansion")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--only", choices=["lattices", "long", "evaluations"])
    parser.add_argument("--json", action="store_true", help="figures alone, as JSON")
    given = parser.parse_args()
    parts = {"lattices": lattices, "long": long, "evaluations": evaluations}
    chosen = [given.only] if given.only else list(parts)
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for name in chosen:
        if given.beside:
            command = [given.beside, __file__, "--json", "--runs", str(given.runs), "--only", name]
            theirs |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        ours |= parts[name](given.runs)
    if given.json:
        json.dump(ours, sys.stdout)
        return
    for name, value in ours.items():
        unit = "ms" if name.endswith("evaluation") or name.startswith("100,000") else "ns"
        other = f"{theirs[name]:10.2f} {unit} {theirs[name] / value:7.1f} times" if name in theirs else ""
        print(f"{name:64s} {value:10.2f} {unit}   {other}")


if __name__ == "__main__":
    main()
