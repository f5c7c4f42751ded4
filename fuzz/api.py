"""Hostile calls: valid arguments of lattices, estimators and functions, one or two of them replaced by strange ones.

A call gives finite answers, or an exception that the package raises in words of its own; anything else is a fault.
"""

from __future__ import annotations

import contextlib
import copy
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import scansion as sc
from fuzz import Fault, doors
from fuzz.model_files import PARTS, SEGMENTS, TREES, X, Y, limited
from fuzz.strange import call, held, hostile, strange, too_many
from scansion import pycrfsuite, rules

CALLS = 60  # in a round


# ---- lattices ------------------------------------------------------------------------------------
def marginal_arrays(lattice: Any) -> Any:
    """The arrays of marginals."""
    marginals = lattice.marginals()
    return [marginals.labels, getattr(marginals, "boundaries", None)]


def asked(rng: np.random.Generator, name: str, lattice: Any, config: Any) -> int:
    """Some questions about a lattice, or about a batch of one; how many."""
    one = not hasattr(lattice, "offsets")
    k, n = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    questions: list[tuple[str, dict[str, Any]]] = [
        ("log_partition", {}),
        ("viterbi", {}),
        ("entropy", {}),
        ("kbest", {"k": k}),
        ("sample", {"n": n, "rng": int(rng.integers(100))}),
        ("score", {"config": config} if one else {"configs": [config]}),
        ("log_probability", {"config": config} if one else {"configs": [config]}),
    ]
    for _ in range(4):
        question, arguments = questions[int(rng.integers(len(questions)))]
        changed = hostile(rng, arguments)
        if not too_many(changed):  # a forbidden configuration has the score -inf
            ask = held if question in ("score", "log_probability") else call
            ask(f"{name}.{question}", getattr(lattice, question), changed)
    call(f"{name}.marginals", lambda: marginal_arrays(lattice), {})
    return 5


def changed_lattices(rng: np.random.Generator, name: str, lattice: Any) -> int:
    """A lattice with something known, under rules, and its trajectories; how many calls."""
    nested = isinstance(lattice, sc.NestedLattice)
    T, L = len(lattice), 2 if nested else lattice.n_labels
    known: dict[str, Any] = {"labels": rng.integers(-1, L, size=T), "boundaries": None}
    if nested:
        known = {"labels": {2: known["labels"]}, "boundaries": {1: np.full(T, -1)}}
    given = held(f"{name}.constrain", lattice.constrain, hostile(rng, known))
    if given is not None:
        call(f"{name}.constrain.viterbi", given.viterbi, {})
    rule = some_rule(rng, [0, L - 1], level=1 if nested else None)
    limits = hostile(rng, {"tolerance": 1e-10, "max_states": None})
    under = (
        None if rule is None else held(f"{name}.restrict({rule!r})", lambda **k: lattice.restrict(rule, **k), limits)
    )
    if under is not None:
        call(f"{name}.restrict.viterbi", under.viterbi, {})
        call(f"{name}.restrict.marginals", lambda: marginal_arrays(under), {})
    short = None if nested else held(f"{name}.compressed", lattice.compressed, hostile(rng, {"max_length": 3}))
    if short is None:
        return 4
    for question, arguments in (
        ("best", {"k": 2, "budget": 100}),
        ("log_probability", {"trajectory": [0]}),
        ("log_probabilities", {"lexicon": [[0], [0, L - 1]]}),
        ("marginals", {"length": 1}),
        ("sample", {"n": 2, "rng": 0}),
        ("predict", {}),
    ):
        changed = hostile(rng, arguments)
        if not too_many(changed):
            ask = held if question.startswith("log_prob") else call
            ask(f"{name}.compressed.{question}", getattr(short, question), changed)
    return 10


