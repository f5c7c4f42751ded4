"""The command's verbs: train, tag, evaluate, inspect and convert, every format and option."""

import gzip
import json
import os
import re
import subprocess
import sys

import pytest
from command_data import agreement, columns, labels, sentences, truth

import scansion

# ---- train and tag --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["crf", "semi"])
def test_tag_columns(ok, model):
    assert labels(ok("tag", model, "words.txt")) == truth()
    out = ok("tag", model, "test.txt")  # the column of labels that is there stays
    assert [line.split()[:3] for line in out.splitlines() if line] == [list(r) for s in sentences(10, 1) for r in s]


def test_the_model_needs_its_file_alone(here, ok, tmp_path):
    """The template is in the model, and says the same as dicts do."""
    crf = scansion.load(here / "crf")
    X = [
        [
            [
                f"U00:{w[t]}",
                f"U01:{p[t - 1] if t else '_B-1'}",
                f"U02:{p[t]}",
                f"U03:{p[t + 1] if t + 1 < len(p) else '_B+1'}",
            ]
            for t in range(len(w))
        ]
        for w, p in (zip(*((r[0], r[1]) for r in rows), strict=True) for rows in sentences(10, 1))
    ]
    assert labels(ok("tag", "crf", "words.txt")) == crf.predict(X)
    again = scansion.CRF(max_iterations=20).fit(
        *zip(
            *(
                (
                    [
                        [
                            f"U00:{r[0]}",
                            f"U01:{rows[t - 1][1] if t else '_B-1'}",
                            f"U02:{r[1]}",
                            f"U03:{rows[t + 1][1] if t + 1 < len(rows) else '_B+1'}",
                        ]
                        for t, r in enumerate(rows)
                    ],
                    [r[2] for r in rows],
                )
                for rows in sentences(30)
            ),
            strict=True,
        )
    )
    assert again.loss_ == pytest.approx(crf.loss_, rel=1e-9)
    assert crf.reading_.template == (here / "template").read_text()


def test_output_keeps_the_lines(ok):
    text = b"# one\r\nthe\tD\r\n\r\n\r\nman\tN"
    out = ok("tag", "crf", "--comment", "#", stdin=text)
    assert out == "# one\r\nthe\tD\tB-NP\r\n\r\n\r\nman\tN\tB-NP\n"
    assert ok("tag", "crf", stdin=b"") == ""
    assert ok("tag", "crf", stdin=b"\n\n") == "\n\n"
    assert ok("tag", "crf", "--separator", "comma", stdin=b"the,D\n") == "the,D,B-NP\n"


