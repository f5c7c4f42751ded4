"""Hidden levels: phases over actions that are never told, classes with hidden states, and what cannot be learnt."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import scansion as sc

ORDER = "abcd"


def simulated(n: int, seed: int, noise: float = 0.5):
    """Steps in a circle, forwards in one phase and backwards in the other; the steps of both are the same."""
    rng = np.random.default_rng(seed)
    X, steps, phases = [], [], []
    for _ in range(n):
        phase, at = int(rng.integers(2)), int(rng.integers(4))
        row, told = [], []
        for _ in range(3):
            for _ in range(rng.integers(6, 12)):
                at = (at + (1 if phase else -1)) % 4 if rng.random() < 0.95 else int(rng.integers(4))
                row.append(ORDER[at])
                told.append(phase)
            phase = 1 - phase
        X.append([[step if rng.random() > noise else ORDER[rng.integers(4)]] for step in row])
        steps.append({"step": row})
        phases.append(told)
    return X, steps, phases


DATA, STEPS, PHASES = simulated(40, 0)
TEST, TRUTH, TRUE_PHASES = simulated(30, 1)
SETTINGS = {"hidden": {"phase": 2}, "max_length": {"step": 1}, "restarts": 2, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return sc.HierarchicalCRF(["phase", "step"], **SETTINGS).fit(DATA, STEPS)


def test_phases_over_actions_that_were_never_told(fitted):
    assert fitted.classes_["phase"] == ["phase 1", "phase 2"]
    answers = fitted.predict(TEST, constraints=TRUTH)
    found = [int(s.label == "phase 1") for answer in answers for s in answer["phase"] for _ in range(s.start, s.stop)]
    right = np.mean(np.array(found) == np.concatenate(TRUE_PHASES))
    assert max(right, 1.0 - right) > 0.9
    # they say more of the steps than a model without them can
    flat = sc.HierarchicalCRF(["step"], max_length=1).fit(DATA, STEPS)
    assert fitted.log_likelihood(TEST, TRUTH) > 0.8 * flat.log_likelihood(TEST, TRUTH)
    step = [model.scores(TEST, TRUTH)["step"]["accuracy"] for model in (fitted, flat)]
    assert step[0] > step[1]


def test_starts_are_drawn_by_seed_and_the_best_is_kept(fitted, tmp_path):
    again = sc.HierarchicalCRF(["phase", "step"], n_jobs=3, **SETTINGS).fit(DATA, STEPS)
    assert_array_equal(again.model_.weights, fitted.model_.weights)
    one = sc.HierarchicalCRF(["phase", "step"], **{**SETTINGS, "restarts": 1}).fit(DATA, STEPS)
    assert fitted.loss_ <= one.loss_
    fitted.save(tmp_path / "model")
    assert sc.load(tmp_path / "model").predict(TEST) == fitted.predict(TEST)


def test_labels_by_name_and_repeated_children():
    """Segments of one label may follow each other in y: under a hidden parent, too."""
    y = [{"step": [(t, t + 1, step) for t, step in enumerate(row["step"])]} for row in STEPS[:15]]
    y[0]["step"][1] = (1, 2, y[0]["step"][0][2])
    model = sc.HierarchicalCRF(
        ["phase", "step"],
        hidden={"phase": ["on", "off"]},
        max_length={"step": 2},
        transitions="seen",
        all_possible_transitions=False,
        restarts=1,
    )
    model.fit(DATA[:15], y)
    assert model.classes_["phase"] == ["on", "off"]
    assert model.log_likelihood(DATA[:15], y) > -np.inf


def test_classes_by_hidden_states():
    """A sequence is told by its class alone; classes differ in the order of what is seen."""
    rng = np.random.default_rng(0)

    def draw(n):
        X, y = [], []
        for _ in range(n):
            step, at = int(rng.choice([-1, 1])), int(rng.integers(4))
            X.append([[ORDER[(at + step * t) % 4]] for t in range(9)])
            y.append({"class": "forwards" if step > 0 else "backwards"})
        return X, y

    X, y = draw(40)
    limits = {"class": "whole", "state": 1}
    model = sc.HierarchicalCRF(["class", "state"], hidden={"state": 4}, max_length=limits, c2=0.01, random_state=1)
    model.fit(X, y)
    assert model.scores(*draw(40))["class"]["f1"] == 1.0
    alone = sc.HierarchicalCRF(["class"], max_length="whole", c2=0.01).fit(X, y)
    assert alone.scores(*draw(40))["class"]["f1"] < 0.8


def test_sequences_in_unknown_groups():
    """A hidden level of whole sequences groups them."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=40)
    steps = [{"step": [ORDER[(t * (1 if g else 3)) % 4] for t in range(8)]} for g in group]
    X = [[[step if rng.random() < 0.5 else "?"] for step in row["step"]] for row in steps]
    model = sc.HierarchicalCRF(
        ["group", "step"], hidden={"group": 2}, max_length={"group": "whole", "step": 1}, c2=0.1, restarts=2
    )
    found = [a["group"][0].label == "group 1" for a in model.fit(X, steps).predict(X, constraints=steps)]
    right = np.mean(found == (group == 1))
    assert max(right, 1.0 - right) == 1.0


def test_warnings_where_nothing_is_learnt():
    # of what nothing is known, nothing is learnt
    with pytest.warns(UserWarning, match="nothing was learnt of the hidden level 'phase'"):
        sc.HierarchicalCRF(["phase"], hidden={"phase": 2}, restarts=1).fit(DATA[:4], [None] * 4)
    # a penalty that leaves no weights
    with pytest.warns(UserWarning, match="nothing was learnt of the hidden level 'phase'"):
        sc.HierarchicalCRF(["phase", "step"], **{**SETTINGS, "c2": 1e4}).fit(DATA[:10], STEPS[:10])
    # one that is not named stays as it was
    with pytest.warns(UserWarning, match="Name the level in `hidden`"):
        sc.HierarchicalCRF(["phase", "step"], topology={"on": list(ORDER), "off": list(ORDER)}, max_iterations=2).fit(
            DATA[:10], STEPS[:10]
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden": 3}, "hidden must be a dict level -> number of labels, got 3"),
        ({"hidden": {"phase": 0}}, r"hidden\['phase'\] must be at least 1"),
        ({"hidden": {"phase": "on"}}, r"hidden\['phase'\] must be a number of labels, or a list of them, got 'on'"),
        ({"hidden": {"fase": 2}}, "hidden has the level 'fase'"),
        ({"hidden": {"phase": 2}, "restarts": 0}, "restarts must be at least 1"),
        ({"hidden": {"phase": 2}, "c2": "cv"}, "does not go with hidden levels"),
    ],
)
def test_wrong_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        sc.HierarchicalCRF(["phase", "step"], **settings).fit(DATA[:4], STEPS[:4])
