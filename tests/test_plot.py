"""Plots: what matplotlib was told to draw."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra scansion[plot])")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

LEVELS = [[(0, 4, "S")], [(0, 2, "NP"), (2, 4, "VP")]]
WORDS = ["the", "$man", "walks", "far"]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def drawn(ax):
    """Draw for real, so that nothing fails later; returns the picture's bytes."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())


def names(ticks):
    return [tick.get_text() for tick in ticks]


def test_marginals():
    table = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.0, 1.0]])
    ax = sc.plot.marginals(table, WORDS, ["A", "$B$"], answer=["A", "$B$", "A", "$B$"])
    assert_allclose(ax.images[0].get_array(), table.T, rtol=0, atol=0)
    assert ax.images[0].get_clim() == (0.0, 1.0)
    assert names(ax.get_yticklabels()) == ["A", r"\$B\$"]
    assert names(ax.get_xticklabels()) == ["the", r"\$man", "walks", "far"]
    boxes = [(box.get_x() + 0.5, box.get_y() + 0.5, box.get_width()) for box in ax.patches]
    assert boxes == [(0, 0, 1), (1, 1, 1), (2, 0, 1), (3, 1, 1)]
    assert drawn(ax).std() > 0


def test_marginals_in_all_forms():
    lattice = sc.ChainLattice(np.arange(6.0).reshape(3, 2), np.zeros((2, 2)))
    ax = sc.plot.marginals(lattice.marginals(), colorbar=False)
    assert_allclose(ax.images[0].get_array(), lattice.marginals().labels.T, rtol=0, atol=0)
    assert names(ax.get_yticklabels()) == ["0", "1"]
    ax = sc.plot.marginals([{"A": 1.0}, {"B": 0.5, "A": 0.5}], colorbar=False)
    assert_allclose(ax.images[0].get_array(), [[1.0, 0.5], [0.0, 0.5]], rtol=0, atol=0)
    ax = sc.plot.marginals(np.full((500, 3), 1 / 3), ["w"] * 500)
    assert "100" in names(ax.get_xticklabels())
    for table, tokens, labels in (
        (np.ones(3), None, None),
        (np.ones((3, 2)), ["a"], None),
        (np.ones((3, 2)), None, ["a"]),
    ):
        with pytest.raises(ValueError, match="marginals"):
            sc.plot.marginals(table, tokens, labels)


def test_segments():
    ax = sc.plot.segments(LEVELS, WORDS, level_names=["sentence", "phrase"])
    boxes = [(box.get_x(), box.get_x() + box.get_width(), int(box.get_y())) for box in ax.patches]
    assert boxes == [(0, 4, 0), (0, 2, 1), (2, 4, 1)]
    assert ax.get_ylim() == (2, 0)  # the root on top
    assert {text.get_text() for text in ax.texts} == {"S", "NP", "VP"}
    assert names(ax.get_yticklabels()) == ["sentence", "phrase"]
    colours = {box.get_facecolor() for box in ax.patches}
    assert len(colours) == 3
    assert drawn(ax).std() > 0
    with pytest.raises(ValueError, match="level_names has 1 names for 2 levels"):
        sc.plot.segments(LEVELS, level_names=["a"])


def test_segments_without_room_have_a_legend():
    level = [(t, t + 1, f"a long name {t % 12}") for t in range(400)]
    ax = sc.plot.segments(level)
    assert not ax.texts
    assert names(ax.get_legend().get_texts()) == [f"a long name {i}" for i in range(12)]
    assert len(ax.patches) == 400
    assert [bool(box.get_hatch()) for box in ax.patches[:12]] == [False] * 8 + [True] * 4
    assert len(sc.plot.segments([1, 1, 0]).patches) == 3
    assert len(sc.plot.segments([]).patches) == 0
    drawn(ax)


