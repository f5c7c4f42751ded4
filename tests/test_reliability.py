"""Promises of docs/reliability.md: ranges, bounds of integers, masks, outputs, interrupts, threads."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc
from scansion import _checks as checks
from scansion import metrics, pycrfsuite, rules
from scansion.cli import main
from scansion.data import Dataset, encode
from scansion.models import files

X = [[{"w": w, "n": 1.0} for w in "abcab"], [{"w": w} for w in "cab"]]
Y = [list("ABCAB"), list("CAB")]


# Ranges --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e10, 1e15, 1e50, 1e100])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_scores_up_to_the_range(size, sign):
    """One label at each position is out of reach, or all there is: answers are certain, and rows still sum to one."""
    shift = sign * size * np.array([[1.0], [-1.0], [1.0]])
    transition = np.array([[0.0, -1.0], [0.5, 0.0]])
    unary = np.where(np.arange(2) == 1, shift, 0.0)
    best = sc.ChainLattice(unary, transition).viterbi()[0].tolist()
    assert best == [int(x > 0) for x in shift[:, 0]]
    for lattice in (
        sc.ChainLattice(unary, transition),
        sc.SegmentLattice(unary[:, None], [(0,), (1,)], 2),
        sc.ChainLattice.from_patterns(unary, [(0,), (1,)], 2),
    ):
        rows = lattice.marginals().labels
        assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert_allclose(rows[np.arange(3), best], 1.0, rtol=0, atol=1e-12)
        assert_allclose(lattice.log_partition(), np.maximum(shift, 0.0).sum(), rtol=1e-15, atol=3)
        assert lattice.entropy() < 1e-12
        assert len(lattice.kbest(3)) == 3


@pytest.mark.parametrize("value", [1.1e100, -1e308, 1e308])
def test_scores_beyond_the_range_are_refused(value):
    for build in (
        lambda: sc.ChainLattice([[0.0, value]], np.zeros((2, 2))),
        lambda: sc.SegmentLattice([[[value]], [[0.0]]], [(0,)], 1),
        lambda: sc.NestedLattice(
            [sc.Persistence(inside=np.zeros((2, 1))), sc.Persistence(length=[[0.0], [value]], max_length=2)],
            [[[[0.0]]]],
            [[[0.0]]],
            [[[0.0]]],
        ),
    ):
        with pytest.raises(ValueError, match=r"is beyond the range of scores, \+-1e\+100"):
            build()


def test_values_of_attributes_have_a_range():
    model = sc.CRF(max_iterations=3).fit(X, Y)
    bad = [X[0], [{"w": "a"}, {"w": "b", "n": -1e308}]]
    message = r"sequence 1, position 1: attribute 'n' has the value -1e\+308: values must be finite and lie within"
    for question in (model.predict, model.predict_marginals, model.sample, lambda X: model.predict_kbest(X, 2), encode):
        with pytest.raises(ValueError, match=message):
            question(bad)
    with pytest.raises(ValueError, match=message):
        sc.CRF().fit(bad, [Y[0], ["A", "B"]])
    with pytest.raises(ValueError, match=r"values\[0\] is 1e\+41"):
        Dataset([0, 1], [0, 1], [0], [1e41], encode(X).vocabulary)


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "asgd", "mm", "ap", "pa"])
def test_large_values_train_to_finite_weights(algorithm):
    large = [[{"w": w, "n": s * 1e40} for w, s in zip("abcab", (1, -1, 1, 1, -1), strict=True)], X[1]]
    model = sc.CRF(algorithm=algorithm, max_iterations=5).fit(large, Y)
    assert np.isfinite(model.loss_)
    for marginals in model.predict_marginals(large):
        for row in marginals:
            assert_allclose(sum(row.values()), 1.0, rtol=0, atol=1e-9)


def test_training_that_goes_out_of_range_says_so():
    with pytest.raises(ValueError, match=r"training with algorithm='l2sgd' went out of range: .* scale them down"):
        sc.CRF(algorithm="l2sgd", calibration_eta=1e300, calibration_candidates=1, c2=1e-300).fit(X, Y)


# Integers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2**31, 2**63, 2**70, 10**400])
def test_integers_have_an_upper_bound(number):
    lattice = sc.ChainLattice(np.zeros((2, 2)), np.zeros((2, 2)))
    model = sc.CRF(max_iterations=2).fit(X, Y)
    calls = {
        "k": lambda: lattice.kbest(number),
        "n": lambda: lattice.sample(number),
        "max_length": lambda: lattice.compressed(number),
        "top": lambda: model.report(top=number),
        "order": lambda: sc.CRF(order=number).fit(X, Y),
        "n_jobs": lambda: sc.CRF(n_jobs=number).fit(X, Y),
        "max_iterations": lambda: sc.CRF(max_iterations=number).fit(X, Y),
        "n_labels": lambda: sc.PatternAutomaton([(0,)], number),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"{name} must be at most {2**31 - 1}, got "):
            call()
    with pytest.raises(ValueError, match="max_length must be at most"):
        sc.SemiCRF(max_length=number).fit(X, Y)


@pytest.mark.parametrize("name", ["c1", "c2", "epsilon", "min_freq", "calibration_eta"])
def test_numbers_that_no_float_holds(name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        sc.CRF(**{name: 10**400}).fit(X, Y)


def test_threads_are_bounded_by_the_machine(tmp_path):
    model = sc.CRF(n_jobs=2**31 - 1, max_iterations=2).fit(X, Y)
    model.save(tmp_path / "model")
    assert files.load(tmp_path / "model").predict(X) == model.predict(X)


def test_automata_that_no_memory_holds():
    with pytest.raises(ValueError, match="too many for a table of"):
        sc.PatternAutomaton([(0,)], 10**6)


# Arrays --------------------------------------------------------------------------------------------


def test_masks_are_not_ignored():
    masked = np.ma.masked_array(np.zeros((3, 2)), [[0, 0], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match=r"unary\[1, 1\] is masked"):
        sc.ChainLattice(masked, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"labels\[0\] is masked"):
        sc.ChainLattice(np.zeros((2, 2)), np.zeros((2, 2))).constrain(np.ma.masked_array([1, 0], [1, 0]))
    with pytest.raises(ValueError, match=r"X\[1\]\[1, 1\] is masked"):
        encode([np.zeros((2, 2)), masked])
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is masked"):
        sc.CRF().fit(X, Y, sample_weight=np.ma.masked_array([1.0, 1.0], [1, 0]))
    with pytest.raises(ValueError, match=r"unary\[1\]\[0\] is masked"):
        sc.ChainLattice([np.zeros(2), np.ma.masked_array([1.0, 0.0], [1, 0])], np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"y\[0\]\[1\] is masked"):
        sc.CRF().fit([[["a"], ["b"]]], [np.ma.masked_array(["A", "B"], [0, 1])])
    whole = np.ma.masked_array(np.zeros((3, 2)))
    assert_allclose(sc.ChainLattice(whole, np.zeros((2, 2))).log_partition(), 3 * np.log(2), rtol=1e-15, atol=0)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_are_refused():
    matrix = np.matrix(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="unary is an np.matrix: give an array"):
        sc.ChainLattice(matrix, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"X\[0\] is an np.matrix"):
        encode([matrix])


def test_what_is_no_array():
    with pytest.raises(ValueError, match="unary is not an array"):
        sc.ChainLattice([[0.0, 1.0], [2.0]], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="labels is not an array"):
        sc.ChainLattice(np.zeros((2, 2)), np.zeros((2, 2))).constrain([[1], [0, 1]])
    with pytest.raises(ValueError, match="start is not an array"):
        sc.SegmentLattice.from_parts([(0,)], 1, 2, start=[[], [1]])
    with pytest.raises(ValueError, match="transmat is not an array"):
        sc.ChainLattice.from_hmm([1.0], [[1.0], []], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="trajectory is not an array"):
        sc.ChainLattice(np.zeros((2, 2)), np.zeros((2, 2))).compressed().log_probability([range(3), 0])
    whole, rest = sc.Persistence(inside=np.zeros((2, 1))), ([[[[0.0]]]], [[[0.0]]], [[[0.0]]])
    with pytest.raises(ValueError, match=r"persist\[1\] is not an array"):
        sc.NestedLattice([whole, [[1], []]], *rest)
    with pytest.raises(ValueError, match=r"persist\[0\].inside is not an array"):
        sc.NestedLattice([sc.Persistence(inside=[[1], []]), whole], *rest)
    with pytest.raises(ValueError, match=r"init\[0\] is not an array"):
        sc.NestedLattice([whole, whole], rest[0], [whole], rest[2])
    with pytest.raises(TypeError, match="attribute 'a' has a value of type MaskedArray"):
        encode([[{"a": np.ma.masked_array([])}]])


@pytest.mark.parametrize("name", ["verbose", "averaging", "warm_start", "all_possible_transitions"])
def test_flags_are_yes_or_no(name):
    for value in (np.zeros(0), np.ones(2), "no", [False]):
        with pytest.raises(ValueError, match=f"{name} must be True or False, got "):
            sc.CRF(**{name: value}).fit(X, Y)


def test_engines_are_names():
    with pytest.raises(ValueError, match="engine must be one of auto, "):
        sc.CRF(2, engine=np.ones(2)).fit(X, Y)


def test_what_stands_in_the_wrong_place_is_named(tmp_path):
    """What the fuzzer of calls found to end in words of NumPy or Python."""
    array, tree = np.ones((2, 2)), [{"top": [(0, 5, "P")], "low": Y[0]}, {"top": [(0, 3, "P")], "low": Y[1]}]
    masked = np.ma.masked_array(np.ones((2, 2)), [[0, 1], [0, 0]])
    trainer, tagger = pycrfsuite.Trainer(verbose=False), pycrfsuite.Tagger()
    sc.CRF(max_iterations=2).fit(X, Y).save(tmp_path / "model")
    tagger.open(tmp_path / "model").__enter__()
    tagger.set(X[0])
    model = sc.load(tmp_path / "model")
    calls = [
        (lambda: trainer.select(1.5), "Bad arguments: algorithm=1.5"),
        (lambda: trainer.append([["a"]], ["A"], np.inf), "group must be an integer, got inf"),
        (lambda: tagger.marginal("A", 0.0), "pos must be an integer, got 0.0"),
        (lambda: model.broken_rules([["A", 2**70]], "once(A)"), r"y\[0\] is no complete answer .*\['A', 1180"),
        (lambda: rules.once("A").svg(["A", "B"], array), "runs must be True or False"),
        (lambda: rules.learn([["A"], array]), r"y\[1\]\[0\] = array.* complete labels"),
        (lambda: metrics.conlleval([["A"]], masked), r"labels\[1\] is masked"),
        (lambda: sc.ChainBatch(array, [0, 2], array).score([[[], [1]]]), r"configs\[0\]"),
        (lambda: sc.SemiCRF(min_length=array).fit(X, Y), "min_length must be"),
        (lambda: sc.HierarchicalCRF(["top", "low"], max_length=array).fit(X, tree), "max_length must be"),
        (lambda: sc.HierarchicalCRF(["top", "low"], length_features=[array]).fit(X, tree), "must be among 'bins'"),
        (lambda: sc.HierarchicalCRF(["top", "low"], train_with_rules=array).fit(X, tree), "must be True or False"),
        (lambda: sc.CRF().fit(X, [["\ud800"] * 5, Y[1]]).save(tmp_path / "m", format="crfsuite"), "lone surrogate"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="X, sequence 0 must be a list of tokens, got an object of type NoneType"):
        model.predict_single(None)
    with pytest.raises(TypeError, match="schemes must be a name, or a dict level -> name, got 7"):
        sc.levels_from_columns({"a": [["A"]]}, 7)


def test_a_loss_of_nothing(tmp_path):
    """One label: the loss is 0, and so is the gradient."""
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([["a"]], ["A"])
    trainer.set("epsilon", 1e155)
    trainer.train(str(tmp_path / "model"))
    assert sc.load(tmp_path / "model").predict([[["a"]]]) == [["A"]]


def test_rules_print_what_terminals_can_show():
    for label in ("\x1b[2J", "\x00", "a b", "A", 2**70):
        rule = rules.once(label)
        assert str(rule).isprintable()
        assert rules.parse(str(rule)) == rule


def test_a_rate_that_no_float_holds():
    """The inverse of the first rate overflows: no step at all."""
    model = sc.CRF(algorithm="l2sgd", calibration_eta=1e-320, calibration_rate=1e300, max_iterations=1).fit(X, Y)
    assert np.isfinite(model.loss_)


# Memory --------------------------------------------------------------------------------------------


def test_what_memory_cannot_hold_is_said_before_it_is_gone(monkeypatch):
    with pytest.raises(MemoryError, match=r"transitions between 1000000 labels .* take 24000.0 GB"):
        sc.ChainLattice(np.zeros((1, 1_000_000)))
    with pytest.raises(MemoryError, match=r"the numbers of scores take 80000.0 GB"):
        sc.SegmentLattice(np.broadcast_to(0.0, (1_000_000, 10_000, 1_000)), [(y,) for y in range(1_000)], 1_000)
    lattice = sc.SegmentLattice(np.zeros((1_000, 60, 100)), [(y,) for y in range(100)], 100)
    monkeypatch.setattr(checks, "_left", lambda: 10**8)
    with pytest.raises(MemoryError, match=r"segments take 0.1 GB, but 0.1 GB of memory are left"):
        lattice.log_partition()


def test_containers_have_less_memory_than_machines(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "_CONTAINER", str(tmp_path))
    for name, text in {"max": "1000", "current": "900", "stat": "anon 7\nactive_file 20\ninactive_file 3\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert checks._left() == 123
    (tmp_path / "memory.max").write_text("max\n")  # no limit
    assert checks._left() != 123


# Labels that nothing tells apart ---------------------------------------------------------------------


def test_unlabelled_levels_are_warned_of():
    names, low = ["top", "low"], {"low": list("ABCAB")}
    y = [low, {"low": list("CAB")}]
    same = {"P": list("ABC"), "Q": list("ABC")}
    with pytest.warns(UserWarning, match="labels of level 'top'.*'P' and 'Q' cannot come to differ") as told:
        sc.HierarchicalCRF(names, topology=same, max_iterations=2).fit(X, y)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="y says nothing of the labels")
        sc.HierarchicalCRF(names, topology={"P": list("AB"), "Q": list("BC")}, max_iterations=2).fit(X, y)
        one = {"top": [(0, 5, "P")], **low}
        sc.HierarchicalCRF(names, topology=same, max_iterations=2).fit(X, [one, y[1]])


# Files ---------------------------------------------------------------------------------------------

COLUMNS = "the D\nman N\n\na D\ndog N\n\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    there = tmp_path_factory.mktemp("model")
    (there / "data.txt").write_text(COLUMNS * 3)
    assert main(["train", str(there / "data.txt"), "-o", str(there / "model"), "-q"]) == 0
    return there


@pytest.mark.parametrize("verb", ["tag", "convert", "html"])
def test_outputs_are_replaced_or_left_alone(model, tmp_path, capsys, verb):
    """A line that is bad midway, and a disk that is full."""
    bad, out = tmp_path / "bad.txt", tmp_path / "out"
    arguments = {
        "tag": ["tag", str(model / "model"), str(bad), "-o", str(out)],
        "convert": ["convert", str(bad), str(out), "--to", "jsonl"],
        "html": ["tag", str(model / "model"), str(bad), "-o", str(tmp_path / "other"), "--html", str(out)],
    }[verb]
    bad.write_text(COLUMNS * 20_000 + "one two three four\n")  # more than one block
    out.write_text("before")
    assert main(arguments) == 1
    assert "bad.txt:120001: the line has 4 columns" in capsys.readouterr().err
    assert out.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["bad.txt", "out"]
    bad.write_text(COLUMNS)
    assert main(arguments) == 0
    assert out.read_text() != "before"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_named(model, capsys):
    assert main(["tag", str(model / "model"), str(model / "data.txt"), "-o", "/dev/full"]) == 1
    assert "scansion: /dev/full: No space left on device" in capsys.readouterr().err


# Interrupts and threads ------------------------------------------------------------------------------


def test_an_interrupt_is_one_line(model, tmp_path):
    """At several moments after `main` has begun, imports included; before it, Python's own handler speaks."""
    lines = tmp_path / "long.txt"
    lines.write_text(COLUMNS * 30_000)
    ready = "import os, sys; from scansion.cli import main; os.write(1, b'.'); sys.exit(main())"
    for delay in (0.05, 0.2, 0.6):
        arguments = [sys.executable, "-c", ready, "train", str(lines), "-o", str(tmp_path / "model"), "-q"]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1].decode()
        assert process.returncode in (0, 130), said
        assert "Traceback" not in said
        assert len(said.splitlines()) <= 1, said


