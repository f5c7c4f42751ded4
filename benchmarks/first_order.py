"""First-order chains as products use them: short sequences, one sequence at a time, more than one answer.

    python benchmarks/first_order.py [--only TASK ...] [--base PYTHON] [--repeat N] [--json FILE]

Every measurement runs in a process of its own, processor time, one thread, the best of several. With --base, the
interpreter of an older scansion, it is measured in turn with this one. Tasks:

    short       one evaluation of loss and gradient on 20,000 made-up addresses of about 5 tokens, 30 labels; an
                iteration of python-crfsuite on the same
    chunks      the same on CoNLL-2000
    single      `predict_single` on two tokens, and on a sentence; python-crfsuite's tagger on the same
    answers     k best (10), samples (10) and entropy of 2,000 sentences of CoNLL-2000, beside predicting
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PEER = "python-crfsuite"
TASKS = ("short", "chunks", "single", "answers")


# ---- addresses ---------------------------------------------------------------------------------------


def addresses(count: int, seed: int = 0) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """Made-up addresses: 30 labels, some names that occur thousands of times and many that occur once."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "or", "un")]

    def name(size: int) -> str:
        """One of `size` names, the first ones often."""
        k = int(size ** rng.random()) - 1
        return (syllables[k % 160] + syllables[k // 160 % 160] + syllables[(7 * k) % 160]).capitalize()

    numbers = ("Number", "NumberPrefix", "NumberSuffix", "BoxNumber", "UnitNumber", "Level", "ZipCode", "ZipPlus")
    kinds = {
        "Direction": ["N", "S", "E", "W", "North", "South"],
        "StreetType": ["St", "Ave", "Road", "Blvd", "Lane", "Drive", "Court", "Pl"],
        "UnitType": ["Apt", "Suite", "Unit", "#", "Floor"],
        "BoxType": ["PO", "Box", "Drawer"],
        "State": ["NY", "CA", "TX", "IL", "WA", "OR", "FL", "GA", "OH", "MI"],
        "Country": ["USA", "US"],
        "Title": ["Mr", "Mrs", "Dr", "Ms"],
        "Corner": ["at", "&", "and"],
        "Recipient": ["c/o", "Attn"],
    }
    names = ("Street", "City", "Place", "Building", "Given", "Surname", "Company", "County", "Second", "Landmark")
    more = ("Before", "After", "Note")
    shapes = [
        ("Number", "Street", "StreetType"),
        ("Number", "Direction", "Street", "StreetType", "City", "State", "ZipCode"),
        ("Number", "Street", "StreetType", "UnitType", "UnitNumber", "City"),
        ("BoxType", "BoxNumber", "City", "State"),
        ("City", "State", "ZipCode"),
        ("Street", "StreetType", "Corner", "Second", "StreetType", "City"),
        ("Title", "Given", "Surname", "Number", "Street", "StreetType"),
        ("Recipient", "Company", "Building", "Level", "Number", "Street"),
        ("Place", "County", "State", "Country"),
        ("NumberPrefix", "Number", "NumberSuffix", "Street", "Before", "City", "ZipCode", "ZipPlus"),
        ("Landmark", "After", "Street", "Note"),
    ]
    X, y = [], []
    for _ in range(count):
        labels = rng.choice(shapes)
        words = []
        for label in labels:
            if label in numbers:
                words.append(str(rng.randrange(1, 10 ** rng.choice((1, 2, 3, 5)))))
            elif label in kinds:
                words.append(rng.choice(kinds[label]))
            else:
                words.append(name(20000 if label in names else 50 if label in more else 500))
        X.append([attributes(words, t) for t in range(len(words))])
        y.append(list(labels))
    return X, y


def attributes(words: list[str], t: int) -> dict[str, Any]:
    """Attributes of a token as parsers of addresses have them."""
    word = words[t]
    found: dict[str, Any] = {
        "word": word.lower(),
        "end": word[-2:].lower(),
        "length": f"{'d' if word.isdigit() else 'w'}{len(word)}",
        "capital": word[0].isupper(),
        "digits": "all" if word.isdigit() else "none",
        "first": t == 0,
        "last": t == len(words) - 1,
    }
    if t > 0:
        found["before"] = {
            "word": words[t - 1].lower(),
            "length": len(words[t - 1]) > 3,
            "digit": words[t - 1].isdigit(),
        }
    if t + 1 < len(words):
        found["after"] = {
            "word": words[t + 1].lower(),
            "length": len(words[t + 1]) > 3,
            "digit": words[t + 1].isdigit(),
        }
    return found


# ---- one measurement, in a process of its own --------------------------------------------------------


def best_of(repeat: int, call: Callable[[], Any], inner: int = 1) -> float:
    """Least processor time of a call, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        for _ in range(inner):
            call()
        times.append((time.process_time() - start) / inner)
    return min(times)


def read(task: str) -> tuple[Any, Any]:
    """Training data of a task."""
    if task == "short":
        return addresses(20000)
    from experiments import chunking

    return chunking.read("train")


def peer_model(X: Any, y: Any, path: str, iterations: int) -> list[float]:
    """Trains python-crfsuite; processor time at the end of each iteration."""
    import pycrfsuite

    stamps: list[float] = []

    class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
        def message(self, message: Any) -> None:
            super().message(message)
            if len(self.logparser.iterations) > len(stamps):
                stamps.append(time.process_time())

    trainer = Trainer(algorithm="lbfgs", params={"c2": 1.0, "max_iterations": iterations}, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(path)
    return stamps


def evaluation(task: str, peer: bool, repeat: int) -> dict[str, float]:
    """Seconds of an evaluation of loss and gradient, of an iteration with what surrounds it."""
    X, y = read(task)
    if peer:
        with tempfile.TemporaryDirectory() as folder:
            stamps = peer_model(X, y, f"{folder}/model", 12)
        steps = [b - a for a, b in zip(stamps, stamps[1:], strict=False)]
        return {"iteration": min(steps)}
    import numpy as np

    import scansion
    from scansion.data import encode

    data = encode(X)
    found = {}
    if hasattr(scansion.CRF, "problem"):  # older ones have it under another name
        model, objective = scansion.CRF(c2=1.0).problem(data, y)
        w = np.random.default_rng(0).normal(size=model.weights.size) * 0.1
        native, gradient = objective.native, np.zeros_like(w)  # type: ignore[attr-defined]
        native.log_loss(w, gradient, 1)
        found["evaluation"] = best_of(repeat, lambda: native.log_loss(w, gradient, 1))
    times = []
    for limit in (1, 12):
        start = time.process_time()
        n = scansion.CRF(c2=1.0, max_iterations=limit, n_jobs=1).fit(data, y).n_iter_
        times.append((time.process_time() - start, n))
    found["iteration"] = (times[1][0] - times[0][0]) / (times[1][1] - times[0][1])
    return found


def single(peer: bool, repeat: int) -> dict[str, float]:
    """Seconds of tagging two tokens, and a sentence of 23."""
    X, y = read("chunks")
    X, y = X[:500], y[:500]
    x = next(one for one in X if len(one) == 23)
    if peer:
        import pycrfsuite

        with tempfile.TemporaryDirectory() as folder:
            peer_model(X, y, f"{folder}/model", 10)
            tagger = pycrfsuite.Tagger()
            tagger.open(f"{folder}/model")
        tag = tagger.tag
    else:
        import scansion

        tag = scansion.CRF(c2=1.0, max_iterations=10).fit(X, y).predict_single
    return {
        "two tokens": best_of(3 * repeat, lambda: tag(x[:2]), 500),
        "23 tokens": best_of(3 * repeat, lambda: tag(x), 200),
    }


def answers(peer: bool, repeat: int) -> dict[str, float]:
    """Seconds of the questions for more than the best labels, encoded sentences being given."""
    if peer:
        return {}
    import scansion
    from scansion.data import encode

    X, y = read("chunks")
    crf = scansion.CRF(c2=1.0, max_iterations=20, n_jobs=1).fit(X[:3000], y[:3000])
    inputs = crf._inputs(encode(X[3000:5000], crf.model_.vocabulary, frozen=True))
    batch = crf.model_.batch(inputs, 1)
    return {
        "predict": best_of(repeat, lambda: crf.predict(inputs)),
        "viterbi, lattices given": best_of(repeat, batch.viterbi),
        "log Z, lattices given": best_of(repeat, batch.log_partition),
        "10 best": best_of(repeat, lambda: crf.predict_kbest(inputs, 10)),
        "2 best": best_of(repeat, lambda: crf.predict_kbest(inputs, 2)),
        "10 samples": best_of(
            repeat, lambda: crf.sample(inputs, 10, 0) if hasattr(crf, "sample") else batch.sample(10, 0)
        ),
        "1 sample, lattices given": best_of(repeat, lambda: batch.sample(1, 0)),
        "entropy, lattices given": best_of(repeat, batch.entropy),
    }


def measure(task: str, peer: bool, repeat: int) -> dict[str, float]:
    """The figures of a task."""
    if task == "single":
        return single(peer, repeat)
    if task == "answers":
        return answers(peer, repeat)
    return evaluation(task, peer, repeat)


# ---- all of them -------------------------------------------------------------------------------------


def rows(tasks: list[str], interpreters: dict[str, str], repeat: int) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Task, who, figures."""
    for task in tasks:
        for who, python in interpreters.items():
            command = [python, __file__, "--measure", json.dumps([task, who == PEER, repeat])]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            yield task, who, json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--base", help="interpreter of an older scansion")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    interpreters = {PEER: sys.executable, "scansion": sys.executable}
    if given.base:
        interpreters["older scansion"] = given.base
    found: dict[str, dict[str, dict[str, float]]] = {}
    for task, who, figures in rows(given.only, interpreters, given.repeat):
        found.setdefault(task, {})[who] = figures
        for name, seconds in figures.items():
            print(f"{task:8} {who:16} {name:28} {seconds * 1e3:10.4f} ms", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