def test_lengths():
    compressed = sc.ChainLattice(np.zeros((12, 3)), np.eye(3)).compressed()
    ax = sc.plot.lengths(compressed)
    shares = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches}
    assert_allclose([shares[c] for c in shares], compressed.lengths[list(shares)], rtol=0, atol=0)
    assert sum(shares.values()) > 0.999
    mean = compressed.lengths @ np.arange(13)
    assert_allclose(ax.lines[0].get_xdata(), mean, rtol=1e-12)
    again = sc.plot.lengths(compressed.lengths)
    assert len(again.patches) == len(ax.patches)
    drawn(ax)
    for wrong in ([[1.0]], [], [-1.0], [np.nan], [0.0, 0.0]):
        with pytest.raises(ValueError, match="lengths"):
            sc.plot.lengths(wrong)


def test_training():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["A", "B"], ["B", "A"]] * 3
    model = sc.CRF(max_iterations=6).fit(X, y, X_dev=X, y_dev=y)
    ax = sc.plot.training(model)
    log = model.training_log_
    assert ax.lines[0].get_xdata().tolist() == [entry["iteration"] for entry in log]
    assert ax.lines[0].get_ydata().tolist() == [entry["loss"] for entry in log]
    (other,) = [twin for twin in ax.figure.axes if twin is not ax]
    assert other.lines[0].get_ydata().tolist() == [entry["dev_score"] for entry in log]
    drawn(ax)
    plain = sc.CRF(max_iterations=1).fit(X, y)
    assert len(sc.plot.training(plain.training_log_).figure.axes) == 1
    with pytest.raises(ValueError, match="model files do not hold them"):
        sc.plot.training([])


def test_axes_that_are_given_are_used():
    figure, axes = plt.subplots(2, 2)
    compressed = sc.ChainLattice(np.zeros((5, 2)), np.eye(2)).compressed()
    log = [{"iteration": i, "loss": 1.0 / i} for i in (1, 2, 3)]
    assert sc.plot.marginals(np.eye(3), ax=axes[0, 0]) is axes[0, 0]
    assert sc.plot.segments(LEVELS, ax=axes[0, 1]) is axes[0, 1]
    assert sc.plot.lengths(compressed, ax=axes[1, 0]) is axes[1, 0]
    assert sc.plot.training(log, ax=axes[1, 1]) is axes[1, 1]
    assert plt.get_fignums() == [figure.number]


def test_without_matplotlib():
    code = "import sys; sys.modules['matplotlib'] = None\nimport scansion as sc\nsc.plot.lengths([0.0, 1.0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip().endswith("ImportError: scansion.plot needs matplotlib: pip install 'scansion[plot]'")


# ---- levels from dicts, truth, seconds, several methods --------------------------------------------------------------


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_segments_beside_the_truth_in_seconds():
    levels = {"phase": ["a", "a", "b", "b"], "action": [(0, 2, "x"), (2, 4, "y")]}
    ax = sc.plot.segments(levels, truth={"phase": ["a", "b", "b", "b"], "action": [(0, 4, "x")]}, seconds=3)
    drawn(ax)
    assert rows(ax) == ["truth phase", "predicted phase", "truth action", "predicted action"]
    boxes = [(p.get_x(), p.get_width(), p.get_y() // 1) for p in ax.patches]
    assert boxes == [(0, 1, 0), (1, 3, 0), (0, 2, 1), (2, 2, 1), (0, 4, 2), (0, 2, 3), (2, 2, 3)]
    assert ax.get_xlabel() == "seconds" and "6" in [label.get_text() for label in ax.get_xticklabels()]
    assert rows(sc.plot.segments(levels)) == ["phase", "action"]
    with pytest.raises(ValueError, match="truth has 1 levels, the answer has 2"):
        sc.plot.segments(levels, truth={"phase": "aaaa"})
    with pytest.raises(ValueError, match="seconds is 0"):
        sc.plot.segments(levels, seconds=0)


def test_several_methods_one_above_the_other():
    ax = sc.plot.compare({"crf": list("aabb"), "semi": [(0, 3, "a"), (3, 4, "b")]}, truth=np.array(list("abbb")))
    drawn(ax)
    assert rows(ax) == ["truth", "crf", "semi"] and len(ax.patches) == 6
    with pytest.raises(ValueError, match="has levels"):
        sc.plot.compare({"tree": {"top": "aa"}})
