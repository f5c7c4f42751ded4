"""Models of CRFsuite, CRF++ and Wapiti: read, asked, written; files that are damaged."""

from __future__ import annotations

import math
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
import pytest

import scansion as sc
from scansion.data import Dataset
from scansion.features.templates import Template
from scansion.formats.blocks import read
from scansion.model_file import ModelFileError
from scansion.models.foreign import crfsuite

FOLDER = Path(__file__).parent / "foreign"
MODELS = ("crfpp.model", "crfpp-text.model", "wapiti.model")


def sequences(seed: int = 1, n: int = 40) -> tuple[list[Any], list[Any]]:
    rng = random.Random(seed)
    words = [f"wört{i}" for i in range(40)] + ["x" * k for k in (0, 1, 11, 12, 13, 24, 25, 90)]
    X = [
        [
            {"w": rng.choice(words), "n": rng.random() * 3, "b": rng.random() < 0.5, "sub": {"a": 1.5, "c": "x"}}
            for _ in range(rng.randint(1, 8))
        ]
        for _ in range(n)
    ]
    return X, [[rng.choice(["A", "B", "ÇÇ", "D"]) for _ in x] for x in X]


X, Y = sequences()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that CRFsuite trained."""
    path = tmp_path_factory.mktemp("crfsuite") / "model.crfsuite"
    trainer = pycrfsuite.Trainer(verbose=False, params={"c1": 0.05, "c2": 0.1, "max_iterations": 30})
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(str(path))
    return path


def assert_same(crf: Any, path: Path) -> None:
    """CRFsuite says of a file what the estimator says."""
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    info = tagger.info()
    assert tagger.labels() == crf.classes_
    assert info.transitions == pytest.approx(crf.transition_features_, rel=0, abs=1e-6)  # it prints six digits
    assert info.state_features == pytest.approx(crf.state_features_, rel=0, abs=1e-6)
    for x, best, marginals in zip(X, crf.predict(X), crf.predict_marginals(X), strict=True):
        assert tagger.tag(x) == best
        assert math.isclose(tagger.probability(best), math.exp(crf.log_likelihood([x], [best])), rel_tol=1e-9)
        for t, row in enumerate(marginals):
            for label, p in row.items():
                assert abs(tagger.marginal(label, t) - p) < 1e-9


def test_crfsuite_is_read(theirs: Path) -> None:
    crf = sc.load(theirs)
    assert isinstance(crf, sc.CRF)
    assert_same(crf, theirs)


def test_crfsuite_is_written(theirs: Path, tmp_path: Path) -> None:
    sc.load(theirs).save(tmp_path / "again", format="crfsuite")
    assert (tmp_path / "again").stat().st_size == theirs.stat().st_size
    assert_same(sc.load(tmp_path / "again"), tmp_path / "again")


def test_what_was_trained_here_is_written(tmp_path: Path) -> None:
    crf = sc.CRF(c2=0.1, max_iterations=20).fit(X, Y)
    crf.save(tmp_path / "model", format="crfsuite")
    assert_same(crf, tmp_path / "model")


def test_few_features_are_written(tmp_path: Path) -> None:
    for y, c1 in ((["A", "A"], 0.0), (["A", "B"], 1e6), (["A", "B"], 0.0)):
        crf = sc.CRF(c1=c1, max_iterations=5).fit([[{"w": "x"}, {"w": "y"}]], [y])
        crf.save(tmp_path / "model", format="crfsuite")
        again = sc.load(tmp_path / "model")
        assert again.state_features_ == crf.state_features_ and again.classes_ == crf.classes_
        tagger = pycrfsuite.Tagger()
        tagger.open(str(tmp_path / "model"))
        assert len(tagger.tag([{"w": "x"}, {"w": "y"}])) == 2


def test_names_are_found_in_full_tables(tmp_path: Path) -> None:
    """Hash tables of many sizes, with chains that wrap around: CRFsuite finds every name."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 300, 3000):
        x = [[f"{rng.integers(10 ** rng.integers(1, 12))}.{i}"] for i in range(n)]
        crf = sc.CRF(max_iterations=2).fit([x], [[f"y{i % 2}" for i in range(n)]])
        crf.save(tmp_path / "model", format="crfsuite")
        tagger = pycrfsuite.Tagger()
        tagger.open(str(tmp_path / "model"))
        tagger.set(x)
        (theirs_row,) = ([tagger.marginal("y0", t) for t in range(n)],)
        np.testing.assert_allclose(theirs_row, crf.lattice(x).marginals().labels[:, 0], rtol=1e-9, atol=1e-12)


