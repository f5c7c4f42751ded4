"""Five ways to say what a sequence goes through, by the two scores of paper 004: what its experiments share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.report import Options, Table
from scansion import CRF, SemiCRF
from scansion.metrics import compress, edit_distance_score, exact_match_score

METHODS = ("joint", "marginal", "SemiCRF", "compressed", "best")
EXPLAINED = (
    "joint: the best labelling, compressed. marginal: the best label at each position, compressed. SemiCRF: labels of "
    "the best segmentation. compressed: the paper's labelling. best: the most probable trajectory, by search; in "
    "brackets the share of the sequences for which it is proven within the budget."
)


@dataclass(frozen=True)
class Data:
    """Observations and labels for training, observations and true trajectories for test."""

    train_x: Sequence[Any]
    train_y: Sequence[Sequence[Any]]
    test_x: Sequence[Any]
    truth: Sequence[Sequence[Any]]


def compare(
    options: Options, data: Data, crf: dict[str, Any], semi: dict[str, Any], semi_sequences: int, budget: int
) -> dict[str, dict[str, float]]:
    """Scores of all methods: one CRF answers for all but the SemiCRF, which learns from the first sequences only."""
    model = CRF(all_possible_transitions=True, n_jobs=options.jobs, **crf).fit(data.train_x, data.train_y)
    answers: dict[str, list[list[Any]]] = {}
    seconds: dict[str, float] = {}

    def ask(name: str, question: Any) -> None:
        begin = time.perf_counter()
        answers[name] = question()
        seconds[name] = time.perf_counter() - begin

    labels = np.array(model.classes_, dtype=object)
    batch = model.lattices(data.test_x)

    def marginal() -> list[list[Any]]:
        chosen = labels[batch.marginals().labels.argmax(axis=1)].tolist()
        return [compress(chosen[a:b]) for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]

    def segments() -> list[list[Any]]:
        part = slice(0, semi_sequences)
        semi_model = SemiCRF(all_possible_transitions=True, n_jobs=options.jobs, **semi).fit(
            data.train_x[part], data.train_y[part]
        )
        return [compress(s.label for s in config) for config in semi_model.predict(data.test_x)]

    ask("joint", lambda: [compress(y) for y in model.predict(data.test_x)])
    ask("marginal", marginal)
    ask("SemiCRF", segments)
    ask("compressed", lambda: model.predict_compressed(data.test_x))

    proven = []

    def best() -> list[list[Any]]:
        from scansion.lattice.compressed import best_all

        found = best_all(batch, 1, budget)
        proven.extend(one.proven for one in found)
        return [labels[list(one.trajectories[0])].tolist() for one in found]

    ask("best", best)
    results = {
        name: {
            "exact": round(float(exact_match_score(data.truth, answers[name])), 2),
            "eds": round(float(edit_distance_score(data.truth, answers[name])), 2),
            "seconds": round(seconds[name], 2),
        }
        for name in METHODS
    }
    results["best"]["proven"] = round(100 * float(np.mean(proven)), 2)
    for name in METHODS:
        options.say(f"  {name}: {results[name]}")
    return results


def tables(results: dict[str, dict[str, dict[str, float]]], first: str) -> list[Table]:
    """Exact and edit-distance scores, a row for each condition."""
    out = []
    for score, title in (("exact", "Exact score, percent"), ("eds", "Edit-distance score, percent")):
        table = Table(f"{title}:", [first, *METHODS])
        for condition, one in results.items():
            cells = [f"{one[name][score]:.2f}" for name in METHODS]
            if score == "exact":
                cells[-1] += f" ({one['best']['proven']:.0f} %)"
            table.rows.append([condition, *cells])
        out.append(table)
    return out
