"""The examples run as they are, each as one of those whom it is for would run it; and helpers for sensor data."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scansion.data import spread, subsample, subsample_labels, with_context

EXAMPLES = Path(__file__).parents[1] / "examples"


def module(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "columns_to_tagger",
            ["$ scansion tag model", ",word,pos,label,predicted,probability", "FB1: 100.00"],
        ),
        ("logits", ["ChainBatch(3 sequences, 16 positions, 5 labels)", "scores of the greedy tags: [-inf -inf -inf]"]),
    ],
)
def test_scripts(name, said, tmp_path):
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    for text in said:
        assert text in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_model_selection(capsys):
    pytest.importorskip("sklearn")
    module("model_selection").main(12)
    said = capsys.readouterr().out
    assert "best: {'c2': " in said and "SemiCRF: SegmentScores(precision=" in said


def test_sensors(tmp_path, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    scores = module("sensors").main(str(tmp_path), videos=12)
    plain, said = scores["argmax of scores"], capsys.readouterr().out
    for name in ("CRF", "SemiCRF", "HierarchicalCRF, action"):
        assert scores[name].accuracy > plain.accuracy and scores[name].f1[50] > plain.f1[50]
        assert f"{name:24}F1@10 " in said
    assert {path.name for path in tmp_path.iterdir()} == {"methods.png", "levels.png"}
    matplotlib.pyplot.close("all")


# ---- frames to time steps and back -----------------------------------------------------------------------------------


@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 4))
def test_rates(size, step, width):
    rng = np.random.default_rng(size)
    x, labels = rng.normal(size=(size, 2)), list(rng.choice(list("ab"), size))
    few = subsample(x, step)
    means = np.array([x[t : t + step].mean(axis=0) for t in range(0, size, step)]).reshape(-1, 2)
    np.testing.assert_allclose(few, means, rtol=1e-12, atol=1e-12)
    small = subsample_labels(labels, step)
    for t, y in enumerate(small):
        part = labels[t * step : (t + 1) * step]
        assert part.count(y) == max(map(part.count, part))
    assert spread(small, step, size) == [small[t // step] for t in range(size)]
    wide = with_context(x, width)
    assert wide.shape == (size, 5) and (wide[:, 0] == 1).all() and (wide[:, 1:3] == x).all()
    for t in range(size):
        near = x[max(0, t - width) : t + width + 1].mean(axis=0)
        np.testing.assert_allclose(wide[t, 3:], near, rtol=1e-9, atol=1e-12)


def test_rates_that_do_not_fit():
    with pytest.raises(ValueError, match="2 steps of 3 frames do not make 7 frames"):
        spread("ab", 3, 7)
    with pytest.raises(ValueError, match="step must be at least 1"):
        subsample(np.zeros((2, 2)), 0)
    with pytest.raises(ValueError, match=r"x must have shape \(T, F\)"):
        with_context(np.zeros(3), 1)