def test_what_crfsuite_cannot_hold_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model"
    cases = [
        (sc.SemiCRF(max_iterations=2).fit(X, Y), "chains"),
        (sc.CRF(2, max_iterations=2).fit(X, Y), "pairs of labels"),
        (sc.CRF(attribute_orders={"w": 1}, max_iterations=2).fit(X, Y), "single labels"),
        (sc.CRF(patterns=[(sc.BOS, "A")], max_iterations=2).fit(X, Y), "pairs of labels"),
        (sc.CRF(max_iterations=2).fit([[["a"]]], [[1]]), "strings, got 1"),
        (sc.CRF(max_iterations=2).fit([[["a\0b"], ["c"]]], [["A", "B"]]), "NUL"),
    ]
    for estimator, message in cases:
        with pytest.raises(ValueError, match=message):
            estimator.save(path, format="crfsuite")
    with pytest.raises(ValueError, match="format must be"):
        cases[1][0].save(path, format="crf++")
    assert not path.exists()


def test_it_is_an_ordinary_estimator(theirs: Path, tmp_path: Path) -> None:
    crf = sc.load(theirs)
    before = crf.predict_marginals(X[:3])
    crf.save(tmp_path / "ours")
    assert sc.load(tmp_path / "ours").predict_marginals(X[:3]) == before
    assert crf.predict(X[:1], constraints=[["A"] * len(X[0])]) == [["A"] * len(X[0])]
    assert len(crf.predict_kbest(X[:1], 3)[0]) == 3
    assert "wört" in crf.report().html
    loss = -crf.log_likelihood(X, Y)
    crf.set_params(warm_start=True, c2=0.1, max_iterations=5).fit(X, Y)
    assert -crf.log_likelihood(X, Y) < loss


# ---- CRF++ and Wapiti ----------------------------------------------------------------------------------------------


def columns(crf: Any, vocabulary: Any = None) -> tuple[Dataset, list[Any]]:
    """The sentences as the model reads them, and their labels; with a vocabulary, attributes are added to it."""
    (block,) = (block for block in read(str(FOLDER / "columns.txt"), crf.reading_) if len(block))
    template = Template(crf.reading_.template, crf.reading_.dialect)
    return block.dataset(template, vocabulary or crf.model_.vocabulary, vocabulary is None), block.labels()


def answers(name: str) -> list[tuple[float, list[list[str]]]]:
    """What a tool said: a number for each sequence, and the cells of each token."""
    found = []
    for part in (FOLDER / name).read_text(encoding="utf-8").strip().split("\n\n"):
        head, *lines = part.split("\n")
        found.append((float(head.split()[-1]), [line.split("\t") for line in lines]))
    return found


@pytest.mark.parametrize("name", ["crfpp.model", "crfpp-text.model"])
def test_crfpp(name: str) -> None:
    crf = sc.load(FOLDER / name)
    data, _ = columns(crf)
    told = answers("crfpp.answers")
    best, marginals = crf.predict_kbest(data, 1), crf.predict_marginals(data)
    for (p, cells), [(labels, log_p)], rows in zip(told, best, marginals, strict=True):
        assert math.isclose(p, math.exp(log_p), abs_tol=1e-6)
        assert [row[3].split("/")[0] for row in cells] == labels
        for row, found in zip(cells, rows, strict=True):
            for cell in row[4:]:
                label, value = cell.split("/")
                assert math.isclose(float(value), found[label], abs_tol=1e-6)


def test_wapiti() -> None:
    crf = sc.load(FOLDER / "wapiti.model")
    data, _ = columns(crf)
    _, scores = crf.lattices(data).viterbi()
    for (score, cells), labels, found in zip(answers("wapiti.answers"), crf.predict(data), scores, strict=True):
        assert [row[1] for row in cells] == labels
        assert math.isclose(score, found, abs_tol=1e-6)
    for (_, cells), rows in zip(answers("wapiti-posterior.answers"), crf.predict_marginals(data), strict=True):
        for row, found in zip(cells, rows, strict=True):
            label, value = row[2].split("/")
            assert math.isclose(float(value), found[label], abs_tol=1e-6)