def test_blocks_do_not_matter(ok, monkeypatch):
    from scansion.formats import blocks

    whole = ok("tag", "crf", "test.txt", "--marginals")
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 40)
    assert ok("tag", "crf", "test.txt", "--marginals") == whole
    assert ok("tag", "crf", "test.txt", "--marginals", "-j", "2") == whole


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps freed memory")
def test_memory_does_not_grow_with_the_file(here, tmp_path):
    code = (
        "import re, sys; from scansion.cli import main; from scansion.formats import blocks\n"
        "blocks.BLOCK_BYTES = 50_000\n"
        "assert main(['tag', 'crf', sys.argv[1], '-o', sys.argv[2]]) == 0\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    peaks = []
    for megabytes in (1, 4):
        text = (here / "words.txt").read_bytes()
        path = tmp_path / "large.txt"
        path.write_bytes(text * (megabytes * 1_000_000 // len(text)))
        command = [sys.executable, "-c", code, str(path), str(tmp_path / "out")]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))  # kB
    assert peaks[1] - peaks[0] < 1500


@pytest.mark.parametrize("model", ["crf", "semi"])
def test_probabilities(ok, here, model):
    out = ok("tag", model, "words.txt", "--marginals", "--all-marginals")
    known = scansion.load(here / model).classes_
    for line in out.splitlines():
        if line:
            label, best, *every = line.split()[2:]
            table = dict(cell.rsplit(":", 1) for cell in every)
            assert list(table) == known
            assert sum(map(float, table.values())) == pytest.approx(1.0, abs=1e-4)
            assert best == table[label if model == "crf" else label.split("-")[-1]]


@pytest.mark.parametrize("model", ["crf", "semi"])
def test_kbest(ok, model):
    out = ok("tag", model, "words.txt", "--kbest", "3")
    parts = out.strip().split("\n\n")
    assert len(parts) == 30
    first = [part.splitlines() for part in parts[:3]]
    assert [lines[0].split()[:2] for lines in first] == [["#", "0"], ["#", "1"], ["#", "2"]]
    probabilities = [float(lines[0].split()[2]) for lines in first]
    assert probabilities == sorted(probabilities, reverse=True) and 0 < sum(probabilities) <= 1.00001
    assert labels("\n\n".join("\n".join(part.splitlines()[1:]) for part in parts[::3])) == truth()


def test_constraints(ok):
    free = ok("tag", "crf", stdin=b"the D\nman N\n. .\n")
    assert labels(free) == [["B-NP", "I-NP", "O"]]
    held = ok("tag", "crf", "--constraints", stdin=b"the D ?\nman N B-VP\n. . B-NP|I-NP\n")
    assert [line.split()[3] for line in held.splitlines()][1] == "B-VP"
    assert [line.split()[3] for line in held.splitlines()][2] in ("B-NP", "I-NP")
    semi = ok("tag", "semi", "--constraints", stdin=b"the D ?\nman N B-NP\n. . ?\n")
    assert [line.split()[3] for line in semi.splitlines()][:2] == ["B-NP", "B-NP"]


def test_constraints_that_are_no_labels(call):
    for model in ("crf", "semi"):
        code, _, err = call("tag", model, "--constraints", stdin=b"the D B-XX\n")
        assert code == 1 and "B-XX" in err and err.count("\n") == 1


def test_compressed(ok):
    text = b"the D\nman N\nsees V\nthe D\ndog N\n. .\n"
    assert ok("tag", "semi", "--compressed", stdin=text) == "NP VP NP O\n"


def test_json_lines(ok, here):
    ok("convert", "train.txt", "train.jsonl", "--spans")
    ok("train", "train.jsonl", "-o", "json-model", "-q", "--max-iterations", "20", "-t", "template")
    ok("convert", "words.txt", "words.jsonl", "--no-labels")
    found = [json.loads(line) for line in ok("tag", "json-model", "words.jsonl").splitlines()]
    expected = [
        json.loads(line)["spans"] for line in ok("convert", "test.txt", "--to", "jsonl", "--spans").splitlines()
    ]
    assert [entry["spans"] for entry in found] == expected
    # a model that was trained on columns reads them, too, and gives labels
    entries = [json.loads(line) for line in ok("tag", "crf", "words.jsonl", "--kbest", "2").splitlines()]
    assert [entry["labels"] for entry in entries] == truth()
    assert [len(entry["alternatives"]) for entry in entries] == [2] * 10
    entries = [
        json.loads(line) for line in ok("tag", "semi", "words.jsonl", "--marginals", "--all-marginals").splitlines()
    ]
    assert [entry["spans"] for entry in entries] == expected
    assert all(0 < p <= 1.0000001 for entry in entries for p in entry["probabilities"])
    assert set(entries[0]["marginals"][0]) == {"NP", "VP", "O"}
    assert json.loads(ok("tag", "crf", "words.jsonl", "--compressed").splitlines()[0])["trajectory"]
    assert json.loads(ok("evaluate", "json-model", "train.jsonl", "--json"))["micro"]["f1"] > 0.95


def test_json_partial_labels(ok, here):
    lines = []
    for k, rows in enumerate(sentences(20)):
        known = [None if (t + k) % 3 == 0 else row[2] for t, row in enumerate(rows)]
        lines.append(json.dumps({"tokens": [row[:2] for row in rows], "labels": known}))
    (here / "partial.jsonl").write_text("\n".join(lines))
    ok("train", "partial.jsonl", "-o", "partial", "-q", "--max-iterations", "20", "-t", "template")
    assert agreement(ok("tag", "partial", "words.txt")) > 0.9


def test_partial_columns(ok, here):
    text = columns(
        [
            [(*row[:2], "?" if (t + k) % 3 == 0 else row[2]) for t, row in enumerate(rows)]
            for k, rows in enumerate(sentences(20))
        ]
    )
    (here / "partial.txt").write_text(text.replace("I-NP", "I-NP|B-NP", 3))
    ok("train", "partial.txt", "-o", "partial", "-q", "--max-iterations", "20", "-t", "template", "--partial")
    assert agreement(ok("tag", "partial", "words.txt")) > 0.9


def test_crfsuite_items(ok, here):
    ok("convert", "train.txt", "train.crfsuite", "-t", "template")
    ok("convert", "test.txt", "test.crfsuite.plain", "-t", "template", "--to", "crfsuite")
    ok("train", "train.crfsuite", "-o", "items-model", "-q", "--max-iterations", "20")
    out = ok("tag", "items-model", "test.crfsuite.plain")
    assert labels(out) == truth()
    assert scansion.load(here / "items-model").loss_ == pytest.approx(scansion.load(here / "crf").loss_, rel=1e-9)
    assert "accuracy: 100.00%" in ok("evaluate", "items-model", "test.crfsuite.plain")
    assert ok("tag", "items-model", "test.crfsuite.plain", "--kbest", "1").startswith("# 0 0.")


def test_bigram_templates(ok, here):
    (here / "pairs").write_text("U:%x[0,0]\nB:%x[0,1]\n")
    ok("train", "train.txt", "-o", "pairs-model", "-q", "--max-iterations", "20", "-t", "pairs")
    model = scansion.load(here / "pairs-model")
    assert ("B:N", ("B-NP", "I-NP")) in model.attribute_pattern_features_
    assert agreement(ok("tag", "pairs-model", "words.txt")) > 0.9
    (here / "none").write_text("U:%x[0,1]\n")
    ok("train", "train.txt", "-o", "none-model", "-q", "-t", "none")
    assert scansion.load(here / "none-model").transition_features_ == {}
    (here / "both").write_text("*\n*:%x[0,1]\n")
    ok("train", "train.txt", "-o", "both-model", "-q", "--max-iterations", "5", "-t", "both")
    model = scansion.load(here / "both-model")
    assert ("*:N", "I-NP") in model.state_features_ and ("*:N", ("B-NP", "I-NP")) in model.attribute_pattern_features_


def test_columns_and_parameters(ok, here):
    text = "".join("".join(f"{row[2]}\t7\t{row[0]} x\t{row[1]}\n" for row in rows) + "\n" for rows in sentences(20))
    (here / "odd.tsv").write_bytes(gzip.compress(text.encode()))
    run = [
        "train",
        "odd.tsv",
        "-o",
        "odd",
        "-q",
        "--separator",
        "tab",
        "--labels",
        "0",
        "--columns",
        "2,3",
        "-t",
        "template",
    ]
    ok(
        *run,
        "--order",
        "2",
        "--c1",
        "0.1",
        "--c2",
        "0.1,0.5",
        "--max-iterations",
        "5",
        "--set",
        "num_memories=4",
        "-j",
        "2",
        "--seed",
        "1",
    )
    model = scansion.load(here / "odd")
    assert (model.order, model.c1, model.c2, model.num_memories, model.n_jobs) == (2, 0.1, [0.1, 0.5], 4, 2)
    assert model.reading_.columns == (2, 3) and any(len(p) == 3 for p in model.patterns_)
    assert "B-NP\t7\tthe x\tD\tB-NP\n" in ok("tag", "odd", "odd.tsv")


def test_semi_markov_options(ok, here):
    ok(
        "train",
        "train.txt",
        "-o",
        "semi2",
        "-q",
        "--model",
        "semicrf",
        "--max-length",
        "by-label",
        "--max-iterations",
        "3",
        "-t",
        "template",
    )
    assert scansion.load(here / "semi2").max_length == "by label"
    plain = columns([[(w, p, y.split("-")[-1]) for w, p, y in rows] for rows in sentences(20)])
    (here / "plain.txt").write_text(plain)
    ok("train", "plain.txt", "-o", "semi2", "-q", "--model", "semicrf", "--max-iterations", "20", "-t", "template")
    assert scansion.load(here / "semi2").reading_.scheme == "plain"
    assert "accuracy: 100.00%" in ok("evaluate", "semi2", "plain.txt")


def test_two_levels(ok, here):
    rows = "the B-S B-NP\nman I-S I-NP\nsees I-S B-VP\n. O O\n\na B-S B-NP\nboat I-S I-NP\n. O O\n\n"
    (here / "levels.txt").write_text(rows)
    ok(
        "train",
        "levels.txt",
        "-o",
        "levels",
        "-q",
        "--model",
        "hierarchical",
        "--features",
        "words",
        "--max-iterations",
        "3",
        "--c2",
        "0.1",
    )
    assert [
        line.split()[1:3] == line.split()[3:] for line in ok("tag", "levels", "levels.txt").splitlines() if line
    ] == [True] * 7
    assert "level 0:" in ok("evaluate", "levels", "levels.txt")
    held = ok("tag", "levels", "--constraints", stdin=b"the ? ?\nman ? B-VP\n. O ?\n")
    assert held.splitlines()[1].split()[-1] == "B-VP"
    ok("convert", "levels.txt", "levels.jsonl", "--labels", "1,2")
    out = ok("tag", "levels", "levels.jsonl").splitlines()
    assert json.loads(out[0])["levels"] == [[[0, 3, "S"]], [[0, 2, "NP"], [2, 3, "VP"]]]
    assert "hierarchical" in ok("inspect", "levels")
    sets = ok("tag", "levels", "--constraints", stdin=b"the ? ?\nman ? B-VP|O\n. O ?\n")
    assert sets.splitlines()[1].split()[-1] in ("B-VP", "O")
    lines = ok("tag", "levels", "levels.txt", "--marginals", "--all-marginals").splitlines()
    cells = [line.split()[3:] for line in lines if line]  # two labels, their probabilities, those of all labels
    for _, _, upper, lower, *others in cells:
        assert 0.3 < float(upper) <= 1.0 and 0.3 < float(lower) <= 1.0
        assert sum(float(cell.rpartition(":")[2]) for cell in others) == pytest.approx(2.0, abs=1e-5)
    entry = json.loads(ok("tag", "levels", "levels.jsonl", "--marginals", "--all-marginals").splitlines()[0])
    assert [len(level) for level in entry["probabilities"]] == [len(level) for level in entry["marginals"]] == [4, 4]
    assert entry["marginals"][0][0]["S"] == pytest.approx(entry["probabilities"][0][0])


# ---- evaluate, inspect, convert -------------------------------------------------------------------------------------


def test_evaluate(ok, here):
    out = ok("evaluate", "crf", "test.txt")
    assert re.search(r"^accuracy: 100\.00%; precision: 100\.00%; recall: 100\.00%; FB1: 100\.00$", out, re.MULTILINE)
    figures = json.loads(ok("evaluate", "crf", "-", "--json", stdin=(here / "test.txt").read_bytes()))
    assert figures["micro"]["f1"] == 1.0 and figures["scheme"] == "iob2" and set(figures["labels"]) == {"NP", "VP"}
    assert json.loads(ok("evaluate", "semi", "test.txt", "--json"))["micro"]["f1"] == 1.0
    text = columns([[(row[0], row[1]) for row in rows] for rows in sentences(20)])
    (here / "pos.txt").write_text(text)
    ok("train", "pos.txt", "-o", "pos-model", "-q", "--features", "pos", "--max-iterations", "10")
    out = ok("evaluate", "pos-model", "pos.txt")
    assert "precision" in out and "weighted avg" in out
    assert json.loads(ok("evaluate", "pos-model", "pos.txt", "--json"))["labels"]["N"]["recall"] == 1.0


def test_evaluate_is_conlleval(ok, here):
    from scansion.metrics import conlleval

    answers = labels(ok("tag", "crf", "train.txt"))
    assert ok("evaluate", "crf", "train.txt") == conlleval(
        [[row[2] for row in rows] for rows in sentences(30)], answers
    )


def test_inspect(ok, here):
    out = ok("inspect", "crf", "--top", "2")
    assert "crf: 4 labels" in out and "U00:%x[0,0]" in out and "B-NP -> I-NP" in out
    found = json.loads(ok("inspect", "crf", "--json", "--top", "3"))
    model = scansion.load(here / "crf")
    assert found["weights"] == model.size_ and found["labels"] == model.classes_
    strongest = max(abs(w) for (_, y), w in model.state_features_.items() if y == "O")
    assert abs(found["state_features"]["O"][0][1]) == strongest
    assert "segments of up to" in ok("inspect", "semi")
    assert ok("inspect", "crf", "--top", "0").count("\n") < 12


@pytest.fixture(scope="session")
def tree(here):
    """A model of two levels, in a file."""
    X = [[{"w": w} for w in "the man sees it".split()]] * 2
    y = [[[(0, 4, "S")], [(0, 2, "NP"), (2, 3, "VP"), (3, 4, "NP")]]] * 2
    model = scansion.HierarchicalCRF(["sentence", "phrase"], max_iterations=5).fit(X, y)
    model.save(here / "tree")
    return model


def test_inspect_shows_labels_by_level(ok, tree):
    out = ok("inspect", "tree", "--top", "2")
    assert "labels of sentence: S\n" in out and "labels of phrase: NP VP\n" in out
    assert "hierarchical: 3 labels" in out
    assert "\nphrase: patterns of labels, strongest first\n" in out and "  inside S\n" in out
    found = json.loads(ok("inspect", "tree", "--json", "--top", "1000"))
    assert found["labels"] == ["S", "NP", "VP"]
    levels = found["levels"]
    assert [level["name"] for level in levels] == ["sentence", "phrase"]
    assert [level["labels"] for level in levels] == list(tree.classes_.values())
    assert [level["max_length"] for level in levels] == list(tree.max_length_.values())
    weights = {
        (level["name"], attribute, label): w
        for level in levels
        for label, rows in level["state_features"].items()
        for attribute, w in rows
    }
    assert weights == tree.state_features_
    assert found["attributes"] == len({attribute for _, attribute, _ in weights})


def test_one_level_is_one_level(ok, here):
    """Whatever the model: a hierarchy of one level answers as segments do."""
    X = [[["w=a"], ["w=b"], ["w=c"]]] * 3
    segments = [(0, 2, "P"), (2, 3, "Q")]
    scansion.HierarchicalCRF(["only"], max_iterations=20, c2=0.01).fit(X, [[segments]] * 3).save(here / "one-level")
    scansion.SemiCRF(repeats=False, max_iterations=20, c2=0.01).fit(X, [segments] * 3).save(here / "one-segment")
    (here / "abc.crfsuite").write_text("P\tw=a\nP\tw=b\nQ\tw=c\n")
    (here / "abc.jsonl").write_text('{"tokens": [{"w=a": 1}, {"w=b": 1}, {"w=c": 1}]}\n{"tokens": []}\n')
    for arguments in (["abc.crfsuite"], ["abc.jsonl"], ["abc.crfsuite", "--constraints"]):
        one, other = (ok("tag", model, *arguments) for model in ("one-level", "one-segment"))
        assert one == other
    assert json.loads(ok("tag", "one-level", "abc.jsonl").splitlines()[0])["spans"] == [list(s) for s in segments]
    assert ok("evaluate", "one-level", "abc.crfsuite") == ok("evaluate", "one-segment", "abc.crfsuite")


@pytest.mark.parametrize("model", ["crf", "semi", "tree"])
def test_sequences_without_tokens(ok, here, tree, model):
    (here / "nothing.jsonl").write_text('{"tokens": [], "labels": []}\n')
    for chosen in ([], ["--kbest", "2"], ["--marginals", "--all-marginals"], ["--constraints"]):
        (entry,) = map(json.loads, ok("tag", model, "nothing.jsonl", *chosen).splitlines())
        assert entry["tokens"] == [] and not any(entry.get(key) for key in ("labels", "spans"))
        assert model != "tree" or entry["levels"] == [[], []]
    assert [ok("convert", "nothing.jsonl", "--to", form) for form in ("columns", "crfsuite")] == ["\n", "\n"]


# ---- what files and terminals can not hold ---------------------------------------------------------------------------


def labelled(here, label):
    """A model that gives every token this label."""
    from scansion.formats import Reading

    model = scansion.CRF(max_iterations=2).fit([[["U:w"]]], [[label]])
    model.reading_ = Reading(template="U:%x[0,0]\n", dialect="crf++")
    model.save(here / "labelled")


@pytest.mark.parametrize(
    ("label", "options", "fits"),
    [
        ("a b", [], False),
        ("a\tb", [], False),
        ("", [], False),
        ("a\nb", ["--separator", "tab"], False),
        ("a\rb", ["--separator", "tab"], False),
        ("a\tb", ["--separator", "tab"], False),
        ("a b", ["--separator", "tab"], True),
        ("", ["--separator", "tab"], True),
        ("a,b", ["--separator", "comma"], False),
        ("a,b", [], True),
        ("a,b", ["--kbest", "1"], True),
        ("a b", ["--kbest", "1"], False),
        ("a b", ["--all-marginals"], False),
        ("a b", ["--compressed"], False),
        ("a\nb", ["--compressed"], False),
    ],
)
def test_tag_refuses_labels_that_the_format_can_not_hold(call, here, label, options, fits):
    labelled(here, label)
    code, out, err = call("tag", "labelled", *options, stdin=b"w\n")
    assert code == (0 if fits else 1)
    if fits:
        assert label in out
    else:
        assert out == "" and err == (
            f"scansion: <stdin>: {label!r} can not stand in a column: convert the file to JSON lines, which hold any "
            "label\n"
        )
    code, out, err = call("tag", "labelled", "--format", "jsonl", stdin=b'{"tokens": ["w"]}')
    assert json.loads(out)["labels"] == [label]


def test_tag_refuses_labels_for_items(call, here):
    for label, fits in (("a b", True), ("a\tb", False), ("a\nb", False), ("", False)):
        labelled(here, label)
        code, out, err = call("tag", "labelled", "--format", "crfsuite", stdin=b"?\tU\\:w\n")
        assert (code, out) == ((0, f"{label}\n\n") if fits else (1, ""))
        assert fits or repr(label) in err


CONTROLS = "\x1b[31m\x07\x9b\u202e\x7f"
ESCAPED = r"\x1b[31m\x07\u009b\u202e\u007f"


def test_controls_are_shown_escaped(call, ok, here):
    label = f"X{CONTROLS}\nY"
    labelled(here, label)
    (here / "controls.jsonl").write_text(json.dumps({"tokens": ["w"], "labels": [label]}))
    shown = f"X{ESCAPED}" + r"\x0aY"
    assert f"labels: {shown}\n" in ok("inspect", "labelled")
    assert json.loads(ok("inspect", "labelled", "--json"))["labels"] == [label]
    assert f"\n{shown} " in ok("evaluate", "labelled", "controls.jsonl")
    assert list(json.loads(ok("evaluate", "labelled", "controls.jsonl", "--json"))["labels"]) == [label]
    for arguments in (
        ["inspect", "labelled"],
        ["inspect", "labelled", "--json"],
        ["evaluate", "labelled", "controls.jsonl"],
        ["evaluate", "labelled", "controls.jsonl", "--json"],
        ["tag", f"no{CONTROLS}model"],
        ["tag", f"no{CONTROLS}model", "--debug"],
        ["tag", "crf", f"--no{CONTROLS}option"],
        ["tag", "crf", "--kbest", CONTROLS],
        ["train", "controls.jsonl", "-o", f"m{CONTROLS}"],
        ["inspect", "crf", "--html", f"m{CONTROLS}.html"],
    ):
        code, out, err = call(*arguments)
        assert not set(CONTROLS) & set(out + err) - set("[31m"), arguments
        assert out or err


def test_pages(call, ok, here):
    pytest.importorskip("scansion.display")
    ok("inspect", "crf", "--html", "report.html")
    assert "<html" in (here / "report.html").read_text()[:300].lower()
    ok("tag", "semi", "words.txt", "--html", "words.html")
    assert "boat" in (here / "words.html").read_text()
    text = b"the D ?\nman N B-NP\n. . ?\n"  # unless it is told, the two are one phrase
    for options, found in (([], "NP, tokens 0:2: the man"), (["--constraints"], "NP, token 0: the;")):
        ok("tag", "semi", "--html", "held.html", *options, stdin=text)
        assert found in (here / "held.html").read_text()


@pytest.mark.parametrize("scheme", ["iob1", "ioe2", "iobes", "bilou"])
def test_schemes_round_trip(ok, scheme):
    original = ok("convert", "test.txt", "--output-separator", "space")
    there = ok("convert", "test.txt", "--to-scheme", scheme)
    assert there != original
    back = ok(
        "convert",
        "-",
        "--from-scheme",
        scheme,
        "--to-scheme",
        "iob2",
        "--output-separator",
        "space",
        stdin=there.encode(),
    )
    assert back == original


def test_formats_round_trip(ok, here):
    original = (here / "test.txt").read_text()
    for flags in ([], ["--spans"]):
        there = ok("convert", "test.txt", "--to", "jsonl", *flags)
        back = ok(
            "convert", "-", "--from", "jsonl", "--to", "columns", "--output-separator", "space", stdin=there.encode()
        )
        assert back == original
    items = ok("convert", "test.txt", "--to", "crfsuite")
    assert items.startswith("B-NP\t0=")
    again = ok("convert", "-", "--from", "crfsuite", "--to", "jsonl", stdin=items.encode())
    assert json.loads(again.splitlines()[0])["labels"][-1] == "O"
    assert ok("convert", "-", "--from", "jsonl", "--to", "crfsuite", stdin=again.encode()) == items


# ---- options anywhere, other formats, what is suspicious ------------------------------------------------------------


def test_options_stand_anywhere(ok, here):
    expected = ok("tag", "crf", "words.txt", "--marginals")
    assert ok("tag", "crf", "--marginals", "words.txt") == ok("tag", "--marginals", "crf", "words.txt") == expected
    assert ok("tag", "crf", "-o", "anywhere.txt", "words.txt", "-j", "1") == ""
    assert (here / "anywhere.txt").read_text() == ok("tag", "crf", "--", "words.txt")
    assert ok("evaluate", "crf", "--json", "test.txt") == ok("evaluate", "crf", "test.txt", "--json")
    assert ok("convert", "--to", "jsonl", "test.txt", "--labels", "-1") == ok("convert", "test.txt", "--to", "jsonl")
    ok("train", "-q", "train.txt", "-o", "two", "test.txt", "--max-iterations", "1", "--labels", "-1,-1",
       "--features", "words", "--model", "hierarchical")  # fmt: skip
    assert scansion.load(here / "two").reading_.labels == (-1, -1)


def csv_of(data, path):
    rows = [f'{b},"{w}",{p},{y}' for b, sentence in enumerate(data) for w, p, y in sentence]
    path.write_text("sentence_id,word,pos,label\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize("model", ["crf", "semicrf"])
def test_csv_from_training_to_scores(call, ok, here, model):
    csv_of(sentences(30), here / "train.csv")
    csv_of(sentences(10, 1), here / "test.csv")
    name = f"csv-{model}"
    code, _, said = call("train", "train.csv", "-o", name, "--max-iterations", "20", "--model", model)
    assert code == 0 and "columns: word, pos; labels: label, sequences by sentence_id" in said
    tagged = ok("tag", name, "test.csv", "--marginals").splitlines()
    assert tagged[0] == "sentence_id,word,pos,label,predicted,probability"
    found = [line.split(",") for line in tagged[1:]]
    assert sum(row[3] == row[4] for row in found) > 0.9 * len(found)
    assert all(0 <= float(row[5]) <= 1 for row in found)
    scores = json.loads(ok("evaluate", name, "test.csv", "--json"))
    assert scores["sequences"] == 10 and scores["micro"]["f1"] > 0.9
    # names, not places, are what the model knows; labels may be absent
    (here / "turned.tsv").write_text("pos\tword\nD\tthe\nN\tman\n")
    assert ok("tag", name, "turned.tsv") == "pos\tword\tpredicted\nD\tthe\tB-NP\nN\tman\tI-NP\n"
    kbest = ok("tag", name, "turned.tsv", "--kbest", "2").splitlines()
    assert kbest[0] == "pos\tword\trank\tprobability\tpredicted" and kbest[1].split("\t")[2] == "0"
    every = ok("tag", name, "turned.tsv", "--all-marginals").splitlines()
    assert sum(map(float, every[1].split("\t")[3:])) == pytest.approx(1, abs=1e-5)


def test_csv_without_names_keeps_blank_rows(ok, here):
    (here / "bare.csv").write_text(columns(sentences(30), ","))
    ok("train", "bare.csv", "-o", "bare", "-q", "--max-iterations", "20")
    assert ok("tag", "bare", "--format", "csv", stdin=b"the,D\nman,N\n\nthe,D\n") == (
        "the,D,B-NP\nman,N,I-NP\n\nthe,D,B-NP\n"
    )


def test_converted_to_csv_and_back(ok, here):
    ok("convert", "test.txt", "there.csv")
    assert (here / "there.csv").read_text().startswith("sentence_id,word,column1,label\n1,")
    ok("convert", "there.csv", "back.txt")
    assert (here / "back.txt").read_text() == columns(sentences(10, 1), "\t")


def test_conllu_labels_stand_in_their_column(ok, here):
    lines = []
    for b, sentence in enumerate(sentences(20)):
        lines += [f"# sent_id = {b}", "1-2" + "\t_" * 9]
        lines += [f"{i}\t{w}\t_\t{p}" + "\t_" * 6 for i, (w, p, _) in enumerate(sentence, 1)] + [""]
    (here / "train.conllu").write_text("\n".join(lines) + "\n")
    ok("train", "train.conllu", "-o", "ud", "-q", "--max-iterations", "20")
    tagged = ok("tag", "ud", "train.conllu", "--marginals").splitlines()
    assert [line.split("\t")[:4] for line in tagged] == [line.split("\t")[:4] for line in lines]
    assert re.fullmatch(r"Probability=0\.\d+", tagged[2].split("\t")[-1])
    assert json.loads(ok("evaluate", "ud", "train.conllu", "--json"))["accuracy"] == 1.0


def test_tags_of_json_stay_under_their_key(ok, here):
    some = [{"tokens": [r[0] for r in s], "ner_tags": [int(r[1] == "N") for r in s]} for s in sentences(10)]
    (here / "tags.json").write_text(json.dumps(some))
    ok("train", "tags.json", "-o", "tags", "-q", "--max-iterations", "20")
    assert [json.loads(line) for line in ok("tag", "tags", "tags.json").splitlines()] == some


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("a X\nb Y\na X\n", [], "is one sequence of 3 tokens"),
        ("a X\n\nb X\n", [], "all tokens have the label 'X'"),
        ("1 a X\n2 b Y\n3 c X\n\n4 c X\n", [], "column 0 holds numbers alone"),
        ("a X\n\nb Y\n", ["--c1", "100"], "no weight was learnt"),
        ("a X\n\nb Y\n", ["--max-iterations", "1"], "--max-iterations 1"),
        ("a;b X\n\nc;d Y\n", [], None),
    ],
)
def test_what_is_suspicious_is_said(call, here, text, arguments, said):
    (here / "suspicious.txt").write_text(text)
    code, _, err = call("train", "suspicious.txt", "-o", "suspicious", *arguments)
    assert code == 0
    assert ("warning: " in err) == (said is not None) and (said is None or said in err)
    assert "warning" not in call("train", "suspicious.txt", "-o", "suspicious", "-q", *arguments)[2]


