"""The other doors: options of functions, data sets out of files and frames, learning in parts, features, plots.

Every function is asked with valid arguments and some of its options at their defaults, one or two of them replaced by
strange ones.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import scansion as sc
from fuzz.model_files import SEGMENTS, TREES, X, Y
from fuzz.strange import call, held, hostile, strange, too_many
from scansion import data, display, features, metrics, plot, schemes, sklearn_crfsuite

TAGS = ["B-A", "I-A", "O", "B-B"]
GOLD = [["B-A", "I-A", "O"], ["O", "B-B"]]
TRACK = np.arange(12.0).reshape(6, 2)
LENGTHS = [len(x) for x in X]
STEPS = ["l2sgd", "asgd", "mm", "ap", "pa", "arow"]
Way = tuple[str, Callable[..., Any], dict[str, Any]]


def optioned(rng: np.random.Generator, function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, and some options at their defaults; a few replaced."""
    given = dict(arguments)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty and name not in given and rng.random() < 0.3:
            given[name] = parameter.default
    return hostile(rng, given)


def one_of(rng: np.random.Generator, ways: list[Way], ask: Callable[..., Any]) -> Any:
    """One of some ways, asked with odd arguments."""
    name, function, arguments = ways[int(rng.integers(len(ways)))]
    changed = optioned(rng, function, arguments)
    return None if too_many(changed) else ask(name, function, changed)


def functions(rng: np.random.Generator) -> int:
    """Metrics and schemes, with their options; labels may be anything, numbers have to be finite."""
    reading = {"suffix": False, "delimiter": "-", "outside": "O", "strict": False}
    kept = {name: reading[name] for name in rng.choice(list(reading), size=1)}
    tagged = {"labels": list(TAGS), "scheme": "iob2"}
    flat = {"labels": None, "pos_label": "O", "average": "macro", "sample_weight": None, "zero_division": 0}
    some = {name: flat[name] for name in rng.choice(list(flat), size=2, replace=False)}
    both = {"y_true": copy.deepcopy(GOLD), "y_pred": copy.deepcopy(GOLD)}
    labels: list[Way] = [
        ("schemes.segments", schemes.segments, {**tagged, **kept}),
        ("schemes.segments of plain labels", schemes.segments, {"labels": list("AABBC"), "scheme": "plain"}),
        ("schemes.encode", schemes.encode, {"segments": [(0, 2, "A"), (2, 3, "B")], "length": 4, "scheme": "iob2"}),
        ("schemes.convert", schemes.convert, {"labels": list(TAGS), "source": "iob2", "target": "bilou"}),
        ("schemes.covered", schemes.covered, {"segments": [(0, 2, "A"), (3, 4, "B")], "length": 5}),
        ("schemes.detect", schemes.detect, {"label_sequences": copy.deepcopy(GOLD)}),
        ("schemes.neighbours", schemes.neighbours, dict(tagged)),
        ("schemes.transitions", schemes.transitions, dict(tagged)),
        ("schemes.scheme_name", schemes.scheme_name, {"scheme": "iob2"}),
        (
            "levels_from_columns",
            sc.levels_from_columns,
            {"columns": {"a": GOLD, "b": GOLD}, "schemes": {"a": "iob2", "b": "plain"}},
        ),
        ("metrics.compress", metrics.compress, {"labels": list(TAGS)}),
        ("metrics.scorer", metrics.scorer, {"name": "f1"}),
        ("metrics.flat_fbeta_score", metrics.flat_fbeta_score, {**both, "beta": 1.0, "average": None}),  # nan is asked
        ("metrics.flat_fbeta_score", metrics.flat_fbeta_score, {**both, "beta": 1.0, "average": "micro", **some}),
        ("metrics.flat_classification_report", metrics.flat_classification_report, dict(both)),
    ]
    numbers: list[Way] = [
        ("metrics.edit_distance", metrics.edit_distance, {"a": list(TAGS), "b": list(TAGS)}),
        (
            "metrics.randomization_test",
            metrics.randomization_test,
            {**both, "pred_a": GOLD, "pred_b": GOLD, "n": 9, "scheme": "iob2"},
        ),
    ]
    numbers[1][2].pop("y_pred")
    for name in metrics.__all__:
        if name.startswith("flat_f") or name == "flat_classification_report":
            continue
        if name.endswith(("_score", "_scores", "conlleval")):
            more = {"tolerance": 1} if name == "relaxed_accuracy_score" else {}
            more = more | (kept if name in ("conlleval", "segment_scores") else {})
            numbers.append((f"metrics.{name}", getattr(metrics, name), {**both, **more}))
    of_labels = rng.random() < len(labels) / (len(labels) + len(numbers))
    one_of(rng, labels if of_labels else numbers, held if of_labels else call)
    return 1


