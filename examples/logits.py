"""Someone with logits: scores (batch, time, labels) of a network, decoded so that tags are well-formed.

.venv/bin/python examples/logits.py
"""

from __future__ import annotations

import numpy as np

import scansion as sc

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def network(rng: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    """Logits (B, T, L), padded; what lies behind the ends is rubbish."""
    return rng.normal(scale=2.0, size=(len(lengths), int(lengths.max()), len(LABELS)))


def main() -> None:
    """The best well-formed tags, their probability, marginals, alternatives."""
    rng = np.random.default_rng(0)
    lengths = np.array([7, 4, 5])
    logits = network(rng, lengths)
    mask = np.arange(logits.shape[1]) < lengths[:, None]

    transition, start, end = sc.schemes.transitions(LABELS, "iob2")  # 0, and -inf where a tag may not follow
    batch = sc.ChainBatch.from_padded(logits, mask, transition, start, end)
    print(batch)
    best = batch.best_labels()  # (N,), one sequence after another
    for row in batch.padded(best, fill=-1):
        print(" ".join(LABELS[y] for y in row if y >= 0))
    print("probability of each:", np.exp(batch.log_probability(best)).round(4))
    print("doubt, in nats a token:", round(entropy(batch.marginals().labels), 3))

    greedy = logits.argmax(axis=2)  # what the scores alone would say: I-PER after O, perhaps
    print("scores of the greedy tags:", batch.score(greedy).round(2))
    print("three best of the first:", [[LABELS[y] for y in labels] for labels, _ in batch[0].kbest(3)])


def entropy(p: np.ndarray) -> float:
    """Mean over rows, in nats."""
    return float(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean())


if __name__ == "__main__":
    main()
