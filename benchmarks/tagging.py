"""Tagging a file of columns beside python-crfsuite: from the file's lines to labelled lines, CoNLL-2000's test set.

    python benchmarks/tagging.py [--repeat N] [--quick] [--jobs N] [--json FILE]

Both libraries are trained on the same attributes, those of the built-in template ``--features chunk``.
python-crfsuite's user reads the lines, makes the attributes in Python, tags sentence by sentence and writes the lines;
scansion's command does it all (``scansion tag``). Each measurement runs in a process of its own, the two in turn, and
the best of several counts. Three times are given:

    tagging   from the file to the labelled file, the model being loaded
    process   the whole process: start, imports, model, tagging
    start     the whole process on a file of one token

Rates and ratios are shown for processor time and for wall time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.data import MissingDataError, find
from experiments.report import machine

PEER, OURS = "python-crfsuite", "scansion"
TARGET = 10.0


# ---- python-crfsuite, as its users write it -----------------------------------------------------------


def sentences(path: str) -> Iterator[list[list[str]]]:
    rows: list[list[str]] = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = line.split()
            if cells:
                rows.append(cells)
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows


def attributes(rows: list[list[str]]) -> list[list[str]]:
    """The attributes of the built-in template "chunk", in Python written for speed."""
    w = ["_B-2", "_B-1", *(row[0] for row in rows), "_B+1", "_B+2"]
    p = ["_B-2", "_B-1", *(row[1] for row in rows), "_B+1", "_B+2"]
    return [
        [
            f"U00:{w[t - 2]}",
            f"U01:{w[t - 1]}",
            f"U02:{w[t]}",
            f"U03:{w[t + 1]}",
            f"U04:{w[t + 2]}",
            f"U05:{w[t - 1]}/{w[t]}",
            f"U06:{w[t]}/{w[t + 1]}",
            f"U10:{p[t - 2]}",
            f"U11:{p[t - 1]}",
            f"U12:{p[t]}",
            f"U13:{p[t + 1]}",
            f"U14:{p[t + 2]}",
            f"U15:{p[t - 2]}/{p[t - 1]}",
            f"U16:{p[t - 1]}/{p[t]}",
            f"U17:{p[t]}/{p[t + 1]}",
            f"U18:{p[t + 1]}/{p[t + 2]}",
            f"U20:{p[t - 2]}/{p[t - 1]}/{p[t]}",
            f"U21:{p[t - 1]}/{p[t]}/{p[t + 1]}",
            f"U22:{p[t]}/{p[t + 1]}/{p[t + 2]}",
        ]
        for t in range(2, len(rows) + 2)
    ]


def peer_train(train: str, model: str, algorithm: str, passes: int) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, params={"max_iterations": passes}, verbose=False)
    for rows in sentences(train):
        trainer.append(attributes(rows), [row[-1] for row in rows])
    trainer.train(model)


def peer_tag(tagger: Any, source: str, target: str) -> None:
    with open(target, "w", encoding="utf-8") as out:
        for rows in sentences(source):
            for row, label in zip(rows, tagger.tag(attributes(rows)), strict=True):
                out.write(" ".join(row) + " " + label + "\n")
            out.write("\n")


# ---- one measurement, in a process of its own ---------------------------------------------------------


def worker(library: str, model: str, source: str, target: str, jobs: int) -> dict[str, float]:
    """Times of tagging with a model that is loaded."""
    if library == PEER:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(model)

        def run() -> None:
            peer_tag(tagger, source, target)
    else:
        from scansion.cli import main, tag

        loaded = tag.load_model(model)
        tag.load_model = lambda path: loaded

        def run() -> None:
            assert main(["tag", model, source, "-o", target, "-j", str(jobs)]) == 0

    times = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return {"wall": min(t[0] for t in times), "cpu": min(t[1] for t in times)}


def whole(library: str, model: str, source: str, target: str, jobs: int) -> dict[str, float]:
    """Times of a process that starts, loads the model and tags a file."""
    if library == PEER:
        command = [sys.executable, __file__, "--once", model, source, target]
    else:
        command = [sys.executable, "-m", "scansion", "tag", model, source, "-o", target, "-j", str(jobs)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter()
    subprocess.run(command, check=True)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu}


def isolated(library: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--worker", library, *arguments], check=True, capture_output=True, text=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def best(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(row[key] for row in rows) for key in rows[0]}


def f1(path: str) -> float:
    from scansion.metrics import segment_scores

    rows = list(sentences(path))
    truth, guess = ([[cells[k] for cells in s] for s in rows] for k in (2, 3))
    return 100 * segment_scores(truth, guess, "conlleval").micro.f1


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        library, model, source, target, jobs = sys.argv[2:]
        print(json.dumps(worker(library, model, source, target, int(jobs))))
        return 0
    if sys.argv[1:2] == ["--once"]:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(sys.argv[2])
        peer_tag(tagger, sys.argv[3], sys.argv[4])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="threads of scansion")
    parser.add_argument("--quick", action="store_true", help="a perceptron in place of 50 iterations of L-BFGS")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    try:
        test, packed = find("conll2000/test.txt"), find("conll2000/train.txt")
    except MissingDataError as error:
        print(f"skipped: {error}")
        return 0
    try:
        import pycrfsuite
    except ImportError:
        print("skipped: python-crfsuite is not installed (pip install 'scansion[bench]')")
        return 0
    from scansion.cli import main as command

    algorithm, passes = ("ap", 5) if options.quick else ("lbfgs", 50)
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        train = here / "train.txt"
        train.write_bytes(gzip.decompress(packed.read_bytes()) if packed.suffix == ".gz" else packed.read_bytes())
        models = {PEER: str(here / "peer.model"), OURS: str(here / "ours.model")}
        peer_train(str(train), models[PEER], algorithm, passes)
        arguments = [str(train), "-o", models[OURS], "--features", "chunk", "-q"]
        assert command(["train", *arguments, "-a", algorithm, "--max-iterations", str(passes)]) == 0
        one = here / "one.txt"
        one.write_text("Hello UH O\n")
        results: dict[str, dict[str, dict[str, float]]] = {library: {} for library in models}
        outputs = {library: str(here / f"{library}.out") for library in models}
        measured: dict[tuple[str, str], list[dict[str, float]]] = {}
        for _ in range(options.repeat):
            for library, model in models.items():
                out, jobs = outputs[library], str(options.jobs)
                times = {
                    "start": whole(library, model, str(one), os.devnull, options.jobs),
                    "process": whole(library, model, str(test), out, options.jobs),
                    "tagging": isolated(library, model, str(test), out, jobs),
                }
                for task, row in times.items():
                    measured.setdefault((library, task), []).append(row)
        for (library, task), rows in measured.items():
            results[library][task] = best(rows)
        scores = {library: f1(path) for library, path in outputs.items()}
    tokens = sum(len(rows) for rows in sentences(str(test)))
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; {tokens} tokens, {algorithm}, {passes} iterations, ", end="")
    print(", ".join(f"{library} F1 {score:.2f}" for library, score in scores.items()))
    print("\n| task | time | python-crfsuite | scansion | ratio | tokens/s of scansion |\n|---|---|---|---|---|---|")
    for task in ("tagging", "process", "start"):
        for clock in ("cpu", "wall"):
            peer, ours = results[PEER][task][clock], results[OURS][task][clock]
            rate = f"{tokens / ours:,.0f}" if task != "start" else ""
            print(f"| {task} | {clock} | {1000 * peer:.0f} ms | {1000 * ours:.0f} ms | {peer / ours:.1f} | {rate} |")
    ratio = results[PEER]["tagging"]["cpu"] / results[OURS]["tagging"]["cpu"]
    print(f"\ntagging, processor time: {ratio:.1f} times python-crfsuite's rate; the target is {TARGET:g}")
    if options.json:
        figures = {"machine": machine(), "tokens": tokens, "f1": scores, "results": results, "ratio": ratio}
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
