"""Times nested lattices: growth with the length of the sequence, with and without the short cuts.

    python benchmarks/nested.py                    # all sections
    python benchmarks/nested.py --quick
    python benchmarks/nested.py --only collapse    # sections: collapse boundaries bounds batch training

One thread. Every time is processor time, the best of several calls. Scores are normal noise, three levels: a root, 3
states, and 12 states below them. The section on training is described in nested_training.py.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import scansion as sc

SIZES = (1, 3, 12)


def clock(function: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of processor time, the best of several calls."""
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        function()
        best = min(best, time.process_time() - begin)
    return 1e3 * best


def scores(rows: int, bounds: tuple[int | None, ...], seed: int = 0) -> dict[str, list[Any]]:
    """Persistence as sums over positions with bounds on lengths, and cliques that do not depend on time."""
    rng = np.random.default_rng(seed)
    pairs = list(zip(SIZES[:-1], SIZES[1:], strict=True))
    return {
        "persist": [
            sc.Persistence(inside=rng.normal(size=(rows, s)), max_length=m) for s, m in zip(SIZES, bounds, strict=True)
        ],
        "transit": [rng.normal(size=(p, s, s)) - 3.0 for p, s in pairs],
        "init": [rng.normal(size=pair) for pair in pairs],
        "end": [rng.normal(size=pair) for pair in pairs],
    }


def general(lattice: sc.NestedLattice) -> sc.NestedLattice:
    """The same lattice without the short cut for levels that are plain sums."""
    batch = sc.NestedBatch._of(replace(lattice._batch._core, general=True), 1)
    found: sc.NestedLattice = sc.NestedLattice._of(batch)
    return found


def questions(lattice: Any, repeats: int) -> list[float]:
    return [
        clock(lattice.log_partition, repeats),
        clock(lattice.log_partition_and_gradient, repeats),
        clock(lattice.viterbi, repeats),
    ]


def collapse(quick: bool) -> None:
    """Free levels: a chain over stacks, against the general recursion."""
    print("\n### Levels that are plain sums over positions, no bounds\n")
    print("| T | log Z | gradient | Viterbi | log Z, general recursion | gradient, general |")
    print("|---|---|---|---|---|---|")
    for length in (50, 100, 200, 400) if quick else (50, 100, 200, 400, 800, 2_000, 20_000):
        lattice = sc.NestedLattice(**scores(length, (None, None, 1)))
        fast = questions(lattice, 3)
        row = " | ".join(f"{ms:.1f} ms" for ms in fast)
        if length <= 800:
            slow = general(lattice)
            times = (clock(slow.log_partition, 1), clock(slow.log_partition_and_gradient, 1))
            row += " | " + " | ".join(f"{ms:,.0f} ms" for ms in times)
        else:
            row += " | | "
        print(f"| {length:,} | {row} |", flush=True)


def boundaries(quick: bool) -> None:
    """Known boundaries of a level with durations: the cost falls towards linear."""
    length, longest = (400, 100) if quick else (1_000, 200)
    print(f"\n### Known boundaries, T = {length:,}, segments of up to {longest} positions with scores of lengths\n")
    print("| share of boundaries given | log Z | gradient |")
    print("|---|---|---|")
    given = scores(length, (None, longest, 1))
    rng = np.random.default_rng(1)
    given["persist"][1] = given["persist"][1]._replace(length=rng.normal(size=(longest, SIZES[1])))
    lattice = sc.NestedLattice(**given)
    truth = np.zeros(length, np.int64)
    truth[19::20] = 1
    truth[-1] = 1
    hidden = rng.random(length)
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0):
        held = lattice.constrain(boundaries={1: np.where(hidden < share, truth, -1)})
        times = clock(held.log_partition, 3), clock(held.log_partition_and_gradient, 1)
        print(f"| {100 * share:.0f} % | {times[0]:.1f} ms | {times[1]:.1f} ms |", flush=True)


def bounds(quick: bool) -> None:
    """Durations at one level and at two: linear in T at fixed bounds."""
    print("\n### Bounded segments\n")
    print("| T | longest above | longest below | log Z | gradient | Viterbi |")
    print("|---|---|---|---|---|---|")
    for length in (250, 500) if quick else (500, 1_000, 2_000):
        for above, below in ((50, 1), (100, 1), (100, 20)):
            lattice = sc.NestedLattice(**scores(length, (None, above, below)))
            row = " | ".join(f"{ms:.0f} ms" for ms in questions(lattice, 1))
            print(f"| {length:,} | {above} | {below} | {row} |", flush=True)


def batch(quick: bool) -> None:
    """Many short sequences."""
    sequences, length = (500, 24) if quick else (5_000, 24)
    print(f"\n### {sequences:,} sequences of {length} positions\n")
    print("| levels | log Z | gradient | Viterbi |")
    print("|---|---|---|---|")
    for name, longest in (("free", None), ("segments of up to 8", 8)):
        given = scores(sequences * length, (None, longest, 1))
        many = sc.NestedBatch(**given, offsets=np.arange(sequences + 1) * length)
        row = " | ".join(f"{ms:.0f} ms" for ms in questions(many, 3))
        print(f"| {name} | {row} |", flush=True)


def training(quick: bool) -> None:
    """Iterations of training, on the data of the experiments."""
    import nested_training

    nested_training.training(quick)


SECTIONS: dict[str, Callable[[bool], None]] = {
    "collapse": collapse,
    "boundaries": boundaries,
    "bounds": bounds,
    "batch": batch,
    "training": training,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter sequences")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    options = parser.parse_args()
    for name in options.only.split(","):
        SECTIONS[name](options.quick)


if __name__ == "__main__":
    main()
