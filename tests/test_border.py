"""The border between Python and the kernels: shapes, types, memory layouts, errors, threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import scansion as sc
from scansion.reference import enumeration as brute

PATTERNS = [(0,), (1,), (1, 0), (0, 1, 1), (sc.BOS, 1), (0, sc.EOS)]
REFUSED = (ValueError, TypeError)
FORMS = ("chain", "patterns", "segments", "parts")


def arrays(form, n_times=5, seed=0):
    """Valid arguments of each constructor, two labels, by name."""
    rng = np.random.default_rng(seed)
    size = len(PATTERNS)
    if form == "chain":
        shapes = {"unary": (n_times, 2), "transition": (2, 2), "start": (2,), "end": (2,)}
    elif form == "patterns":
        shapes = {"scores": (n_times, size)}
    elif form == "segments":
        shapes = {"scores": (n_times, 3, size)}
    else:
        shapes = dict.fromkeys(("start", "inside", "end"), (n_times, size)) | {"length": (3, size)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def build(form, **changed):
    given = {**arrays(form), **changed}
    patterns = given.pop("patterns", PATTERNS)
    n_labels = given.pop("n_labels", 2)
    if form == "chain":
        return sc.ChainLattice(**given)
    if form == "patterns":
        return sc.ChainLattice.from_patterns(given["scores"], patterns, n_labels)
    if form == "segments":
        return sc.SegmentLattice(given["scores"], patterns, n_labels)
    return sc.SegmentLattice.from_parts(patterns, n_labels, given.pop("max_length", 3), **given)


def at(position):
    """A message that names a position: "position 3" or "labels[3]"."""
    return rf"position {position}\b|\[{position}\]"


ARGUMENTS = [(form, name) for form in FORMS for name in arrays(form)]


# Sentinels and segments ----------------------------------------------------------------------------


def test_public_names():
    assert (sc.BOS, sc.EOS) == (-1, -2)
    segment = sc.Segment(2, 5, 1)
    assert segment == (2, 5, 1)
    assert (segment.start, segment.stop, segment.label) == (2, 5, 1)


# Wrong values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("form", "name"), ARGUMENTS)
def test_nan_and_plus_infinity(form, name, bad):
    array = arrays(form)[name]
    array[(1,) * array.ndim] = bad
    index = r"1" + r",\s*1" * (array.ndim - 1)
    with pytest.raises(ValueError, match=rf"{name}.*{index}"):
        build(form, **{name: array}).log_partition()


def test_nan_in_a_segment_that_leaves_the_sequence():
    scores = arrays("segments")["scores"]
    scores[4, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"scores.*4,\s*2,\s*0"):
        build("segments", scores=scores).log_partition()


@pytest.mark.parametrize("dtype", [np.complex128, object, np.str_, np.bool_])
@pytest.mark.parametrize(("form", "name"), ARGUMENTS)
def test_wrong_score_types(form, name, dtype):
    array = arrays(form)[name].astype(dtype)
    with pytest.raises(REFUSED, match=name):
        build(form, **{name: array})


@pytest.mark.parametrize(
    ("form", "name", "shape"),
    [
        ("chain", "unary", (5,)),
        ("chain", "unary", (5, 2, 1)),
        ("chain", "unary", (5, 0)),
        ("chain", "transition", (2,)),
        ("chain", "transition", (3, 3)),
        ("chain", "transition", (2, 3)),
        ("chain", "transition", (5, 2, 2)),
        ("chain", "transition", (4, 2, 3)),
        ("chain", "start", (3,)),
        ("chain", "start", (1, 2)),
        ("chain", "end", (1,)),
        ("patterns", "scores", (5,)),
        ("patterns", "scores", (5, 5)),
        ("patterns", "scores", (5, 1, 6)),
        ("segments", "scores", (5, 6)),
        ("segments", "scores", (5, 3, 5)),
        ("segments", "scores", (5, 0, 6)),
        ("parts", "start", (5,)),
        ("parts", "inside", (5, 5)),
        ("parts", "inside", (6,)),
        ("parts", "end", (6, 6)),
        ("parts", "length", (2, 6)),
        ("parts", "length", (3, 5)),
        ("parts", "length", (6,)),
    ],
)
def test_wrong_shapes(form, name, shape):
    with pytest.raises(ValueError, match=name):
        build(form, **{name: np.zeros(shape)})


def test_parts_of_different_lengths():
    with pytest.raises(ValueError, match=r"start|inside"):
        build("parts", start=np.zeros((4, 6)))


def test_parts_need_a_time():
    patterns = [(0,), (1,)]
    with pytest.raises(ValueError, match="start|inside|end"):
        sc.SegmentLattice.from_parts(patterns, 2, 3)
    with pytest.raises(ValueError, match="start|inside|end"):
        sc.SegmentLattice.from_parts(patterns, 2, 3, length=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="start|inside|end"):
        sc.SegmentLattice.from_parts(patterns, 2, 3, start=np.zeros(2))


@pytest.mark.parametrize("max_length", [0, -1, 1.5, None])
def test_wrong_max_length(max_length):
    with pytest.raises(REFUSED, match="max_length"):
        sc.SegmentLattice.from_parts([(0,)], 1, max_length, inside=np.zeros((4, 1)))


@pytest.mark.parametrize("n_labels", [0, -1, 1.5, None])
@pytest.mark.parametrize("form", FORMS[1:])
def test_wrong_n_labels(form, n_labels):
    with pytest.raises(REFUSED, match="n_labels"):
        build(form, n_labels=n_labels)


@pytest.mark.parametrize(
    "bad",
    [
        (),
        (2,),
        (0, 2),
        (-3, 0),
        (sc.BOS,),
        (sc.EOS,),
        (sc.BOS, sc.EOS),
        (0, sc.BOS),
        (0, sc.BOS, 1),
        (sc.EOS, 0),
        (0, sc.EOS, 1),
        (sc.BOS, sc.BOS, 0),
        (0, sc.EOS, sc.EOS),
        (0, 1.5),
        ("0",),
        (1, 0),
        0,
    ],
    ids=repr,
)
@pytest.mark.parametrize("form", FORMS[1:])
def test_wrong_patterns(form, bad):
    """Replaces the fourth pattern; (1, 0) is there already."""
    patterns = [*PATTERNS[:3], bad, *PATTERNS[4:]]
    with pytest.raises(REFUSED, match=r"patterns.*3"):
        build(form, patterns=patterns)


@pytest.mark.parametrize("form", FORMS[1:])
def test_number_of_patterns(form):
    with pytest.raises(ValueError, match="scores|patterns|start|inside|end|length"):
        build(form, patterns=PATTERNS[:-1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [0, -2, 1.5, "3"])
def test_wrong_k(form, k):
    with pytest.raises(REFUSED, match=r"\bk\b"):
        build(form).kbest(k)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [-1, 1.5, "3"])
def test_wrong_n(form, n):
    with pytest.raises(REFUSED, match=r"\bn\b"):
        build(form).sample(n, 0)


@pytest.mark.parametrize("form", FORMS)
def test_no_samples(form):
    assert len(build(form).sample(0, 0)) == 0


@pytest.mark.parametrize("method", ["score", "log_probability"])
@pytest.mark.parametrize(
    "config",
    [
        np.zeros(4, dtype=np.int64),
        np.zeros((5, 1), dtype=np.int64),
        np.zeros(5),
        np.array([0, 0, 2, 0, 0]),
        np.array([0, 0, -1, 0, 0]),
    ],
    ids=["short", "two axes", "float", "beyond", "negative"],
)
@pytest.mark.parametrize("form", ["chain", "patterns"])
def test_wrong_labelings(form, config, method):
    with pytest.raises(REFUSED, match="config"):
        getattr(build(form), method)(config)


@pytest.mark.parametrize("method", ["score", "log_probability"])
@pytest.mark.parametrize(
    "config",
    [
        [],
        [(0, 3, 0)],
        [(0, 3, 0), (4, 5, 0)],
        [(0, 3, 0), (2, 5, 0)],
        [(1, 3, 0), (3, 5, 0)],
        [(0, 3, 0), (3, 6, 0)],
        [(0, 3, 0), (3, 3, 0), (3, 5, 0)],
        [(0, 3, 2), (3, 5, 0)],
        [(0, 3, -1), (3, 5, 0)],
        [(0, 4, 0), (4, 5, 0)],
        [(0, 3), (3, 5)],
        [(0.5, 3, 0), (3, 5, 0)],
    ],
    ids=[
        "empty",
        "short",
        "gap",
        "overlap",
        "late start",
        "beyond",
        "empty segment",
        "label beyond",
        "label negative",
        "too long",
        "pairs",
        "float",
    ],
)
@pytest.mark.parametrize("form", ["segments", "parts"])
def test_wrong_segmentations(form, config, method):
    with pytest.raises(REFUSED, match="config"):
        getattr(build(form), method)(config)


# Constraints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "labels",
    [
        np.full(4, -1),
        np.full((5, 1), -1),
        np.full(5, -1.0),
        np.array([-1, -1, 2, -1, -1]),
        np.array([-1, -1, -2, -1, -1]),
        np.ones((5, 3), dtype=np.bool_),
        np.ones((4, 2), dtype=np.bool_),
        np.ones(5, dtype=np.bool_),
        np.array(["a"] * 5),
    ],
    ids=["short", "two axes", "float", "beyond", "negative", "wide", "short sets", "bool", "strings"],
)
def test_wrong_label_constraints(form, labels):
    with pytest.raises(REFUSED, match="labels"):
        build(form).constrain(labels=labels)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "boundaries",
    [
        np.full(4, -1),
        np.full((5, 1), -1),
        np.full(5, -1.0),
        np.array([-1, 2, -1, -1, -1]),
        np.array([-2] * 5),
    ],
    ids=["short", "two axes", "float", "two", "negative"],
)
def test_wrong_boundary_constraints(form, boundaries):
    with pytest.raises(REFUSED, match="boundaries"):
        build(form).constrain(boundaries=boundaries)


@pytest.mark.parametrize("form", FORMS)
def test_no_label_allowed(form):
    labels = np.ones((5, 2), dtype=np.bool_)
    labels[3] = False
    with pytest.raises(ValueError, match=at("3")):
        build(form).constrain(labels=labels)


@pytest.mark.parametrize("form", FORMS)
def test_the_sequence_must_end(form):
    with pytest.raises(ValueError, match=at("4")):
        build(form).constrain(boundaries=np.array([-1, -1, -1, -1, 0]))


@pytest.mark.parametrize("form", ["chain", "patterns"])
def test_every_position_of_a_chain_is_a_boundary(form):
    with pytest.raises(ValueError, match=at("2")):
        build(form).constrain(boundaries=np.array([-1, 1, 0, -1, -1]))


@pytest.mark.parametrize("form", ["segments", "parts"])
def test_two_labels_in_one_segment(form):
    with pytest.raises(ValueError, match=at("[12]")):
        build(form).constrain(labels=np.array([-1, 0, 1, -1, -1]), boundaries=np.array([-1, 0, -1, -1, -1]))


@pytest.mark.parametrize("form", ["segments", "parts"])
def test_segment_longer_than_the_longest(form):
    with pytest.raises(ValueError, match=at("[0123]")):
        build(form).constrain(boundaries=np.array([0, 0, 0, -1, -1]))


@pytest.mark.parametrize("form", FORMS)
def test_constraints_that_contradict_each_other(form):
    held = build(form).constrain(labels=np.array([-1, -1, 0, -1, -1]))
    with pytest.raises(ValueError, match=at("2")):
        held.constrain(labels=np.array([-1, -1, 1, -1, -1]))


def test_constraints_that_contradict_the_scores():
    unary = np.zeros((4, 2))
    unary[2, 1] = -np.inf
    with pytest.raises(ValueError, match=at("2")):
        sc.ChainLattice(unary, np.zeros((2, 2))).constrain(labels=np.array([-1, -1, 1, -1]))


@pytest.mark.parametrize("form", FORMS)
def test_no_constraint_is_no_constraint(form):
    lattice = build(form)
    assert lattice.constrain().log_partition() == lattice.log_partition()
    nothing = np.full(5, -1)
    assert lattice.constrain(labels=nothing, boundaries=nothing).log_partition() == lattice.log_partition()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("form", FORMS)
def test_integer_types_of_constraints(form, dtype):
    labels = np.array([-1, 1, -1, 0, -1])
    expected = build(form).constrain(labels=labels).log_partition()
    assert build(form).constrain(labels=labels.astype(dtype)).log_partition() == expected
    assert build(form).constrain(labels=labels.tolist()).log_partition() == expected


# Impossible lattices -------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["log_partition", "viterbi", "marginals", "entropy", "kbest", "sample"])
@pytest.mark.parametrize("form", FORMS)
def test_impossible_lattice(form, question):
    """From construction or from the first question, and from every question."""
    name = {"chain": "unary", "parts": "inside"}.get(form, "scores")
    array = arrays(form)[name]
    array[...] = -np.inf
    with pytest.raises(ValueError, match="(?i)no configuration"):
        lattice = build(form, **{name: array})
        getattr(lattice, question)(*{"kbest": (2,), "sample": (2, 0)}.get(question, ()))


def test_impossible_through_transitions():
    transition = np.full((2, 2), -np.inf)
    with pytest.raises(ValueError, match="(?i)no configuration"):
        sc.ChainLattice(np.zeros((3, 2)), transition).log_partition()
    assert sc.ChainLattice(np.zeros((1, 2)), transition).log_partition() == pytest.approx(np.log(2))


# Small sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_empty_sequence(form):
    given = arrays(form, n_times=0)
    lattice = build(form, **given)
    held = lattice.constrain(labels=np.zeros(0, dtype=np.int64), boundaries=np.zeros(0, dtype=np.int64))
    held = held.constrain(labels=np.zeros((0, 2), dtype=np.bool_))
    for each in (lattice, held):
        assert each.log_partition() == 0.0
        assert each.entropy() == 0.0
        best, score = each.viterbi()
        assert len(best) == 0
        assert score == 0.0
        ((config, value),) = each.kbest(3)
        assert len(config) == 0
        assert value == 0.0
        assert each.score(best) == 0.0
        assert each.log_probability(best) == 0.0
        assert [len(config) for config in each.sample(3, 0)] == [0, 0, 0]
        answer = each.marginals()
        assert answer.labels.shape == (0, 2)
        if form == "chain":
            assert answer.transitions.shape == (0, 2, 2)
        elif form == "parts":
            assert answer.patterns.inside.shape == (0, 6)
            assert_array_equal(answer.patterns.length, np.zeros((3, 6)))
        else:
            assert answer.patterns.shape == given["scores"].shape
    if form == "chain":
        assert best.shape == (0,)
        by_time = sc.ChainLattice(np.zeros((0, 2)), np.zeros((0, 2, 2)))
        assert by_time.log_partition() == 0.0


@pytest.mark.parametrize("form", FORMS)
def test_one_time(form):
    lattice = build(form, **arrays(form, n_times=1))
    a = arrays(form, n_times=1)
    if form == "chain":
        scores = a["unary"][0] + a["start"] + a["end"]
        assert lattice.marginals().transitions.shape == (0, 2, 2)
    else:
        if form == "parts":
            row = a["start"][0] + a["inside"][0] + a["end"][0] + a["length"][0]
        else:
            row = a["scores"][0].reshape(-1, 6)[0]
        scores = np.array([row[0] + row[5], row[1] + row[4]])
    assert_allclose(lattice.log_partition(), np.logaddexp(*scores), rtol=1e-13, atol=0)
    assert_allclose(lattice.marginals().labels[0], np.exp(scores - np.logaddexp(*scores)), rtol=0, atol=1e-13)
    assert_allclose(lattice.viterbi()[1], scores.max(), rtol=1e-13, atol=0)


def test_one_label():
    unary = np.arange(4.0)[:, None]
    lattice = sc.ChainLattice(unary, np.array([[0.5]]))
    assert_allclose(lattice.log_partition(), 7.5, rtol=1e-14, atol=0)
    assert_array_equal(lattice.viterbi()[0], np.zeros(4))
    assert_allclose(lattice.entropy(), 0.0, rtol=0, atol=1e-12)
    assert len(lattice.kbest(3)) == 1
    segments = sc.SegmentLattice(np.zeros((4, 4, 1)), [(0,)], 1)
    assert_allclose(np.exp(segments.log_partition()), 8.0, rtol=1e-13, atol=0)


@pytest.mark.parametrize("n_labels", [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33])
def test_every_number_of_labels(n_labels):
    """Kernels pad the labels to the vector width: sizes around the multiples."""
    from scansion.reference import chain

    rng = np.random.default_rng(n_labels)
    unary, transition = rng.normal(size=(6, n_labels)), rng.normal(size=(n_labels, n_labels))
    transition[rng.random(transition.shape) < 0.2] = -np.inf
    transition[0] = 0.0
    transition[:, 0] = 0.0
    expected = chain.forward_backward(unary, transition)
    lattice = sc.ChainLattice(unary, transition)
    answer = lattice.marginals()
    assert_allclose(lattice.log_partition(), expected.log_partition, rtol=1e-12, atol=1e-12)
    assert_allclose(answer.labels, expected.labels, rtol=0, atol=1e-12)
    assert_allclose(answer.transitions, expected.transitions, rtol=0, atol=1e-12)
    best, scores = chain.batched_viterbi(unary[None], transition)
    assert_array_equal(lattice.viterbi()[0], best[0])
    assert_allclose(lattice.viterbi()[1], scores[0], rtol=1e-12, atol=1e-12)


# Memory --------------------------------------------------------------------------------------------


def answers(lattice):
    """Everything a lattice says, as comparable arrays."""
    m = lattice.marginals()
    best, score = lattice.viterbi()
    return [
        np.array(lattice.log_partition()),
        np.array(lattice.entropy()),
        np.array(brute.config_of(best)),
        np.array(score),
        m.labels,
        np.array([value for _, value in lattice.kbest(3)]),
        np.array([brute.label_sequence(brute.config_of(c)) for c in lattice.sample(3, 0)]),
    ]


def assert_same_answers(one, other):
    for left, right in zip(answers(one), answers(other), strict=True):
        assert_array_equal(left, right)


def read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def strided(array):
    wide = np.full(tuple(2 * n for n in array.shape), np.nan)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def reversed_memory(array):
    flip = (slice(None, None, -1),) * array.ndim
    return array[flip].copy()[flip]


def byte_swapped(array):
    return array.astype(array.dtype.newbyteorder())


@pytest.mark.parametrize(
    "layout", [read_only, strided, np.asfortranarray, reversed_memory, byte_swapped, np.ndarray.tolist]
)
@pytest.mark.parametrize("form", FORMS)
def test_memory_layouts(form, layout):
    other = {name: layout(array) for name, array in arrays(form).items()}
    assert_same_answers(build(form), build(form, **other))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("form", FORMS)
def test_numeric_types_are_converted_exactly(form, dtype):
    narrow = {name: (10 * abs(array)).astype(dtype) for name, array in arrays(form).items()}
    wide = {name: array.astype(np.float64) for name, array in narrow.items()}
    assert_same_answers(build(form, **narrow), build(form, **wide))


@pytest.mark.parametrize("form", FORMS)
def test_inputs_are_not_modified(form):
    given = arrays(form)
    labels, boundaries = np.array([-1, 0, -1, -1, 1]), np.array([-1, 1, -1, 1, 1])
    kept = {name: array.copy() for name, array in given.items()}
    patterns = list(PATTERNS)
    lattice = build(form, **given, **({} if form == "chain" else {"patterns": patterns}))
    answers(lattice)
    answers(lattice.constrain(labels=labels, boundaries=boundaries))
    for name, array in given.items():
        assert_array_equal(array, kept[name])
    assert patterns == PATTERNS
    assert_array_equal(labels, [-1, 0, -1, -1, 1])
    assert_array_equal(boundaries, [-1, 1, -1, 1, 1])


@pytest.mark.parametrize("form", FORMS)
def test_answers_are_fresh_and_writable(form):
    """Writing into an answer changes no later one."""
    lattice = build(form)
    first = lattice.marginals().labels
    kept = first.copy()
    first[...] = 7.0
    assert_array_equal(lattice.marginals().labels, kept)


@pytest.mark.parametrize("form", FORMS)
def test_repeated_calls_agree(form):
    lattice = build(form)
    assert_same_answers(lattice, lattice)
    assert_same_answers(lattice, build(form))


# Threads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_two_threads_share_a_lattice(form):
    lattices = [build(form, **arrays(form, n_times=400, seed=s)) for s in range(4)]
    expected = [answers(lattice) for lattice in lattices]
    fresh = [build(form, **arrays(form, n_times=400, seed=s)) for s in range(4)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        got = list(pool.map(answers, fresh * 6))
    for i, given in enumerate(got):
        for left, right in zip(given, expected[i % 4], strict=True):
            assert_array_equal(left, right)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_two_threads_share_a_batch(n_jobs):
    rng = np.random.default_rng(0)
    batch = sc.ChainBatch(rng.normal(size=(2_000, 3)), np.arange(0, 2_001, 20), rng.normal(size=(3, 3)), n_jobs=n_jobs)
    expected = batch.log_partition(), batch.marginals().labels

    def ask(_):
        return batch.log_partition(), batch.marginals().labels

    with ThreadPoolExecutor(max_workers=2) as pool:
        for log_z, labels in pool.map(ask, range(10)):
            assert_array_equal(log_z, expected[0])
            assert_array_equal(labels, expected[1])