def lattices(rng: np.random.Generator) -> int:
    """Lattices of odd scores, and odd questions."""
    T, L, M = int(rng.integers(0, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    patterns = [(y,) for y in range(L)] + [(0, L - 1)]
    size, offsets = len(patterns), np.array([0, T])
    zeros = [np.zeros((1, 2)), np.zeros((2, 2))]
    nested = {
        "persist": [sc.Persistence(inside=np.zeros((T, 1))), rng.normal(size=(T, M, 2)), rng.normal(size=(T, 1, 2))],
        "transit": [rng.normal(size=(1, 2, 2)), rng.normal(size=(2, 2, 2))],
        "init": copy.deepcopy(zeros),
        "end": copy.deepcopy(zeros),
    }
    chain = {"unary": rng.normal(size=(T, L)) * rng.choice([1.0, 300.0, 1e6]), "transition": rng.normal(size=(L, L))}
    ends = {"start": None, "end": rng.normal(size=L)}
    segments = {"scores": rng.normal(size=(T, M, size)), "patterns": patterns, "n_labels": L}
    parts = {
        "patterns": patterns,
        "n_labels": L,
        "max_length": M,
        "start": rng.normal(size=(T, size)),
        "inside": rng.normal(size=(T, size)) * rng.choice([1.0, 1e5]),
        "length": None,
    }
    hmm = {
        "startprob": np.full(L, 1 / L),
        "transmat": np.full((L, L), 1 / L),
        "emission_logprob": rng.normal(size=(T, L)),
    }
    ways: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "ChainLattice": (sc.ChainLattice, {**chain, **ends}),
        "ChainLattice.from_patterns": (
            sc.ChainLattice.from_patterns,
            {"scores": rng.normal(size=(T, size)), "patterns": patterns, "n_labels": L},
        ),
        "ChainLattice.from_hmm": (sc.ChainLattice.from_hmm, hmm),
        "SegmentLattice": (sc.SegmentLattice, segments),
        "SegmentLattice.from_parts": (sc.SegmentLattice.from_parts, parts),
        "NestedLattice": (sc.NestedLattice, nested),
        "PatternAutomaton": (sc.PatternAutomaton, {"patterns": patterns, "n_labels": L}),
        "ChainBatch": (sc.ChainBatch, {**chain, "offsets": offsets, "n_jobs": 1}),
        "SegmentBatch": (sc.SegmentBatch, {**segments, "offsets": offsets, "n_jobs": 1}),
        "NestedBatch": (sc.NestedBatch, {**nested, "offsets": offsets, "n_jobs": 1}),
    }
    name = list(ways)[int(rng.integers(len(ways)))]
    function, arguments = ways[name]
    lattice = held(name, function, hostile(rng, arguments))
    if lattice is None or name == "PatternAutomaton":
        return 1
    config: Any = [0] * T if "Chain" in name else [(t, t + 1, t % L) for t in range(T)]
    if "Nested" in name:
        config = [[(0, T, 0)], [(t, t + 1, 0) for t in range(T)], [(t, t + 1, 1) for t in range(T)]]
    done = 1 + asked(rng, name, lattice, config)
    return done if "Batch" in name else done + changed_lattices(rng, name, lattice)


# ---- estimators ----------------------------------------------------------------------------------
ESTIMATORS: dict[str, tuple[Callable[..., Any], dict[str, Any], Any]] = {
    "CRF": (sc.CRF, {"order": 1}, Y),
    "CRF of order 2": (sc.CRF, {"order": 2, "engine": "auto", "bias_order": 1}, Y),
    "SemiCRF": (sc.SemiCRF, {"order": 1, "max_length": 2, "length_features": ()}, SEGMENTS),
    "HierarchicalCRF": (
        sc.HierarchicalCRF,
        {"levels": ["top", "low"], "attribute_parts": PARTS, "topology": None},
        TREES,
    ),
}
ALGORITHMS = ["lbfgs", "auto", "l2sgd", "asgd", "mm", "ap", "pa", "arow"]
LEFT_ALONE = {"max_iterations", "model_filename", "keep_tempfiles", "grow"}  # they take time, or write files


def estimators(rng: np.random.Generator) -> int:
    """Estimators of odd parameters, odd data, odd questions."""
    name = list(ESTIMATORS)[int(rng.integers(len(ESTIMATORS)))]
    kind, parameters, y = ESTIMATORS[name]
    defaults = kind(**parameters).get_params()
    open_ = sorted(defaults.keys() - LEFT_ALONE)
    settings = {k: defaults[k] for k in rng.choice(open_, size=3, replace=False)}
    if rng.random() < 0.5:
        settings["algorithm"] = str(rng.choice(ALGORITHMS))
    given = {**parameters, **settings}
    if rng.random() < 0.6:
        given = hostile(rng, given)
    model = held(name, kind, {**given, "max_iterations": 3})
    if model is None:
        return 1
    data: dict[str, Any] = {"X": copy.deepcopy(X), "y": (same := copy.deepcopy(y)), "sample_weight": None}
    if rng.random() < 0.5:
        data |= {"X_dev": copy.deepcopy(X[:2]), "y_dev": copy.deepcopy(y[:2])} if rng.random() < 0.2 else {}
        data = hostile(rng, data)
    if held(f"{name}({given}).fit", model.fit, data) is None:
        return 2
    call(f"{name}({given}).loss_", lambda: model.loss_ if data["y"] is same else 0.0, {})
    some = copy.deepcopy(X[:3])
    rule = some_rule(rng, ["A", "B"], "low" if name == "HierarchicalCRF" else None) if rng.random() < 0.1 else None
    told = {"X": some, "constraints": None, "rules": rule}
    questions: list[tuple[str, dict[str, Any]]] = [
        ("predict", {**told, "decode": "viterbi"}),
        ("predict_marginals", told),
        ("predict_kbest", {"X": some, "k": 2, "rules": rule}),
        ("predict_single", {"x": some[0]}),
        ("score", {"X": some, "y": y[:3]}),
        ("log_likelihood", {"X": some, "y": y[:3]}),
        ("sample", {"X": some, "n": 2, "random_state": 0}),
        ("lattice", {"x": some[0]}),
        ("lattices", told),
        ("broken_rules", {"y": y[:3], "rules": rule}),
        ("strongest_features", {"top": 3}),
        ("report", {"top": 3}),
        ("set_params", {"c2": 1.0, "n_jobs": 1}),
    ]
    if name != "HierarchicalCRF":
        questions.append(("predict_compressed", {"X": some}))
    for _ in range(3):
        question, arguments = questions[int(rng.integers(len(questions)))]
        changed = hostile(rng, arguments)
        if not too_many(changed):  # log_likelihood is -inf where y is impossible
            ask = held if question in ("lattice", "lattices", "report", "log_likelihood", "set_params") else call
            ask(f"{name}({given}).{question}", getattr(model, question), changed)
    return 5


# ---- rules ---------------------------------------------------------------------------------------
TEXTS = [
    "at_most_once(A) & never(A, B)",
    "~before(A, B) | first(B)",
    "regular('A+ (B|C)? .*')",
    "exactly(2, A, B, together=True)  # of both\nlast(C)",
    "requires(A, B, level=low, within=top)",
]


def some_rule(rng: np.random.Generator, labels: list[Any], level: Any = None) -> Any:
    """A rule about some labels, or something strange; None where it is refused."""
    if rng.random() < 0.05:
        return strange(rng)
    a, b = labels
    where = {} if level is None else {"level": level}
    ways: list[tuple[str, dict[str, Any]]] = [
        *((name, {"n": int(rng.integers(3)), "label": a, **where}) for name in ("at_most", "at_least", "exactly")),
        *((name, {"label": a, "other": b, **where}) for name in ("once", "at_most_once", "first", "last", "follows")),
        *((name, {"a": a, "b": b, **where}) for name in ("before", "never", "requires")),
        ("regular", {"expression": f"{a}* ({b} | .)+", **where}),
        ("scheme", {"name": "iob2"}),
    ]
    name, arguments = ways[int(rng.integers(len(ways)))]

    def made(**given: Any) -> Any:
        plain = [given.pop(key) for key in arguments if key not in where]
        return getattr(rules, name)(*plain, **given)

    return held(f"rules.{name}", made, hostile(rng, arguments))


def ruled(rng: np.random.Generator) -> int:
    """Rules out of odd arguments and odd texts, read again from what they print; what y says of itself."""
    way = int(rng.integers(3))
    if way == 0:
        text = TEXTS[int(rng.integers(len(TEXTS)))]
        at, size = int(rng.integers(len(text))), int(rng.integers(1, 6))
        piece = str(rng.choice(["", "(", ")", "&", "|", "~", "'", ",", "#", "=", "\\n", "\\x00", "A", "9" * 30, "*+?"]))
        rule = held("rules.parse", rules.parse, hostile(rng, {"text": text[:at] + piece + text[at + size :]}))
    elif way == 1:
        arguments = {"y": copy.deepcopy(Y), "scheme": None}
        return 1 + (held("rules.learn", rules.learn, hostile(rng, arguments)) is not None)
    else:
        rule = some_rule(rng, ["A", "B"])
    if isinstance(rule, rules.Rule):
        again = held("rules.parse(str(rule))", rules.parse, {"text": str(rule)})
        held("rule.svg", rule.svg, hostile(rng, {"labels": ["A", "B", "C"], "runs": True}))
        names = [label for atom in rule.atoms() for label in atom.labels()]
        if again != rule and all(isinstance(label, (str, int)) for label in names):
            raise Fault(f"{rule!r} was read as {again!r}")
    return 3


# ---- CRFsuite's interface ------------------------------------------------------------------------
def crfsuite(rng: np.random.Generator) -> int:
    """python-crfsuite's interface with odd data and odd settings."""
    trainer = pycrfsuite.Trainer(verbose=False)
    held("Trainer.select", trainer.select, hostile(rng, {"algorithm": str(rng.choice(["lbfgs", "l2sgd", "ap", "pa"]))}))
    trainer.set("max_iterations", 3)
    name = str(rng.choice(trainer.params()))
    if name != "max_iterations":
        held(f"Trainer.set({name})", trainer.set, hostile(rng, {"name": name, "value": trainer.get(name)}))
    for x, y in zip(X[:5], Y[:5], strict=True):
        held("Trainer.append", trainer.append, hostile(rng, {"xseq": x, "yseq": y, "group": 0}))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        held("Trainer.train", trainer.train, {"model": path, "holdout": -1})
        if not Path(path).exists():
            return 8
        tagger = pycrfsuite.Tagger()
        if held("Tagger.open", tagger.open, {"name": path}) is None:  # without data there are no labels
            return 9
        for question, arguments in (
            ("tag", {"xseq": X[0]}),
            ("set", {"xseq": X[0]}),
            ("probability", {"yseq": Y[0]}),
            ("marginal", {"y": "A", "pos": 0}),
            ("info", {}),
        ):
            held(f"Tagger.{question}", getattr(tagger, question), hostile(rng, arguments))
    return 13


# ---- rounds ------------------------------------------------------------------------------------
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


CALLS_OF = (lattices, estimators, ruled, crfsuite, *doors.KINDS.values())
KINDS = {function.__name__: rounds_of(function) for function in CALLS_OF}
