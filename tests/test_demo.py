"""The demonstration: its data follow their rules, its simulator is what it says, and the tour runs."""

import re
import signal
import subprocess
import sys
import warnings
from collections import Counter

import numpy as np
import pytest

import scansion as sc
from scansion.demo import FIELDS, PARTS, Robot, attributes, main, parse, references, tokens_of
from scansion.demo.console import Console
from scansion.demo.models import Folds, hide, labels_of, scores
from scansion.demo.robot import WORLD, neighbours, squares
from scansion.schemes import encode, segments


@pytest.fixture(scope="module")
def data():
    return references()


def test_every_token_has_a_field_and_a_part(data):
    for reference in data:
        size = len(reference.tokens)
        assert size > 0
        for level in reference.levels:
            ends = [0, *(segment.stop for segment in level)]
            assert [segment.start for segment in level] == ends[:-1]
            assert ends[-1] == size
            assert all(segment.start < segment.stop for segment in level)
        assert len(reference.fields) == len(reference.parts) == size


def test_parts_nest_in_their_fields(data):
    for reference in data:
        fields, parts = reference.levels
        assert {f.stop for f in fields} <= {p.stop for p in parts}
        for part in parts:
            assert part.label in PARTS[reference.fields[part.start]]


def test_touching_fields_differ(data):
    # so that labels without "begin" marks would do, and SemiCRF may have repeats=False
    for reference in data:
        labels = [s.label for s in reference.levels[0]]
        assert all(a != b for a, b in zip(labels, labels[1:], strict=False)), " ".join(reference.tokens)


def test_size_styles_and_labels(data):
    assert len(data) >= 150
    styles = Counter(reference.style for reference in data)
    assert len(styles) >= 10
    assert min(styles.values()) >= 10
    fields = Counter(s.label for reference in data for s in reference.levels[0])
    assert set(fields) == set(FIELDS)
    assert min(fields.values()) >= 10
    parts = {s.label for reference in data for s in reference.levels[1]}
    assert parts == {part for some in PARTS.values() for part in some}


def test_no_reference_occurs_twice(data):
    def title(reference):
        words = [t.lower() for t, f in zip(reference.tokens, reference.fields, strict=True) if f == "title"]
        return " ".join(w for w in words if w.isalnum()) or " ".join(reference.tokens)

    repeated = [text for text, count in Counter(title(reference) for reference in data).items() if count > 1]
    assert repeated == []


def test_dates_pages_and_links_look_like_them(data):
    for reference in data:
        for start, stop, label in reference.levels[0]:
            text = " ".join(reference.tokens[start:stop])
            if label == "date":
                assert re.search(r"\b(1[4-9]|20)\d\d\b", text), text
            elif label in ("pages", "number"):
                assert re.search(r"\d", text), text
            elif label == "link":
                assert re.search(r"https?://|10\.\d{4,}/|arXiv:", text), text
            bounds = re.search(r"(\d+)[–-](\d+)", text) if label == "pages" else None
            if bounds:  # 1243–48 is 1243–1248
                first, last = bounds.groups()
                assert int(first) < int(first[: max(0, len(first) - len(last))] + last), text


def test_tokens_of_is_what_the_file_was_cut_by(data):
    text = "(Watson JD, Crick FHC) J.-P. Serre, “FAC.” Nature. 1953;171(4356):737-8, https://doi.org/10.1038/171737a0."
    assert tokens_of(text) == [
        *("(", "Watson", "JD", ",", "Crick", "FHC", ")", "J.-P.", "Serre", ",", "“", "FAC", ".", "”", "Nature", "."),
        *("1953", ";", "171", "(", "4356", ")", ":", "737-8", ",", "https://doi.org/10.1038/171737a0", "."),
    ]
    for reference in data:
        assert tokens_of(" ".join(reference.tokens)) == reference.tokens


def test_parse_reads_fields_and_parts():
    text = "== s\n{author *Box, G. & *Cox, D.} {date (May 3, 1964).} {title On: it.} {editor {role von} A. *B}"
    (reference,) = parse(text)
    assert reference.style == "s"
    assert [s.label for s in reference.levels[0]] == ["author", "date", "title", "editor"]
    found = [(p.label, " ".join(reference.tokens[p.start : p.stop])) for p in reference.levels[1]]
    assert found == [
        *(("family", "Box ,"), ("given", "G."), ("and", "&"), ("family", "Cox ,"), ("given", "D.")),
        *(("month", "( May"), ("day", "3 ,"), ("year", "1964 ) .")),
        *(("title", "On :"), ("subtitle", "it ."), ("role", "von"), ("given", "A."), ("family", "B")),
    ]


