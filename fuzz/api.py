"""Hostile calls: valid arguments of lattices, estimators and functions, one or two of them replaced by strange ones.

A call gives finite answers, or an exception that the package raises in words of its own; anything else is a fault.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import scansion as sc
from fuzz import Fault
from fuzz.model_files import PARTS, SEGMENTS, TREES, X, Y, finite, limited
from scansion import metrics, schemes
from scansion.data import Dataset, encode

CALLS = 60  # in a round
OURS = (ValueError, IndexError, AttributeError)
HOME = os.path.dirname(sc.__file__)

# ---- strange things ------------------------------------------------------------------------------
INTEGERS = [0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**70, 10**400]
FLOATS = [0.0, -0.0, 0.5, 1e-320, 1e10, 1e99, -1e100, 1e101, 1e155, -1e308, 1.7e308, np.nan, np.inf, -np.inf]
OTHERS: list[Any] = [None, True, "", "A", "lbfgs", b"x", (), [], [[]], {}, set(), {"a": 1}, [None], ["A", 1]]
OTHERS += [object(), len, 1j, np.float32(1), np.int64(2**62), np.bool_(True), np.datetime64(0, "s"), range(3)]
OTHERS += ["\x00", "\ud800", "x" * 3000, [[], [1]], [[1, 2], [3]], {(1, 2): 3}, frozenset("A"), slice(None)]


def arrays(rng: np.random.Generator) -> Any:
    """An array of an odd kind, shape or layout."""
    shape = tuple(int(n) for n in rng.integers(0, 4, size=rng.integers(0, 5)))
    array = rng.normal(size=shape)
    ways: list[Callable[[], Any]] = [
        lambda: array,
        lambda: array.astype(rng.choice(["f2", "f4", "i1", "i8", "u8", "?", "c16", "O", "U3", "S2", "g"])),
        lambda: np.where(rng.random(shape) < 0.3, rng.choice(FLOATS), array),
        lambda: np.ma.masked_array(array, rng.random(shape) < 0.3),
        lambda: np.matrix(rng.normal(size=(2, 2))),
        lambda: np.asfortranarray(array)[::-1] if array.ndim else array,
        lambda: np.broadcast_to(np.float64(rng.choice(FLOATS)), shape),
        lambda: array.view(np.recarray),
        lambda: array.tolist(),
    ]
    return ways[int(rng.integers(len(ways)))]()


def strange(rng: np.random.Generator) -> Any:
    """Anything."""
    way = int(rng.integers(4))
    if way == 3:
        return arrays(rng)
    pool = (INTEGERS, FLOATS, OTHERS)[way]
    return pool[int(rng.integers(len(pool)))]


def near(rng: np.random.Generator, value: Any) -> Any:
    """Almost the value: an array of another shape, or with a strange entry; a list with one more or less."""
    if isinstance(value, np.ndarray) and value.size and value.ndim and value.dtype.kind in "fiub":
        ways: list[Callable[[], Any]] = [
            lambda: value[:-1],
            lambda: value[None],
            lambda: np.concatenate([value, value[-1:]]),
            lambda: np.swapaxes(value, 0, -1),
            lambda: with_entry(rng, value, rng.choice(FLOATS)),
            lambda: with_entry(rng, value, float(rng.choice([300.0, -700.0, 1e5, -1e9, 1e20, -1e99]))),
            lambda: value.tolist(),
            lambda: np.ma.masked_array(value, rng.random(value.shape) < 0.2),
            lambda: value.astype("f4") if value.dtype.kind == "f" else value.astype("i1"),
        ]
        return ways[int(rng.integers(len(ways)))]()
    if isinstance(value, (list, tuple)) and value:
        at = int(rng.integers(len(value)))
        other = strange(rng) if rng.random() < 0.5 else near(rng, value[at])
        way = int(rng.integers(4))
        changed = [*value[:at], *([other] if way else []), *value[at + (way != 1) :]]
        return changed if isinstance(value, list) or way == 2 else tuple(changed)
    if isinstance(value, dict) and value:
        changed = dict(value)
        key = list(value)[int(rng.integers(len(value)))]
        changed[key] = near(rng, value[key])
        return changed
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value + int(rng.choice([-1, 1])) if rng.random() < 0.5 else -value
    return strange(rng)


def with_entry(rng: np.random.Generator, array: np.ndarray, value: float) -> np.ndarray:
    """A copy with a value somewhere."""
    result = np.array(array, dtype=np.float64)
    result.reshape(-1)[int(rng.integers(result.size))] = value
    return result


# ---- calls ---------------------------------------------------------------------------------------
def hostile(rng: np.random.Generator, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with some replaced."""
    changed = dict(arguments)
    for _ in range(int(rng.choice([0, 1, 1, 1, 2]))):
        if changed:
            name = list(changed)[int(rng.integers(len(changed)))]
            changed[name] = near(rng, changed[name]) if rng.random() < 0.6 else strange(rng)
    return changed


