"""Tagging a file of columns beside python-crfsuite: from the file's lines to labelled lines, CoNLL-2000's test set.

    python benchmarks/tagging.py [--repeat N] [--quick] [--jobs N] [--json FILE]

Both libraries are trained on the same attributes, those of the built-in template ``--features chunk``.
python-crfsuite's user reads the lines, makes the attributes in Python, tags sentence by sentence and writes the lines;
scansion's command does it all (``scansion tag``). The attributes are made in three ways: by a program that takes any
template, as the command does (this is what the target is about); by one that knows this template only and writes dicts,
as in python-crfsuite's example; and by one that writes strings, tuned for speed. Each measurement runs in a process of
its own, in turn, and the best of several counts. Three times are given:

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
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.data import MissingDataError, find
from experiments.report import machine

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


# The built-in template "chunk": columns and offsets whose cells together are one attribute.
TEMPLATE = [
    *((f"U0{k}", [(0, k - 2)]) for k in range(5)),
    ("U05", [(0, -1), (0, 0)]),
    ("U06", [(0, 0), (0, 1)]),
    *((f"U1{k}", [(1, k - 2)]) for k in range(5)),
    *((f"U1{k + 5}", [(1, k - 2), (1, k - 1)]) for k in range(4)),
    *((f"U2{k}", [(1, k - 2), (1, k - 1), (1, k)]) for k in range(3)),
]


def by_template(rows: list[list[str]]) -> list[dict[str, str]]:
    """Any template, as CRFsuite's tutorial has it: a table of columns and offsets, walked for every token."""
    tokens = []
    for t in range(len(rows)):
        token = {}
        for name, cells in TEMPLATE:
            values = []
            for column, offset in cells:
                at = t + offset
                if at < 0:
                    values.append(f"_B{at}")
                elif at >= len(rows):
                    values.append(f"_B+{at - len(rows) + 1}")
                else:
                    values.append(rows[at][column])
            token[name] = "/".join(values)
        tokens.append(token)
    return tokens


def _padded(rows: list[list[str]]) -> tuple[list[str], list[str]]:
    w = ["_B-2", "_B-1", *(row[0] for row in rows), "_B+1", "_B+2"]
    p = ["_B-2", "_B-1", *(row[1] for row in rows), "_B+1", "_B+2"]
    return w, p


def by_dicts(rows: list[list[str]]) -> list[dict[str, str]]:
    """This template alone, written out as python-crfsuite's example does: a dict for each token."""
    w, p = _padded(rows)
    return [
        {
            "U00": w[t - 2],
            "U01": w[t - 1],
            "U02": w[t],
            "U03": w[t + 1],
            "U04": w[t + 2],
            "U05": w[t - 1] + "/" + w[t],
            "U06": w[t] + "/" + w[t + 1],
            "U10": p[t - 2],
            "U11": p[t - 1],
            "U12": p[t],
            "U13": p[t + 1],
            "U14": p[t + 2],
            "U15": p[t - 2] + "/" + p[t - 1],
            "U16": p[t - 1] + "/" + p[t],
            "U17": p[t] + "/" + p[t + 1],
            "U18": p[t + 1] + "/" + p[t + 2],
            "U20": p[t - 2] + "/" + p[t - 1] + "/" + p[t],
            "U21": p[t - 1] + "/" + p[t] + "/" + p[t + 1],
            "U22": p[t] + "/" + p[t + 1] + "/" + p[t + 2],
        }
        for t in range(2, len(rows) + 2)
    ]


def by_strings(rows: list[list[str]]) -> list[list[str]]:
    """This template alone, for speed: lists of formatted strings, which python-crfsuite takes fastest."""
    w, p = _padded(rows)
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


EXTRACTION: dict[str, Callable[[list[list[str]]], Any]] = {
    "template": by_template,
    "dicts": by_dicts,
    "strings": by_strings,
}


def peer_train(train: str, model: str, algorithm: str, passes: int) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, params={"max_iterations": passes}, verbose=False)
    for rows in sentences(train):
        trainer.append(by_strings(rows), [row[-1] for row in rows])
    trainer.train(model)


def peer_tag(tagger: Any, source: str, target: str, extraction: str) -> None:
    attributes = EXTRACTION[extraction]
    with open(target, "w", encoding="utf-8") as out:
        for rows in sentences(source):
            for row, label in zip(rows, tagger.tag(attributes(rows)), strict=True):
                out.write(" ".join(row) + " " + label + "\n")
            out.write("\n")


# ---- one measurement, in a process of its own ---------------------------------------------------------

OURS = "scansion"
PEERS = tuple(EXTRACTION)  # python-crfsuite with attributes made in these ways


def worker(who: str, model: str, source: str, target: str, jobs: int) -> dict[str, float]:
    """Times of tagging with a model that is loaded."""
    if who == OURS:
        from scansion.cli import main, tag

        loaded = tag.load_model(model)
        tag.load_model = lambda path: loaded

        def run() -> None:
            assert main(["tag", model, source, "-o", target, "-j", str(jobs)]) == 0
    else:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(model)

        def run() -> None:
            peer_tag(tagger, source, target, who)

    times = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return {"wall": min(t[0] for t in times), "cpu": min(t[1] for t in times)}