@pytest.mark.parametrize(
    "line, message",
    [
        ("{author *A} stray", "'stray' stands outside"),
        ("{writer A}", "'writer' is not one of the fields"),
        ("{author {year A}}", "'year' is not one of the parts of 'author'"),
        ("{author {given {family A}}}", "two levels only"),
        ("{title *A}", "only authors and editors"),
        ("{title A", "'{title' is not closed"),
        ("{title A}}", "closes nothing"),
        ("{title .}", "holds no word"),
    ],
)
def test_parse_names_what_is_wrong(line, message):
    with pytest.raises(ValueError, match=r"line 2: .*" + re.escape(message)):
        list(parse(f"== s\n{line}"))


def test_parse_wants_a_style():
    with pytest.raises(ValueError, match="line 1: .*style"):
        list(parse("{title A}"))


def test_attributes(data):
    for reference in data[::20]:
        found = attributes(reference.tokens)
        assert len(found) == len(reference.tokens)
        assert all(f"w={t.lower()}" in items for t, items in zip(reference.tokens, found, strict=True))
        assert all(len(items) == len(set(items)) for items in found)
    first, second, *_, last = attributes(["(", "Mar", ".", "1999", ")"])
    assert {"k=(", "in=brackets", "w[-1]=<end>", "w[+1]=mar"} <= set(first)
    assert {"k=month", "k[+2]=year", "k[-1..+1]=( month .", "suf=mar"} <= set(second)
    assert {"k=)", "in=brackets", "w[+1]=<end>"} <= set(last)
    assert attributes([]) == []


def test_the_robot_is_a_markov_model():
    robot = Robot.build(stay=0.5, accuracy=0.9)
    for table in robot:
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=1e-12)
        assert (table >= 0).all()
    np.testing.assert_allclose(np.diag(robot.transition), 0.5, rtol=1e-12)
    names = squares()
    assert len(names) == len(set(names)) == 13
    for square in names:  # beside is symmetric, and only these are reached
        assert all(square in neighbours(other) for other in neighbours(square))
        reached = {names[i] for i in np.flatnonzero(robot.transition[names.index(square)])}
        assert reached == {square, *neighbours(square)}
    assert set(neighbours("A")) == {"B", "D"}
    assert "".join(WORLD).count(".") == 3


def test_a_walk_stays_on_the_way():
    robot = Robot.build()
    at, told = robot.walk(np.random.default_rng(3), 200)
    assert len(at) == len(told) == 200
    assert all(robot.transition[a, b] > 0 for a, b in zip(at, at[1:], strict=False))
    assert all(robot.emission[a, b] > 0 for a, b in zip(at, told, strict=True))
    assert 0.6 < np.mean(np.equal(at, told)) < 0.95


def test_folds_test_every_reference_by_a_model_that_has_not_seen_it(data):
    chosen = data[::10]
    folds = Folds(chosen, 3)
    learnt = []

    class Parrot:
        def fit(self, X, y):
            learnt.append(X)
            return self

        def predict(self, X):
            assert not any(x in learnt[-1] for x in X)
            return [folds.truth[folds.X.index(x)] for x in X]

    answers = folds.answers(Parrot, folds.segments())
    assert answers.predicted == folds.truth
    assert [len(X) + len(folds.X[k::3]) for k, X in enumerate(learnt)] == [len(chosen)] * 3
    perfect = scores(folds.truth, answers.predicted)
    assert (perfect.tokens, perfect.segments, perfect.whole) == (1.0, 1.0, 1.0)


def test_scores_count_tokens_segments_and_references():
    truth = [[(0, 2, "a"), (2, 3, "b")], [(0, 1, "a")]]
    found = [[(0, 1, "a"), (1, 3, "b")], [(0, 1, "a")]]
    result = scores(truth, found)
    assert (result.tokens, result.whole) == (0.75, 0.5)
    np.testing.assert_allclose(result.segments, 1 / 3, rtol=1e-12)
    assert result.cells() == ["75.0", "33.3", "50.0"]
    assert labels_of(found[0]) == ["a", "b", "b"]


def test_hide_keeps_what_it_says():
    y = [["x"] * 30 for _ in range(100)]
    hidden = hide(y, 1 / 4, 1 / 3, seed=1)
    complete = [labels for labels in hidden if None not in labels]
    assert len(complete) == 25
    share = np.mean([label is None for labels in hidden for label in labels])
    assert 0.45 < share < 0.55
    assert hide(y, 1 / 4, 1 / 3, seed=1) == hidden != hide(y, 1 / 4, 1 / 3, seed=2)
    assert all(len(labels) == 30 for labels in hidden)


