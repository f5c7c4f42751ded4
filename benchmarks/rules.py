"""Rules in products and in chunking: no impossible answer, what that does to accuracy, and what it costs.

    make compat && python benchmarks/rules.py [--repeat N] [--sources DIRECTORY] [--quick]

Products: the models that usaddress and probablepeople ship, loaded by `scansion.load`, under `at_most_once` of every
label. Their own code makes the attributes, and their own `tag` says where a label comes back that it cannot use
(RepeatedLabelError), with scansion as its tagger. Accuracy is that of strings that have no label twice in truth. Names
are the 4,090 of ../shared/data (or SCANSION_DATA), most of which the model was trained on; addresses are those that
usaddress is measured on, where DIRECTORY holds a checkout of its repository, else 1,512 that are made up, without
truth. Chunking: CoNLL-2000 and CoNLL-2004 under `scheme`, models of few iterations, so that they err. Processor time,
in turn, the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import products  # puts the packages of make compat in reach

import scansion as sc
from experiments.chunking import attributes as chunk_attributes
from experiments.data import MissingDataError, open_text, read_columns
from experiments.names import repeats
from experiments.report import machine, percent
from scansion import rules

Labelled = list[tuple[list[str], list[str] | None]]


def addresses(sources: Path | None) -> Labelled:
    """Tokens and labels of addresses; without labels unless there is a checkout."""
    import usaddress

    if sources is None:
        return [(usaddress.tokenize(text), None) for text in products.address_texts()]
    found: Labelled = []
    for path in sorted((sources / "usaddress" / "measure_performance" / "test_data").glob("*.xml")):
        for one in ElementTree.parse(path).getroot():
            parts = [(part.text or "", part.tag) for part in one]
            if parts and all(text for text, _ in parts):
                found.append(([text for text, _ in parts], [label for _, label in parts]))
    return found


def names() -> Labelled:
    """Tokens and labels of names."""
    with open_text("probablepeople/labelled.jsonl") as lines:
        return [(row["tokens"], row["labels"]) for row in map(json.loads, lines)]


class _Tagger:
    """What a product asks for labels, string by string."""

    def __init__(self, crf: sc.CRF, rule: Any) -> None:
        self.crf, self.rule = crf, rule

    def tag(self, features: Any) -> list[str]:
        """The labels of one string."""
        found: list[str] = self.crf.predict([features], rules=self.rule)[0]
        return found


def errors(module: Any, crf: sc.CRF, rule: Any, texts: list[str]) -> int:
    """How many strings a product refuses."""
    tagger = _Tagger(crf, rule)
    if hasattr(module, "TAGGERS"):
        module.TAGGERS["generic"] = tagger
    else:
        module.TAGGER = tagger
    count = 0
    for text in texts:
        try:
            module.tag(text)
        except module.RepeatedLabelError:
            count += 1
    return count


def right(found: list[list[str]], truth: list[list[str] | None]) -> tuple[str, str]:
    """Accuracy of tokens and of strings, where truth has no label twice."""
    pairs = [(a, b) for a, b in zip(found, truth, strict=True) if b is not None and not repeats(b)]
    if not pairs:
        return "", ""
    tokens = [x == y for a, b in pairs for x, y in zip(a, b, strict=True)]
    return percent(float(np.mean(tokens))), percent(float(np.mean([a == b for a, b in pairs])))


def product(name: str, module: Any, path: str, data: Labelled, repeat: int) -> None:
    """One product, freely and under rules."""
    crf = sc.load(path)
    rule = rules.at_most_once(*crf.classes_)
    X, truth = [module.tokens2features(tokens) for tokens, _ in data], [labels for _, labels in data]
    texts = [" ".join(tokens) for tokens, _ in data]
    spent, found = products.best(repeat, lambda: crf.predict(X), lambda: crf.predict(X, rules=rule))
    single = [products.best(3, lambda: crf.predict([x]), lambda: crf.predict([x], rules=rule))[0] for x in X[:1500]]  # noqa: B023
    kept = sum(b is not None and not repeats(b) for b in truth)
    changed = sum(a != b for a, b in zip(*found, strict=True))
    for k, kind in enumerate(("freely", "under rules")):
        refused = errors(module, crf, rule if k else [], texts)
        speed = f"{len(X) / spent[k]:,.0f}"
        print(f"| {name}, {kind} | {' | '.join(right(found[k], truth))} | {refused} | {speed} |")
    ratios = [b / a for a, b in single]
    print(
        f"\n{name}: {len(X)} strings ({kept} with a truth that has no label twice), {len(crf.classes_)} rules; they "
        f"changed {changed} answers. All at once {spent[1] / spent[0]:.2f} times as long; one by one "
        f"{sum(b for _, b in single) / sum(a for a, _ in single):.2f} times, {max(ratios):.1f} times at most.\n"
    )


def chunks(quick: bool) -> dict[str, tuple[str, Any, Any, Any, Any]]:
    """Scheme, training data and test data by name."""
    train = read_columns("conll2000/train.txt")[: 500 if quick else 2500]
    test = read_columns("conll2000/test.txt")
    columns = [[chunk_attributes(words, tags) for words, tags, _ in part] for part in (train, test)]
    found = {"CoNLL-2000": ("iob2", columns[0], [row[-1] for row in train], columns[1], [row[-1] for row in test])}
    sides = []
    for part in ("train", "test"):
        with open_text(f"conll2004/conll04_{part}.json") as file:
            rows = json.load(file)
        X = [[_seen(row["tokens"], t) for t in range(len(row["tokens"]))] for row in rows]
        sides += [X, [row["tags"] for row in rows]]
    found["CoNLL-2004"] = ("bilou", *sides)
    return found


def _seen(words: list[str], t: int) -> list[str]:
    """Attributes of a word: itself, its shape and ending, and its neighbours."""
    word = words[t]
    shape = "upper" if word.isupper() else "title" if word.istitle() else "digit" if word[0].isdigit() else "lower"
    around = [f"{k:+d}:{words[t + k].lower()}" for k in (-1, 1) if 0 <= t + k < len(words)]
    return [f"w:{word.lower()}", f"end:{word[-3:]}", f"shape:{shape}", *around]


def chunking(name: str, scheme: str, X: Any, y: Any, U: Any, v: Any, repeat: int) -> None:
    """One task, freely and under its scheme."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are meant
        crf = sc.CRF(max_iterations=15, all_possible_transitions=True, c2=0.1).fit(X, y)
    data = sc.data.encode(U, crf.model_.vocabulary, frozen=True)
    rule = rules.scheme(scheme)
    times = []
    for given in (U, data):
        (free, under), found = products.best(repeat, *(lambda r=r: crf.predict(given, rules=r) for r in ([], rule)))  # noqa: B023
        times.append(f"{under / free:.2f}")
    for k, kind in enumerate(("freely", "under its scheme")):
        invalid = sum(map(bool, crf.broken_rules(found[k], rules=rule)))
        score = sc.metrics.segment_scores(v, found[k], "conlleval" if scheme == "iob2" else scheme).f1
        print(f"| {name}, {kind} | {len(U)} | {invalid} | {100 * score:.2f} | {' | '.join(times) if k else '1 | 1'} |")


def main() -> int:
    """The command line."""
    import probablepeople
    import usaddress

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7, help="runs of each, of which the best counts")
    parser.add_argument("--sources", type=Path, help="directory with a checkout of usaddress")
    parser.add_argument("--quick", action="store_true", help="few runs of a part of the data")
    args = parser.parse_args()
    repeat = 2 if args.quick else args.repeat
    print(machine())
    print("\n| product | words, % | strings, % | refused | strings a second |\n|---|---|---|---|---|")
    some = slice(300 if args.quick else None)
    product("usaddress", usaddress, usaddress.MODEL_PATH, addresses(args.sources)[some], repeat)
    try:
        path = Path(probablepeople.__file__).parent / "generic_learned_settings.crfsuite"
        product("probablepeople", probablepeople, str(path), names()[some], repeat)
        print("| task | sentences | invalid | F1 | time, items | time, encoded |\n|---|---|---|---|---|---|")
        for name, given in chunks(args.quick).items():
            chunking(name, *given, repeat)
    except MissingDataError as error:
        print(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