# ---- data ----------------------------------------------------------------------------------------
def frame() -> Any:
    """A row a token."""
    import pandas

    words = [
        [number, *token.values(), label]
        for number in range(3)
        for token, label in zip(X[number], Y[number], strict=True)
    ]
    return pandas.DataFrame(words, columns=["group", "w", "n", "label"])


def data_sets(rng: np.random.Generator) -> int:
    """Encoded data, built, taken apart and put together; frames; targets of all kinds."""
    vocabulary = data.encode([[{"a": 1.0, "b": 2.0}]]).vocabulary
    ways: list[Way] = [
        ("encode", data.encode, {"X": copy.deepcopy(X)}),
        (
            "Dataset",
            data.Dataset,
            {
                "offsets": [0, 1],
                "token_offsets": [0, 2],
                "ids": [0, 1],
                "values": np.array([1.0, 2.0]),
                "vocabulary": vocabulary,
            },
        ),
        ("Dataset.take", lambda indices: data.encode(X).take(indices), {"indices": [0, 2]}),
        ("encode_labels", data.encode_labels, {"y": copy.deepcopy(Y), "lengths": list(LENGTHS)}),
        ("encode_segments", data.encode_segments, {"y": copy.deepcopy(SEGMENTS), "lengths": list(LENGTHS)}),
        (
            "encode_levels",
            data.encode_levels,
            {"y": copy.deepcopy(TREES), "lengths": list(LENGTHS), "levels": ["top", "low"]},
        ),
        ("subsample", data.subsample, {"x": TRACK.copy(), "step": 2}),
        ("with_context", data.with_context, {"x": TRACK.copy(), "width": 1}),
        ("subsample_labels", data.subsample_labels, {"labels": list("aabbb"), "step": 2}),
        ("spread", data.spread, {"labels": list("ab"), "step": 3, "length": 5}),
        ("level_names", data.level_names, {"levels": ["top", "low"]}),
        ("Trajectory", data.Trajectory, {"labels": ["A", "B"]}),
        ("from_frame", data.from_frame, {"frame": frame(), "group": "group", "labels": "label"}),
    ]
    if rng.random() < 0.8:
        found = one_of(rng, ways, held)
        if isinstance(found, (np.ndarray, data.Dataset)):
            call("what it holds", lambda: found if isinstance(found, np.ndarray) else found.items(), {})
        return 1
    with tempfile.TemporaryDirectory() as folder:
        where = {"path": Path(folder, "data"), "X": copy.deepcopy(X), "y": copy.deepcopy(Y), "min_freq": 0.0}
        built = held("build", data.build, hostile(rng, where) | {"path": where["path"]})
        if built is None:
            return 1
        found, y = built if isinstance(built, tuple) else (built, None)
        call("build, then items", lambda: found.items(), {})
        given = hostile(rng, {"X": found, "y": Y if y is None else y})
        held("CRF.fit of built data", sc.CRF(max_iterations=2).fit, given)
    return 3