# ---- the tour --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """What the quick tour prints, and where its files are."""
    import contextlib
    import io

    where = tmp_path_factory.mktemp("tour") / "files"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")  # a tour without interjections
        code = main(["--quick", "-o", str(where), "--jobs", "1"])
    assert code == 0
    return printed.getvalue(), where


def test_the_tour_prints_its_sections(tour):
    printed, where = tour
    assert re.findall(r"^(\d)\. ", printed, re.MULTILINE) == list("12345678")
    for name in (
        "CRF",
        "SemiCRF of order 2",
        "HierarchicalCRF",
        "two CRFs",
        "half of the labels",
        "compressed, best route",
    ):
        assert re.search(rf"^{re.escape(name)} .*\d+\.\d", printed, re.MULTILINE), name
    assert "\x1b" not in printed  # no colour where there is no terminal
    text = [line for line in printed.splitlines() if str(where) not in line and "tokens_of" not in line]
    assert max(map(len, text)) <= 80
    assert not re.search(r"\bnan\b", printed)


def test_the_tour_writes_pages_models_and_columns(tour):
    printed, where = tour
    for name in ("references.html", "semicrf.html", "hierarchical.html", "train.txt", "test.txt"):
        assert name in printed
        assert (where / name).stat().st_size > 1000
    for name in ("references.html", "semicrf.html", "hierarchical.html"):
        page = (where / name).read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert not re.search(r"""(src|href)=["']?https?:""", page)  # nothing is fetched
    tokens = tokens_of("Hamming RW. Error detecting codes. 1950.")
    found = sc.load(where / "semicrf.safetensors").predict([attributes(tokens)])[0]
    assert found[-1].stop == len(tokens)
    tree = sc.load(where / "hierarchical.safetensors").predict([attributes(tokens)])[0]
    assert tree.names == ["field", "part"]


def test_the_columns_hold_the_references(tour, data):
    _, where = tour
    found = []
    for name in ("train.txt", "test.txt"):
        for block in (where / name).read_text(encoding="utf-8").strip().split("\n\n"):
            rows = [line.split("\t") for line in block.splitlines()]
            tokens, fields, parts = (list(column) for column in zip(*rows, strict=True))
            found.append((tokens, segments(fields, "iob2"), segments(parts, "iob2")))
    known = {" ".join(r.tokens): r for r in data}
    assert len(found) == len({" ".join(tokens) for tokens, _, _ in found}) > 20
    for tokens, fields, parts in found:
        reference = known[" ".join(tokens)]
        assert (fields, parts) == reference.levels
        assert encode(fields, len(tokens))[0].startswith("B-")


def test_the_tour_says_where_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["-o", str(tmp_path / "file" / "below")]) == 1
    assert "cannot write to" in capsys.readouterr().err


def test_wrong_arguments(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--jobs", "0"])
    assert "--jobs must be -1 or at least 1, got 0" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [40, 57, 80])
def test_the_console_keeps_to_the_width(columns, monkeypatch, capsys):
    console = Console()
    console.width = columns
    console.heading("A heading that is longer than the narrowest terminal that there is")
    console.text("many words " * 30)
    console.pairs([("author", "Donald E. Knuth " * 10), ("date", "1968")], marked=[1])
    console.table(["", "tokens", "F1", "whole"], [["complete references only, or so", "1.0", "2.0", "3.0"]])
    console.command("scansion train " + "--option value " * 12)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    assert "> date" in out
    assert "\x1b" not in out


def test_what_stands_beside_a_long_name_goes_below_it(capsys):
    Console().pairs([("folder/" * 20, "far away " * 9), ("here", "near")])
    name, *rest, last = capsys.readouterr().out.splitlines()
    assert name == "  " + "folder/" * 20 and last == "  here  near"
    assert " ".join("".join(rest).split()) == ("far away " * 9).strip() and max(map(len, rest)) <= 80


def test_the_module_runs():
    done = subprocess.run([sys.executable, "-m", "scansion.demo", "--help"], capture_output=True, text=True, check=True)
    assert "half a minute" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
def test_ctrl_c_ends_the_tour(tmp_path):
    # fit takes it as the end of training; the tour must not go on to the next model
    command = [sys.executable, "-m", "scansion.demo", "-o", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tour:
        for line in tour.stdout:
            if line.startswith("2. "):
                break
        tour.send_signal(signal.SIGINT)
        out, err = tour.communicate(timeout=60)
    assert tour.returncode == 130, err
    assert "3. " not in out
    assert "Traceback" not in err
