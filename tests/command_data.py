"""Sentences for the tests of the command: noun phrases and verbs that a small model learns without a mistake."""

import numpy as np

from scansion.metrics import flat_accuracy_score

WORDS = {
    "D": "the a this".split(),
    "A": "old big red".split(),
    "N": "man boat dog house".split(),
    "V": "sees has".split(),
}


def sentences(n, seed=0):
    """Noun phrases and verbs: rows of word, part of speech, chunk."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        rows = []
        for k in range(rng.integers(1, 4)):
            if k and rng.random() < 0.7:
                rows.append((str(rng.choice(WORDS["V"])), "V", "B-VP"))
            parts = ["D"] * (rng.random() < 0.8) + ["A"] * rng.integers(0, 3) + ["N"]
            rows += [(str(rng.choice(WORDS[p])), p, ("I" if i else "B") + "-NP") for i, p in enumerate(parts)]
        rows.append((".", ".", "O"))
        found.append(rows)
    return found


def columns(data, separator=" "):
    return "".join("".join(separator.join(row) + "\n" for row in rows) + "\n" for rows in data)


def labels(text):
    return [[line.split()[-1] for line in part.splitlines()] for part in text.strip().split("\n\n")]


def truth(n=10, seed=1):
    return [[row[-1] for row in rows] for rows in sentences(n, seed)]


def agreement(text):
    return flat_accuracy_score(truth(), labels(text))
