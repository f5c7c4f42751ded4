"""Feature extraction of the experiments, by hand-made cases; no data set is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments import __main__ as command
from experiments import bibliography, chunking, letters, partial, punctuation, synthetic
from experiments.data import MissingDataError, find, read_columns, split_columns
from experiments.report import Report, Table
from experiments.rows import is_semi, label_lists, order_of, significance
from scansion.segments import Segment

# ---- data ------------------------------------------------------------------------------------------


def test_columns_with_either_line_end_and_no_blank_line_at_the_end():
    lines = ["A. author\r\n", "Cau author\r\n", "\r\n", "\r\n", "In\teditor\n", "\n", "x y\n"]
    assert list(split_columns(lines)) == [[["A.", "author"], ["Cau", "author"]], [["In", "editor"]], [["x", "y"]]]


def test_files_are_found_compressed_or_not(tmp_path, monkeypatch):
    import gzip

    monkeypatch.setenv("SCANSION_DATA", str(tmp_path))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "plain.txt").write_bytes(b"a O\r\nb O\r\n\r\nc X\r\n")
    with gzip.open(tmp_path / "set" / "packed.txt.gz", "wb") as file:
        file.write(b"a O\nb O\n\nc X")
    expected = [(["a", "b"], ["O", "O"]), (["c"], ["X"])]
    assert read_columns("set/plain.txt") == read_columns("set/packed.txt") == expected
    with pytest.raises(MissingDataError, match=r"no file set/other\.txt in .*SCANSION_DATA"):
        find("set/other.txt")


SIMULATED = ("robot", "synthetic")


@pytest.mark.parametrize("name", [name for name in command.NAMES if name not in SIMULATED])
def test_an_experiment_without_its_data_is_skipped(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SCANSION_DATA", str(tmp_path))
    assert command.main([name, "--out", str(tmp_path / "results")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{name}: skipped, no file ") and printed.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_an_unknown_experiment_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(["poetry"])
    assert stopped.value.code == 2
    assert "no experiment poetry" in capsys.readouterr().err


# ---- bibliography ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "ngrams"),
    [
        # <Cau>: n = 2 has index 0 and index 2; n = 3 has index 0, which is both; longer ones index 0
        ("Cau", ["<C", "au", "<Ca", "<Cau", "<Cau>"]),
        # <.>: two bigrams fit, and only the first counts (0 + 2 = 3 - 2 + 1)
        (".", ["<.", "<.>"]),
        ("", ["<>"]),
        # <Roever>: n = 2 index 5, n = 3 index 3, n = 4 index 1
        ("Roever", ["<R", "er", "<Ro", "eve", "<Roe", "Roev", "<Roev", "<Roeve"]),
    ],
)
def test_letter_ngrams(word, ngrams):
    assert bibliography.letter_ngrams(word) == ngrams


def test_bibliography_attributes_of_a_first_token():
    token = bibliography.token_attributes(["a", "b", "a"], 0, semi=True)
    letters = {"letters=<a": 1.0, "letters=<a>": 1.0}
    expected = {"w=a": 1.0, "w-1=": 1.0, "w+1=b": 1.0, "before=": 1.0, "after=b": 1.0, "after=a": 1.0, "after=": 1.0}
    assert token == expected | letters


def test_bibliography_attributes_of_an_inner_token():
    words = ["x", "x", "y", "x", "b", "z", "z"]
    token = bibliography.token_attributes(words, 4, semi=False)
    assert token == {
        "w=b": 1.0,
        "w-1=x": 1.0,
        "w+1=z": 1.0,
        "before=x": 3.0,
        "before=y": 1.0,
        "after=z": 2.0,
        "after=": 1.0,
        "letters=<b": 1.0,
        "letters=<b>": 1.0,
        "start:w=b": 1.0,
        "start:w-1=x": 1.0,
    }
    added = {"start": 1.0, "inner": 1.0, "inner:w=b": 1.0, "inner:w-1=x": 1.0}
    assert bibliography.token_attributes(words, 4, semi=True) == token | added


def test_bibliography_windows_have_four_words_and_at_most_one_place_beyond_the_ends():
    words = [f"w{i}" for i in range(12)]

    def window(i, name):
        token = bibliography.token_attributes(words, i, semi=False)
        return {attribute.partition("=")[2] for attribute in token if attribute.startswith(f"{name}=")}

    assert window(6, "before") == {"w2", "w3", "w4", "w5"}
    assert window(3, "before") == {"", "w0", "w1", "w2"}
    assert window(2, "before") == {"", "w0", "w1"}
    assert window(6, "after") == {"w7", "w8", "w9", "w10"}
    assert window(8, "after") == {"w9", "w10", "w11", ""}
    assert window(11, "after") == {""}


# ---- punctuation -----------------------------------------------------------------------------------


def test_labels_of_the_papers_example():
    # "no, she is working."
    assert punctuation.mark_starts([",", "O", "O", "."]) == [",-,", "O-.", "O", "."]


def test_words_after_the_last_mark_stay_as_they_are():
    assert punctuation.mark_starts(["O", "?", "O", "O"]) == ["O-?", "?", "O", "O"]
    assert punctuation.mark_starts(["O"]) == ["O"]
    assert punctuation.mark_starts([".", "."]) == [".-.", ".-."]


def test_marks_are_the_left_parts():
    labels = [",-,", "O-.", "O", ".", "?-?"]
    assert punctuation.marked(labels) == [(0, 1, ","), (3, 4, "."), (4, 5, "?")]


def test_punctuation_attributes_of_a_short_text():
    token = punctuation.token_attributes(["no", "she"], 1, "C1")
    assert token == {
        "w[-2]=": 1.0,
        "w[-1]=no": 1.0,
        "w[0]=she": 1.0,
        "w[1]=": 1.0,
        "w[-1]|w[0]=no|she": 1.0,
        "w[-1]|w[1]=no|": 1.0,
        "w[0]|w[1]=she|": 1.0,
        "start:w=she": 1.0,
        "start:w-1=no": 1.0,
        "start:w-1|w=no|she": 1.0,
    }
    semi = {"start": 1.0, "inner": 1.0, "inner:w=she": 1.0, "inner:w-1=no": 1.0, "inner:w-1|w=no|she": 1.0}
    assert punctuation.token_attributes(["no", "she"], 1, "SC1") == token | semi | {"segment=she": 1.0}
    assert punctuation.token_attributes(["no", "she"], 1, "C2") == token | {"segment=she": 1.0}


def test_punctuation_window():
    token = punctuation.token_attributes([f"w{i}" for i in range(20)], 9, "C1")
    alone = [name for name in token if name.startswith("w[") and "|" not in name]
    pairs = [name for name in token if name.startswith("w[") and "|" in name]
    assert alone == [f"w[{offset}]=w{9 + offset}" for offset in range(-4, 5)]
    assert len(pairs) == 9 * 8 // 2 and "w[-4]|w[4]=w5|w13" in pairs


@pytest.mark.parametrize(("row", "orders"), [("C1", ()), ("C3", (2, 3)), ("SC1", (1,)), ("SC3", (1, 2, 3))])
def test_orders_of_the_words_of_the_last_segment(row, orders):
    assert punctuation.word_orders(row) == orders
    assert punctuation.parameters(row)["attribute_orders"].get("segment=", ()) == orders
    assert ("attribute_parts" in punctuation.parameters(row)) == is_semi(row)


# ---- letters, synthetic ----------------------------------------------------------------------------


def test_letters_are_cut_into_words_and_folds():
    def line(i, letter, following, fold, pixels):
        image = "\t".join("1" if p in pixels else "0" for p in range(128))
        return f"{i}\t{letter}\t{following}\t1\t1\t{fold}\t{image}\t\n"

    lines = [line(1, "a", 2, 0, (0, 127)), line(2, "b", -1, 0, ()), line(3, "c", -1, 7, (5,))]
    assert letters.read(lines) == {0: ([[["p0", "p127"], []]], [["a", "b"]]), 7: ([[["p5"]]], [["c"]])}


@pytest.mark.parametrize("k", synthetic.KS)
def test_markov_data_follow_the_section(k):
    rng = np.random.default_rng(0)
    model = synthetic.Markov(k, rng)
    y = model.labels(20, rng)
    assert {len(row) for row in y} == {synthetic.LENGTH}
    for row in y:
        for i in range(k, len(row)):
            assert row[i] in model.next[tuple(row[i - k : i])][0]
    assert all(len(set(states)) == 2 and abs(sum(p) - 1) < 1e-12 for states, p in model.next.values())
    assert ((model.means >= 0) & (model.means <= 1)).all()
    X = model.observe(y, 0.0, rng)
    assert X[0][1] == {
        f"{name}{j}": model.means[y[0][t], j]
        for name, t in (("previous", 0), ("current", 1), ("next", 2))
        for j in range(3)
    }
    assert not any(name.startswith("previous") for name in X[0][0])
    assert not any(name.startswith("next") for name in X[0][-1])
    assert synthetic.patterns([[1, 2, 3], [2, 3]], 2) == {(1, 2), (2, 3)}


# ---- chunking --------------------------------------------------------------------------------------


def test_chunking_attributes():
    first, last = chunking.attributes(["Confidence", "in"], ["NN", "IN"])
    assert first == {
        "w[0]": "Confidence",
        "w[1]": "in",
        "w[0]|w[1]": "Confidence|in",
        "pos[0]": "NN",
        "pos[1]": "IN",
        "pos[0]|pos[1]": "NN|IN",
        "__BOS__": True,
    }
    assert last == {
        "w[-1]": "Confidence",
        "w[0]": "in",
        "w[-1]|w[0]": "Confidence|in",
        "pos[-1]": "NN",
        "pos[0]": "IN",
        "pos[-1]|pos[0]": "NN|IN",
        "__EOS__": True,
    }


def test_chunking_templates():
    middle = chunking.attributes(list("abcde"), list("ABCDE"))[2]
    assert len(middle) == len(chunking.TEMPLATES) == 5 + 2 + 5 + 4 + 3
    assert middle["pos[-2]|pos[-1]|pos[0]"] == "A|B|C" and middle["pos[0]|pos[1]|pos[2]"] == "C|D|E"
    assert "w[-2]|w[-1]" not in middle and middle["pos[-2]|pos[-1]"] == "A|B"
    alone = chunking.attributes(["x"], ["X"])
    assert alone == [{"w[0]": "x", "pos[0]": "X", "__BOS__": True, "__EOS__": True}]


# ---- partial labels --------------------------------------------------------------------------------


def test_hidden_labels_are_as_many_as_asked_for_and_repeatable():
    y = [["a"] * 7, ["b"] * 3, []]
    hidden = partial.hide(y, 0.5, seed=1)
    assert sum(label is None for labels in hidden for label in labels) == 5
    assert [len(labels) for labels in hidden] == [7, 3, 0]
    assert all(label in (None, true[0]) for labels, true in zip(hidden, y, strict=True) for label in labels)
    assert hidden == partial.hide(y, 0.5, seed=1) != partial.hide(y, 0.5, seed=2)
    assert y == [["a"] * 7, ["b"] * 3, []]


def test_kept_sequences():
    kept = partial.keep(300, 0.9, seed=0)
    assert len(kept) == 30 and kept == sorted(set(kept)) and kept == partial.keep(300, 0.9, seed=0)


# ---- trajectories (paper 004) ----------------------------------------------------------------------


def test_robot_walks_over_neighbouring_free_squares():
    import numpy as np

    from experiments import robot
    from scansion.metrics import compress

    free = robot.squares()
    path = robot.walk(np.random.default_rng(0), 50)
    assert all(square in free for square in path)
    assert all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in zip(path, path[1:], strict=False))
    seen, at = robot.sequence(np.random.default_rng(1), 1.0)
    assert 100 <= len(seen) == len(at) <= 300 and 5 <= len(compress(at)) <= 15
    assert all(seen[t] == [free[tuple(map(int, at[t].split(":")))]] for t in range(len(at)))


def test_strokes_of_a_digit():
    import numpy as np

    from experiments import strokes

    text = """.SEGMENT DIGIT ? "7"
