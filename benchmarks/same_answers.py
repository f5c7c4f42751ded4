"""Whether two versions of scansion answer alike: fits and asks models and lattices of all kinds on fixed seeds.

    python benchmarks/same_answers.py record before.npz      # with the older version installed
    python benchmarks/same_answers.py compare before.npz     # with the newer one

Answers of chains and segments must be equal bit for bit, those of nested models to 1e-12 of their size: there the order
of sums may differ. Only public names are used.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import scansion as sc

NESTED = 1e-12
# what an optimiser makes of sums in another order: it stops at a slightly different point
FITTED = 1e-6


def numbers(answer: Any) -> Iterator[float]:
    """All numbers in an answer, in a fixed order; strings count by their characters."""
    if isinstance(answer, dict):
        for key in sorted(answer, key=str):
            yield from numbers(key)
            yield from numbers(answer[key])
    elif isinstance(answer, str):
        yield from map(float, answer.encode())
    elif isinstance(answer, np.ndarray):
        yield from answer.astype(np.float64).ravel().tolist()
    elif answer is None:
        yield np.inf
    elif isinstance(answer, (bool, int, float, np.generic)):
        yield float(answer)
    else:
        for part in answer:
            yield from numbers(part)


# ---- data ----------------------------------------------------------------------------------------------------------


def tokens(rng: np.random.Generator, sizes: list[int], values: bool = False) -> list[Any]:
    """Sequences of tokens with a few attributes each, some of them with values."""
    words = [f"w{i}" for i in range(12)]
    return [
        [
            {"a": str(rng.choice(words)), "b": bool(rng.random() < 0.5), **({"x": rng.normal()} if values else {})}
            for _ in range(n)
        ]
        for n in sizes
    ]


def runs(rng: np.random.Generator, size: int, labels: str, longest: int) -> list[tuple[int, int, str]]:
    """Segments that cover a sequence, neighbours of different labels."""
    found: list[tuple[int, int, str]] = []
    at = 0
    while at < size:
        stop = min(size, at + int(rng.integers(1, longest + 1)))
        free = [y for y in labels if not found or y != found[-1][2]]
        found.append((at, stop, str(rng.choice(free))))
        at = stop
    return found


def by_token(segments: list[tuple[int, int, str]]) -> list[str]:
    return [y for u, v, y in segments for _ in range(v - u)]


def hidden(rng: np.random.Generator, labels: list[str], share: float) -> list[Any]:
    """Labels of which some are unknown, and some one of two."""
    return [None if (r := rng.random()) < share else {y, "A"} if r < 1.3 * share else y for y in labels]


SIZES = [1, 2, 3, 5, 8, 13, 7, 9, 4, 6, 10, 11, 3, 2, 12]


# ---- questions -----------------------------------------------------------------------------------------------------


def asked(model: Any, X: list[Any], y: list[Any], trajectories: bool) -> Iterator[tuple[str, Any]]:
    """Everything that one asks of an estimator."""
    yield "predict", model.predict(X)
    yield "marginals", model.predict_marginals(X)
    yield "kbest", model.predict_kbest(X, 3)
    yield "sample", model.sample(X, 2, random_state=5)
    yield "score", model.score(X, y)
    yield "log_likelihood", model.log_likelihood(X, y)
    known = [None if isinstance(one, sc.Trajectory) else one for one in y]
    yield "constrained", model.predict(X, constraints=known)
    yield "loss", [model.loss_, model.n_iter_, model.size_]
    yield "features", [model.state_features_, model.transition_features_, model.strongest_features(3)]
    if trajectories:
        yield "compressed", [model.predict_compressed(X), model.predict_compressed(X, "best")]


def questions(lattice: Any) -> Iterator[tuple[str, Any]]:
    """Everything that one asks of a lattice of any kind."""
    best, score = lattice.viterbi()
    yield "log_partition", lattice.log_partition()
    yield "viterbi", [best, score, lattice.score(best), lattice.log_probability(best)]
    yield "kbest", lattice.kbest(7)
    yield "sample", lattice.sample(3, 9)
    yield "entropy", lattice.entropy()
    found = lattice.marginals()
    for name in ("labels", "patterns", "transitions", "segments", "boundaries", "transit", "init", "end"):
        try:
            value = getattr(found, name, None)
        except AttributeError:
            continue
        if value is not None:
            yield name, [part for part in value if part is not None] if isinstance(value, (tuple, list)) else value


def trajectories(lattice: Any) -> Iterator[tuple[str, Any]]:
    compressed = lattice.compressed()
    best = compressed.best(3, budget=500)
    yield "lengths", compressed.lengths
    yield "best", [best.trajectories, best.probabilities]
    yield "log_probability", [compressed.log_probability(t) for t in best.trajectories]
    yield "boundaries", compressed.boundaries(best.trajectories[0])
    yield "places", compressed.lattice(best.trajectories[0]).marginals().labels


# ---- cases ---------------------------------------------------------------------------------------------------------


def flat_models() -> Iterator[tuple[str, Callable[[], Any], list[Any], list[Any]]]:
    """Name, a model to be fitted, X, y."""
    rng = np.random.default_rng(1)
    X = tokens(rng, SIZES)
    values = tokens(rng, SIZES, values=True)
    dense = [rng.normal(size=(n, 4)) for n in SIZES]
    segments = [runs(rng, n, "ABC", 4) for n in SIZES]
    labels = [by_token(one) for one in segments]
    partial = [hidden(rng, one, 0.3) if b % 2 else one for b, one in enumerate(labels)]
    passed = [sc.Trajectory([y for _, _, y in one]) if b % 3 == 0 else labels[b] for b, one in enumerate(segments)]
    for order in (0, 1, 2, 3):
        yield f"crf order {order}", lambda k=order: sc.CRF(k, c2=0.1, max_iterations=30), X, labels
    for algorithm in ("l2sgd", "asgd", "mm", "ap", "pa"):
        yield f"crf {algorithm}", lambda a=algorithm: sc.CRF(algorithm=a, max_iterations=5, random_state=3), X, labels
        yield f"crf 2 {algorithm}", lambda a=algorithm: sc.CRF(2, algorithm=a, max_iterations=3), values, partial
    yield "crf L1", lambda: sc.CRF(c1=0.3, c2=0.01, max_iterations=30), X, labels
    yield "crf partial", lambda: sc.CRF(2, c2=(0.1, 1.0), max_iterations=20), X, partial
    yield "crf dense", lambda: sc.CRF(c2=0.2, max_iterations=20), dense, labels
    everything = {"all_possible_states": True, "all_possible_transitions": True}
    yield "crf all", lambda: sc.CRF(max_iterations=9, **everything), X, labels
    tied = {"attribute_orders": {"a": (0, 1, 2)}, "bias_order": 1}
    for engine in ("automaton", "sum-difference"):
        yield f"crf tied {engine}", lambda e=engine: sc.CRF(2, engine=e, max_iterations=9, **tied), X, labels
    yield "crf grow", lambda: sc.CRF(3, grow=4, max_iterations=9), X, labels
    yield "crf trajectories", lambda: sc.CRF(max_iterations=20), X, passed
    yield "crf 2 trajectories", lambda: sc.CRF(2, max_iterations=9), X, passed
    parts = {"attribute_parts": {"a": ("start", "end"), "b": ("inside", "inner")}}
    lengths = {"length_features": ("bins", "length", "log")}
    cells = {"segment_features": lambda x, u, v: [f"n={v - u}", f"first={x[u]['a']}"]}
    for order in (0, 1, 2):
        yield f"semicrf order {order}", lambda k=order: sc.SemiCRF(k, c2=0.1, max_iterations=20), X, segments
    yield "semicrf parts", lambda: sc.SemiCRF(2, max_iterations=15, **parts, **lengths), values, segments
    yield "semicrf cells", lambda: sc.SemiCRF(max_iterations=15, **cells), X, segments
    yield "semicrf labels", lambda: sc.SemiCRF(max_length="by label", max_iterations=15), X, labels
    yield "semicrf partial", lambda: sc.SemiCRF(2, 4, max_iterations=9), X, partial
    yield "semicrf trajectories", lambda: sc.SemiCRF(1, 4, max_iterations=9), X, passed
    for algorithm in ("asgd", "mm", "ap", "pa"):
        yield f"semicrf {algorithm}", lambda a=algorithm: sc.SemiCRF(algorithm=a, max_iterations=3), X, segments


def nested_models() -> Iterator[tuple[str, Callable[[], Any], list[Any], list[Any]]]:
    rng = np.random.default_rng(2)
    X = tokens(rng, SIZES, values=True)
    upper = [runs(rng, n, "PQ", 6) for n in SIZES]
    lower = [[(u + a, u + b, y) for u, v, _ in one for a, b, y in runs(rng, v - u, "ABC", 3)] for one in upper]
    y = [{"up": a, "low": b} for a, b in zip(upper, lower, strict=True)]
    partial = [{"up": a} if i % 3 == 0 else {"low": b} if i % 3 == 1 else {"up": a, "low": b}
               for i, (a, b) in enumerate(zip(upper, lower, strict=True))]  # fmt: skip
    levels = ["up", "low"]
    few = {"max_iterations": 15, "c2": 0.5}
    yield "nested free", lambda: sc.HierarchicalCRF(levels, **few), X, y
    yield "nested timed", lambda: sc.HierarchicalCRF(levels, max_length=None, length_features=("bins",), **few), X, y
    yield "nested partial", lambda: sc.HierarchicalCRF(levels, max_length={"low": 3}, **few), X, partial
    all_parts = ("inside", "start", "end", "inner", "transition", "initialisation", "ending")
    parts = {"up": {"a": ("start", "transition"), "b": "ending", "x": "inside"}, "low": all_parts}
    yield "nested parts", lambda: sc.HierarchicalCRF(levels, attribute_parts=parts, **few), X, y
    cells = {"low": lambda x, u, v: {f"n={v - u}": 1.5, "first": x[u]["a"]}}
    spans = {"max_length": {"low": 3}, "segment_features": cells}
    yield "nested spans", lambda: sc.HierarchicalCRF(levels, transitions="seen", **spans, **few), X, y
    online = {"algorithm": "asgd", "batch_size": 1, "max_iterations": 3}
    yield "nested asgd", lambda: sc.HierarchicalCRF(levels, **online), X, partial
    yield "nested weights", lambda: sc.HierarchicalCRF(levels, c1={"up": 0.1}, c2=0.2, max_iterations=9), X, y


def flat_lattices() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(3)
    patterns = [(0,), (1,), (2,), (0, 1), (1, 2, 0), (sc.BOS, 1), (2, sc.EOS)]
    for i, size in enumerate((0, 1, 2, 7, 40)):
        unary, pairs = rng.normal(size=(size, 3)), rng.normal(size=(3, 3))
        yield f"chain {i}", sc.ChainLattice(unary, pairs, rng.normal(size=3), rng.normal(size=3))
        yield f"patterns {i}", sc.ChainLattice.from_patterns(rng.normal(size=(size, 7)), patterns, 3)
        yield f"segments {i}", sc.SegmentLattice(rng.normal(size=(size, 4, 7)), patterns, 3)
        start, inside, end, length = (rng.normal(size=(n, 7)) for n in (size, size, size, 5))
        parts = {"start": start, "inside": inside, "end": end, "length": length}
        yield f"parts {i}", sc.SegmentLattice.from_parts(patterns, 3, 5, **parts)
    known = np.array([-1, 2, -1, -1, 0, -1, -1])
    yield "chain known", sc.ChainLattice(rng.normal(size=(7, 3)), pairs).constrain(labels=known)
    ends = np.array([-1, 1, 0, -1, -1, -1, 1])
    lattice = sc.SegmentLattice(rng.normal(size=(7, 4, 7)), patterns, 3)
    yield "segments known", lattice.constrain(labels=known, boundaries=ends)


def nested_lattices() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(4)
    for i, size in enumerate((1, 3, 9, 30)):
        for timed in (False, True):
            up, low = rng.normal(size=(size, 2)), rng.normal(size=(size, 3))
            bounds = {"length": rng.normal(size=(4, 2))} if timed else {}
            persist = [sc.Persistence(inside=np.zeros((size, 1))), sc.Persistence(inside=up, **bounds)]
            persist.append(sc.Persistence(inside=low, start=low[:, ::-1].copy()))
            transit = [rng.normal(size=(1, 2, 2)), rng.normal(size=(2, 3, 3))]
            init, end = ([rng.normal(size=(1, 2)), rng.normal(size=(2, 3))] for _ in range(2))
            lattice = sc.NestedLattice(persist, transit, init, end)
            yield f"nested {i} {timed}", lattice
            if size > 3:
                known = np.full(size, -1)
                known[size // 2] = 1
                yield f"nested known {i} {timed}", lattice.constrain(labels={1: known, 2: known})


def answers() -> Iterator[tuple[str, float, Any]]:
    """Name, how far answers may be apart (0: not at all), answer."""
    for cases, tolerance in ((flat_models(), 0.0), (nested_models(), FITTED)):
        for name, make, X, y in cases:
            model = make().fit(X, y)
            for question, answer in asked(model, X, y, tolerance == 0.0):
                yield f"{name}: {question}", tolerance, answer
    for lattices, tolerance in ((flat_lattices(), 0.0), (nested_lattices(), NESTED)):
        for name, lattice in lattices:
            for question, answer in questions(lattice):
                yield f"{name}: {question}", tolerance, answer
            if tolerance == 0.0 and len(lattice):
                for question, answer in trajectories(lattice):
                    yield f"{name}: {question}", tolerance, answer


def same(before: Any, after: Any, tolerance: float) -> bool:
    if before.shape != after.shape:
        return False
    if tolerance == 0.0:
        return before.tobytes() == after.tobytes()
    return bool(np.allclose(after, before, rtol=tolerance, atol=tolerance))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {name: (tolerance, np.array(list(numbers(answer)))) for name, tolerance, answer in answers()}
    if args.what == "record":
        np.savez(args.file, **{name: values for name, (_, values) in found.items()})
        print(f"{len(found)} answers recorded")
        return 0
    before = np.load(args.file)
    wrong = 0
    for name in sorted(set(found) | set(before.files)):
        if name not in found or name not in before:
            print(f"{name}: {'not asked any more' if name not in found else 'new'}")
            continue
        tolerance, after = found[name]
        if not same(before[name], after, tolerance):
            wrong += 1
            apart = "shapes differ"
            if before[name].shape == after.shape:
                with np.errstate(invalid="ignore"):
                    apart = f"apart by {np.nanmax(np.abs(before[name] - after)):.3g}"
            print(f"{name}: {apart}")
    print(f"{len(found)} answers, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
