"""python-crfsuite's interface, beside python-crfsuite itself."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pycrfsuite as theirs
import pytest
from test_foreign import X, Y

import scansion as sc
from scansion import pycrfsuite as ours

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")


def trained(module: Any, path: Path, algorithm: str = "lbfgs", holdout: int = -1, **params: Any) -> Any:
    trainer = module.Trainer(algorithm, params, verbose=False)
    for number, (x, y) in enumerate(zip(X, Y, strict=True)):
        trainer.append(x, y, number % 5)
    trainer.train(str(path), holdout)
    return trainer


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that CRFsuite trained."""
    found = tmp_path_factory.mktemp("model") / "theirs.crfsuite"
    trained(theirs, found, c2=0.1, max_iterations=40)
    return found


def opened(module: Any, path: Path) -> Any:
    tagger = module.Tagger()
    tagger.open(str(path))
    return tagger


def test_taggers_agree(path: Path) -> None:
    one, two = opened(ours, path), opened(theirs, path)
    assert one.labels() == two.labels()
    for x, y in zip(X, Y, strict=True):
        assert one.tag(x) == two.tag(x) == one.tag(ours.ItemSequence(x))
        assert one.probability(y) == pytest.approx(two.probability(y), rel=1e-9)
        for t in range(len(x)):
            for label in one.labels():
                assert one.marginal(label, t) == pytest.approx(two.marginal(label, t), rel=0, abs=1e-9)
    mine, other = one.info(), two.info()
    assert {k: v for k, v in mine.header.items() if "off" not in k} == {
        k: v for k, v in other.header.items() if "off" not in k
    }
    assert mine.labels == other.labels
    assert mine.transitions == pytest.approx(other.transitions, rel=0, abs=1e-6)
    assert mine.state_features == pytest.approx(other.state_features, rel=0, abs=1e-6)
    assert mine.attributes.keys() == other.attributes.keys()


