"""A data engineer with column files: a spreadsheet's CSV to a tagger, without a line of Python but this.

.venv/bin/python examples/columns_to_tagger.py
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile

import numpy as np

from scansion.cli import main as scansion

WORDS = {
    "D": "the a this".split(),
    "A": "old big red".split(),
    "N": "man boat dog house".split(),
    "V": "sees has".split(),
}


def write(path: str, n: int, seed: int) -> None:
    """Sentences as a spreadsheet exports them: names of columns, a sentence's number, quotes."""
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sentence_id", "word", "pos", "label"])
        for sentence in range(n):
            for phrase in range(int(rng.integers(1, 4))):
                if phrase:
                    rows.writerow([sentence, rng.choice(WORDS["V"]), "V", "B-VP"])
                for i, pos in enumerate("D" + "A" * int(rng.integers(0, 3)) + "N"):
                    rows.writerow([sentence, rng.choice(WORDS[pos]), pos, "I-NP" if i else "B-NP"])


def run(*arguments: str) -> None:
    """The command, as one would type it."""
    print("$ scansion " + " ".join(arguments), flush=True)
    if scansion(list(arguments)):
        sys.exit(1)


def main() -> None:
    """Train, look, tag, evaluate, convert."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write("train.csv", 60, 0)
        write("test.csv", 20, 1)
        run("train", "train.csv", "-o", "model", "-q")  # columns by name, sentences by sentence_id
        run("evaluate", "model", "--html", "errors.html", "test.csv")
        run("tag", "model", "--marginals", "test.csv", "-o", "tagged.csv")
        with open("tagged.csv") as file:
            print("".join(file.readlines()[:4]), end="")
        run("inspect", "model", "--top", "2")
        run("convert", "test.csv", "test.conllu")
        os.chdir(os.path.dirname(folder))


if __name__ == "__main__":
    main()
