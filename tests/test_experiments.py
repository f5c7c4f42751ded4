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

SIMULATED = ("learning", "robot", "synthetic", "kitchen")

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
    assert words.patches(glued).shape == (4, 16 * 7)
    assert words.attributes(np.array([4, 2])) == [["+0=4", "+1=2"], ["-1=4", "+0=2"]]
    assert len(words.NAMES) == 20 and all(a != b for name in words.NAMES for a, b in zip(name, name[1:], strict=False))


# ---- levels (papers 000 and 003) --------------------------------------------------------------------


def test_runs_of_a_level_end_where_those_above_do():
    from experiments.levels import nested_runs, spread

    above, below = nested_runs([list("AABBB"), list("xyyyx")])
    assert above == [(0, 2, "A"), (2, 5, "B")]
    assert below == [(0, 1, "x"), (1, 2, "y"), (2, 4, "y"), (4, 5, "x")]
    assert spread(below) == list("xyyyx")


def test_segments_are_scored_by_overlap():
    from experiments.levels import overlap_f1

    truth, guess = [list("aaaabbbb")], [list("aaabbbbb")]
    assert overlap_f1(truth, guess, 0.75) == 1.0  # 3 of 4 and 4 of 5
    assert overlap_f1(truth, guess, 0.8) == 0.5
    split = [list("aacabbbb")]  # the true segment is claimed once: 2 of 4 predicted runs are right, 2 true
    assert overlap_f1(truth, split, 0.1) == pytest.approx(2 * 2 / (2 + 4))


def test_a_chain_over_products_answers_for_both_levels_and_takes_what_is_known():
    from experiments.levels import ProductChain

    X = [[["a"], ["b"], ["c"]], [["c"], ["b"], ["a"]]] * 3
    y = [(["P", "P", "Q"], [1, 2, 1]), (["Q", "P", "P"], [1, 2, 1])] * 3
    model = ProductChain(c2=0.01, max_iterations=30).fit(X, y)
    assert model.products == [("P", 1), ("P", 2), ("Q", 1)]
    assert model.predict(X[:1]) == [[["P", "P", "Q"], [1, 2, 1]]]
    assert model.predict(X[:1], [[[None, "Q", None], [None, None, None]]])[0][0][1] == "Q"
    partly = ProductChain(c2=0.01).fit(X, [([None, "P", "Q"], [1, 2, 1]), *y[1:]])
    assert partly.predict(X[:1]) == [[["P", "P", "Q"], [1, 2, 1]]]


def test_noun_phrases_and_groups_of_tags():
    from experiments import noun_phrases

    tags = ["NNP", "VBD", "MD", "JJR", "RB", "PRP", ",", "WRB"]
    groups = ["noun", "verb", "verb", "adjective", "adverb", "other", "other", "other"]
    assert [noun_phrases.group(tag) for tag in tags] == groups
    assert noun_phrases.shapes("McDonald") == ["capital", "mixed"] and noun_phrases.shapes("the") == []
    assert noun_phrases.shapes("A") == ["capital", "one-capital"] and noun_phrases.shapes("1990s") == ["digit"]
    sentence = noun_phrases.Sentence(
        ["He", "said", "so", "Monday", "today"],
        ["PRP", "VBD", "RB", "NNP", "NN"],
        ["B-NP", "B-VP", "B-ADVP", "B-NP", "B-NP"],
    )
    assert sentence.chunks == ["B-NP", "O", "O", "B-NP", "B-NP"]
    assert sentence.phrases() == [(0, 1, "NP"), (1, 3, "O"), (3, 4, "NP"), (4, 5, "NP")]
    assert noun_phrases.iob2(sentence.phrases()) == sentence.chunks


def test_attributes_of_noun_phrases_name_frequent_words_only():
    from experiments import noun_phrases

    often = noun_phrases.Sentence(["the", "end"], ["DT", "NN"], ["B-NP", "I-NP"])
    once = noun_phrases.Sentence(["the", "Cat", "end"], ["DT", "NN", "VB"], ["B-NP", "I-NP", "O"])
    attributes = noun_phrases.Attributes([often] * 4 + [once])
    assert attributes.words == {"the", "end"} and attributes.pairs == {("the", "end")}
    first, _ = attributes(often, tagged=False)
    assert first == [
        "bias",
        "w[-2]:begin",
        "w[-1]:begin",
        "w[0]=the",
        "w[0]|w[1]=the|end",
        "w[1]=end",
        "w[2]:end",
    ]
    middle = attributes(once, tagged=True)[1]
    assert not any("Cat" in name for name in middle) and "shape[0]=capitalised" in middle
    assert [name for name in middle if name.startswith("pos")] == [
        "pos[-1]=other",
        "pos[-1]|pos[0]=other|noun",
        "pos[0]=noun",
        "pos[0]|pos[1]=noun|verb",
        "pos[1]=verb",
    ]


