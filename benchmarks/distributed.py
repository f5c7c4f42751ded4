"""Seconds for one evaluation of loss and gradient: threads, local processes, Dask.

    python benchmarks/distributed.py FILE [--copies 1 4] [--parts 4]

FILE has CoNLL columns: word, part of speech, chunk. The data are taken several times over (the vocabulary, and with it
the vector that travels, stays as it is). Wall time, the best of five, after one evaluation that builds what is cached;
"elsewhere" is what is not computation: the time less that of one thread divided by the workers. Bytes are those of the
weights to each worker, and of a sum from each.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from typing import Any

import numpy as np

import scansion as sc
from scansion.data import Partitions
from scansion.training.shards import Processes


def read(path: str) -> tuple[list[Any], list[Any]]:
    """Words, their ends and parts of speech in a window."""
    X, y = [], []
    with open(path, encoding="utf-8") as file:
        for block in file.read().strip().split("\n\n"):
            rows = [line.split() for line in block.split("\n")]
            padded = [["<", "<"], *rows, [">", ">"]]
            X.append(
                [
                    [f"w{d}={padded[t + d][0]}" for d in range(3)]
                    + [f"p{d}={padded[t + d][1]}" for d in range(3)]
                    + [f"e={rows[t][0][-3:]}"]
                    for t in range(len(rows))
                ]
            )
            y.append([row[2] for row in rows])
    return X, y


def seconds(objective: Any, w: Any, threads: int = 1) -> float:
    """Of one evaluation."""
    gradient, times = np.empty_like(w), []
    for _ in range(6):
        begun = time.perf_counter()
        objective.log_loss(w, gradient, threads)
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--copies", type=int, nargs="+", default=[1])
    parser.add_argument("--parts", type=int, default=4)
    given = parser.parse_args()
    once = read(given.file)
    print("copies   tokens  weights  workers            s/evaluation  elsewhere  MB/evaluation")
    for copies in given.copies:
        X, y = once[0] * copies, once[1] * copies
        model, objective = sc.CRF().problem(X, y)
        w, alone = np.zeros(model.n_weights), seconds(objective, np.zeros(model.n_weights))

        def line(
            name: str, found: float, workers: int, copies: int = copies, X: Any = X, w: Any = w, **more: Any
        ) -> None:
            elsewhere = max(0.0, 1.0 - more["alone"] / workers / found)
            moved = 0.0 if "thread" in name else 2 * workers * w.nbytes / 1e6
            tokens = sum(map(len, X))
            print(
                f"{copies:6d} {tokens:8d} {len(w):8d}  {name:17s} {found:13.4f} {100 * elsewhere:9.0f}% {moved:14.1f}",
                flush=True,
            )

        line("1 thread", alone, 1, alone=alone)
        line("2 threads", seconds(objective, w, 2), 2, alone=alone)
        cuts = np.linspace(0, len(X), given.parts + 1).astype(int).tolist()
        parts = [X[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        for n in (1, 2):
            with Processes(n) as workers:
                found = sc.CRF().problem(Partitions(parts, workers), y)
                line(f"{n} process" + "es" * (n > 1), seconds(found.objective, w), n, alone=alone)
        for n in (1, 2):
            line(f"Dask, {n} worker" + "s" * (n > 1), on_dask(n, parts, y, w), n, alone=alone)


def on_dask(n: int, parts: list[Any], y: Any, w: Any) -> float:
    """Seconds of an evaluation by so many workers, each a process of one thread."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]  # Dask's scheduler has the name of this
    import dask
    import distributed

    import scansion.dask

    warnings.simplefilter("ignore")
    kind = {"n_workers": n, "threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(**kind) as cluster, distributed.Client(cluster) as client:
        workers = scansion.dask.DaskWorkers(client)
        delayed = [client.compute(dask.delayed(part, pure=False)) for part in parts]
        return seconds(sc.CRF().problem(Partitions(delayed, workers), y).objective, w)


if __name__ == "__main__":
    main()