# ---- learning in parts ---------------------------------------------------------------------------
def parts(rng: np.random.Generator) -> int:
    """partial_fit, odd batches among good ones, and questions after each; sklearn-crfsuite's estimator."""
    kinds: list[tuple[Callable[..., Any], Any]] = [
        (sc.CRF, Y),
        (lambda **k: sc.CRF(order=2, **k), Y),
        (sc.SemiCRF, SEGMENTS),
        (lambda **k: sc.HierarchicalCRF(levels=["top", "low"], **k), TREES),
        (sklearn_crfsuite.CRF, Y),
    ]
    kind, y = kinds[int(rng.integers(len(kinds)))]
    model = kind(algorithm=str(rng.choice(STEPS)), random_state=0)
    done = 0
    for _ in range(3):
        some = rng.permutation(len(X))[: int(rng.integers(1, 5))]
        batch = {"X": [X[i] for i in some], "y": [y[i] for i in some], "sample_weight": None}
        if rng.random() < 0.1:
            name = str(rng.choice(sorted(model.get_params())))
            if name not in ("model_filename", "keep_tempfiles", "verbose", "grow"):
                held(f"set_params({name})", model.set_params, {name: strange(rng)})
        held(f"{model!r}.partial_fit", model.partial_fit, hostile(rng, copy.deepcopy(batch)))
        if hasattr(model, "model_"):
            call(f"{model!r}.predict_marginals", lambda: list(model.predict_marginals(X[:2])), {})
        done += 2
    return done


# ---- features of segments, plots -----------------------------------------------------------------
def segment_features(rng: np.random.Generator) -> int:
    """Functions of spans that give anything, ready-made ones out of odd arguments."""
    entries: dict[str, Any] = {"name": "names", "entries": ["w0 w3", ("w1",)], "key": "w", "lower": False}
    ways: list[Way] = [
        ("Gazetteer", features.Gazetteer, entries),
        ("SegmentText", features.SegmentText, {"key": "w"}),
    ]
    answer = strange(rng)
    feature = one_of(rng, ways, held) if rng.random() < 0.7 else lambda x, start, stop: answer
    model = sc.SemiCRF(segment_features=feature, max_length=2, max_iterations=2)
    if held(f"SemiCRF(segment_features={feature!r}: {answer!r}).fit", model.fit, {"X": X, "y": SEGMENTS}) is not None:
        call("predict_marginals with segment_features", model.predict_marginals, {"X": X[:2]})
    return 2


@contextlib.contextmanager
def no_windows() -> Iterator[None]:
    """Figures that are drawn into memory, and closed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        yield
    finally:
        pyplot.close("all")


def plots(rng: np.random.Generator) -> int:
    """Figures and pages of odd answers."""
    spans = [sc.Segment(0, 2, "A"), sc.Segment(2, 3, "B")]
    log = [{"iteration": i, "loss": 3.0 - i, "seconds": 0.1 * i} for i in range(3)]
    ways: list[Way] = [
        (
            "plot.marginals",
            plot.marginals,
            {"marginals": np.full((3, 2), 0.5), "tokens": list("abc"), "labels": list("AB")},
        ),
        ("plot.segments", plot.segments, {"answer": spans, "tokens": list("abc"), "truth": spans}),
        ("plot.segments of labels", plot.segments, {"answer": list("AAB")}),
        ("plot.compare", plot.compare, {"answers": {"one": spans, "other": list("ABB")}, "truth": list("AAB")}),
        ("plot.lengths", plot.lengths, {"lengths": np.array([0.0, 0.5, 0.5])}),
        ("plot.training", plot.training, {"log": log}),
        ("plot.strengths", plot.strengths, {"results": [{"c2": 1.0, "loss": 0.5}, {"c2": 2.0, "loss": 0.6}]}),
    ]
    rows = [{"A": 0.9, "B": 0.1}] * 3
    pages: list[Way] = [
        ("display", display, {"tokens": list("abc"), "answer": spans, "marginals": rows}),
        ("display of labels", display, {"tokens": list("abc"), "answer": list("AAB"), "alternatives": [(spans, 0.5)]}),
    ]
    if rng.random() < 0.5:
        page = one_of(rng, pages, held)
        return 1 if page is None else 1 + len(page.html[:1])
    with no_windows():
        axes = one_of(rng, ways, held)
        if axes is not None:
            held("drawing", lambda: axes.figure.canvas.draw(), {})
    return 2


KINDS = {function.__name__: function for function in (functions, data_sets, parts, segment_features, plots)}
