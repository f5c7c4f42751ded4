"""Training and tagging beside python-crfsuite: chunking, CoNLL-2000, the same 452,755 features in both.

    python benchmarks/training.py [--repeat N] [--only TASK ...] [--json FILE] [--quick]

Every measurement runs in a process of its own, one after another, libraries in turn, and the best of several counts.
Both libraries get the same Python objects. Tasks:

    iteration   one iteration of L-BFGS (c2 = 1), on one thread and on two; python-crfsuite has one
    model       raw attribute dicts to a trained model with F1 >= 93.5 on the test part: the fastest of the algorithms
                and numbers of passes in `GRID` that gets there. Both libraries try the same grid, and everything
                tried is listed: F1 moves by a tenth from one number of passes to the next, so the winner is
                partly luck, for both
    tagging     labels of the test part, from attribute dicts
    marginals   the probability of every label at every token of the test part, from attribute dicts
    memory      peak memory of ten iterations of L-BFGS, sentences being handed over one by one

Ratios are times (or memory) of python-crfsuite divided by those of scansion.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments import chunking
from experiments.data import MissingDataError, find
from experiments.report import machine

PEER, OURS = "python-crfsuite", "scansion"
GOAL = 93.5
TARGETS = {
    "iteration, 1 thread": 2.5,
    "iteration, 2 threads": 4.5,
    "model": 6.0,
    "tagging": 2.0,
    "marginals": 2.0,
    "memory": 1.0,
}
# Algorithm -> numbers of passes; c2 = 1 for lbfgs, l2sgd and asgd. ONLY: those that one library has and the other not.
GRID = {"lbfgs": (60, 80), "l2sgd": (5, 10, 15, 20), "ap": (5, 10, 15, 20), "pa": (5, 10, 15, 20)}
ONLY = {PEER: {"arow": (5, 10)}, OURS: {"mm": (5, 10), "asgd": (5, 10)}}


# ---- one measurement, in a process of its own --------------------------------------------------------


class Clock:
    """Wall and CPU time of a block."""

    def __enter__(self) -> Clock:
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: Any) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def measure_iteration(library: str, threads: int, iterations: int) -> dict[str, Any]:
    X, y = chunking.read("train")
    if library == PEER:
        import pycrfsuite

        class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
            def message(self, message: Any) -> None:
                super().message(message)
                if len(self.logparser.iterations) > len(stamps):
                    stamps.append((time.perf_counter(), time.process_time()))

        stamps: list[tuple[float, float]] = []
        trainer = Trainer(algorithm="lbfgs", params={"c2": 1.0, "max_iterations": iterations}, verbose=False)
        for tokens, labels in zip(X, y, strict=True):
            trainer.append(tokens, labels)
        with tempfile.TemporaryDirectory() as directory:
            trainer.train(str(Path(directory) / "model"))
        (wall, cpu), (last_wall, last_cpu) = stamps[0], stamps[-1]
        steps = len(stamps) - 1
        return {"wall": (last_wall - wall) / steps, "cpu": (last_cpu - cpu) / steps}
    import scansion
    from scansion.data import encode

    data = encode(X)
    times = []
    for limit in (1, iterations):
        with Clock() as clock:
            model = scansion.CRF(c2=1.0, max_iterations=limit, n_jobs=threads).fit(data, y)
        times.append(clock)
    log = model.training_log_
    steps = len(log) - 1
    return {
        "wall": sum(entry["seconds"] for entry in log[1:]) / steps,
        "cpu": (times[1].cpu - times[0].cpu) / steps,
    }


def measure_model(library: str, threads: int, algorithm: str, passes: int, model_path: str) -> dict[str, Any]:
    from scansion.metrics import segment_scores

    X, y = chunking.read("train")
    X_test, truth = chunking.read("test")
    parameters: dict[str, Any] = {"algorithm": algorithm, "max_iterations": passes}
    if algorithm in ("lbfgs", "l2sgd", "asgd"):
        parameters["c2"] = 1.0
    with Clock() as clock:
        if library == PEER:
            tagger, _ = chunking.train_peer(X, y, Path(model_path), **parameters)
        else:
            model, _ = chunking.train(X, y, n_jobs=threads, **parameters)
    if library == PEER:
        answers = [tagger.tag(tokens) for tokens in X_test]
    else:
        answers = model.predict(X_test)
        model.save(model_path)
    f1 = 100 * segment_scores(truth, answers, scheme="conlleval").micro.f1
    return {"wall": clock.wall, "cpu": clock.cpu, "f1": round(f1, 2), "recipe": f"{algorithm}, {passes} passes"}


def measure_answers(library: str, threads: int, model_path: str, marginals: bool, repeat: int) -> dict[str, Any]:
    X, _ = chunking.read("test")
    best: dict[str, float] = {}
    if library == PEER:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(model_path)
        labels = tagger.labels()
    else:
        import scansion

        model = scansion.load(model_path).set_params(n_jobs=threads)
    for _ in range(repeat):
        with Clock() as clock:
            if library == OURS:
                model.predict_marginals(X) if marginals else model.predict(X)
            elif marginals:
                for tokens in X:
                    tagger.set(tokens)
                    [{label: tagger.marginal(label, t) for label in labels} for t in range(len(tokens))]
            else:
                [tagger.tag(tokens) for tokens in X]
        best = {name: min(getattr(clock, name), best.get(name, float("inf"))) for name in ("wall", "cpu")}
    tokens = sum(map(len, X))
    return {**best, "tokens_per_second": round(tokens / best["wall"])}


def measure_memory(library: str, threads: int, iterations: int) -> dict[str, Any]:
    find("conll2000/train.txt")
    before = peak()
    if library == PEER:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c2": 1.0, "max_iterations": iterations}, verbose=False)
        for tokens, labels in chunking.sentences("train"):
            trainer.append(tokens, labels)
        with tempfile.TemporaryDirectory() as directory:
            trainer.train(str(Path(directory) / "model"))
    else:
        import scansion
        from scansion.data import encode

        y: list[list[str]] = []
        data = encode(tokens for tokens, labels in chunking.sentences("train") if y.append(labels) is None)
        scansion.CRF(c2=1.0, max_iterations=iterations, n_jobs=threads).fit(data, y)
    return {"megabytes": round(peak(), 1), "megabytes_at_start": round(before, 1)}


def peak() -> float:
    """Peak resident memory of this process in megabytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 1e6 if sys.platform == "darwin" else size / 1e3


