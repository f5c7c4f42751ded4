"""Data sets built in one pass: the same as those in memory."""

import numpy as np
import pytest
from test_shards import assert_same_model, nested, sequences

import scansion as sc
from scansion import data
from scansion.data import building


def test_built_from_generators_is_as_encoded(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "_AT_ONCE", 7)
    X, y = sequences()
    built, targets = data.build(tmp_path / "set", (x for x in X), (one for one in y))
    plain = data.encode(X)
    for name in ("offsets", "token_offsets", "ids"):
        np.testing.assert_array_equal(getattr(built, name), getattr(plain, name))
    assert built.values is None and built.vocabulary.names() == plain.vocabulary.names()
    assert not built.ids.flags.writeable and not built.ids.flags.owndata  # mapped
    assert list(targets) == y and targets[3:5] == y[3:5] and targets[-1] == y[-1]
    assert_same_model(sc.CRF().fit(X, y), sc.CRF().fit(built, targets))
    again = data.Dataset.load(tmp_path / "set"), data.load_targets(tmp_path / "set.y")
    np.testing.assert_array_equal(sc.CRF().fit(X, y).model_.weights, sc.CRF().fit(*again).model_.weights)


def test_values_segments_sets_and_levels(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "_AT_ONCE", 3)
    X = [[{"a": 0.5, "b": "c"}], [["x"], ["y"]], [], [["z"]]]
    built = data.build(tmp_path / "set", X)
    np.testing.assert_array_equal(built.values, data.encode(X).values)
    np.testing.assert_array_equal(built.offsets, data.encode(X).offsets)
    X, y = sequences()
    segments = [[(t, t + 1, c) for t, c in enumerate(one)] for one in y]
    for kind, target in ((sc.SemiCRF(), segments), (sc.HierarchicalCRF(["top", "low"]), nested(y))):
        built, targets = data.build(tmp_path / "set", X, target)
        one = type(kind)(**kind.get_params()).fit(data.encode(X), target)
        np.testing.assert_array_equal(one.model_.weights, kind.fit(built, targets).model_.weights)
    partial = [[None, {"B", "A"}, "A"]]
    assert list(data.build(tmp_path / "set", [[["a"]] * 3], partial)[1]) == partial


@pytest.mark.parametrize("values", [False, True])
def test_rare_attributes_are_left_out_while_building(tmp_path, monkeypatch, values):
    monkeypatch.setattr(building, "_AT_ONCE", 7)
    monkeypatch.setattr(building, "_TOKENS", 11)
    X, y = sequences()
    X = [[[*token, f"rare{b}"] if b % 3 else [f"rare{b}"] if b % 2 else token for token in x] for b, x in enumerate(X)]
    if values:
        X = [[{name: -0.5 if name[0] == "c" else 1.0 for name in token} for token in x] for x in X]
    built, targets = data.build(tmp_path / "set", X, y, min_freq=4)
    plain = data.encode(X)
    sums = np.bincount(plain.ids, None if plain.values is None else np.abs(plain.values))
    names = [name for name, total in zip(plain.vocabulary.names(), sums, strict=True) if total >= 4]
    assert built.vocabulary.names() == names and len(names) < len(sums)
    whole = sorted((t, *one) for t, token in enumerate(plain.items()) for one in token if one[0] in names)
    assert sorted((t, *one) for t, token in enumerate(built.items()) for one in token) == whole
    one, other = sc.CRF(min_freq=4).fit(X, y), sc.CRF(min_freq=4).fit(built, targets)
    np.testing.assert_array_equal(one.model_.weights, other.model_.weights)
    assert one.state_features_ == other.state_features_
    assert len(data.build(tmp_path / "all", X, min_freq=0).vocabulary) == len(sums)
    with pytest.raises(ValueError, match="min_freq must be a number >= 0, got 'many'"):
        data.build(tmp_path / "set", X, min_freq="many")


def test_what_is_wrong_is_named_and_leaves_no_file(tmp_path):
    X, y = sequences(5)
    for bad, told in (
        (lambda: data.build(tmp_path / "set", X, y[:4]), "y has 4 sequences, but X has more"),
        (lambda: data.build(tmp_path / "set", X[:3], y), "X has 3 sequences, but y has more"),
        (lambda: data.build(tmp_path / "set", X, [*y[:2], [*y[2], "A"], *y[3:]]), r"y\[2\] has .* labels"),
        (lambda: data.build(tmp_path / "set", [*X, "a string"]), "sequence 5"),
        (lambda: data.build(tmp_path / "set", X[:1], [[object()] * len(y[0])]), r"y\[0\] holds <object"),
        (lambda: data.build(tmp_path / "set", X[:1], [sc.Trajectory(["A"])]), r"y\[0\] is a Trajectory"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            bad()
        assert not list(tmp_path.iterdir())


def test_targets_that_are_damaged_are_refused(tmp_path):
    data.build(tmp_path / "set", *sequences(5))
    whole = (tmp_path / "set.y").read_bytes()
    (tmp_path / "set.y").write_bytes(whole[:-3])
    with pytest.raises(ValueError, match="set.y"):
        data.load_targets(tmp_path / "set.y")
    with pytest.raises(ValueError, match="kind"):
        data.load_targets(tmp_path / "set")