def ours(error: BaseException) -> bool:
    """Whether an exception is one of ours: of a usual type, raised by a statement of the package."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = last.line or ""
    stated = last.filename.startswith(HOME) and (line.startswith("raise") or "_core.encode(" in line)
    if isinstance(error, TypeError):  # Python's own are as good, but not those of the bindings
        return "incompatible function arguments" not in str(error)
    return isinstance(error, MemoryError) or (stated and isinstance(error, OURS))


def call(what: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The answer, or None where it is refused. Fault: a foreign exception, or an answer that is not finite."""
    try:
        answer = function(**arguments)
    except Exception as error:
        if ours(error):
            return None
        text = traceback.format_exc()
        shown = {name: repr(value)[:200] for name, value in arguments.items()}
        raise Fault(f"{what}({shown}): {type(error).__name__}: {error}\n{text}") from error
    if not finite(answer):
        shown = {name: repr(value)[:300] for name, value in arguments.items()}
        raise Fault(f"{what}({shown}) is not finite: {answer!r}"[:2000])
    return answer


def asked(rng: np.random.Generator, name: str, lattice: Any, config: Any) -> int:
    """Some questions about a lattice; how many."""
    T, L = len(lattice), lattice.n_labels if not isinstance(lattice, sc.NestedLattice) else 1
    questions: list[tuple[str, dict[str, Any]]] = [
        ("log_partition", {}),
        ("viterbi", {}),
        ("entropy", {}),
        ("kbest", {"k": int(rng.integers(1, 5))}),
        ("sample", {"n": int(rng.integers(0, 4)), "rng": int(rng.integers(100))}),
        ("score", {"config": config}),
        ("log_probability", {"config": config}),
    ]
    count = 0
    for _ in range(4):
        question, arguments = questions[int(rng.integers(len(questions)))]
        changed = hostile(rng, arguments)
        if not (question == "sample" and isinstance(changed["n"], (int, np.integer)) and changed["n"] > 1e6):
            if not question.startswith(("score", "log_prob")):
                call(f"{name}.{question}", getattr(lattice, question), changed)
            else:  # a forbidden configuration has the score -inf
                call(f"{name}.{question}", lambda config, q=question: (getattr(lattice, q)(config), 0)[1], changed)
            count += 1
    call(f"{name}.marginals", lambda: marginal_arrays(lattice.marginals()), {})
    if not isinstance(lattice, sc.NestedLattice):
        labels = rng.integers(-1, L, size=T)
        known = {"labels": labels, "boundaries": None}
        held = call(f"{name}.constrain", lambda **k: Held(lattice.constrain(**k)), hostile(rng, known))
        if held is not None:
            call(f"{name}.constrain.viterbi", held.lattice.viterbi, {})
        short = call(f"{name}.compressed", lambda **k: Held(lattice.compressed(**k)), hostile(rng, {"max_length": 3}))
        if short is not None:
            for question, arguments in (
                ("best", {"k": 2, "budget": 100}),
                ("log_probability", {"trajectory": [0]}),
                ("marginals", {"length": 1}),
                ("sample", {"n": 2, "rng": 0}),
            ):
                changed = hostile(rng, arguments)
                if question == "log_probability":
                    call(
                        f"{name}.compressed.{question}",
                        lambda trajectory, short=short: (short.lattice.log_probability(trajectory), 0)[1],
                        changed,
                    )
                elif not (question == "sample" and isinstance(changed["n"], (int, np.integer)) and changed["n"] > 1e6):
                    call(f"{name}.compressed.{question}", getattr(short.lattice, question), changed)
                count += 1
    return count + 2


class Held:
    """A lattice as an answer."""

    def __init__(self, lattice: Any) -> None:
        self.lattice = lattice


def marginal_arrays(marginals: Any) -> Any:
    """The arrays of marginals."""
    return [marginals.labels, getattr(marginals, "boundaries", None)]