def test_dumps_agree(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, module in (("ours", ours), ("theirs", theirs)):
        opened(module, path).dump(str(tmp_path / name))
    mine, other = ((tmp_path / name).read_text(encoding="utf-8").split("\n") for name in ("ours", "theirs"))
    features = mine.index("ATTRIBUTES = {")
    assert [line for line in mine[:features] if "off_" not in line] == [
        line for line in other[:features] if "off_" not in line
    ]
    assert len(mine) == len(other) or len(mine) == len(other) - 1
    assert {line for line in mine if "-->" in line} == {line for line in other if "-->" in line}
    opened(ours, path).dump()
    assert capsys.readouterr().out == "\n".join(mine)


def test_training_ends_at_the_same_optimum(tmp_path: Path) -> None:
    for name, module in (("ours", ours), ("theirs", theirs)):
        trained(module, tmp_path / name, c2=0.5, delta=1e-7)
    one, two = opened(theirs, tmp_path / "ours"), opened(theirs, tmp_path / "theirs")
    assert one.info().state_features.keys() == two.info().state_features.keys()
    worst = 0.0
    for x in X:
        one.set(x)
        two.set(x)
        for t in range(len(x)):
            worst = max(worst, *(abs(one.marginal(label, t) - two.marginal(label, t)) for label in one.labels()))
    assert worst < 1e-3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_logs_agree(algorithm: str, tmp_path: Path) -> None:
    records = []
    for name, module in (("ours", ours), ("theirs", theirs)):
        trainer = trained(module, tmp_path / name, algorithm, holdout=2, max_iterations=4)
        records.append(trainer.logparser)
        events = [event for event, *_ in trainer.logparser.events if event != "featgen_progress"]
        assert events[:3] == ["start", "featgen_end", "prepared"] and events[-2:] == ["optimization_end", "end"]
        assert events[3:-2] == ["iteration"] * len(trainer.logparser.iterations)
    mine, other = records
    assert len(mine.iterations) == len(other.iterations) == 4
    assert mine.featgen_num_features == other.featgen_num_features
    assert mine.featgen_percent == other.featgen_percent == 100
    assert None not in (mine.featgen_seconds, mine.training_seconds, mine.storing_seconds)
    for one, two in zip(mine.iterations, other.iterations, strict=True):
        assert two.keys() <= one.keys()
        assert one["num"] == two["num"]
        assert {label: score.ref for label, score in one["scores"].items()} == {
            label: score.ref for label, score in two["scores"].items()
        }
        assert one["item_accuracy"].denominator <= two["item_accuracy"].denominator * 1000
    held = [y for number, y in enumerate(Y) if number % 5 == 2]
    tagger = opened(ours, tmp_path / "ours")
    guess = [tagger.tag(x) for number, x in enumerate(X) if number % 5 == 2]
    last = mine.last_iteration
    if algorithm != "l2sgd":  # which keeps the best of its passes
        right = sum(a == b for p, q in zip(guess, held, strict=True) for a, b in zip(p, q, strict=True))
        assert last["item_accuracy"] == Fraction(right, sum(map(len, held)))
        assert last["instance_accuracy"] == Fraction(sum(map(list.__eq__, guess, held)), len(held))
    if algorithm == "lbfgs":
        assert last["loss"] == pytest.approx(other.last_iteration["loss"], rel=1e-4)


def test_settings_are_told_as_crfsuite_tells_them(tmp_path: Path) -> None:
    def messages(module: Any, algorithm: str) -> list[str]:
        class Listening(module.Trainer):  # type: ignore[misc,name-defined]
            def message(self, message: str) -> None:
                heard.append(message)

        heard: list[str] = []
        trainer = Listening(algorithm, {"max_iterations": 2})
        trainer.append(X[0], Y[0])
        trainer.train(str(tmp_path / "model"))
        return heard

    for algorithm in ALGORITHMS:
        mine, other = messages(ours, algorithm), messages(theirs, algorithm)
        end = other.index("\n", other.index("\n", other.index("\n") + 1) + 1)  # after the algorithm's settings
        wanted = [line for line in other[:end] if "Seconds" not in line]
        assert [line for line in mine[:end] if "Seconds" not in line] == wanted


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "averaged-perceptron", "passive-aggressive", "AP"])
def test_parameters_agree(algorithm: str) -> None:
    one, two = ours.Trainer(algorithm), theirs.Trainer(algorithm)
    assert one.params() == two.params()
    assert one.get_params() == two.get_params()
    assert all(one.help(name) for name in one.params())
    for module, trainer in ((ours, one), (theirs, two)):
        trainer.set_params({"max_iterations": 7, "feature.possible_states": True, "feature.minfreq": 2})
        trainer.select(algorithm)
        assert trainer.get("max_iterations") == module.Trainer(algorithm).get("max_iterations")


def test_features_follow_the_parameters(tmp_path: Path) -> None:
    params = {"feature.minfreq": 0, "feature.possible_states": True, "feature.possible_transitions": True}
    found = [trained(module, tmp_path / "model", max_iterations=1, **params) for module in (ours, theirs)]
    assert len({trainer.logparser.featgen_num_features for trainer in found}) == 1
    params = {"feature.minfreq": 3.0}
    found = [trained(module, tmp_path / "model", max_iterations=1, **params) for module in (ours, theirs)]
    assert len({trainer.logparser.featgen_num_features for trainer in found}) == 1


def test_labels_that_are_held_out_are_labels(tmp_path: Path) -> None:
    found = []
    for module in (ours, theirs):
        trainer = module.Trainer(verbose=False)
        trainer.append([["a"], ["b"]], ["x", "y"])
        trainer.append([["a"]], ["z"], 1)
        trainer.train(str(tmp_path / "model"), holdout=1)
        tagger = opened(module, tmp_path / "model")
        tagger.set([["a"], ["b"]])
        found.append([tagger.marginal(label, 1) for label in ("x", "y", "z")])
    assert found[0] == pytest.approx(found[1], rel=0, abs=1e-4)