@pytest.mark.parametrize("name", ["crfpp-text.model", "wapiti.model"])
def test_lines_that_are_there_twice_count_twice(name: str, tmp_path: Path) -> None:
    content = (FOLDER / name).read_bytes()
    lines = (b"1:b,\n", b"12:u00:%x[-1,0],\n") if name.startswith("wapiti") else (b"B\nB01:%", b"U00:%x[-1,0]\n")
    scores = []
    for times in range(3):
        made = content.replace(b"#rdr#6", b"#rdr#%d" % (4 + 2 * times))
        for line in lines:
            first, after = line[: line.index(b"\n") + 1], line[line.index(b"\n") + 1 :]
            made = made.replace(line, first * times + after, 1)
        path = tmp_path / "model"
        path.write_bytes(made)
        crf = sc.load(path)
        data, labels = columns(crf)
        scores.append(crf.lattices(data).score([[crf.classes_.index(y) for y in row] for row in labels]))
    assert np.abs(scores[1] - scores[0]).min() > 1e-3
    np.testing.assert_allclose(scores[2] - scores[1], scores[1] - scores[0], rtol=1e-9)


def test_encoding() -> None:
    crf = sc.load(FOLDER / "crfpp-euc-jp.model", encoding="euc-jp")
    assert any("犬" in name for name in crf.attributes_)
    with pytest.raises(ModelFileError, match="encoding='euc-jp'"):
        sc.load(FOLDER / "crfpp-euc-jp.model")
    with pytest.raises(LookupError):
        sc.load(FOLDER / "crfpp-euc-jp.model", encoding="no such")
    assert crf.reading_ is not None and crf.reading_.encoding == "euc-jp"


def test_the_command_reads_models_and_files_in_other_encodings(tmp_path: Path) -> None:
    model, data = FOLDER / "crfpp-euc-jp.model", tmp_path / "data.txt"
    words = [name.rpartition(":")[2] for name in sc.load(model, encoding="euc-jp").attributes_]
    text = "".join(f"{word} N\n\n" for word in words if word)
    data.write_text(text, encoding="euc-jp")
    assert run("tag", model, data, "--encoding", "euc-jp", "-o", tmp_path / "tagged") == (0, "")
    tagged = (tmp_path / "tagged").read_text(encoding="euc-jp")
    assert [line.rpartition(" ")[0] for line in tagged.splitlines() if line] == text.split("\n\n")[:-1]
    # converted once, the model knows; and its answers are those for UTF-8
    assert run("convert", model, tmp_path / "ours", "--encoding", "euc-jp") == (0, "")
    assert run("tag", tmp_path / "ours", data, "-o", tmp_path / "again") == (0, "")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "tagged").read_bytes()
    assert run("convert", data, tmp_path / "utf8.txt", "--encoding", "euc-jp", "--output-separator", " ") == (0, "")
    assert (tmp_path / "utf8.txt").read_text(encoding="utf-8") == text
    assert run("tag", tmp_path / "ours", tmp_path / "utf8.txt", "--encoding", "utf-8", "-o", tmp_path / "three")[0] == 0
    assert (tmp_path / "three").read_text(encoding="utf-8") == tagged
    # wrong ones are said
    for arguments, wanted, message in (
        (("tag", model, data), 1, "--encoding euc-jp"),
        (("tag", tmp_path / "ours", data, "--encoding", "utf-8"), 1, "the line is not valid UTF-8: name its encoding"),
        (("tag", tmp_path / "ours", data, "--encoding", "no such"), 2, "there is no encoding 'no such'"),
        (("tag", tmp_path / "ours", data, "--encoding", "hex"), 2, "there is no encoding 'hex'"),
        (("inspect", model), 1, "--encoding euc-jp"),
    ):
        code, said = run(*arguments)
        assert code == wanted and message in said
    assert run("inspect", model, "--encoding", "euc-jp") == (0, "")


def test_the_command_trains_in_other_encodings(tmp_path: Path) -> None:
    content = {e: "caf\xe9 X\nne Y\n\n".encode(e) * 3 for e in ("utf-8", "latin-1", "utf-16-le")}
    for encoding, text in content.items():
        (tmp_path / encoding).write_bytes(text)
        assert run("train", tmp_path / encoding, "-o", tmp_path / "m", "--encoding", encoding, "-q") == (0, "")
        assert run("tag", tmp_path / "m", tmp_path / encoding, "-o", tmp_path / f"{encoding}.out") == (0, "")
        assert run("evaluate", tmp_path / "m", tmp_path / encoding)[0] == 0
    texts = {(tmp_path / f"{e}.out").read_bytes().decode(e) for e in content}
    assert len(texts) == 1 and "caf\xe9 X X" in texts.pop()


