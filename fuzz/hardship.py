"""Hard times: processes killed while they save, disks that are full, memory that runs out, many threads on one model.

Each try is a forked process, or some threads. Faults are: a file that is neither the old one nor the new one, one that
is left beside it, a process that dies by itself, another answer than in good times.
"""

from __future__ import annotations

import functools
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import scansion as sc
from fuzz import Fault
from fuzz.model_files import SEGMENTS, TREES, X, Y
from scansion.cli import main
from scansion.data import encode

TRIES = 10  # in a round
DONE, REFUSED, WRONG = 0, 10, 11  # how a forked process ends


def forked(work: Callable[[], int], patience: float = 60.0) -> int:
    """Do something in a process of its own; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = WRONG
        try:
            code = work()
        finally:
            os._exit(code)
    for _ in range(int(patience / 0.002)):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise Fault(f"no answer after {patience:.0f} seconds")


@functools.cache
def models() -> list[Any]:
    """One of each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            sc.CRF(max_iterations=5).fit(X, Y),
            sc.CRF(2, max_iterations=5).fit(X, Y),
            sc.SemiCRF(max_iterations=5).fit(X, SEGMENTS),
            sc.HierarchicalCRF(["top", "low"], max_iterations=5).fit(X, TREES),
        ]


def alone(folder: str, name: str) -> None:
    """Raise unless a file is the only one in its directory."""
    found = sorted(os.listdir(folder))
    if found != [name]:
        raise Fault(f"beside {name} there are {found}")


# ---- killed --------------------------------------------------------------------------------------
def kills(rng: np.random.Generator) -> int:
    """kill -9 at a random moment while models are saved in turn over one file."""
    some = [models()[i] for i in rng.permutation(len(models()))]
    expected = [model.predict_marginals(X) for model in some]
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            some[0].save(path)
            ready, tell = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(tell, b".")
                    while True:
                        for model in some:
                            model.save(path)
                finally:
                    os._exit(WRONG)
            os.read(ready, 1)
            os.close(ready)
            os.close(tell)
            time.sleep(float(rng.exponential(0.01)))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            if sc.load(path).predict_marginals(X) not in expected:
                raise Fault("the file is none of the models")
            some[1].save(path)  # removes what was left behind
            alone(folder, "model")
    return TRIES


# ---- full disks ----------------------------------------------------------------------------------
def disks(rng: np.random.Generator) -> int:
    """Writing fails after a random number of bytes: the old file stays, and nothing is left beside it."""
    import resource

    with tempfile.TemporaryDirectory() as there, tempfile.TemporaryDirectory() as folder:
        data, model = str(Path(there, "data.txt")), str(Path(there, "model"))
        Path(data).write_text("the D\nman N\n\na D\ndog N\n\n" * 200)
        assert main(["train", data, "-o", model, "-q", "--max-iterations", "3"]) == 0
        out = Path(folder, "out")
        ways: dict[str, Callable[[], Any]] = {
            "save": lambda: models()[int(rng.integers(4))].save(out),
            "Dataset.save": lambda: encode(X).save(out),
            "report": lambda: models()[0].report(out),
            "train": lambda: main(["train", data, "-o", str(out), "-q", "--max-iterations", "2"]),
            "tag": lambda: main(["tag", model, data, "-o", str(out)]),
            "tag --html": lambda: main(["tag", model, data, "-o", os.devnull, "--html", str(out)]),
            "convert": lambda: main(["convert", data, str(out), "--to", "jsonl"]),
        }
        for _ in range(TRIES):
            name = str(rng.choice(list(ways)))
            out.write_bytes(b"before")
            limit = int(rng.integers(0, 4000))

            def work(name: str = name, limit: int = limit) -> int:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                try:
                    return DONE if not ways[name]() else REFUSED  # the command gives 1
                except OSError as error:
                    return REFUSED if str(out) in str(error) else WRONG

            code = forked(work)
            if code not in (DONE, REFUSED):
                raise Fault(f"{name} with {limit} bytes ended with {code}")
            if (out.read_bytes() == b"before") != (code == REFUSED):
                raise Fault(f"{name} with {limit} bytes: exit code {code}, {out.read_bytes()[:60]!r}")
            alone(folder, "out")
    return TRIES


