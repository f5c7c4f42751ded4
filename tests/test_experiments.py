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

SIMULATED = ("learning", "robot", "strokes", "synthetic", "kitchen")

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
    assert len(words.NAMES) == 20 and all(a != b for name in words.NAMES for a, b in zip(name, name[1:], strict=False))


def test_shape_contexts_count_the_other_pixels_by_ring_and_direction():
    import numpy as np

    from experiments import words

    image = np.zeros((16, 4))
    image[8, 0:4] = 1.0  # a line: every other pixel lies to the right or to the left
    contexts, columns = words.shape_contexts(image)
    assert contexts.shape[1] == 60 and np.allclose(contexts.sum(axis=1), 1.0)
    assert np.bincount(columns).tolist() == [4, 4, 4, 4]
    by_direction = contexts.reshape(-1, 5, 12).sum(axis=1)
    assert np.flatnonzero(by_direction.sum(axis=0)).tolist() == [0, 6]
    assert by_direction[0, 0] == 1.0 and by_direction[3, 6] == 1.0
    table = words.bins()
    assert table[15, 6] == -1 and table[15, 7] == 0 and 48 <= table[0, 0] == table.max() - 2 < 60
    centres = np.stack([contexts[0], contexts[3]])
    seen = words.observations(image, centres)
    assert len(seen) == 4 and all(abs(sum(token.values()) - 1.0) < 1e-12 for token in seen)
    assert words.observations(np.zeros((16, 2)), centres) == [{}, {}]


def test_simulated_digits_go_through_their_legs():
    import numpy as np

    from experiments import strokes
    from scansion.metrics import compress

    rng = np.random.default_rng(0)
    for digit, legs in strokes.LEGS.items():
        for ambiguity in (0, 4):
            points, labels, through = strokes.draw(digit, ambiguity, rng)
            assert len(points) == len(labels) + 1 == len(strokes.observations(points)) + 1
            assert len(through) == len(legs)  # no leg has the direction of the one before it
            assert set(labels) <= set(through)
        if ambiguity == 0:
            assert compress(labels) == through
    data = strokes.simulated(2, 3, 0)
    assert len(data.train_x) == len(data.truth) == 30 and data.truth[3] == ["down"]


def test_trajectory_experiments_in_short(tmp_path, monkeypatch):
    """All methods answer, tables have a mean and a spread, pictures are drawn."""
    from experiments import robot, strokes, trajectories
    from experiments.report import Options

    monkeypatch.setenv("SCANSION_DATA", str(tmp_path))
    monkeypatch.setattr(strokes, "STEPS", 5)
    report = strokes.run(Options(quick=True))
    assert [table.header[0] for table in report.tables] == ["ambiguity"] * 3 + ["digit"] * 2
    assert report.notes[-1].startswith("Without the pen data: no file pendigits")
    runs = [{name: {"exact": 50.0 + i, "eds": 70.0} for name in trajectories.METHODS} for i in range(3)]
    table = trajectories.tables({1: runs}, "x")
    assert table[0].rows[0][1] == "51.00 ± 1.00" and table[2].rows[0][1] == "0.00 ± 0.00 (0 of 3)"
    data = robot.simulate(0.9, 8, 4, 0)
    answers = trajectories.ask(Options(quick=True), data)
    assert set(answers.found) == set(trajectories.METHODS)
    for method in trajectories.METHODS:
        assert len(answers.found[method]) == 4 and 0.0 <= answers.score(method)["exact"] <= 100.0
    assert answers.score("joint", [0, 1])["eds"] >= 0.0
    report.figures += [robot.Figure("world", "", robot.draw_world)]
    for path in report.write(tmp_path, "command")[2:]:
        assert path.stat().st_size > 5000


# ---- relations -------------------------------------------------------------------------------------
CORPUS = """7\tPeop\t0\tO\tNNP/NNP\tLee/Oswald\tO\tO\tO
7\tO\t1\tO\tVBD\tshot\tO\tO\tO
7\tPeop\t2\tO\tNNP\tKennedy\tO\tO\tO
7\tO\t3\tO\t,\tCOMMA\tO\tO\tO
7\tLoc\t4\tO\tNNP\tDallas\tO\tO\tO

0\t2\tKill
2\t0\tKill
2\t4\tLive_In

8\tO\t0\tO\tDT\tand/or\tO\tO\tO
8\tOrg\t1\tO\tNNP\tIBM\tO\tO\tO


"""


def test_relation_sentences_and_labels():
    from experiments import relations

    first, second = relations.read_sentences(CORPUS.splitlines(keepends=True))
    assert first.words == ["Lee", "Oswald", "shot", "Kennedy", ",", "Dallas"]
    assert first.pos == ["NNP", "NNP", "VBD", "NNP", ",", "NNP"]
    assert first.mentions == ["B-Peop", "I-Peop", "O", "B-Peop", "O", "B-Loc"]
    assert first.arguments("Kill") == ["Arg1Arg2", "Arg1Arg2", "O", "Arg1Arg2", "O", "O"]
    assert first.arguments("Live_In") == ["O", "O", "O", "Arg1", "O", "Arg2"]
    assert second.words == ["and/or", "IBM"] and second.arguments("Kill") == ["O", "O"]
    tags = relations.with_bio(["Arg1", "Arg1", "O", "Arg2"])
    assert tags == ["Arg1-B", "Arg1-I", "O", "Arg2-B"]
    assert (
        relations.arguments(tags)
        == relations.arguments(["Arg1", "Arg1", "O", "Arg2"])
        == [(0, 2, "Arg1"), (3, 4, "Arg2")]
    )
    assert [relations.shape(word) for word in ("", "IBM", "Kennedy", "U.S.", "1994")] == ["", "A+", "Aa+", "A.A.", "0+"]