@pytest.mark.parametrize("name", MODELS)
def test_templates_stay(name: str, tmp_path: Path) -> None:
    crf = sc.load(FOLDER / name)
    crf.save(tmp_path / "ours")
    again = sc.load(tmp_path / "ours")
    assert again.reading_ == crf.reading_ is not None
    assert again.predict(columns(again)[0]) == crf.predict(columns(crf)[0])


@pytest.mark.parametrize("name", MODELS)
def test_training_goes_on(name: str) -> None:
    crf = sc.load(FOLDER / name)
    data, y = columns(crf, crf.model_.vocabulary.copy())
    before = crf.log_likelihood(data, y)
    crf.set_params(warm_start=True, c2=1e-3, max_iterations=10).fit(data, y)
    assert crf.log_likelihood(data, y) > before


def test_all_possible_states_are_those_of_pairs_too() -> None:
    """As CRF++ and Wapiti count: L features of each u, L x L of each b."""
    given = {"attribute_orders": {"b": 1, "*": (0, 1)}, "all_possible_transitions": True}
    data = [[["u1", "b1", "*1"], ["u2", "b2", "*2"], ["u1", "b1"]], [["u3", "b1"]]]
    model, _ = sc.CRF(all_possible_states=True, **given).problem(data, [["P", "Q", "R"], ["P"]])
    singles, pairs = 3 + 2, 2 + 2
    assert sum(len(block) for block in model.blocks if not block.always) == singles * 3 + pairs * 9
    fewer, _ = sc.CRF(all_possible_states=True, min_freq=0.5, **given).problem(data, [["P", "Q", "R"], ["P"]])
    assert fewer.n_weights < model.n_weights


@pytest.mark.parametrize("min_freq", [1, [0, 2]])
def test_min_freq_says_that_it_leaves_out_what_does_not_occur(min_freq: Any) -> None:
    data, y = [[["a"], ["b"]]] * 2, [["P", "Q"]] * 2
    with pytest.warns(UserWarning, match="min_freq = .*: all_possible_states has no effect"):
        crf = sc.CRF(all_possible_states=True, min_freq=min_freq).fit(data, y)
    assert crf.state_features_ == sc.CRF(min_freq=min_freq).fit(data, y).state_features_
    assert len(sc.CRF(all_possible_states=True).fit(data, y).state_features_) == 4


# ---- damaged files -------------------------------------------------------------------------------------------------