def test_errors() -> None:
    trainer, tagger = ours.Trainer(verbose=False), ours.Tagger()
    with pytest.raises(ValueError, match=r"\|x\| = 1, \|y\| = 2"):
        trainer.append([["a"]], ["x", "y"])
    with pytest.raises(TypeError, match="strings, got 1"):
        trainer.append([["a"]], [1])
    for wrong in ({"foo": 1}, {"c2": "much"}, {"max_iterations": None}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            trainer.set_params(wrong)
    for call in (tagger.tag, tagger.labels):
        with pytest.raises(ValueError, match="not opened"):
            call()
    for call in (tagger.dump, tagger.info):
        with pytest.raises(RuntimeError, match="not opened"):
            call()
    with pytest.raises(ValueError, match="Bad arguments"):
        trainer.select("newton")
    for content in (b"", b"lCRF", b"lCRFfoo" * 100):
        with pytest.raises(ValueError):
            tagger.open_inmemory(content)


def test_errors_of_questions(path: Path) -> None:
    tagger = opened(ours, path)
    assert tagger.tag([]) == [] and tagger.probability([]) == tagger.marginal("A", 0) == 0.0
    tagger.set([["a"]])
    with pytest.raises(ValueError, match="out of range of 1"):
        tagger.marginal("A", 1)
    for call in (lambda: tagger.marginal("Q", 0), lambda: tagger.probability(["Q"])):
        with pytest.raises(RuntimeError, match="label identifier: Q"):
            call()
    with pytest.raises(ValueError, match="differ"):
        tagger.probability(["A", "A"])


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    for module, name in ((ours, "ours"), (theirs, "theirs")):
        trainer = module.Trainer(verbose=False)
        trainer.train(str(tmp_path / name))
        assert "prepare_error" in [event for event, *_ in trainer.logparser.events]
    assert (tmp_path / "ours").stat().st_size == (tmp_path / "theirs").stat().st_size


def test_verbose_trainers_print(tmp_path: Path) -> None:
    texts = []
    for verbose in (True, False):
        trainer = ours.Trainer("ap", {"max_iterations": 2}, verbose=verbose)
        trainer.append(X[0], Y[0])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            trainer.train(str(tmp_path / "model"))
        texts.append(out.getvalue())
    assert "***** Iteration #2 *****\nLoss: " in texts[0] and "0....1....2" in texts[0]
    assert texts[1] == ""


def test_item_sequences() -> None:
    given = [{"foo": {"bar": "baz", "n": 0.5}, "on": True, "set": {"x", "y"}}, ["a", "b"], {}]
    one, two = ours.ItemSequence(given), theirs.ItemSequence(given)
    assert one.items() == two.items() and len(one) == len(two) == 3 and repr(one) == repr(two)
    assert pickle.loads(pickle.dumps(one)).items() == one.items()
    assert sc.CRF(max_iterations=2).fit([one], [["p", "q", "r"]]).predict([one]) == [["p", "q", "r"]]


def test_models_of_other_kinds_are_opened(tmp_path: Path) -> None:
    crf = sc.CRF(2, max_iterations=5).fit(X, Y)
    crf.save(tmp_path / "model")
    assert opened(ours, tmp_path / "model").tag(X[0]) == crf.predict(X[:1])[0]
    sc.SemiCRF(max_iterations=2).fit(X, Y).save(tmp_path / "model")
    with pytest.raises(ValueError, match="needs a CRF"):
        opened(ours, tmp_path / "model")


def test_it_takes_the_place_of_pycrfsuite() -> None:
    code = """
import sys, scansion.pycrfsuite
sys.modules["pycrfsuite"] = scansion.pycrfsuite
import pycrfsuite
from pycrfsuite import Trainer, Tagger, ItemSequence
from pycrfsuite._logparser import TrainLogParser
from pycrfsuite._dumpparser import ParsedDump
assert pycrfsuite.Trainer is scansion.pycrfsuite.Trainer
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
