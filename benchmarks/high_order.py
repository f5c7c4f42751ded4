"""High orders in every question: predicting, marginals, more than one answer, passes of stochastic algorithms.

    python benchmarks/high_order.py [--data letters,xpos] [--orders 1,2,3,5] [--base PYTHON] [--json FILE]

Data and attributes as in orders.py; letters has all patterns, xpos those seen 20 times (pairs: all). Models have five
iterations of L-BFGS; every question is about the training data, encoded before (of xpos, the first 2,000 sequences).
One thread, processor time, the best of three; a pass of asgd or pa is half of what three passes cost more than one.
With --base, the interpreter of an older scansion, that one is measured right after, order by order.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]


def best(task: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        task()
        times.append(time.process_time() - begin)
    return min(times)


def measure(data: str, order: int) -> dict[str, float]:
    """Seconds of each question."""
    import orders

    import scansion as sc
    from scansion.data import encode

    warnings.simplefilter("ignore")
    X, y = orders.DATA[data]()
    options: dict[str, Any] = {"n_jobs": 1, "min_freq": (0, 0, 20) if data == "xpos" else 0}
    train, some = encode(X), encode(X[:2000])
    crf = sc.CRF(order, max_iterations=5, **options).fit(train, y)

    def a_pass(algorithm: str) -> float:
        def fit(passes: int) -> float:
            return best(lambda: sc.CRF(order, algorithm=algorithm, max_iterations=passes, **options).fit(train, y), 2)

        return (fit(3) - fit(1)) / 2

    return {
        "predict": best(lambda: crf.predict(some)),
        "marginals": best(lambda: crf.ask(some, _labels)),
        "5 best": best(lambda: crf.predict_kbest(some, 5), 2),
        "one sample": best(lambda: crf.sample(some, 1), 2),
        "asgd pass": a_pass("asgd"),
        "pa pass": a_pass("pa"),
    }


def _labels(batch: Any) -> list[Any]:
    return [batch.marginals().labels]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default="letters,xpos")
    parser.add_argument("--orders", default="1,2,3,5")
    parser.add_argument("--base", help="interpreter of an older scansion")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]))))
        return 0
    from experiments.report import machine

    interpreters = {"scansion": sys.executable, **({"older": given.base} if given.base else {})}
    print(f"{machine()}\n")
    rows: list[dict[str, Any]] = []
    for data in given.data.split(","):
        first: dict[str, dict[str, float]] = {}
        for order in map(int, given.orders.split(",")):
            if data == "xpos" and order > 3:
                continue
            for version, python in interpreters.items():
                command = [python, __file__, "--one", data, str(order)]
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                first.setdefault(version, found)
                if not rows:
                    print("| data | order | version | " + " | ".join(found) + " |")
                    print("|---|---|---|" + "---|" * len(found))
                rows.append({"data": data, "order": order, "version": version, **found})
                cells = [f"{1e3 * found[k]:.1f} ms ({found[k] / first[version][k]:.1f})" for k in found]
                print(f"| {data} | {order} | {version} | " + " | ".join(cells) + " |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
