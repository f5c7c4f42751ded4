"""Times the kernels against other libraries, in one run and on one thread.

    make bench                                  # or: python benchmarks/kernels.py
    make bench ARGS="--quick"                   # fewer repeats, shorter sequences
    SCANSION_ISA=baseline make bench            # the kernels without AVX2
    make bench ARGS="--only chain,segment --json out.json"

Every time is the best of several calls. "cpu" is processor time, which other work on the machine disturbs less than
"wall"; "ns/cell" (cells as named at the head of each table), ratios and goals are made from it where it is known, and
from "wall" otherwise. Figures of libraries that do not run here are marked "quoted".
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is loaded: its matrix products shall use one thread too

import argparse  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import asdict, dataclass, field  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import scansion as sc  # noqa: E402
from scansion import _core  # noqa: E402
from scansion.reference.chain import batched_viterbi  # noqa: E402

QUOTED = "quoted: measured earlier on a machine like this"
CRFSUITE_CORE = 0.144 + 0.024  # forward-backward with expectations, and the exponentials before it


# Measuring and printing ----------------------------------------------------------------------------


@dataclass
class Row:
    name: str
    wall: float  # seconds
    cpu: float | None = None
    cells: int | None = None
    ratio: float | None = None  # time of this row / time of the row that the table compares with
    note: str = ""

    @property
    def time(self) -> float:
        return self.wall if self.cpu is None else self.cpu


@dataclass
class Table:
    title: str
    cell: str = ""
    rows: list[Row] = field(default_factory=list)

    def add(self, name: str, timed: tuple[float, float] | float, **more: Any) -> Row:
        wall, cpu = timed if isinstance(timed, tuple) else (timed, None)
        self.rows.append(Row(name, wall, cpu, **more))
        return self.rows[-1]

    def compare(self, base: Row) -> None:
        for row in self.rows:
            row.ratio = row.time / base.time

    def show(self) -> None:
        print(f"\n{self.title}" + (f"   [cell = {self.cell}]" if self.cell else ""))
        width = max(len(row.name) for row in self.rows)
        print(f"  {'':{width}}  {'wall':>10}  {'cpu':>10}  {'ns/cell':>8}  {'ratio':>7}")
        for row in self.rows:
            per = f"{1e9 * row.time / row.cells:8.3f}" if row.cells else ""
            ratio = f"{row.ratio:7.2f}" if row.ratio is not None else ""
            print(
                f"  {row.name:{width}}  {_time(row.wall):>10}  {_time(row.cpu):>10}  {per:>8}  {ratio:>7}  "
                f"{row.note}".rstrip()
            )
        sys.stdout.flush()


@dataclass
class Goal:
    text: str
    value: float
    limit: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{'pass' if self.met else 'FAIL'}  {self.text}: {self.value:.2f} (goal {sign} {self.limit:g})"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 10 else f"{1e3 * seconds:.2f} ms"


def best(call: Callable[[], Any], repeats: int, budget: float = 20.0) -> tuple[float, float]:
    """Best wall and processor time of `repeats` calls: more if they are short, fewer beyond `budget` seconds."""
    walls, cpus = [], []
    begin = time.perf_counter()
    while True:
        spent = time.perf_counter() - begin
        if walls and (spent > budget or (len(walls) >= repeats and spent > 0.3)):
            return min(walls), min(cpus)
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)


def peak_memory() -> float:
    """Largest resident size of this process so far, in MB."""
    if os.path.exists("/proc/self/status"):  # getrusage counts the parent's size in on Linux
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2  # bytes on macOS


@dataclass
class Run:
    quick: bool
    tables: list[Table] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    @property
    def repeats(self) -> int:
        return 5 if self.quick else 15

    def best(self, call: Callable[[], Any], share: float = 1.0) -> tuple[float, float]:
        return best(call, max(2, round(self.repeats * share)))

    def table(self, title: str, cell: str = "") -> Table:
        self.tables.append(Table(title, cell))
        return self.tables[-1]

    def goal(self, text: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        limit = at_least if at_least is not None else at_most
        assert limit is not None
        self.goals.append(Goal(text, value, limit, at_least is not None))


# Problems ------------------------------------------------------------------------------------------


@dataclass
class Hmm:
    """A categorical HMM and sequences drawn from it: start (L,), transition (L, L), emission (L, V)."""

    start: np.ndarray
    transition: np.ndarray
    emission: np.ndarray
    symbols: np.ndarray  # (B * T,)
    offsets: np.ndarray  # (B + 1,)

    @classmethod
    def random(cls, seed: int, n_batch: int, n_times: int, n_labels: int, n_symbols: int = 60) -> "Hmm":
        rng = np.random.default_rng(seed)
        start, transition, emission = (
            rng.dirichlet(np.full(size, 0.5), rows) + 1e-4
            for rows, size in ((1, n_labels), (n_labels, n_labels), (n_labels, n_symbols))
        )
        for table in (start, transition, emission):
            table /= table.sum(axis=1, keepdims=True)
        state = np.zeros(n_batch, np.int64)
        symbols = np.empty((n_batch, n_times), np.int64)
        draw = lambda rows: (rng.random((n_batch, 1)) > rows.cumsum(axis=1)).sum(axis=1)  # noqa: E731
        for t in range(n_times):
            state = np.minimum(draw(start.repeat(n_batch, 0) if t == 0 else transition[state]), n_labels - 1)
            symbols[:, t] = np.minimum(draw(emission[state]), n_symbols - 1)
        return cls(start[0], transition, emission, symbols.ravel(), np.arange(n_batch + 1) * n_times)

    def scores(self) -> np.ndarray:
        """(B * T, L) log emission probabilities."""
        return np.ascontiguousarray(np.log(self.emission).T[self.symbols])

    def batch(self, n_jobs: int = 1) -> sc.ChainBatch:
        return sc.ChainBatch(
            self.scores(), self.offsets, np.log(self.transition), start=np.log(self.start), n_jobs=n_jobs
        )

    def hmmlearn(self, implementation: str) -> Any:
        from hmmlearn.hmm import CategoricalHMM

        model = CategoricalHMM(len(self.start), implementation=implementation)
        model.startprob_, model.transmat_, model.emissionprob_ = self.start, self.transition, self.emission
        model.n_features = self.emission.shape[1]
        return model


def label_and_pair_patterns(n_labels: int) -> list[tuple[int, ...]]:
    pairs = [(a, b) for a in range(n_labels) for b in range(n_labels)]
    return [*((y,) for y in range(n_labels)), *pairs]


def full_segments(n_batch: int, n_times: int, n_labels: int, max_length: int, n_jobs: int = 1) -> sc.SegmentBatch:
    """Every label and every pair of labels scores every segment: (N, M, L + L * L)."""
    rng = np.random.default_rng(1)
    patterns = label_and_pair_patterns(n_labels)
    scores = rng.normal(size=(n_batch * n_times, max_length, len(patterns)))
    return sc.SegmentBatch(scores, np.arange(n_batch + 1) * n_times, patterns, n_labels, n_jobs=n_jobs)


def additive_segments(n_batch: int, n_times: int, n_labels: int, max_length: int, n_jobs: int = 1) -> sc.SegmentBatch:
    """Labels score what is inside and the length; pairs of labels have one score for all positions."""
    rng = np.random.default_rng(2)
    patterns = label_and_pair_patterns(n_labels)
    start = np.zeros(len(patterns))
    inside = np.zeros((n_batch * n_times, len(patterns)))
    length = np.zeros((max_length, len(patterns)))
    start[n_labels:] = rng.normal(size=n_labels * n_labels)
    inside[:, :n_labels] = rng.normal(size=(n_batch * n_times, n_labels))
    length[:, :n_labels] = rng.normal(size=(max_length, n_labels))
    offsets = np.arange(n_batch + 1) * n_times
    return sc.SegmentBatch.from_parts(
        offsets, patterns, n_labels, max_length, start=start, inside=inside, length=length, n_jobs=n_jobs
    )


def markov_text(rng: np.random.Generator, n_batch: int, n_times: int, n_labels: int) -> np.ndarray:
    """(B, T) labels from a second-order Markov source."""
    table = rng.dirichlet(np.full(n_labels, 0.3), size=(n_labels, n_labels)).cumsum(axis=2)
    text = rng.integers(0, n_labels, size=(n_batch, n_times))
    for t in range(2, n_times):
        rows = table[text[:, t - 2], text[:, t - 1]]
        text[:, t] = np.minimum((rng.random((n_batch, 1)) > rows).sum(axis=1), n_labels - 1)
    return text


# Chains --------------------------------------------------------------------------------------------


def numpy_posteriors(
    unary: np.ndarray, transition: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scaled forward-backward of a whole batch with NumPy: one matrix product per position, counts included.

    unary (B, T, L), transition (L, L), start (L,); log Z (B,), labels (B, T, L), counts (L, L).
    """
    weights = np.exp(transition)
    shift = unary.max(axis=2, keepdims=True)
    factor = np.exp(unary - shift)
    factor[:, 0] *= np.exp(start)
    alpha, scale = np.empty_like(factor), np.empty(unary.shape[:2])
    for t in range(unary.shape[1]):
        row = factor[:, t] if t == 0 else (alpha[:, t - 1] @ weights) * factor[:, t]
        scale[:, t] = row.sum(axis=1)
        alpha[:, t] = row / scale[:, t, None]
    labels, message = np.empty_like(alpha), np.ones_like(alpha[:, 0])
    labels[:, -1] = alpha[:, -1]
    outer = np.zeros_like(transition)
    for t in reversed(range(unary.shape[1] - 1)):
        right = factor[:, t + 1] * message / scale[:, t + 1, None]
        outer += alpha[:, t].T @ right
        message = right @ weights.T
        labels[:, t] = alpha[:, t] * message
    return np.log(scale).sum(axis=1) + shift.sum(axis=(1, 2)), labels, outer * weights


