"""Text chunking, CoNLL-2000: the same model as CRFsuite's, trained by both.

The features are those of CRFsuite's chunking tutorial: words and parts of speech in a window of two, bigrams and
trigrams of them, and marks at both ends of a sentence. With label pairs this gives 452,755 features. The objective is
convex, so for L2 (c2 = 1) loss, features and F1 must agree; for L1 (c1 = 1) the optimum has many zeros, and the number
of those that are left is compared too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.data import read_columns
from experiments.report import Options, Report, Table, percent
from scansion.metrics import segment_scores

TITLE = "Chunking, CoNLL-2000, beside python-crfsuite"
N_FEATURES = 452_755
PENALTIES = {"L2": {"c1": 0.0, "c2": 1.0}, "L1": {"c1": 1.0, "c2": 0.0}}
PUBLISHED = "python-crfsuite measured elsewhere on two cores, L2: 166 iterations, 89 s, loss 13139.36, F1 93.61."

# Columns (word, part of speech) and offsets whose values together are one attribute.
TEMPLATES = [
    *([("w", offset)] for offset in range(-2, 3)),
    [("w", -1), ("w", 0)],
    [("w", 0), ("w", 1)],
    *([("pos", offset)] for offset in range(-2, 3)),
    *([("pos", offset), ("pos", offset + 1)] for offset in range(-2, 2)),
    *([("pos", offset), ("pos", offset + 1), ("pos", offset + 2)] for offset in range(-2, 1)),
]


def attributes(words: list[str], tags: list[str]) -> list[dict[str, Any]]:
    """Attributes of a sentence's tokens; a template that leaves the sentence yields none."""
    columns = {"w": words, "pos": tags}
    tokens: list[dict[str, Any]] = []
    for t in range(len(words)):
        token: dict[str, Any] = {}
        for template in TEMPLATES:
            if 0 <= t + template[0][1] and t + template[-1][1] < len(words):
                name = "|".join(f"{column}[{offset}]" for column, offset in template)
                token[name] = "|".join(columns[column][t + offset] for column, offset in template)
        tokens.append(token)
    if tokens:
        tokens[0]["__BOS__"] = True
        tokens[-1]["__EOS__"] = True
    return tokens


def sentences(part: str) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """Attributes and labels of each sentence of ``train`` or ``test``."""
    for words, tags, labels in read_columns(f"conll2000/{part}.txt"):
        yield attributes(words, tags), labels


def read(part: str) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    X, y = zip(*sentences(part), strict=True)
    return list(X), list(y)


def train_peer(
    X: list[Any], y: list[Any], path: Path, algorithm: str = "lbfgs", **parameters: Any
) -> tuple[Any, dict[str, float]]:
    """A python-crfsuite tagger and its training's figures."""
    import pycrfsuite

    begin, busy = time.perf_counter(), time.process_time()
    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=parameters, verbose=False)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(str(path))
    elapsed, processor = time.perf_counter() - begin, time.process_time() - busy
    log = trainer.logparser
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    last = log.last_iteration or {}
    figures = {
        "features": log.featgen_num_features,
        "active": last.get("active_features"),
        "loss": last.get("loss"),
        "iterations": len(log.iterations),
        "seconds": elapsed,
        "processor": processor,
    }
    return tagger, figures


def train(X: list[Any], y: list[Any], **parameters: Any) -> tuple[Any, dict[str, float]]:
    """A `scansion.CRF` and the same figures."""
    import scansion

    begin, busy = time.perf_counter(), time.process_time()
    model = scansion.CRF(**parameters).fit(X, y)
    log = model.training_log_
    figures = {
        "features": model.model_.n_weights,
        "active": model.size_,
        "loss": model.loss_,
        "iterations": len(log),
        "seconds": time.perf_counter() - begin,
        "processor": time.process_time() - busy,
    }
    return model, figures


def run(options: Options) -> Report:
    options.say("  reading")
    X, y = read("train")
    X_test, truth = read("test")
    limit = {"max_iterations": 10} if options.quick else {}
    report = Report("chunking", TITLE, notes=[PUBLISHED])
    table = Table(
        f"Training from raw attributes on {options.jobs} thread(s), python-crfsuite on one; F1 on the test part:",
        ["penalty", "library", "features", "not zero", "loss", "iterations", "seconds", "processor time", "F1"],
    )
    features = train(X, y, max_iterations=1)[1]["features"]  # before L1 drops any
    with tempfile.TemporaryDirectory() as directory:
        for name, penalty in PENALTIES.items():
            tagger, peer = train_peer(X, y, Path(directory) / name, **penalty, **limit)
            model, ours = train(X, y, n_jobs=options.jobs, **penalty, **limit)
            ours["features"] = features
            answers = {"python-crfsuite": [tagger.tag(tokens) for tokens in X_test], "scansion": model.predict(X_test)}
            for library, figures in (("python-crfsuite", peer), ("scansion", ours)):
                f1 = segment_scores(truth, answers[library], scheme="conlleval").micro.f1
                table.rows.append(
                    [
                        f"{name}, c1 = {penalty['c1']:g}, c2 = {penalty['c2']:g}",
                        library,
                        f"{figures['features']:,}",
                        f"{figures['active']:,}" if figures["active"] is not None else None,
                        f"{figures['loss']:.2f}",
                        figures["iterations"],
                        f"{figures['seconds']:.1f}",
                        f"{figures['processor']:.1f}",
                        percent(f1),
                    ]
                )
                report.results[f"{name} {library}"] = {**figures, "f1": round(100 * f1, 2)}
                options.say("  " + ", ".join(str(cell) for cell in table.rows[-1]))
            same = sum(a == b for a, b in zip(*answers.values(), strict=True))
            report.notes.append(f"{name}: {same:,} of {len(truth):,} test sentences are tagged alike.")
    report.tables.append(table)
    return report
