"""Batches: equal to the lattices one by one, and the same bits for any number of threads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import check_frequencies

import scansion as sc
from scansion.reference import enumeration as brute

FORMS = ("chain", "chain by time", "patterns", "segments", "parts")
PATTERNS = [(0,), (1,), (2,), (0, 1), (1, 0, 2), (sc.BOS, 1), (2, 2, sc.EOS)]
PART_NAMES = ("start", "inside", "end", "length")
N_LABELS, MAX_LENGTH = 3, 3


@dataclass
class Batch:
    form: str
    lengths: list[int]
    arrays: dict[str, np.ndarray]

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)]).astype(np.int64)

    def build(self, n_jobs: int = 1) -> Any:
        a = self.arrays
        if self.form.startswith("chain"):
            return sc.ChainBatch(
                a["unary"], self.offsets, a["transition"], start=a["start"], end=a["end"], n_jobs=n_jobs
            )
        if self.form == "patterns":
            return sc.ChainBatch.from_patterns(a["scores"], self.offsets, PATTERNS, N_LABELS, n_jobs=n_jobs)
        if self.form == "segments":
            return sc.SegmentBatch(a["scores"], self.offsets, PATTERNS, N_LABELS, n_jobs=n_jobs)
        return sc.SegmentBatch.from_parts(self.offsets, PATTERNS, N_LABELS, MAX_LENGTH, **a, n_jobs=n_jobs)

    def singles(self) -> list[Any]:
        """The same lattices, built one by one."""
        a, lattices, step = self.arrays, [], 0
        for low, high in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            rows = slice(low, high)
            if self.form.startswith("chain"):
                transition = a["transition"]
                if self.form == "chain by time":
                    steps = max(high - low - 1, 0)
                    transition = transition[step : step + steps]
                    step += steps
                lattices.append(sc.ChainLattice(a["unary"][rows], transition, start=a["start"], end=a["end"]))
            elif self.form == "patterns":
                lattices.append(sc.ChainLattice.from_patterns(a["scores"][rows], PATTERNS, N_LABELS))
            elif self.form == "segments":
                lattices.append(sc.SegmentLattice(a["scores"][rows], PATTERNS, N_LABELS))
            else:
                shared = ("length",) if a["start"].ndim == 2 else ("length", "start")
                parts = {name: array if name in shared else array[rows] for name, array in a.items()}
                lattices.append(sc.SegmentLattice.from_parts(PATTERNS, N_LABELS, MAX_LENGTH, **parts))
        return lattices


def make(form: str, lengths: list[int], seed: int = 0, shared_start: bool = True) -> Batch:
    rng = np.random.default_rng(seed)
    n, size = sum(lengths), len(PATTERNS)
    if form.startswith("chain"):
        steps = sum(max(length - 1, 0) for length in lengths)
        shape = (steps, N_LABELS, N_LABELS) if form == "chain by time" else (N_LABELS, N_LABELS)
        start, end = rng.normal(size=(2, N_LABELS))
        transition = rng.normal(size=shape)
        arrays = {
            "unary": rng.normal(size=(n, N_LABELS)),
            "transition": transition,
            "start": start,
            "end": end,
        }
    elif form == "patterns":
        arrays = {"scores": rng.normal(size=(n, size))}
    elif form == "segments":
        arrays = {"scores": rng.normal(size=(n, MAX_LENGTH, size))}
    else:
        arrays = {
            "start": rng.normal(size=(size,) if shared_start else (n, size)),
            "inside": rng.normal(size=(n, size)),
            "end": rng.normal(size=(n, size)),
            "length": rng.normal(size=(MAX_LENGTH, size)),
        }
    return Batch(form, lengths, arrays)


@st.composite
def batches(draw: st.DrawFn, min_size: int = 0) -> Batch:
    lengths = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 9]), min_size=min_size, max_size=6))
    form = draw(st.sampled_from(FORMS))
    return make(form, lengths, draw(st.integers(0, 2**32 - 1)), draw(st.booleans()))


def plain(configs: Any) -> list[brute.Configuration]:
    return [brute.config_of(config) for config in configs]


def flat(marginals: Any) -> dict[str, np.ndarray]:
    """Every array of a marginals object by name, parts included."""
    found = {}
    for name in ("labels", "transitions", "segments", "boundaries"):
        if getattr(marginals, name, None) is not None:
            found[name] = getattr(marginals, name)
    patterns = getattr(marginals, "patterns", None)
    if isinstance(patterns, np.ndarray):
        found["patterns"] = patterns
    elif patterns is not None:
        for name in PART_NAMES:
            if getattr(patterns, name) is not None:
                found[f"patterns.{name}"] = getattr(patterns, name)
    return found


# Batch = one by one --------------------------------------------------------------------------------


@given(batches())
def test_values(data):
    batch, singles = data.build(), data.singles()
    assert len(batch) == len(singles)
    for answer, name in (
        (batch.log_partition(), "log_partition"),
        (batch.entropy(), "entropy"),
        (batch.viterbi()[1], "best score"),
    ):
        expected = [s.viterbi()[1] if name == "best score" else getattr(s, name)() for s in singles]
        assert answer.shape == (len(singles),)
        assert answer.dtype == np.float64
        assert_allclose(answer, np.array(expected), rtol=1e-12, atol=1e-12)


@given(batches())
def test_configurations(data):
    batch, singles = data.build(), data.singles()
    best, _ = batch.viterbi()
    assert plain(best) == plain(s.viterbi()[0] for s in singles)
    answer = batch.kbest(3)
    assert len(answer) == len(singles)
    for got, single in zip(answer, singles, strict=True):
        expected = single.kbest(3)
        assert plain(config for config, _ in got) == plain(config for config, _ in expected)
        assert_allclose([v for _, v in got], [v for _, v in expected], rtol=1e-12, atol=1e-12)


@given(batches())
def test_scores_of_configurations(data):
    batch, singles = data.build(), data.singles()
    configs = [single.sample(1, b)[0] for b, single in enumerate(singles)]
    scores = [s.score(c) for s, c in zip(singles, configs, strict=True)]
    log_probabilities = [s.log_probability(c) for s, c in zip(singles, configs, strict=True)]
    assert_allclose(batch.score(configs), np.array(scores), rtol=1e-12, atol=1e-12)
    assert_allclose(batch.log_probability(configs), np.array(log_probabilities), rtol=1e-12, atol=1e-11)


@given(batches(min_size=1))
def test_marginals(data):
    """Rows one after another; what the sequences share (length, a shared start) is summed over them."""
    answer = flat(data.build().marginals())
    each = [flat(single.marginals()) for single in data.singles()]
    for name, array in answer.items():
        pieces = [one[name] for one in each]
        shared = name == "patterns.length" or (name == "patterns.start" and array.ndim == 1)
        expected = np.sum(pieces, axis=0) if shared else np.concatenate(pieces)
        assert array.shape == expected.shape, name
        assert_allclose(array, expected, rtol=0, atol=1e-11, err_msg=name)
    assert set(answer) == set(each[0])


@given(batches(min_size=1))
def test_items(data):
    batch, singles = data.build(), data.singles()
    for b, single in enumerate(singles):
        item = batch[b]
        assert type(item) is type(single)
        assert_allclose(item.log_partition(), single.log_partition(), rtol=1e-12, atol=1e-12)
        assert_allclose(item.marginals().labels, single.marginals().labels, rtol=0, atol=1e-11)
    with pytest.raises(IndexError):
        batch[len(singles)]


@given(batches(min_size=1), st.integers(0, 2**32 - 1), st.booleans())
def test_constraints(data, seed, as_sets):
    rng = np.random.default_rng(seed)
    singles = data.singles()
    labels, boundaries = [], []
    for single in singles:
        config = brute.config_of(single.sample(1, rng)[0])
        y = np.array(brute.label_sequence(config), dtype=np.int64)
        ends = np.zeros(len(y), dtype=np.int64)
        ends[[stop - 1 for _, stop, _ in config]] = 1
        hidden = rng.random((2, len(y))) < 0.5
        labels.append(np.where(hidden[0], -1, y))
        boundaries.append(np.where(hidden[1], -1, ends))
    if as_sets:
        labels = [(row[:, None] == np.arange(N_LABELS)) | (row[:, None] == -1) for row in labels]
    held = data.build().constrain(labels=np.concatenate(labels), boundaries=np.concatenate(boundaries))
    each = [s.constrain(labels=y, boundaries=e) for s, y, e in zip(singles, labels, boundaries, strict=True)]
    assert_allclose(held.log_partition(), [s.log_partition() for s in each], rtol=1e-12, atol=1e-12)
    assert plain(held.viterbi()[0]) == plain(s.viterbi()[0] for s in each)
    expected = np.concatenate([s.marginals().labels for s in each])
    assert_allclose(held.marginals().labels, expected, rtol=0, atol=1e-11)


@given(batches(min_size=1))
def test_samples_are_possible(data):
    batch = data.build()
    drawn = batch.sample(4, 0)
    assert len(drawn) == len(data.lengths)
    for b, configs in enumerate(drawn):
        assert len(configs) == 4
        for config in configs:
            assert np.isfinite(batch[b].log_probability(config))


@pytest.mark.parametrize("form", FORMS)
def test_sample_frequencies(form):
    """Each sequence of a batch has its own distribution, and the draws of neighbours are independent."""
    lengths = [3, 0, 3]
    data = make(form, lengths, seed=21)
    drawn = data.build().sample(20_000, np.random.default_rng(2))
    for b in (0, 2):
        single = data.singles()[b]
        space = (
            brute.segmentations(3, N_LABELS, MAX_LENGTH)
            if form in ("segments", "parts")
            else brute.labelings(3, N_LABELS)
        )
        scored = [(c, single.score(native(form, c))) for c in space]
        check_frequencies(drawn[b], scored)
    same = np.mean([one == other for one, other in zip(plain(drawn[0]), plain(drawn[2]), strict=True)])
    assert same < 0.9


def native(form: str, config: brute.Configuration) -> Any:
    if form in ("segments", "parts"):
        return [sc.Segment(*segment) for segment in config]
    return np.array(brute.label_sequence(config))


# Threads -------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(batches(), st.sampled_from([2, 3, 8]))
def test_the_number_of_threads_changes_no_bit(data, n_jobs):
    check_same_bits(data, n_jobs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_number_of_threads_changes_no_bit_of_a_large_batch(form, n_jobs):
    lengths = [int(n) for n in np.random.default_rng(0).integers(0, 40, size=200)]
    check_same_bits(make(form, lengths, seed=3), n_jobs)


def check_same_bits(data: Batch, n_jobs: int) -> None:
    one, many = data.build(1), data.build(n_jobs)
    assert_array_equal(one.log_partition(), many.log_partition())
    assert_array_equal(one.entropy(), many.entropy())
    best, scores = one.viterbi()
    other_best, other_scores = many.viterbi()
    assert plain(best) == plain(other_best)
    assert_array_equal(scores, other_scores)
    assert_array_equal(one.score(best), many.score(best))
    left, right = flat(one.marginals()), flat(many.marginals())
    assert left.keys() == right.keys()
    for name, array in left.items():
        assert_array_equal(array, right[name], err_msg=name)
    for a, b in zip(one.sample(2, 5), many.sample(2, 5), strict=True):
        assert plain(a) == plain(b)
    for a, b in zip(one.kbest(2), many.kbest(2), strict=True):
        assert [(brute.config_of(c), v) for c, v in a] == [(brute.config_of(c), v) for c, v in b]


@pytest.mark.parametrize("form", FORMS)
def test_empty_batch(form):
    batch = make(form, []).build()
    assert len(batch) == 0
    assert batch.log_partition().shape == (0,)
    assert batch.viterbi()[0] == []
    assert batch.kbest(2) == []
    assert batch.sample(3, 0) == []
    assert batch.marginals().labels.shape == (0, N_LABELS)


@pytest.mark.parametrize("form", FORMS)
def test_batch_of_empty_sequences(form):
    batch = make(form, [0, 0]).build()
    assert_array_equal(batch.log_partition(), [0.0, 0.0])
    assert_array_equal(batch.entropy(), [0.0, 0.0])
    configs, scores = batch.viterbi()
    assert [len(config) for config in configs] == [0, 0]
    assert_array_equal(scores, [0.0, 0.0])
    assert [len(answers) for answers in batch.kbest(3)] == [1, 1]


def test_one_bad_sequence_does_not_hide():
    """A dead end in one sequence takes the careful path there and leaves its neighbours as they are."""
    rng = np.random.default_rng(9)
    unary = rng.normal(size=(90, 2))
    transition = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    unary[30:60, 1] -= 300.0
    unary[59, 0] = -np.inf
    batch = sc.ChainBatch(unary, [0, 30, 60, 90], transition)
    expected = np.logaddexp(unary[:30].sum(axis=0)[0], unary[:30].sum(axis=0)[1])
    assert_allclose(batch.log_partition()[0], expected, rtol=1e-12, atol=0)
    assert_allclose(batch.log_partition()[1], unary[30:60, 1].sum(), rtol=1e-12, atol=0)
    assert_allclose(batch.marginals().labels[30:60, 1], 1.0, rtol=0, atol=1e-12)


# Errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "offsets",
    [[0, 3, 2, 5], [1, 5], [0, 4], [0, 6], [], [0.0, 5.0], [[0, 5]], [0, -1, 5]],
    ids=["decreasing", "late start", "early stop", "beyond", "empty", "float", "two axes", "negative"],
)
@pytest.mark.parametrize("form", ["chain", "patterns", "segments", "parts"])
def test_bad_offsets(form, offsets):
    a = make(form, [5]).arrays
    with pytest.raises((ValueError, TypeError), match="offsets"):
        if form == "chain":
            sc.ChainBatch(a["unary"], offsets, a["transition"])
        elif form == "patterns":
            sc.ChainBatch.from_patterns(a["scores"], offsets, PATTERNS, N_LABELS)
        elif form == "segments":
            sc.SegmentBatch(a["scores"], offsets, PATTERNS, N_LABELS)
        else:
            sc.SegmentBatch.from_parts(offsets, PATTERNS, N_LABELS, MAX_LENGTH, inside=a["inside"])


def test_transition_steps_must_fit_the_offsets():
    with pytest.raises(ValueError, match="transition"):
        sc.ChainBatch(np.zeros((5, 2)), [0, 2, 5], np.zeros((4, 2, 2)))


@pytest.mark.parametrize("form", FORMS)
def test_contradiction_names_sequence_and_position(form):
    batch = make(form, [4, 0, 6, 5]).build()
    labels = np.ones((15, N_LABELS), dtype=np.bool_)
    labels[4 + 3] = False
    with pytest.raises(ValueError, match=r"sequence 2\b.*position 3\b"):
        batch.constrain(labels=labels)


@pytest.mark.parametrize("form", FORMS)
def test_impossible_sequence_is_named(form):
    data = make(form, [2, 3])
    for name, array in data.arrays.items():
        if name in ("unary", "scores", "inside"):
            array[2:] = -np.inf
    with pytest.raises(ValueError, match=r"(?i)sequence 1\b.*no configuration|no configuration.*sequence 1\b"):
        data.build().log_partition()


@pytest.mark.parametrize("form", FORMS)
def test_wrong_number_of_configurations(form):
    batch = make(form, [2, 3]).build()
    configs, _ = batch.viterbi()
    with pytest.raises(ValueError, match="config"):
        batch.score(configs[:1])


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_bad_n_jobs(n_jobs):
    with pytest.raises((ValueError, TypeError), match="n_jobs"):
        make("chain", [2, 3]).build(n_jobs)


@pytest.mark.parametrize(("shape", "name"), [((4, 3), "labels"), ((6, 2), "labels")])
def test_constraint_shapes(shape, name):
    with pytest.raises(ValueError, match=name):
        make("chain", [2, 3]).build().constrain(labels=np.ones(shape, dtype=np.bool_))


# ---- padded arrays and flat labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["none", "shared", "by sequence", "by position"])
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_padded_scores_are_the_ragged_ones(form, lengths, seed):
    """Whatever lies behind a sequence's end, by lengths or by mask."""
    rng = np.random.default_rng(seed)
    count, longest, size = len(lengths), max(lengths) + 1, 3
    scores = np.where((np.arange(longest) < np.array(lengths)[:, None])[..., None], 1.0, np.nan)
    scores = scores * rng.normal(size=(count, longest, size))
    shape = {
        "shared": (size, size),
        "by sequence": (count, size, size),
        "by position": (count, longest - 1, size, size),
    }
    transition = None if form == "none" else rng.normal(size=shape[form])
    start, end = rng.normal(size=(2, size))
    batch = sc.ChainBatch.from_padded(scores, lengths, transition, start, end)
    masked = sc.ChainBatch.from_padded(
        scores, transition=transition, start=start, end=end, mask=np.arange(longest) < np.array(lengths)[:, None]
    )
    np.testing.assert_array_equal(batch.log_partition(), masked.log_partition())
    for b, n in enumerate(lengths):
        pairs = transition
        if form in ("by sequence", "by position"):
            pairs = transition[b] if form == "by sequence" else transition[b, : max(n - 1, 0)]
        one = sc.ChainLattice(scores[b, :n], pairs, start, end)
        np.testing.assert_allclose(batch.log_partition()[b], one.log_partition(), rtol=1e-12, atol=1e-12)
    # labels in a row, by sequence and padded have one score
    labels = rng.integers(0, size, sum(lengths))
    by_sequence = np.split(labels, np.cumsum(lengths)[:-1])
    np.testing.assert_array_equal(batch.score(labels), batch.score(by_sequence))
    np.testing.assert_array_equal(batch.score(batch.padded(labels, fill=-1)), batch.score(by_sequence))
    np.testing.assert_array_equal(batch.log_probability(labels), batch.log_probability(by_sequence))
    if len(labels):
        np.testing.assert_array_equal(batch.score(labels.tolist()), batch.score(by_sequence))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": np.zeros((2, 3))}, r"scores must have shape \(B, T, L\)"),
        ({"lengths": [3, 4]}, r"lengths\[1\] = 4 is out of range"),
        ({"lengths": [3]}, r"lengths must have shape \(2,\)"),
        ({"lengths": [[True, False, True], [True] * 3]}, r"lengths\[0\] has gaps"),
        ({"mask": np.ones((2, 4), bool)}, r"mask must have shape \(2, 3\)"),
        ({"lengths": [1, 1], "mask": np.ones((2, 3), bool)}, "give one"),
        ({"transition": np.zeros((3, 5, 5))}, r"transition must have shape \(2, 5, 5\)"),
        ({"transition": np.zeros((2, 3, 5, 5))}, r"transition must have shape \(2, 2, 5, 5\)"),
    ],
)
def test_padded_arrays_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        sc.ChainBatch.from_padded(**({"scores": np.zeros((2, 3, 5))} | arguments))


def test_labels_that_do_not_fit():
    batch = sc.ChainBatch.from_padded(np.zeros((2, 3, 5)), [3, 1])
    for labels, message in [
        ([0, 0, 0], r"configs must have shape \(4,\)"),
        (np.array([0, 0, 0, 5]), "out of range"),
        (np.zeros((2, 2), int), "has 2 columns, but a sequence has 3"),
        ([[0, 0, 0]], "one entry per sequence"),
    ]:
        with pytest.raises(ValueError, match=message):
            batch.score(labels)
    with pytest.raises(ValueError, match=r"rows must have shape \(4,\)"):
        batch.padded([1, 2])