def test_a_person_in_the_kitchen_walks_as_the_activities_say():
    import numpy as np

    from experiments import kitchen
    from scansion.metrics import compress

    numbers = {n for chain in kitchen.ACTIVITIES.values() for n in chain if n}
    assert numbers == set(kitchen.ROUTES) == set(range(1, 13))
    for activity, chain in kitchen.ACTIVITIES.items():
        assert all(sum(following.values()) == pytest.approx(1.0) for following in chain.values())
        for u, v in kitchen.true_transitions()[activity]:
            assert kitchen.ROUTES[u][1] == kitchen.ROUTES[v][0]  # no jumps
        points, labels = kitchen.walk(np.random.default_rng(3), activity)
        assert points.shape == (len(labels), 2)
        order = compress(labels)
        assert all(v in chain[u] for u, v in zip([0, *order], [*order, 0], strict=True))
        assert points[-1] == pytest.approx(kitchen.PLACES["door"])
        cells = kitchen.track(np.random.default_rng(0), points, 2.0)
        assert cells.min() >= 0 and (cells.max(axis=0) < (kitchen.WIDTH, kitchen.HEIGHT)).all()
    still = kitchen.attributes(np.array([[0, 1], [1, 1], [2, 1]]))
    assert still[1] == ["bias", "cell=1,1", "dx=1", "dy=0", "dx,dy=1,0"]


def test_halves_of_the_kitchen():
    import numpy as np

    from experiments import kitchen

    data = kitchen.simulate(0, 2)
    assert len(data.X) == len(data.X_test) == 6
    assert all(len(x) == len(a) == len(b) for x, (a, b) in zip(data.X, data.y, strict=True))
    assert {y[0][0] for y in data.truth} == set(kitchen.ACTIVITIES)
    assert kitchen.simulate(0, 2) == data != kitchen.simulate(1, 2)
    rng = np.random.default_rng(0)
    assert kitchen.boundaries("aab", 0.0, rng) == [0, 1, 1] and kitchen.boundaries("aab", 1.0, rng) == [None] * 3
    hidden = kitchen.hide([["a"] * 400, [1] * 400], 0.5, rng)
    assert [len(column) for column in hidden] == [400, 400] and 150 < hidden[0].count(None) < 250


def test_models_of_the_kitchen_learn_from_all_labels_and_from_some():
    import numpy as np

    from experiments import kitchen

    data = kitchen.simulate(0, 1)
    rng = np.random.default_rng(0)
    hidden = [kitchen.hide(columns, 0.3, rng) for columns in data.y]
    ends = [tuple(kitchen.boundaries(column, 0.5, rng) for column in columns) for columns in data.y]
    for name, model in kitchen.models(data, max_iterations=2).items():
        for y, known in ((data.y, None), (hidden, ends)):
            answers = model.fit(data.X, y, known).predict(data.X_test)
            above, below = kitchen.accuracies(data.truth, answers)
            assert (above is None) == (name == "flat CRF") and 0 < below <= 100
        told = model.predict(data.X_test, data.truth)
        assert kitchen.accuracies(data.truth, told)[1] == 100


def test_signs_of_transitions():
    from experiments import kitchen

    weights = {
        ("activity", None, "snack", "short meal"): 1.0,
        ("trajectory", "snack", 5, 6): 0.5,
        ("trajectory", "snack", 5, 5): 2.0,
        ("trajectory", "snack", 5, 7): -0.5,
    }
    assert kitchen.positive_transitions(weights) == {"short meal": set(), "snack": {(5, 6)}, "normal meal": set()}


def test_phases_of_a_salad_end_where_actions_do():
    from experiments import salads

    lines = ["7000000 9000000 cut_prep", "5000000 9000000 one", "9400000 12000000 two", "9000000 12000000 mix_core"]
    intervals = salads.phase_intervals([*lines, "12000000 13000000 two", "\r\n"], ["one", "two"])
    assert [label for _, _, label in intervals] == ["one", "two", "two"]
    assert intervals[0][:2] == pytest.approx((-2.0, 2.0)) and intervals[1][:2] == pytest.approx((2.4, 5.0))
    assert salads.phase_labels(intervals, ["a", "b", "b", "c", "d"]) == ["one"] * 3 + ["two"] * 2  # 1 and 3: near 2.2
    assert salads.phase_labels(intervals, ["a", "b", "c", "c", "d"]) == ["one"] * 2 + ["two"] * 3


def test_time_steps_of_a_salad():
    import numpy as np

    from experiments import salads

    scores = np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0], [5.0, 5.0]])
    found = salads.inputs(scores, step=2)
    assert found.shape == (2, 5) and found == pytest.approx(np.array([[0.5] * 4 + [1.0]] * 2))
    video = salads.Video("v", scores, list("ppqq"), list("xxyz"))
    assert salads.outputs(video, step=3) == (["p", "q"], ["x", "z"])
    assert salads.frames(["x", "z"], 4, step=3) == ["x", "x", "x", "z"]
    assert salads.most_likely([{"a": 0.2, "b": 0.8}, {"a": 0.6, "b": 0.4}]) == ["b", "a"]
    perfect = salads.measures([video], [[list("pq"), None]])
    assert set(perfect) == {"phase"} and set(perfect["phase"]) == {"accuracy", "F1@10", "F1@25", "F1@50"}


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
