"""Times an iteration of L-BFGS of hierarchical CRFs, beside flat models of the same data: a section of `nested.py`.

    python benchmarks/nested_training.py [--quick] [--jobs N]

Data and models are those of the experiments `kitchen`, `salads` (split 1) and `noun_phrases`; data that is not on this
machine is left out. Seconds are those of a fit of ten more iterations, divided by the evaluations of the objective that
it takes more than a short fit: reading data, encoding it and building the model are not counted. Times are wall times
and, in brackets, processor times of all threads together.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import scansion as sc
from experiments import kitchen, noun_phrases, salads
from experiments.data import MissingDataError
from experiments.levels import nested_runs
from experiments.report import Options

Task = tuple[str, Callable[..., Any], Any, Any]  # name, estimator of parameters, X, y


def kitchen_tasks(quick: bool) -> Iterator[Task]:
    data = kitchen.simulate(0, 4 if quick else kitchen.PER_ACTIVITY)
    longest = max(map(len, data.X))
    for name, durations in (("time steps below", False), ("durations below", True)):
        yield (
            f"kitchen, {name}, activities with durations",
            lambda d=durations, **p: kitchen.Hierarchical(longest, d, **p).model,
            data.X,
            list(data.y) if not durations else [nested_runs(columns) for columns in data.y],
        )
    yield "kitchen, flat CRF", lambda **p: kitchen.Flat(**p).model, data.X, [columns[1] for columns in data.y]


def salads_tasks(quick: bool) -> Iterator[Task]:
    videos = [video for k in salads.SPLITS[1:] for video in salads.read_split(k)][: 10 if quick else None]
    X, y = [salads.inputs(video.scores) for video in videos], [salads.outputs(video) for video in videos]
    flags = {"all_possible_states": True}
    nested = [nested_runs(columns) for columns in y]
    yield (
        "50 Salads, free phases, actions with durations",
        lambda **p: salads.Hierarchical(**flags, **p).model,
        X,
        nested,
    )
    yield "50 Salads, SemiCRF of actions", lambda **p: salads.semi_crf(1, **p).model, X, [actions for _, actions in y]


def chunking_tasks(quick: bool) -> Iterator[Task]:
    train = noun_phrases.read("train")[: 500 if quick else None]
    task = noun_phrases.Task(train, [], Options())
    X, tagged = task.inputs[False][0], task.inputs[True][0]
    nested = [{"chunk": s.phrases(), "pos": s.groups} for s in train]
    plain = {**noun_phrases.HSCRF, "attribute_parts": {"chunk": ("inside", "start"), "pos": "inside"}}
    levels = noun_phrases.LEVELS
    yield (
        "CoNLL-2000, attributes in all cliques",
        lambda **p: sc.HierarchicalCRF(levels, **noun_phrases.HSCRF, **p),
        X,
        nested,
    )
    yield "CoNLL-2000, attributes in persistence only", lambda **p: sc.HierarchicalCRF(levels, **plain, **p), X, nested
    yield "CoNLL-2000, CRF", lambda **p: sc.CRF(**p), tagged, [s.chunks for s in train]


def per_evaluation(make: Callable[..., Any], X: Any, y: Any, jobs: int) -> tuple[float, float, Any]:
    """Wall and processor seconds of an evaluation of objective and gradient, and the model."""
    found = []
    for iterations in (2, 2, 12):  # once to warm up
        wall, cpu = time.perf_counter(), time.process_time()
        model = make(c2=1.0, n_jobs=jobs, max_iterations=iterations).fit(X, y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        log = model.training_log_
        found.append((log[-1].get("evaluations") or len(log), wall, cpu))
    _, (few, wall, cpu), (many, more_wall, more_cpu) = found
    return (more_wall - wall) / (many - few), (more_cpu - cpu) / (many - few), model


def training(quick: bool, jobs: int | None = None) -> None:
    """Seconds per evaluation of the objective in training, on one thread and on all."""
    jobs = jobs or os.cpu_count() or 1
    threads = (1,) if jobs == 1 else (1, jobs)
    print("\n### Training: seconds per evaluation of objective and gradient, wall (processor)\n")
    print("| model | sequences | time steps | weights | " + " | ".join(f"{n} thread(s)" for n in threads) + " |")
    print("|---|---|---|---|" + "---|" * len(threads))
    for tasks in (kitchen_tasks, salads_tasks, chunking_tasks):
        try:
            for name, make, X, y in tasks(quick):
                times = []
                for n in threads:
                    wall, cpu, model = per_evaluation(make, X, y, n)
                    times.append(f"{wall:.3f} ({cpu:.3f}) s")
                steps = sum(map(len, X))
                print(
                    f"| {name} | {len(X):,} | {steps:,} | {len(model.model_.weights):,} | {' | '.join(times)} |",
                    flush=True,
                )
        except MissingDataError as missing:
            print(f"| {tasks.__name__}: skipped, {missing} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part of the data")
    parser.add_argument("--jobs", type=int, help="threads of the last column, all by default")
    given = parser.parse_args()
    training(given.quick, given.jobs)