def test_relation_attributes():
    from experiments import relations

    (sentence, _) = relations.read_sentences(CORPUS.splitlines(keepends=True))
    token = relations.token_attributes(sentence, 0, semi=True)
    assert token["w=Lee"] == token["ne+0=B-Peop"] == token["ne|pos=B-Peop|NNP"] == token["pos-1|+0=|NNP"] == 1.0
    assert not any(name.startswith(("start", "inner")) for name in token)
    inner = relations.token_attributes(sentence, 3, semi=True)
    plain = relations.token_attributes(sentence, 3, semi=False)
    assert plain["start:shapes=a+|Aa+"] == 1.0 and "inner" not in plain
    assert set(inner) - set(plain) == {"start", "inner", "inner:w=Kennedy", "inner:w-1=shot", "inner:shapes=a+|Aa+"}


def test_relations_in_short(tmp_path, monkeypatch):
    """As many sentences with the type as without, all nine models, p' of all pairs."""
    from experiments import relations
    from experiments.report import Options

    text = ""
    for i in range(40):
        words = [("Peop", "Ann"), ("O", "met"), ("Peop", "Bob"), ("O", "here")]
        words = words[:3] if i % 3 else words
        text += "".join(f"{i}\t{kind}\t{k}\tO\tNN\t{word}{i % 2}\tO\tO\tO\n" for k, (kind, word) in enumerate(words))
        text += "\n" + ("0\t2\tKill\n" if i % 2 else "") + "\n"
    (tmp_path / "conll2004").mkdir()
    (tmp_path / "conll2004" / "corp.tsv").write_text(text)
    monkeypatch.setenv("SCANSION_DATA", str(tmp_path))
    report = relations.run(Options(quick=True))
    assert report.results["sentences"] == {"Kill": 40}
    assert set(report.results["f1"]["average"]) == {*relations.ROWS, *relations.BIO}
    assert all(one == [100.0] for one in report.results["f1"]["Kill"].values())  # the words tell
    assert report.tables[3].rows[0][2].endswith(" (0.001<)")
    assert report.write(tmp_path, "command")[2].stat().st_size > 5000


# ---- the authors' optimiser ------------------------------------------------------------------------


def test_the_authors_optimiser_stops_by_their_rule():
    import numpy as np

    from experiments.authors import minimise

    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12))
    target = rng.normal(size=30)

    def ridge(w):
        rest = A @ w - target
        return float(rest @ rest + 0.1 * w @ w) + 1.0, 2.0 * A.T @ rest + 0.2 * w

    losses = []
    found = minimise(ridge, np.zeros(12), lambda w, loss: losses.append(loss))
    best = np.linalg.solve(A.T @ A + 0.1 * np.eye(12), A.T @ target)
    assert found.iterations == len(losses) <= found.evaluations
    assert found.loss == losses[-1] and ridge(best)[0] <= found.loss < 1.02 * ridge(best)[0]
    first = [ridge(np.zeros(12))[0], *losses]
    fallen = [(first[max(0, k - 9)] - first[k]) / min(11, k + 1) / first[k] for k in range(5, len(first))]
    assert fallen[-1] < 1e-3 and all(one >= 1e-3 for one in fallen[:-1])
    assert minimise(ridge, np.zeros(12), limit=3).iterations == 3


def test_a_task_in_short(tmp_path):
    """Both ways of training, both tests, folds and the picture by order, on a toy task."""
    from experiments.report import Options
    from experiments.rows import ROWS, Task, study

    sequences = [(["a", "b", "a", "c"][: 2 + i % 3], ["X", "Y", "X", "Z"][: 2 + i % 3]) for i in range(20)]
    task = Task(
        "toy",
        "Toy",
        data=lambda: (sequences[:12], sequences[12:]),
        features=lambda words, row: [{f"w={word}": 1.0} for word in words],
        labels=list,
        scored=list,
        parameters=lambda row: {},
        published={"X": (100.0,) * 6, "all": (100.0,) * 6},
        published_p={("C1", "C2"): "0.5="},
    )
    report = study(task, Options(quick=True))
    assert [table.caption.split(":")[0] for table in report.tables[:2]] == [
        "Models at the optimum",
        "Models trained the authors' way",
    ]
    assert report.tables[0].caption.endswith("12 of the 12 figures are equal to the last digit.")
    assert set(report.results["authors"]) == set(ROWS) == set(report.results["folds"])
    assert report.tables[2].rows[0][1].endswith(" (0.5=)")
    assert report.write(tmp_path, "command")[2].stat().st_size > 5000
    one = study(task, Options(quick=True, training=("authors",)))
    assert set(one.results) == {"authors", "significance, the paper's way", "significance by sequences, authors"}


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


def test_a_report_draws_its_figures(tmp_path):
    pytest.importorskip("matplotlib")
    from experiments.figures import curves, matrices
    from experiments.report import Figure

    points = {"one": {10: [1.0, 2.0], 20: [3.0, 3.5]}, "two": {10: [2.0], 20: [2.5]}}
    square = [[0.5, -1.0], [float("nan"), 2.0]]
    figures = [
        Figure("curves", "Curves", lambda: curves({"": points}, "x", "y", logarithmic=True)),
        Figure("weights", "Weights", lambda: matrices({"m": square}, {"m": "ab"}, {"m": "cd"}, label="w")),
    ]
    paths = Report("name", "Title", figures=figures).write(tmp_path, "command")
    assert [path.name for path in paths[2:]] == ["name-curves.png", "name-weights.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths[2:])
    assert "![Curves](name-curves.png)\n\n![Weights](name-weights.png)\n" in paths[0].read_text(encoding="utf-8")