# ---- little memory -------------------------------------------------------------------------------
@functools.cache
def large() -> dict[str, tuple[Callable[[], Any], Any]]:
    """Work for eight threads, and what comes of it in good times."""
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 4001, 10)
    chain = sc.ChainBatch(rng.normal(size=(4000, 5)), offsets, rng.normal(size=(5, 5)), n_jobs=8)
    patterns = [(y,) for y in range(3)] + [(0, 1), (1, 2, 0)]
    segments = sc.SegmentBatch(rng.normal(size=(4000, 4, 5)), offsets, patterns, 3, n_jobs=8)
    many, targets = X * 40, Y * 40
    found: dict[str, Callable[[], Any]] = {
        "log Z": chain.log_partition,
        "marginals": lambda: chain.marginals().labels,
        "best": lambda: np.concatenate(chain.viterbi()[0]),
        "k best": lambda: [score for one in chain.kbest(3) for _, score in one],
        "segments": lambda: segments.marginals().labels,
        "entropy": segments.entropy,
        "training": lambda: sc.CRF(max_iterations=3, n_jobs=8).fit(many, targets).model_.weights,
        "training of order 2": lambda: sc.CRF(2, max_iterations=2, n_jobs=8).fit(many, targets).model_.weights,
        "training of segments": lambda: sc.SemiCRF(max_iterations=2, n_jobs=8).fit(many, SEGMENTS * 40).model_.weights,
        "training of levels": lambda: (
            sc.HierarchicalCRF(["top", "low"], max_iterations=2, n_jobs=8).fit(many, TREES * 40).model_.weights
        ),
        "predicting": lambda: models()[0].set_params(n_jobs=8).lattices(many).viterbi()[1],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: (work, work()) for name, work in found.items()}


def memory(rng: np.random.Generator) -> int:
    """Eight threads where the system grants little more memory than there is: the same answer, or a MemoryError."""
    import resource

    tasks = large()
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    for _ in range(TRIES):
        name = str(rng.choice(list(tasks)))
        room = int(rng.choice([0, 10**5, 10**6, 10**7, 3 * 10**7, 10**8, 3 * 10**8]) * rng.random())

        def work(name: str = name, room: int = room) -> int:
            resource.setrlimit(resource.RLIMIT_AS, (now + room, resource.RLIM_INFINITY))
            warnings.simplefilter("ignore")
            try:
                found = tasks[name][0]()
            except MemoryError:
                return REFUSED
            return DONE if np.array_equal(found, tasks[name][1]) else WRONG

        code = forked(work)
        if code not in (DONE, REFUSED):
            raise Fault(f"{name} with {room} bytes more than {now} ended with {code}")
    return TRIES


# ---- threads -------------------------------------------------------------------------------------
QUESTIONS: list[Callable[[Any], Any]] = [
    lambda model: model.predict(X),
    lambda model: model.predict_marginals(X),
    lambda model: model.predict_kbest(X, 2),
    lambda model: model.sample(X, 2, random_state=1),
    lambda model: [model.predict_single(x) for x in X],
    lambda model: model.state_features_,
    lambda model: model.lattice(X[0]).entropy(),
    lambda model: model.report().html,
]


def threads(rng: np.random.Generator) -> int:
    """Eight Python threads that ask one model, each in an order of its own: all get the same answers."""
    model = models()[int(rng.integers(4))]
    expected = [question(model) for question in QUESTIONS]
    wrong: list[str] = []
    orders = [rng.permutation(len(QUESTIONS)) for _ in range(8)]

    def ask(order: np.ndarray) -> None:
        try:
            wrong.extend(f"question {i}" for i in order if QUESTIONS[i](model) != expected[i])
        except BaseException as error:
            wrong.append(repr(error))

    running = [threading.Thread(target=ask, args=(order,)) for order in orders]
    for one in running:
        one.start()
    for one in running:
        one.join()
    if wrong:
        raise Fault(f"{type(model).__name__} asked by eight threads: {wrong[:5]}")
    return len(running) * len(QUESTIONS)


KINDS = {function.__name__: function for function in (kills, disks, memory, threads)}