LIMITED = """
import resource, sys
import numpy as np
import scansion as sc

lattices = sc.ChainBatch(np.zeros((4000, 3)), np.arange(0, 4001, 10), np.zeros((3, 3)), n_jobs=64)
expected = lattices.log_partition()
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    assert (lattices.log_partition() == expected).all()
    print("done")
except MemoryError:
    print("memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer itself needs the memory")
@pytest.mark.parametrize("room", [0, 1 << 20, 10 << 20, 100 << 20])
def test_threads_that_cannot_start_are_done_without(room):
    found = subprocess.run([sys.executable, "-c", LIMITED, str(room)], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() in ("done", "memory")


def test_orders_beyond_the_longest_sequence_cost_nothing():
    x, y = [[["a"], ["b"], ["a"]]], [["A", "B", "A"]]
    far = sc.CRF(order=10**9, max_iterations=3).fit(x, y)
    assert far.model_.patterns == sc.CRF(order=2, max_iterations=3).fit(x, y).model_.patterns
    assert sc.CRF(order=10**9, max_iterations=3).fit(x, [sc.Trajectory(["A", "B"])]).predict(x)
    assert sc.SemiCRF(order=10**9, max_iterations=3).fit(x, y).predict(x)


def _at_an_odd_address(array):
    """The same array over bytes that begin at an odd address, as unpickled and received ones may."""
    given = np.frombuffer(b"\0" + array.tobytes(), dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    assert not given.flags.aligned
    return given


def test_arrays_at_odd_addresses():
    """Kernels take aligned copies (sanitizers see it when they do not)."""
    rng = np.random.default_rng(3)
    unary, transition = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    expected = sc.ChainLattice(unary, transition)
    lattice = sc.ChainLattice(_at_an_odd_address(unary), _at_an_odd_address(transition))
    assert lattice.log_partition() == expected.log_partition()
    np.testing.assert_array_equal(lattice.viterbi()[0], expected.viterbi()[0])
    assert sc.SegmentLattice(_at_an_odd_address(unary[:, None]), [(0,), (1,), (2,)], 3).log_partition() == (
        sc.SegmentLattice(unary[:, None], [(0,), (1,), (2,)], 3).log_partition()
    )
    crf = sc.CRF(max_iterations=5).fit([unary], [list("ABCABC")])
    assert crf.predict([_at_an_odd_address(unary)]) == crf.predict([unary])