def whole(who: str, model: str, source: str, target: str, jobs: int) -> dict[str, float]:
    """Times of a process that starts, loads the model and tags a file."""
    if who == OURS:
        command = [sys.executable, "-m", "scansion", "tag", model, source, "-o", target, "-j", str(jobs)]
    else:
        command = [sys.executable, __file__, "--once", model, source, target, who]
    if who == "numpy":
        command = [sys.executable, "-c", "import numpy"]
    # with bytecode, as installed packages have it
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(model).parent / "bytecode")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def isolated(*arguments: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def f1(path: str) -> float:
    from scansion.metrics import segment_scores

    rows = list(sentences(path))
    truth, guess = ([[cells[k] for cells in s] for s in rows] for k in (2, 3))
    return 100 * segment_scores(truth, guess, "conlleval").micro.f1


def measure(options: argparse.Namespace, train: Path, test: Path, here: Path) -> dict[str, Any]:
    """All figures: by who and task the best times, and the scores."""
    from scansion.cli import main as command

    algorithm, passes = ("ap", 5) if options.quick else ("lbfgs", 50)
    plain = here / "train.txt"
    plain.write_bytes(gzip.decompress(train.read_bytes()) if train.suffix == ".gz" else train.read_bytes())
    one = here / "one.txt"
    one.write_text("Hello UH O\n")
    peer, ours = str(here / "peer.model"), str(here / "ours.model")
    peer_train(str(plain), peer, algorithm, passes)
    arguments = [str(plain), "-o", ours, "--features", "chunk", "-q"]
    assert command(["train", *arguments, "-a", algorithm, "--max-iterations", str(passes)]) == 0
    measured: dict[str, dict[str, list[dict[str, float]]]] = {}
    bare: list[dict[str, float]] = []
    for _ in range(options.repeat):
        for who in (*PEERS, OURS):
            model, out = ours if who == OURS else peer, str(here / f"{who}.out")
            rows = measured.setdefault(who, {"tagging": [], "process": [], "start": []})
            rows["tagging"].append(isolated(who, model, str(test), out, str(options.jobs)))
            rows["process"].append(whole(who, model, str(test), out, options.jobs))
            rows["start"].append(whole(who, model, str(one), os.devnull, options.jobs))
        bare.append(whole("numpy", ours, "", "", 1))
    best = {
        who: {task: {clock: min(r[clock] for r in rows) for clock in rows[0]} for task, rows in tasks.items()}
        for who, tasks in measured.items()
    }
    scores = {who: f1(str(here / f"{who}.out")) for who in measured}
    numpy = {clock: min(row[clock] for row in bare) for clock in bare[0]}
    return {"recipe": f"{algorithm}, {passes} iterations", "times": best, "f1": scores, "numpy": numpy}


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        who, model, source, target, jobs = sys.argv[2:]
        print(json.dumps(worker(who, model, source, target, int(jobs))))
        return 0
    if sys.argv[1:2] == ["--once"]:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(sys.argv[2])
        peer_tag(tagger, *sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="threads of scansion")
    parser.add_argument("--quick", action="store_true", help="a perceptron in place of 50 iterations of L-BFGS")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    try:
        test, train = find("conll2000/test.txt"), find("conll2000/train.txt")
    except MissingDataError as error:
        print(f"skipped: {error}")
        return 0
    try:
        import pycrfsuite
    except ImportError:
        print("skipped: python-crfsuite is not installed (pip install 'scansion[bench]')")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        figures = measure(options, train, test, Path(directory))
    tokens = sum(len(rows) for rows in sentences(str(test)))
    times = figures["times"]
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; python-crfsuite {version('python-crfsuite')}; {tokens} tokens")
    print(f"{figures['recipe']}; F1: " + ", ".join(f"{who} {score:.2f}" for who, score in figures["f1"].items()))
    print("\n| task | clock | " + " | ".join(f"python-crfsuite, {who}" for who in PEERS) + " | scansion | ratios |")
    print("|---" * (len(PEERS) + 4) + "|")
    for task in ("tagging", "process", "start"):
        for clock in ("cpu", "wall"):
            ours = times[OURS][task][clock]
            cells = [f"{1000 * times[who][task][clock]:.0f} ms" for who in (*PEERS, OURS)]
            ratios = ", ".join(f"{times[who][task][clock] / ours:.1f}" for who in PEERS)
            print(f"| {task} | {clock} | " + " | ".join(cells) + f" | {ratios} |")
    print("\n`import numpy` alone: " + ", ".join(f"{1000 * t:.0f} ms {clock}" for clock, t in figures["numpy"].items()))
    ratio = times[PEERS[0]]["tagging"]["cpu"] / times[OURS]["tagging"]["cpu"]
    print(
        f"\nfrom columns with a template, processor time: {ratio:.1f} times python-crfsuite's rate (target: {TARGET:g})"
    )
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": machine(), "tokens": tokens, **figures}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
