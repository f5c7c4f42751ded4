"""Files whose pieces do not fit, behind right checksums: refused in words of ours, or a model that answers."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import test_old_files

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import scansion as sc
from fuzz import model_files
from scansion import model_file
from scansion.model_file import ModelFileError

# what Python, NumPy and nanobind say
FOREIGN = (
    "incompatible function",
    "object is not",
    "indices must be",
    "unsized",
    "positional arg",
    "zip()",
    "attribute '",
)


def refused(path: Path) -> str | None:
    """What loading says; None if it gives a model that answers."""
    if model_files.tried(path, thorough=False):
        return None
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        model_files.load(path)
    return str(caught.value)


def contents(kind, folder):
    """What is in a file."""
    if kind in model_files.MODELS:
        return model_files.made(kind)[1]
    return model_file.read(test_old_files.stored(getattr(test_old_files, kind), folder / kind))


@pytest.mark.parametrize("kind", ["order_2", "semicrf", "hierarchical", "dataset", "CRF", "HIERARCHICAL"])
def test_every_piece_altered(kind, tmp_path):
    """Every array dropped, of other types and shapes, with extreme values; every entry of the metadata replaced.

    Kinds in capitals are files of earlier versions. ``python -m fuzz --only model_files`` does more of it.
    """
    stored = contents(kind, tmp_path)
    counts = {"refused": 0, "loaded": 0}
    for number, (what, metadata, arrays) in enumerate(model_files.alterations(stored, few=True)):
        path = tmp_path / str(number)
        model_files.written(path, stored.kind, metadata, arrays)
        try:
            message = refused(path)
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        path.unlink()
        counts["loaded" if message is None else "refused"] += 1
        assert message is None or not any(words in message for words in FOREIGN), f"{what}: {message}"
    assert min(counts.values()) > 10, counts


LEVELS = {
    "no levels at all": (lambda meta: meta.pop("levels"), "it has no 'levels'"),
    "no level": (lambda meta: meta.update(levels=[]), "levels must be one or more distinct names"),
    "a level that is a list": (
        lambda meta: meta["levels"].append([]),
        "a piece of it has another type than it should have",
    ),
    "one level less": (lambda meta: meta["levels"].pop(), "does not fit together"),
    "one level more": (lambda meta: meta["levels"].append({**meta["levels"][1], "name": "more"}), "it has no '2."),
    "levels of other names": (
        lambda meta: meta["levels"][0].update(name="other"),
        "has other levels in its parameters",
    ),
    "parameters without levels": (lambda meta: meta["parameters"].pop("levels"), "has other levels in its parameters"),
    "other parameters": (lambda meta: meta["parameters"].update(levels=["low"]), "has other levels in its parameters"),
    "no parameters": (lambda meta: meta.update(parameters={}), "has other levels in its parameters"),
}


@pytest.mark.parametrize("case", LEVELS)
def test_levels_that_do_not_fit(case, tmp_path):
    stored = model_files.made("hierarchical")[1]
    metadata = copy.deepcopy(stored.metadata)
    change, message = LEVELS[case]
    change(metadata)
    model_files.written(tmp_path / "model", stored.kind, metadata, stored.arrays)
    with pytest.raises(ModelFileError, match=f"model.*{re.escape(message)}"):
        sc.load(tmp_path / "model")


@pytest.mark.parametrize("kind", ["crf", "semicrf", "hierarchical"])
@pytest.mark.parametrize("value", [1e101, -1e307, np.inf, -np.inf, np.nan])
def test_weights_beyond_all_scores(kind, value, tmp_path):
    stored = model_files.made(kind)[1]
    weights = model_files.filled(stored.arrays["weights"], value, -1)
    model_files.written(tmp_path / "model", stored.kind, stored.metadata, {**stored.arrays, "weights": weights})
    message = rf"model: the model file does not fit together: weights\[{len(weights) - 1}\]"
    with pytest.raises(ModelFileError, match=message):
        sc.load(tmp_path / "model")


@pytest.mark.parametrize("value", [1e16, -1e99, -1.7e308, -np.inf])
def test_length_features_beyond_all_lengths(value, tmp_path):
    message = r"a length feature of level 0 does not lie within \+-2\^53"
    if -np.inf < value < -1e100:
        message = r"basis\[0, 1\] = -1.7e\+308 is beyond the range"
    for kind in ("semicrf", "hierarchical"):
        stored = model_files.made(kind)[1]
        basis = model_files.filled(stored.arrays["0.basis"], value, 1)
        model_files.written(tmp_path / "model", stored.kind, stored.metadata, {**stored.arrays, "0.basis": basis})
        with pytest.raises(ModelFileError, match=message):
            sc.load(tmp_path / "model")


def test_arrays_of_another_dtype_are_named(tmp_path):
    stored = model_files.made("hierarchical")[1]
    for name, dtype, message in [
        ("attributes.text", np.int64, "attributes.text has dtype int64, not uint8"),
        ("attributes.offsets", np.int32, "attributes.offsets has dtype int32, not int64"),
        ("0.spans.offsets", np.float64, "0.spans.offsets has dtype float64, not int64"),
        ("1.children", np.uint8, "1.children must be boolean, got uint8"),
        ("block0.columns", np.float64, "block0.columns must be an array of integers, got dtype float64"),
        ("weights", np.bool_, "weights must be an array of real numbers, got dtype bool"),
        ("0.basis", np.bool_, "basis must be an array of real numbers, got dtype bool"),
    ]:
        arrays = {**stored.arrays, name: stored.arrays[name].astype(dtype)}
        model_files.written(tmp_path / "model", stored.kind, stored.metadata, arrays)
        with pytest.raises(ModelFileError, match=re.escape(message)):
            sc.load(tmp_path / "model")


def test_a_short_search(tmp_path):
    """The fuzzer finds nothing, and loads some of what it alters."""
    for name, kind in model_files.KINDS.items():
        assert kind(np.random.default_rng([1, len(name)])) == model_files.FILES


def test_the_fuzzer_finds_faults(monkeypatch):
    """Exceptions that are not ours, and answers that are not finite."""

    def fault(error):
        def predict(*args, **options):
            raise error

        return predict

    for error in (KeyError("x"), ZeroDivisionError(), MemoryError(), ValueError("not by a statement of the package")):
        with monkeypatch.context() as patch:
            patch.setattr(sc.CRF, "predict", fault(error))
            with pytest.raises(AssertionError, match=type(error).__name__):
                model_files.KINDS["crf"](np.random.default_rng(0))
    with monkeypatch.context() as patch:
        patch.setattr(sc.CRF, "log_likelihood", lambda *args: float("nan"))
        with pytest.raises(AssertionError, match="log-likelihood: nan"):
            model_files.KINDS["crf"](np.random.default_rng(0))