def assert_refused_or_in_order(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    try:
        crf = sc.load(path)
    except ModelFileError:
        return
    marginals = crf.lattices([[["w:wört1", "U01:the"], ["b"]]]).marginals().labels
    assert np.isfinite(marginals).all()


@pytest.mark.parametrize("name", ["crfsuite", *MODELS])
def test_damage(name: str, theirs: Path, tmp_path: Path) -> None:
    content = (theirs if name == "crfsuite" else FOLDER / name).read_bytes()
    rng = random.Random(name)
    for cut in [*range(0, 70, 3), *(rng.randrange(len(content)) for _ in range(20))]:
        assert_refused_or_in_order(content[:cut], tmp_path / "model")
    for _ in range(80):
        altered = bytearray(content)
        for _ in range(rng.choice((1, 1, 4))):
            at = rng.choice((rng.randrange(len(altered)), rng.randrange(200)))
            altered[at] = rng.choice((0, 1, 255, 128, altered[at] ^ 1, ord("9"), rng.randrange(256)))
        assert_refused_or_in_order(bytes(altered), tmp_path / "model")


def altered(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + struct.pack("<I", value) + content[at + 4 :]


def test_numbers_of_crfsuite_files_are_checked(theirs: Path) -> None:
    content = theirs.read_bytes()
    features, labels = struct.unpack_from("<II", content, 28)
    cases = [
        (altered(content, 8, 0), "version"),
        (altered(content, 12, 101), "version"),
        (altered(content, 20, 2**32 - 1), "labels"),
        (altered(content, 24, 2**32 - 1), "attributes"),
        (altered(content, 28, 2**32 - 1), "features"),
        (altered(content, 32, 2**32 - 1), "no names"),
        (altered(content, features + 8, 2**32 - 1), "features"),
        (altered(content, features + 12, 2), "kind 2"),
        (altered(content, features + 16, 2**31), f"attribute {2**31}"),
        (altered(content, features + 20, 4), "label 4, but there are 4"),
        (altered(content, features + 28, 0x7FF00000), "weight"),
        (altered(content, labels + 20, 2**32 - 1), "names of labels"),
    ]
    for damaged, message in cases:
        with pytest.raises(ValueError, match=message):
            crfsuite.read(damaged)


def test_other_files_are_still_refused(tmp_path: Path) -> None:
    for content in (
        b"",
        b"x",
        b"hello world, this is text\n" * 10,
        bytes(100),
        struct.pack("<IIdIIII", 100, 0, 1, 9, 9, 9, 9),
    ):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ModelFileError):
            sc.load(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        sc.load(tmp_path / "none")


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*arguments: Any) -> tuple[int, str]:
    """Exit code and what the command said on standard error."""
    import contextlib
    import io

    from scansion.cli import main

    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.redirect_stdout(out):
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, error.getvalue()


def test_the_command_converts_models(theirs: Path, tmp_path: Path) -> None:
    ours, again = tmp_path / "ours", tmp_path / "again"
    assert run("convert", theirs, ours) == (0, "")
    assert ours.read_bytes()[8:9] == b"{"
    assert run("convert", ours, again) == (0, "")
    assert again.read_bytes()[:4] == b"lCRF"
    assert_same(sc.load(ours), again)
    assert run("convert", theirs, tmp_path / "copy.crfsuite") == (0, "")
    assert (tmp_path / "copy.crfsuite").read_bytes()[:4] == b"lCRF"
    assert run("convert", ours, tmp_path / "other", "--to", "scansion") == (0, "")
    assert sc.load(tmp_path / "other").state_features_ == sc.load(theirs).state_features_
    for arguments, wanted, message in (
        ((theirs,), 2, "name the file to write"),
        ((theirs, ours, "--to", "jsonl"), 2, "--to scansion or --to crfsuite"),
        ((FOLDER / "columns.txt", ours, "--to", "scansion"), 2, "holds none"),
        ((FOLDER / "wapiti.model", again, "--to", "crfsuite"), 1, "single labels"),
    ):
        code, said = run("convert", *arguments)
        assert code == wanted and message in said


@pytest.mark.parametrize("name", MODELS)
def test_the_command_tags_columns_with_models(name: str, tmp_path: Path) -> None:
    assert run("tag", FOLDER / name, FOLDER / "columns.txt", "-o", tmp_path / "tagged") == (0, "")
    rows = [line.split() for line in (tmp_path / "tagged").read_text(encoding="utf-8").splitlines()]
    told = answers("wapiti.answers" if "wapiti" in name else "crfpp.answers")
    wanted = [cells[1] if "wapiti" in name else cells[3].split("/")[0] for _, lines in told for cells in lines]
    assert [row[-1] for row in rows if row] == wanted


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("-c", "4"), "--c2 X with X = 1 / (2 C)"),
        (("-f", "3"), "--min-freq N"),
        (("-a", "MIRA"), "--algorithm pa"),
        (("-1", "0.5"), "--c1 X"),
        (("-2", "0.5"), "--c2 Y with Y = X / 2"),
        (("--rho2=1",), "--c2 Y with Y = X / 2"),
        (("--algorithm", "sgd-l1"), "--c1 X with --algorithm lbfgs"),
    ],
)
def test_options_of_other_tools_have_hints(arguments: tuple[str, ...], hint: str, tmp_path: Path) -> None:
    code, said = run("train", FOLDER / "columns.txt", "-o", tmp_path / "model", *arguments)
    assert code == 2 and hint in said
    assert run("train", FOLDER / "columns.txt", "-o", tmp_path / "model", "--labels", "-1", "-q")[0] == 0


def test_items_have_an_ending_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "data.items").write_text("A\tw=1\nB\tw=2\n", encoding="utf-8")
    (tmp_path / "data.crfsuite").write_text("A\tw=1\nB\tw=2\n", encoding="utf-8")
    for name in ("data.items", "data.crfsuite"):
        assert run("train", tmp_path / name, "-o", tmp_path / "model", "-q") == (0, "")
