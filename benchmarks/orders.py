"""What higher orders cost: one evaluation of loss and gradient at orders 1..5, by both engines.

    python benchmarks/orders.py [--data letters,xpos] [--orders 1,2,3] [--quick] [--json FILE]

letters: fold 0 of the handwritten words, 26 labels, the set pixels as attributes. xpos: UD English EWT, 49 tags; the
word, its suffixes of 1 to 3 letters, its shape, and the words beside it. Patterns:

- all: always-on features of all label patterns seen in training;
- >= n: of order 2 and more only those seen so often (min_freq);
- words >= n: always-on features of label pairs; words tied to patterns of all orders, of order 2 and more only if the
  word was seen with them so often. These patterns live where such a word stands.

Each time is the best of several evaluations on one thread, in processor time, which is steadier than wall time where
other work is done. Memory is the growth of the process at its peak, the data set not counted; each row runs in a
process of its own. Setup has choosing features and one evaluation.

Data are looked for as `experiments` does: ../shared/data, or SCANSION_DATA.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.data import MissingDataError, find, open_text
from experiments.report import machine

FILES = {"letters": "letters/letter.data", "xpos": "ud-english-ewt/en_ewt-ud-train.conllu"}


def letters() -> tuple[list[Any], list[Any]]:
    from experiments.letters import read_words

    return read_words()[0]


def shape(word: str) -> str:
    kinds = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    short = kinds[:1]
    for kind in kinds[1:]:
        short += kind if kind != short[-1] else ""
    return short


def xpos() -> tuple[list[Any], list[Any]]:
    X: list[Any] = []
    y: list[Any] = []
    words: list[str] = []
    tags: list[str] = []
    with open_text(FILES["xpos"]) as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) > 4 and fields[0].isdigit():
                words.append(fields[1])
                tags.append(fields[4])
            elif not line.strip() and words:
                X.append([_token(words, t) for t in range(len(words))])
                y.append(tags)
                words, tags = [], []
    return X, y


def _token(words: list[str], t: int) -> list[str]:
    word = words[t]
    found = ["w=" + word.lower(), "shape=" + shape(word)]
    found += [f"s{n}=" + word[-n:].lower() for n in (1, 2, 3)]
    found.append("-w=" + (words[t - 1].lower() if t else "<"))
    found.append("+w=" + (words[t + 1].lower() if t + 1 < len(words) else ">"))
    return found


DATA = {"letters": letters, "xpos": xpos}


def measure(data: str, order: int, engine: str, kind: str, repeats: int, most: float, send: Any) -> None:
    """One row, in a process of its own."""
    import numpy as np

    import scansion as sc
    from scansion.data import encode
    from scansion.models.engines import resolve

    X, y = DATA[data]()
    encoded = encode(X)
    del X
    start = _peak()
    crf = sc.CRF(order, engine=engine, **options(kind, order))
    begin = time.process_time()
    model, objective = crf.problem(encoded, y)
    w = np.random.default_rng(0).normal(size=model.n_weights) * 0.1
    gradient = np.empty_like(w)
    objective.log_loss(w, gradient, 1)
    setup = time.process_time() - begin
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        objective.log_loss(w, gradient, 1)
        times.append(time.process_time() - begin)
        if sum(times) > most:
            break
    send.send(
        {
            "data": data,
            "order": order,
            "engine": "first-order kernel" if model.dense and engine != "sum-difference" else resolve(engine, model),
            "kind": kind,
            "tokens": int(encoded.n_tokens),
            "patterns": len(model.patterns) - model.n_labels,
            "states": int(model.automaton.n_states),
            "weights": int(model.n_weights),
            "seconds": min(times),
            "setup": setup,
            "alive": int(objective.native.sum_difference_size()[1]) / int(encoded.n_tokens),
            "megabytes": (_peak() - start) / 1e6,
            "refused": int(objective.native.refused()),
        }
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def options(kind: str, order: int) -> dict[str, Any]:
    """Parameters of a kind of patterns."""
    least = int(kind.split()[-1]) if kind != "all" else 0
    if kind.startswith("words"):
        orders = tuple(range(order + 1))
        return {"min_freq": (0, 0, least), "bias_order": 1, "attribute_orders": {"w=": orders}}
    return {"min_freq": (0, 0, least)}


def rows(names: list[str], orders: list[int], quick: bool) -> list[tuple[str, int, str, str]]:
    result: list[tuple[str, int, str, str]] = []
    for name in names:
        letters = name == "letters"
        # order 1 has a kernel of its own, which goes by the automaton's name
        some = [1, 2, 3, 4, 5] if letters else [1, 2] if quick else [1, 2, 3]
        result += [(name, k, "automaton" if k == 1 else "sum-difference", "all") for k in some if k in orders]
        if not letters:
            for kind in (">= 20", ">= 100", "words >= 5"):
                result += [
                    (name, k, "sum-difference", kind) for k in orders if k > 1 and ("words" not in kind or k <= 3)
                ]
        if 1 in orders:
            result.append((name, 1, "sum-difference", "all"))
        if not quick:
            result += [(name, k, "automaton", "all") for k in orders if 1 < k and letters]
            result += [(name, k, "automaton", ">= 100") for k in orders if 1 < k <= 3 and not letters]
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default="letters,xpos")
    parser.add_argument("--orders", default="1,2,3,4,5")
    parser.add_argument("--quick", action="store_true", help="few repeats, no automaton at higher orders")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"{machine()}\n")
    print("| data | order | engine | kind | patterns | alive | states | s / evaluation | x order 1 | MB | setup s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    found: list[dict[str, Any]] = []
    first: dict[str, float] = {}
    names = []
    for name in given.data.split(","):
        try:
            find(FILES[name])
            names.append(name)
        except MissingDataError as missing:
            print(f"{name}: skipped, {missing}")
    for name, order, engine, kind in rows(names, list(map(int, given.orders.split(","))), given.quick):
        context = multiprocessing.get_context("fork")
        receive, send = context.Pipe(duplex=False)
        repeats, most = (3, 10.0) if given.quick else (40 if name == "letters" else 6, 20.0)
        process = context.Process(target=measure, args=(name, order, engine, kind, repeats, most, send))
        process.start()
        send.close()
        try:
            row = receive.recv()
        except EOFError:
            print(f"{name}, order {order}, {engine}: failed", file=sys.stderr)
            continue
        process.join()
        found.append(row)
        if order == 1 and name not in first:
            first[name] = row["seconds"]
        alive = f"{row['alive']:,.0f}" if row["alive"] else ""
        ratio = f"{row['seconds'] / first[name]:.2f}" if name in first else ""
        print(
            f"| {name} | {order} | {row['engine']} | {kind} | {row['patterns']:,} | {alive} "
            f"| {row['states']:,} | {row['seconds']:.4f} | {ratio} | {row['megabytes']:.0f} | {row['setup']:.1f} |",
            flush=True,
        )
    if given.json:
        given.json.write_text(json.dumps({"machine": machine(), "rows": found}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