def lattices(rng: np.random.Generator) -> int:
    """Lattices of odd scores, and odd questions."""
    T, L, M = int(rng.integers(0, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    patterns = [(y,) for y in range(L)] + [(0, L - 1)]
    size = len(patterns)
    zeros = [np.zeros((1, 2)), np.zeros((2, 2))]
    nested = {
        "persist": [sc.Persistence(inside=np.zeros((T, 1))), rng.normal(size=(T, M, 2)), rng.normal(size=(T, 1, 2))],
        "transit": [rng.normal(size=(1, 2, 2)), rng.normal(size=(2, 2, 2))],
        "init": copy.deepcopy(zeros),
        "end": copy.deepcopy(zeros),
    }
    ways: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "ChainLattice": (
            sc.ChainLattice,
            {
                "unary": rng.normal(size=(T, L)) * rng.choice([1.0, 300.0, 1e6]),
                "transition": rng.normal(size=(L, L)),
                "start": None,
                "end": rng.normal(size=L),
            },
        ),
        "ChainLattice.from_patterns": (
            sc.ChainLattice.from_patterns,
            {"scores": rng.normal(size=(T, size)), "patterns": patterns, "n_labels": L},
        ),
        "ChainLattice.from_hmm": (
            sc.ChainLattice.from_hmm,
            {
                "startprob": np.full(L, 1 / L),
                "transmat": np.full((L, L), 1 / L),
                "emission_logprob": rng.normal(size=(T, L)),
            },
        ),
        "SegmentLattice": (
            sc.SegmentLattice,
            {"scores": rng.normal(size=(T, M, size)), "patterns": patterns, "n_labels": L},
        ),
        "SegmentLattice.from_parts": (
            sc.SegmentLattice.from_parts,
            {
                "patterns": patterns,
                "n_labels": L,
                "max_length": M,
                "start": rng.normal(size=(T, size)),
                "inside": rng.normal(size=(T, size)) * rng.choice([1.0, 1e5]),
                "length": None,
            },
        ),
        "NestedLattice": (sc.NestedLattice, nested),
        "PatternAutomaton": (sc.PatternAutomaton, {"patterns": patterns, "n_labels": L}),
        "ChainBatch": (
            sc.ChainBatch,
            {
                "unary": rng.normal(size=(T, L)),
                "offsets": np.array([0, T]),
                "transition": np.zeros((L, L)),
                "n_jobs": 1,
            },
        ),
    }
    name = list(ways)[int(rng.integers(len(ways)))]
    function, arguments = ways[name]
    held = call(name, lambda **k: Held(function(**k)), hostile(rng, arguments))
    if held is None or name == "PatternAutomaton":
        return 1
    if name == "ChainBatch":
        call(f"{name}.viterbi", held.lattice.viterbi, {})
        return 2
    lattice = held.lattice
    config: Any = [0] * T if isinstance(lattice, sc.ChainLattice) else [(t, t + 1, t % L) for t in range(T)]
    if isinstance(lattice, sc.NestedLattice):
        config = [[(0, T, 0)], [(t, t + 1, 0) for t in range(T)], [(t, t + 1, 1) for t in range(T)]]
    return 1 + asked(rng, name, lattice, config)


ESTIMATORS: dict[str, tuple[Callable[..., Any], dict[str, Any], Any]] = {
    "CRF": (sc.CRF, {"order": 1, "max_iterations": 3}, Y),
    "CRF of order 2": (sc.CRF, {"order": 2, "max_iterations": 3, "engine": "auto", "bias_order": 1}, Y),
    "SemiCRF": (sc.SemiCRF, {"order": 1, "max_length": 2, "max_iterations": 3, "length_features": ()}, SEGMENTS),
    "HierarchicalCRF": (
        sc.HierarchicalCRF,
        {"levels": ["top", "low"], "max_iterations": 3, "attribute_parts": PARTS, "topology": None},
        TREES,
    ),
}
SETTINGS: dict[str, Any] = {
    "algorithm": "lbfgs",
    "c1": 0.0,
    "c2": 1.0,
    "epsilon": 1e-5,
    "period": 10,
    "delta": 1e-5,
    "num_memories": 6,
    "linesearch": "MoreThuente",
    "max_linesearch": 20,
    "calibration_eta": 0.1,
    "calibration_rate": 2.0,
    "calibration_samples": 10,
    "calibration_candidates": 3,
    "calibration_max_trials": 5,
    "pa_type": 1,
    "c": 1.0,
    "min_freq": 0.0,
    "n_jobs": 1,
    "random_state": 0,
    "verbose": False,
    "patience": 3,
}


def estimators(rng: np.random.Generator) -> int:
    """Estimators of odd parameters, odd data, odd questions."""
    name = list(ESTIMATORS)[int(rng.integers(len(ESTIMATORS)))]
    kind, parameters, y = ESTIMATORS[name]
    settings = {k: SETTINGS[k] for k in rng.choice(list(SETTINGS), size=3, replace=False)}
    if rng.random() < 0.5:
        settings["algorithm"] = str(rng.choice(["lbfgs", "l2sgd", "asgd", "mm", "ap", "pa"]))
    given = hostile(rng, {**parameters, **settings}) if rng.random() < 0.6 else {**parameters, **settings}
    if not isinstance(given["max_iterations"], int) or not 0 < given["max_iterations"] < 10:
        given["max_iterations"] = 3
    held = call(name, lambda **k: Held(kind(**k)), given)
    if held is None:
        return 1
    model = held.lattice
    given = {"X": copy.deepcopy(X), "y": (same := copy.deepcopy(y)), "sample_weight": None}
    if rng.random() < 0.5:
        given = hostile(rng, given)
    if call(f"{name}.fit", lambda **k: Held(model.fit(**k)), given) is None:
        return 2
    call("loss_", lambda: model.loss_ if given["y"] is same else 0.0, {})
    some = copy.deepcopy(X[:3])
    questions: list[tuple[str, dict[str, Any]]] = [
        ("predict", {"X": some, "constraints": None}),
        ("predict_marginals", {"X": some}),
        ("predict_kbest", {"X": some, "k": 2}),
        ("score", {"X": some, "y": y[:3]}),
        ("log_likelihood", {"X": some, "y": y[:3]}),
        ("sample", {"X": some, "n": 2}),
        ("lattice", {"x": some[0]}),
        ("strongest_features", {"top": 3}),
        ("report", {"top": 3}),
    ]
    for _ in range(3):
        question, arguments = questions[int(rng.integers(len(questions)))]
        changed = hostile(rng, arguments)
        if question == "sample" and isinstance(changed["n"], (int, np.integer)) and changed["n"] > 1e6:
            continue
        if question in ("lattice", "report", "log_likelihood"):  # log_likelihood may be -inf where y is impossible
            call(f"{name}.{question}", lambda q=question, **k: Held(getattr(model, q)(**k)), changed)
        else:
            call(f"{name}.{question}", getattr(model, question), changed)
    return 5


def functions(rng: np.random.Generator) -> int:
    """Data sets, metrics and schemes."""
    tags = ["B-A", "I-A", "O", "B-B"]
    gold = [["B-A", "I-A", "O"], ["O", "B-B"]]
    values = np.array([1.0, 2.0])
    vocabulary = encode([[{"a": 1.0, "b": 2.0}]]).vocabulary
    ways: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        ("encode", lambda X: Held(encode(X)), {"X": copy.deepcopy(X)}),
        (
            "Dataset",
            lambda **k: Held(Dataset(**k, vocabulary=vocabulary)),
            {"offsets": [0, 1], "token_offsets": [0, 2], "ids": [0, 1], "values": values},
        ),
        ("Dataset.take", lambda indices: Held(encode(X).take(indices)), {"indices": [0, 2]}),
        ("schemes.segments", schemes.segments, {"labels": list(tags), "scheme": "iob2"}),
        ("schemes.encode", schemes.encode, {"segments": [(0, 2, "A"), (2, 3, "B")], "length": 4, "scheme": "iob2"}),
        ("schemes.convert", schemes.convert, {"labels": list(tags), "source": "iob2", "target": "bilou"}),
        ("segment_scores", lambda **k: Held(metrics.segment_scores(**k)), {"y_true": gold, "y_pred": gold}),
        ("conlleval", metrics.conlleval, {"y_true": gold, "y_pred": gold}),
        ("edit_distance_score", metrics.edit_distance_score, {"y_true": gold, "y_pred": gold, "merge": True}),
    ]
    name, function, arguments = ways[int(rng.integers(len(ways)))]
    call(name, function, hostile(rng, arguments))
    return 1


def rounds_of(function: Callable[[np.random.Generator], int]) -> Callable[[np.random.Generator], int]:
    """Calls of one kind, within a memory limit."""

    def run(rng: np.random.Generator) -> int:
        count = 0
        with limited(), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # verbose models
            warnings.simplefilter("ignore")
            while count < CALLS:
                count += function(rng)
        return count

    return run


KINDS = {function.__name__: rounds_of(function) for function in (lattices, estimators, functions)}