.PEN_DOWN
 0 0
 1 0
 -2 3
.PEN_UP
.SEGMENT DIGIT ? "1"
.PEN_DOWN
 5 5
 5 4
.PEN_UP
"""
    digits = list(strokes.read_digits(text.splitlines()))
    assert [digit for digit, _ in digits] == ["7", "1"]
    assert digits[0][1][0].tolist() == [[0, 0], [1, 0], [-2, 3]]
    steps = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1], [0.1, -1.0]])
    assert [strokes.DIRECTIONS[a] for a in strokes.quantise(steps, 4)] == ["right", "up", "left", "down"]
    corner = np.array([[x, 0.0] for x in range(12)] + [[11.0, -y] for y in range(1, 12)])
    assert set(strokes.states(corner)[:8]) == {"right"} and set(strokes.states(corner)[-8:]) == {"down"}
    assert len(strokes.states(corner)) == len(strokes.observations(corner)) == 22


def test_words_are_glued_without_empty_columns():
    import numpy as np

    from experiments import words

    image = np.zeros((16, 8))
    image[3, 2:5] = 1.0
    assert words.trimmed(image).shape == (16, 3)
    glued, labels = words.write("ab", {"a": [words.trimmed(image)], "b": [image[:, 2:3]]}, np.random.default_rng(0))
    assert glued.shape == (16, 4) and labels == ["a", "a", "a", "b"]
    assert words.patches(glued).shape == (4, 16 * 7)
    assert words.attributes(np.array([4, 2])) == [["+0=4", "+1=2"], ["-1=4", "+0=2"]]
    assert len(words.NAMES) == 20 and all(a != b for name in words.NAMES for a, b in zip(name, name[1:], strict=False))


# ---- rows and reports ------------------------------------------------------------------------------


def test_rows():
    assert [order_of(row) for row in ("C1", "SC2", "SC3, sigma = 10")] == [1, 2, 3]
    assert [is_semi(row) for row in ("C1", "SC2", "SC3, sigma = 10")] == [False, True, True]


def test_answers_of_either_kind_become_labels():
    segments = [Segment(0, 2, "a"), Segment(2, 3, "b")]
    assert label_lists([segments, ["a", "b"], []]) == [["a", "a", "b"], ["a", "b"], []]


def test_significance_table():
    truth = [["a", "b"]] * 20
    answers = {"C1": [["a", "a"]] * 20, "C2": truth, "C3": truth}
    table, numbers = significance(truth, answers, {("C1", "C2"): "0.1<"}, 99, scheme="plain")
    assert table.rows[0][1].startswith("0.0100<") and table.rows[0][1].endswith(" (0.1<)")
    assert table.rows[1] == ["C2", None, "1.0000="]
    assert numbers["C2 C3"] == {"p": 1.0, "difference": 0.0}


def test_a_report_is_written_as_markdown_and_json(tmp_path):
    import json

    report = Report("name", "Title", [Table("Scores:", ["", "C1"], [["all", "85.34"], ["none", None]])], {"f1": 85.34})
    markdown, data = report.write(tmp_path / "new", "python -m experiments name")
    text = markdown.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\n`python -m experiments name`; ")
    assert "Scores:\n\n|  | C1 |\n| --- | --- |\n| all | 85.34 |\n| none |  |\n" in text
    assert json.loads(data.read_text(encoding="utf-8"))["results"] == {"f1": 85.34}