def test_a_wrong_separator_is_named(call, here):
    (here / "semicolons.txt").write_text("the;D;B-NP\nman;N;I-NP\n")
    code, _, err = call("train", "semicolons.txt", "-o", "m")
    assert code == 2 and "--separator ';'" in err
    code, _, err = call("tag", "crf", "semicolons.txt")
    assert code == 1 and "--separator ';'" in err


def test_labels_that_the_model_does_not_know_are_named(call, here):
    (here / "other.txt").write_text("the D B-NP\nman N B-XY\n\n")
    for model in ("crf", "semi"):
        code, _, err = call("evaluate", model, "other.txt")
        assert code == 0 and "does not know the labels 'B-XY' (1)" in err
        assert call("evaluate", model, "test.txt")[2] == ""


# ---- pages of evaluations, errors of constraints --------------------------------------------------------------------


@pytest.mark.parametrize("model", ["crf", "semi"])
def test_evaluation_as_a_page(call, here, model):
    text = (here / "test.txt").read_text().replace("B-VP", "B-NP", 1)
    (here / "wrong.txt").write_text(text)
    code, out, err = call("evaluate", model, "wrong.txt", "--html", "wrong.html")
    assert code == 0 and out.startswith("processed") and "wrote wrong.html" in err
    page = (here / "wrong.html").read_text()
    for part in ("Confusion", "Reliability of probabilities", "Expected calibration error", "truth", "predicted"):
        assert part in page
    first, *rest = re.findall(r"<h2>Sequence \d+: ([^<]*)</h2>", page)
    assert first.endswith(" wrong") and set(rest) == {"all right"} and len(rest) == 9
    # tagging shows the same where the file has labels
    call("tag", model, "wrong.txt", "--html", "tagged.html", "-o", "out.txt")
    assert "truth, token" in (here / "tagged.html").read_text()
    call("tag", model, "words.txt", "--html", "tagged.html", "-o", "out.txt")
    assert "truth" not in (here / "tagged.html").read_text()


@pytest.mark.parametrize("model", ["crf", "semi"])
def test_errors_of_constraints_have_a_line(call, here, model):
    (here / "known.txt").write_text("the D ?\nman N I-NP\n\nthe D B-NP\nman N Q-NP\n")
    code, _, err = call("tag", model, "known.txt", "--constraints")
    assert code == 1 and err.startswith("scansion: known.txt:5: ") and "Q-NP" in err
    (here / "known.csv").write_text("word,pos,label\nthe,D,?\nman,N,Q-NP\n")
    code, _, err = call("tag", model, "known.csv", "--constraints", "--columns", "word,pos", "--labels", "label")
    assert code == 1 and err.startswith("scansion: known.csv:3: ") and "Q-NP" in err