def crfsuite_iteration(symbols: np.ndarray, n_batch: int, n_labels: int) -> float | None:
    """Seconds of one L-BFGS iteration of python-crfsuite with one attribute a token, best of several."""
    try:
        import pycrfsuite
    except ImportError:
        return None
    rng = np.random.default_rng(3)
    rows = symbols.reshape(n_batch, -1)
    names, labels = [str(v) for v in range(int(symbols.max()) + 1)], [str(y) for y in range(n_labels)]
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for row in rows:
        y = [labels[i] for i in rng.integers(0, n_labels, size=len(row))]
        trainer.append(pycrfsuite.ItemSequence([[names[v]] for v in row]), y)
    trainer.set_params({"max_iterations": 12, "feature.possible_transitions": True, "c2": 1.0})
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(os.path.join(folder, "model"))
    once = [float(i["time"]) for i in trainer.logparser.iterations if int(i.get("linesearch_trials", 1)) == 1]
    return min(once) if once else None


def chain(run: Run) -> None:
    n_batch, n_times, n_labels = 9000, 24, 23
    hmm = Hmm.random(0, n_batch, n_times, n_labels)
    batch = hmm.batch()
    cells = n_batch * n_times * n_labels**2
    unary = hmm.scores().reshape(n_batch, n_times, n_labels)
    transition, start = np.log(hmm.transition), np.log(hmm.start)

    table = run.table(f"Chain, {n_batch:,} sequences of {n_times}, {n_labels} labels", "position x label x label")
    core = batch._core  # labels and counts in one native pass; reading both from marginals() takes two
    table.add("scansion log Z", run.best(batch.log_partition), cells=cells)
    table.add("scansion label marginals", run.best(lambda: batch.marginals().labels), cells=cells)
    both = table.add(
        "scansion label marginals + transition counts", run.best(lambda: core.posteriors(1, counts=True)), cells=cells
    )
    table.add("scansion Viterbi", run.best(batch.viterbi, 0.5), cells=cells)
    expected = numpy_posteriors(unary, transition, start)
    answer = core.posteriors(1, counts=True)
    for name, value in zip(("log_partition", "labels", "counts"), expected, strict=True):
        np.testing.assert_allclose(answer[name].reshape(value.shape), value, rtol=1e-8, atol=1e-9)
    in_numpy = run.best(lambda: numpy_posteriors(unary, transition, start), 0.4)
    table.add("NumPy, label marginals + transition counts", in_numpy, cells=cells)
    table.add("NumPy, Viterbi", best(lambda: batched_viterbi(unary, transition, start), 2), cells=cells)
    hmmlearn_rows(run, table, hmm, cells)
    iteration = crfsuite_iteration(hmm.symbols, n_batch, n_labels)
    if iteration is not None:
        table.add(
            "python-crfsuite, one L-BFGS iteration",
            iteration,
            cells=cells,
            note="its core, plus one attribute a token and the optimizer",
        )
    table.add("CRFsuite's core: marginals + counts", CRFSUITE_CORE, cells=cells, note=QUOTED)
    table.compare(both)
    table.show()
    run.goal("chain marginals + counts, ns per cell", 1e9 * both.time / cells, at_most=0.6)
    run.goal("chain marginals + counts, times faster than CRFsuite's core", CRFSUITE_CORE / both.time, at_least=2)