MEASUREMENTS = {
    "iteration": measure_iteration,
    "model": measure_model,
    "answers": measure_answers,
    "memory": measure_memory,
}


def in_a_process(name: str, *arguments: Any) -> dict[str, Any]:
    """Result of a measurement in a new process."""
    command = [sys.executable, __file__, "--measure", json.dumps([name, *arguments])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    say(f"  {name} {' '.join(str(a) for a in arguments if not os.path.isabs(str(a)))}: {result}")
    return result


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- all of them -------------------------------------------------------------------------------------


class Benchmark:
    """Runs tasks and keeps the best of several runs."""

    def __init__(self, repeat: int, quick: bool, directory: Path) -> None:
        self.repeat = 1 if quick else repeat
        self.iterations = 4 if quick else 15
        self.quick = quick
        self.directory = directory
        self.results: dict[str, Any] = {}
        self.models: dict[str, str] = {}

    def best(self, variants: dict[str, tuple[Any, ...]], by: str = "wall") -> dict[str, dict[str, Any]]:
        """For each variant the best of its runs; the variants take turns."""
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in variants}
        for _ in range(self.repeat):
            for name, arguments in variants.items():
                found[name].append(in_a_process(*arguments))
        best = {name: min(runs, key=lambda run: run[by]) for name, runs in found.items()}
        for name, runs in found.items():
            best[name][f"median {by}"] = statistics.median(run[by] for run in runs)
        return best

    def iteration(self) -> None:
        n = self.iterations
        runs = self.best(
            {
                PEER: ("iteration", PEER, 1, n),
                f"{OURS}, 1 thread": ("iteration", OURS, 1, n),
                f"{OURS}, 2 threads": ("iteration", OURS, 2, n),
            }
        )
        for threads in ("1 thread", "2 threads"):
            self.add(f"iteration, {threads}", runs[PEER], runs[f"{OURS}, {threads}"])

    def model(self) -> None:
        best: dict[str, dict[str, Any]] = {}
        tried: dict[str, list[dict[str, Any]]] = {}
        for library in (PEER, OURS):
            recipes = [(name, n) for name, passes in (GRID | ONLY[library]).items() for n in passes]
            runs: list[dict[str, Any]] = []
            for algorithm, passes in [("pa", 10)] if self.quick else recipes:
                path = str(self.directory / f"{library}-{algorithm}-{passes}")
                arguments = ("model", library, 2, algorithm, passes, path)
                runs.append(in_a_process(*arguments) | {"arguments": arguments})
            tried[library] = [{k: v for k, v in run.items() if k != "arguments"} for run in runs]
            good = [run for run in runs if run["f1"] >= GOAL]
            first = min(good or runs, key=lambda run: run["wall"])
            arguments = first.pop("arguments")
            for _ in range(self.repeat - 1):
                first = min(first, in_a_process(*arguments), key=lambda run: run["wall"])
            first["tried"] = f"{len(good)} of {len(runs)} recipes reach {GOAL}"
            self.models[library] = arguments[-1]
            best[library] = first
        self.add("model", best[PEER], best[OURS])
        self.results["model"]["recipes"] = tried
        if any(run["tried"].startswith("0 ") for run in best.values()):
            self.results["model"]["ratio"] = None  # a model that misses the goal is not a result

    def answers(self, task: str) -> None:
        if not self.models:
            for library in (PEER, OURS):
                self.models[library] = str(self.directory / library)
                in_a_process("model", library, 2, "l2sgd", 5, self.models[library])
        runs = self.best(
            {
                f"{library}, {threads}": (
                    "answers", library, threads, self.models[library], task == "marginals", self.repeat
                )
                for library, threads in ((PEER, 1), (OURS, 1), (OURS, 2))
            }
        )  # fmt: skip
        self.add(f"{task}", runs[f"{PEER}, 1"], runs[f"{OURS}, 1"])
        self.add(f"{task}, 2 threads", runs[f"{PEER}, 1"], runs[f"{OURS}, 2"])

    def memory(self) -> None:
        runs = self.best(
            {library: ("memory", library, 1, min(10, self.iterations)) for library in (PEER, OURS)}, by="megabytes"
        )
        self.add("memory", runs[PEER], runs[OURS], by="megabytes")

    def add(self, name: str, peer: dict[str, Any], ours: dict[str, Any], by: str = "wall") -> None:
        ratio = peer[by] / ours[by]
        self.results[name] = {PEER: peer, OURS: ours, "ratio": round(ratio, 2), "target": TARGETS.get(name)}

    def table(self) -> str:
        head = f"{'':<24}{PEER:>18}{OURS:>18}{'ratio':>8}{'target':>8}{'CPU':>8}   remarks"
        lines = [head]
        for name, result in self.results.items():
            unit = "megabytes" if "megabytes" in result[OURS] else "wall"
            cells = [f"{result[library][unit]:.4g} {'MB' if unit == 'megabytes' else 's'}" for library in (PEER, OURS)]
            ratio = "missed" if result["ratio"] is None else f"{result['ratio']:.2f}"
            target = "" if result["target"] is None else f"{result['target']:.1f}"
            cpu = f"{result[PEER]['cpu'] / result[OURS]['cpu']:.2f}" if unit == "wall" else ""
            remarks = [
                f"{library} {key} {result[library][key]}"
                for library in (PEER, OURS)
                for key in ("recipe", "f1", "tried", "tokens_per_second")
                if key in result[library]
            ]
            lines.append(
                f"{name:<24}{cells[0]:>18}{cells[1]:>18}{ratio:>8}{target:>8}{cpu:>8}   "
                + "; ".join(remarks).replace("_", " ")
            )
        for library, runs in self.results.get("model", {}).get("recipes", {}).items():
            lines += ["", f"{library}, all recipes of the task model, one run each:"]
            lines += [f"  {run['recipe']:<20}{run['wall']:>8.2f} s   F1 {run['f1']:.2f}" for run in runs]
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = ("iteration", "model", "tagging", "marginals", "memory")
    parser.add_argument("--only", nargs="+", choices=tasks, default=tasks, metavar="TASK", help=", ".join(tasks))
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each measurement (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one run of everything, few iterations")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        name, *arguments = json.loads(given.measure)
        print(json.dumps(MEASUREMENTS[name](*arguments)))
        return 0
    try:
        find("conll2000/train.txt")
    except MissingDataError as missing:
        print(f"training: skipped, {missing}")
        return 0
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        say(f"the machine is busy (load {load:.1f}): these times will not be worth quoting")
    with tempfile.TemporaryDirectory() as directory:
        benchmark = Benchmark(given.repeat, given.quick, Path(directory))
        for task in given.only:
            say(f"{task}:")
            if task in ("tagging", "marginals"):
                benchmark.answers(task)
            else:
                getattr(benchmark, task)()
    command = "python benchmarks/training.py" + "".join(f" {a}" for a in sys.argv[1:])
    where = f"{machine()}, load at the start {load:.1f}"
    print(f"chunking, CoNLL-2000, best of {benchmark.repeat}; {where}\n{command}\n")
    print(benchmark.table())
    if given.json:
        content = {"command": command, "machine": where, "results": benchmark.results}
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
