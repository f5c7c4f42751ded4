"""usaddress and probablepeople with python-crfsuite and with scansion in its place: tagging and training, in one run.

    make compat && python benchmarks/products.py [--repeat N] [--quick]

The packages are those that ``make compat`` installs into build/compat. Their own code makes the attributes, which is
not timed. Tagging: their own models, sequence by sequence through `scansion.pycrfsuite.Tagger`, and all at once through
`scansion.load(model).predict`. Training: `Trainer` with the packages' parameters; of usaddress, on addresses labelled
by its own model. Processor time, the two engines in turn, the best of several runs; labels must be equal. Names are
looked for as `experiments` does: ../shared/data, or SCANSION_DATA.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "build" / "compat" / "site")]

import pycrfsuite as theirs  # noqa: E402

import scansion as sc  # noqa: E402
from experiments.data import MissingDataError, find  # noqa: E402
from experiments.report import machine  # noqa: E402
from scansion import pycrfsuite as ours  # noqa: E402

PARAMETERS = {"c1": 0.1, "c2": 0.01, "feature.minfreq": 0, "max_iterations": 100}  # parserator's, at most 100 steps


def address_texts() -> list[str]:
    """1,512 addresses."""
    parts = (
        ("1", "22", "305 1/2", "5757", "10-12", "9", "123B"),
        ("N.", "", "West"),
        ("Main", "5th", "Oak Hill", "Martin Luther King"),
        ("St", "Avenue #4", "Blvd. Apt 3B"),
        ("Chicago, IL 60606", "New York NY", "St. Louis, MO 63101-1234"),
        ("", ", Attn: Mary"),
    )
    return [" ".join(" ".join(words).split()) for words in itertools.product(*parts)]


def addresses() -> tuple[str, list[Any]]:
    """The model of usaddress, and the attributes of addresses."""
    import usaddress

    texts = address_texts()
    return usaddress.MODEL_PATH, [usaddress.tokens2features(usaddress.tokenize(text)) for text in texts]


def names() -> tuple[str, list[Any], list[Any]]:
    """The generic model of probablepeople, and attributes and labels of its 4,090 names."""
    import probablepeople

    with gzip.open(find("probablepeople/labelled.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    path = Path(probablepeople.__file__).parent / "generic_learned_settings.crfsuite"
    return str(path), [probablepeople.tokens2features(r["tokens"]) for r in rows], [r["labels"] for r in rows]


def best(repeat: int, *runs: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """Least processor time of each, and what it gave; in turn."""
    times, given = [[] for _ in runs], [run() for run in runs]  # type: list[list[float]], list[Any]
    for _ in range(repeat):
        for run, spent in zip(runs, times, strict=True):
            begun = time.process_time()
            run()
            spent.append(time.process_time() - begun)
    return [min(spent) for spent in times], given


def tagging(name: str, path: str, X: list[Any], repeat: int) -> None:
    """Sequence by sequence, and all at once."""
    taggers = []
    for module in (theirs, ours):
        taggers.append(module.Tagger())
        taggers[-1].open(path)
    crf = sc.load(path)
    runs = [lambda tagger=tagger: [tagger.tag(x) for x in X] for tagger in taggers]
    spent, labels = best(repeat, *runs, lambda: crf.predict(X))
    assert labels[0] == labels[1] == labels[2], "the engines label differently"
    one, two, all_at_once = (1e6 * seconds / len(X) for seconds in spent)
    ratios = f"{one / two:.2f} | {all_at_once:.1f} | {one / all_at_once:.2f}"
    print(f"| {name}, {len(X)} sequences | {one:.1f} | {two:.1f} | {ratios} |")


def training(name: str, X: list[Any], y: list[Any], repeat: int) -> None:
    """The whole of it: sequences are appended, the model is trained and written."""
    with tempfile.TemporaryDirectory() as folder:

        def train(module: Any) -> Any:
            trainer = module.Trainer(verbose=False, params=PARAMETERS)
            for row, labels in zip(X, y, strict=True):
                trainer.append(row, labels)
            trainer.train(str(Path(folder, module.__name__)))
            return trainer.logparser.last_iteration["loss"], len(trainer.logparser.iterations)

        (one, two), ((loss, steps), (our_loss, our_steps)) = best(repeat, lambda: train(theirs), lambda: train(ours))
    print(f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} | {loss:.1f} ({steps}) | {our_loss:.1f} ({our_steps}) |")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="runs of each, of which the best counts")
    parser.add_argument("--quick", action="store_true", help="few runs, of a part of the names")
    args = parser.parse_args()
    repeat = 2 if args.quick else args.repeat
    model, X = addresses()
    try:
        names_model, names_X, names_y = names()
    except MissingDataError as error:
        print(error)
        names_model, names_X, names_y = "", [], []
    if args.quick:
        names_X, names_y = names_X[:800], names_y[:800]
    print(machine())
    print("\n| tagging, us a sequence | python-crfsuite | one by one | times faster | all at once | times faster |")
    print("|---|---|---|---|---|---|")
    tagging("usaddress", model, X, repeat)
    if names_X:
        tagging("probablepeople", names_model, names_X, repeat)
    print("\n| training, s | python-crfsuite | scansion | times faster | its loss (iterations) | loss (iterations) |")
    print("|---|---|---|---|---|---|")
    training("usaddress", X, sc.load(model).predict(X), max(1, repeat // 4))
    if names_X:
        training("probablepeople", names_X, names_y, max(1, repeat // 4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