def hmmlearn_rows(run: Run, table: Table, hmm: Hmm, cells: int) -> float | None:
    """Adds hmmlearn's times; returns the ratio of its scaled posteriors to scansion's from the same integers."""
    try:
        scaled, logs = hmm.hmmlearn("scaling"), hmm.hmmlearn("log")
    except ImportError:
        return None
    symbols, lengths = hmm.symbols[:, None], np.diff(hmm.offsets)
    ours = best(lambda: hmm.batch().marginals().labels, run.repeats)
    expected = scaled.predict_proba(symbols, lengths)
    np.testing.assert_allclose(hmm.batch().marginals().labels, expected, rtol=1e-6, atol=1e-9)
    table.add("scansion label marginals, from symbols", ours, cells=cells, note="with the table of emissions")
    theirs = best(lambda: scaled.predict_proba(symbols, lengths), max(3, run.repeats // 3))
    table.add("hmmlearn posteriors, scaled", theirs, cells=cells, note="from symbols")
    slow = best(lambda: logs.predict_proba(symbols, lengths), 1 if run.quick else 2)
    table.add("hmmlearn posteriors, log", slow, cells=cells, note="from symbols")
    paths = best(lambda: scaled.decode(symbols, lengths), max(2, run.repeats // 5))
    table.add("hmmlearn Viterbi", paths, cells=cells, note="from symbols")
    return theirs[1] / ours[1]


def hmm_shape(run: Run) -> None:
    n_batch, n_times, n_labels = 400, 200, 30
    hmm = Hmm.random(4, n_batch, n_times, n_labels)
    batch = hmm.batch()
    cells = n_batch * n_times * n_labels**2
    table = run.table(f"HMM, {n_batch} sequences of {n_times}, {n_labels} states", "position x state x state")
    labels = table.add("scansion label marginals", run.best(lambda: batch.marginals().labels), cells=cells)
    table.add("scansion Viterbi", run.best(batch.viterbi), cells=cells)
    ratio = hmmlearn_rows(run, table, hmm, cells)
    table.compare(labels)
    table.show()
    if ratio is not None:
        run.goal("HMM posteriors from symbols, times faster than hmmlearn, scaled", ratio, at_least=3)


# Segments ------------------------------------------------------------------------------------------


def segment(run: Run) -> None:
    for n_batch, n_times, n_labels, longest, peer in ((16, 128, 8, 16, 0.163), (4, 1000, 8, 50, 15.2)):
        shape = f"batch {n_batch}, T {n_times:,}, {n_labels} labels, longest segment {longest}"
        cells = n_batch * n_times * longest * n_labels**2
        table = run.table(f"Segments, {shape}", "position x length x label x label")
        base: Row | None = None
        forms = (("additive", additive_segments), ("full array", full_segments))
        for name, make in forms:
            batch = make(n_batch, n_times, n_labels, longest)
            table.add(f"scansion, {name}: log Z", run.best(batch.log_partition, 0.4), cells=cells)
            core = batch._core  # labels, boundaries and the gradient of log Z in one native pass
            gradient = run.best(lambda core=core: core.posteriors(1, gradient=True), 0.6)
            row = table.add(f"scansion, {name}: marginals and gradient", gradient, cells=cells)
            table.add(f"scansion, {name}: Viterbi", run.best(batch.viterbi, 0.3), cells=cells)
            base = base or row
            run.goal(f"segment marginals, {name}, {shape}: times faster", peer / row.time, at_least=20)
            del batch
        assert base
        table.add("flash-semicrf, log Z and gradient", peer, cells=cells, note="additive; " + QUOTED)
        table.compare(base)
        table.show()

    table = run.table("Segments, batch 1, T 128, 8 labels, longest segment 16", "position x length x label x label")
    batch = additive_segments(1, 128, 8, 16)
    gradient = run.best(lambda: batch._core.posteriors(1, gradient=True))
    base = table.add("scansion, additive: marginals and gradient", gradient, cells=128 * 16 * 64)
    table.add("torch-struct, log Z and gradient", 10.8, cells=128 * 16 * 64, note="full array, 2.1 GB; " + QUOTED)
    table.compare(base)
    table.show()


# Orders --------------------------------------------------------------------------------------------


def orders(run: Run) -> None:
    n_labels, n_times, n_batch = 10, 50, 20 if run.quick else 100
    rng = np.random.default_rng(5)
    text = markov_text(rng, 100, n_times, n_labels)
    table = run.table(
        f"Order k: {n_batch} sequences of {n_times}, {n_labels} labels, patterns seen in 100 sequences",
        "position x arc",
    )
    for order in range(1, 6):
        patterns = sorted(
            {
                tuple(row[i : i + k].tolist())
                for k in range(1, order + 2)
                for row in text
                for i in range(n_times - k + 1)
            }
        )
        begin = time.perf_counter()
        net = sc.PatternAutomaton(patterns, n_labels)
        built = time.perf_counter() - begin
        scores = rng.normal(size=(n_batch * n_times, len(patterns)))
        batch = sc.ChainBatch.from_patterns(scores, np.arange(n_batch + 1) * n_times, net, n_labels)
        batch.log_partition()
        arcs = net.topology(np.zeros(len(patterns), np.bool_)).n_arcs
        note = f"{len(patterns):,} patterns, {net.n_states:,} states, {arcs:,} arcs, built in {_time(built)}"
        cells = n_batch * n_times * arcs
        gradient = run.best(lambda core=batch._core: core.posteriors(1, gradient=True), 0.4)
        table.add(f"order {order}: marginals and gradient", gradient, cells=cells, note=note)
        table.add(f"order {order}: Viterbi", run.best(batch.viterbi, 0.2), cells=cells)
    table.show()


# Length, memory, threads, construction -------------------------------------------------------------


def length(run: Run) -> None:
    sizes = (100, 1_000, 10_000) if run.quick else (100, 1_000, 10_000, 100_000)
    for name, cell, per_position, make in (
        ("Chain, 10 labels", "position x label x label", 100, _long_chain),
        ("Segments, 8 labels, longest 20, additive", "position x length x label", 160, _long_segments),
    ):
        table = run.table(f"{name}: marginals of one sequence of length T", cell)
        for n_times in sizes:
            lattice = make(n_times)
            timed = run.best(lattice.marginals, 0.4 if n_times > 10_000 else 2.0)
            table.add(f"T = {n_times:,}", timed, cells=n_times * per_position)
        first = table.rows[1]
        for row, n_times in zip(table.rows, sizes, strict=True):
            row.ratio = row.time / n_times / (first.time / sizes[1])
        table.rows[0].note = "ratio: time per position against T = 1,000"
        table.show()


def _long_chain(n_times: int) -> sc.ChainLattice:
    rng = np.random.default_rng(6)
    return sc.ChainLattice(rng.normal(size=(n_times, 10)), rng.normal(size=(10, 10)))


def _long_segments(n_times: int) -> sc.SegmentLattice:
    return additive_segments(1, n_times, 8, 20)[0]


def memory(run: Run) -> None:
    """In a process of its own, for its peak memory."""
    n_times, longest, n_labels = (10_000 if run.quick else 100_000), 1_000, 3
    code = (
        "import json, sys, time; sys.path.insert(0, sys.argv[1]); import kernels; before = kernels.peak_memory(); "
        f"batch = kernels.additive_segments(1, {n_times}, {n_labels}, {longest}); "
        "wall, cpu = time.perf_counter(), time.process_time(); batch._core.posteriors(1, gradient=True); "
        "times = time.perf_counter() - wall, time.process_time() - cpu; "
        "print(json.dumps([*times, before, kernels.peak_memory()]))"
    )
    here = os.path.dirname(os.path.abspath(__file__))
    answers = [
        json.loads(subprocess.run([sys.executable, "-c", code, here], check=True, capture_output=True).stdout)
        for _ in range(1 if run.quick else 3)
    ]
    wall, cpu, before, peak = (min(column) for column in zip(*answers, strict=True))
    table = run.table(
        f"Segments, one sequence, T {n_times:,}, {n_labels} labels, longest segment {longest:,}, additive",
        "position x length x label",
    )
    note = f"peak memory {peak:.0f} MB, {before:.0f} MB of it before the arrays were made"
    table.add("scansion: marginals and gradient", (wall, cpu), cells=n_times * longest * n_labels, note=note)
    table.show()


def threads(run: Run) -> None:
    available = os.cpu_count() or 1
    table = run.table(f"Two threads against one ({available} processors here); ratio: wall of two / wall of one")
    hmm = Hmm.random(0, 9000, 24, 23)
    for name, make in (
        ("chain, 9,000 x 24, 23 labels: marginals", hmm.batch),
        (
            "segments, 16 x 128, 8 labels, longest 16, additive: marginals",
            lambda n: additive_segments(16, 128, 8, 16, n),
        ),
        (
            "segments, 4 x 1,000, 8 labels, longest 50, additive: marginals",
            lambda n: additive_segments(4, 1000, 8, 50, n),
        ),
    ):
        one, two = make(1), make(2)
        base = table.add(f"{name}, 1 thread", run.best(one.marginals))
        row = table.add(f"{name}, 2 threads", run.best(two.marginals))
        row.ratio = row.wall / base.wall
    table.show()


def automaton(run: Run) -> None:
    count, n_labels = (10_000 if run.quick else 100_000), 50
    rng = np.random.default_rng(7)
    patterns: set[tuple[int, ...]] = {(y,) for y in range(n_labels)}
    while len(patterns) < count:  # a skewed source, so that patterns share prefixes
        size = int(rng.integers(2, 6))
        patterns.add(tuple(np.minimum(rng.geometric(0.08, size) - 1, n_labels - 1).tolist()))
    ordered = sorted(patterns)
    table = run.table(f"Automaton of {count:,} patterns of length up to 5, {n_labels} labels", "state x label")
    net = sc.PatternAutomaton(ordered, n_labels)
    cells = net.n_states * n_labels
    build = run.best(lambda: sc.PatternAutomaton(ordered, n_labels), 0.3)
    table.add("states and arcs", build, cells=cells, note=f"{net.n_states:,} states")
    extent = np.zeros(len(ordered), np.uint8)
    layout = run.best(lambda: _core.Topology(net._native, extent), 0.3)
    table.add("layout for the kernels", layout, cells=cells, note=f"{net.topology(extent > 0).n_arcs:,} arcs")
    table.show()


# The command ---------------------------------------------------------------------------------------

SECTIONS = {
    "chain": chain,
    "hmm": hmm_shape,
    "segment": segment,
    "orders": orders,
    "length": length,
    "memory": memory,
    "threads": threads,
    "automaton": automaton,
}


def machine() -> dict[str, str]:
    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else name
    facts = {
        "processor": name,
        "processors": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "instruction set": _core.instruction_set(),
        "load": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "",
    }
    for package in ("scansion", "numpy", "hmmlearn", "python-crfsuite"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and shorter sequences")
    parser.add_argument("--json", metavar="FILE", help="write all figures to FILE, - for standard output")
    parser.add_argument("--only", metavar="NAMES", help=f"some of {','.join(SECTIONS)}")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(SECTIONS)
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        parser.error(f"--only {unknown[0]}: choose from {', '.join(SECTIONS)}")

    facts = machine()
    print("; ".join(f"{key} {value}" for key, value in facts.items()))
    run = Run(options.quick)
    for name in names:
        SECTIONS[name](run)
    if run.goals:
        print("\nGoals, on one thread")
        for goal in run.goals:
            print(f"  {goal}")
    if options.json:
        figures = {
            "machine": facts,
            "tables": [asdict(table) for table in run.tables],
            "goals": [{**asdict(goal), "met": goal.met} for goal in run.goals],
        }
        text = json.dumps(figures, indent=1)
        if options.json == "-":
            print(text)
        else:
            with open(options.json, "w", encoding="utf-8") as out:
                out.write(text + "\n")


if __name__ == "__main__":
    main()
