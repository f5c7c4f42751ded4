"""The command: every verb, format and error; in this process for the bulk, as a process of its own where it matters."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import scansion
from scansion.cli import main
from scansion.cli.completion import script
from scansion.cli.parser import ALGORITHMS, SCHEMES, build_parser, verbs
from scansion.metrics import flat_accuracy_score

VERBS = ("train", "tag", "evaluate", "inspect", "convert", "demo", "completion")

WORDS = {
    "D": "the a this".split(),
    "A": "old big red".split(),
    "N": "man boat dog house".split(),
    "V": "sees has".split(),
}


def sentences(n, seed=0):
    """Noun phrases and verbs: rows of word, part of speech, chunk."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        rows = []
        for k in range(rng.integers(1, 4)):
            if k and rng.random() < 0.7:
                rows.append((str(rng.choice(WORDS["V"])), "V", "B-VP"))
            parts = ["D"] * (rng.random() < 0.8) + ["A"] * rng.integers(0, 3) + ["N"]
            rows += [(str(rng.choice(WORDS[p])), p, ("I" if i else "B") + "-NP") for i, p in enumerate(parts)]
        rows.append((".", ".", "O"))
        found.append(rows)
    return found


def columns(data, separator=" "):
    return "".join("".join(separator.join(row) + "\n" for row in rows) + "\n" for rows in data)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A directory with data in every format, and models."""
    path = tmp_path_factory.mktemp("command")
    data = sentences(30)
    (path / "train.txt").write_text(columns(data))
    (path / "test.txt").write_text(columns(sentences(10, 1)))
    (path / "words.txt").write_text(columns([[row[:2] for row in rows] for rows in sentences(10, 1)]))
    (path / "template").write_text("U00:%x[0,0]\nU01:%x[-1,1]\nU02:%x[0,1]\nU03:%x[1,1]\nB\n")
    run = ["train", str(path / "train.txt"), "-q", "--max-iterations", "20", "-t", str(path / "template")]
    assert main([*run, "-o", str(path / "crf")]) == 0
    assert main([*run, "-o", str(path / "semi"), "--model", "semicrf"]) == 0
    return path


@pytest.fixture
def call(here, capsysbinary, monkeypatch):
    """Run the command in the directory of the data: (exit code, standard output, standard error)."""
    monkeypatch.chdir(here)

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


@pytest.fixture
def ok(call):
    def ok(*arguments, stdin=None):
        code, out, err = call(*arguments, stdin=stdin)
        assert code == 0, err
        return out

    return ok


def process(*arguments, cwd, **options):
    return subprocess.run(
        [sys.executable, "-m", "scansion", *map(str, arguments)], cwd=cwd, capture_output=True, timeout=120, **options
    )


# ---- as a process -------------------------------------------------------------------------------------------------


def test_a_round_by_processes(here, tmp_path):
    model = tmp_path / "model"
    done = process("train", here / "train.txt", "-o", model, "--max-iterations", "5", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == b""
    assert b"--features chunk" in done.stderr and b"\r" not in done.stderr  # plain lines, not a bar
    assert re.search(rb"^ +5/5  loss [\d.e+]+  ", done.stderr, re.MULTILINE)
    tagged = process("tag", model, "-", cwd=tmp_path, input=gzip.compress((here / "words.txt").read_bytes()))
    assert tagged.returncode == 0 and tagged.stderr == b""
    assert [line.rsplit(b" ", 1)[0] for line in tagged.stdout.splitlines() if line] == [
        line for line in (here / "words.txt").read_bytes().splitlines() if line
    ]
    scored = process("evaluate", model, here / "test.txt", cwd=tmp_path)
    assert scored.returncode == 0 and scored.stdout.startswith(b"processed ")
    shown = process("inspect", model, "--top", "3", cwd=tmp_path)
    assert shown.returncode == 0 and b"B-NP -> I-NP" in shown.stdout
    turned = process("convert", here / "test.txt", "--to", "jsonl", cwd=tmp_path)
    assert turned.returncode == 0 and json.loads(turned.stdout.splitlines()[0])["tokens"]
    assert process("completion", "bash", cwd=tmp_path).stdout.decode() == script("bash")
    version = process("--version", cwd=tmp_path)
    assert version.stdout.decode() == f"scansion {scansion.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tag", "no-such-model"], 1, "scansion: no-such-model: No such file or directory"),
        (["tag", "train.txt", "test.txt"], 1, "not a scansion model"),
        (["train", "no-such-file", "-o", "m"], 1, "no-such-file: No such file or directory"),
        (["trian"], 2, "invalid choice: 'trian'"),
        (["train", "train.txt"], 2, "required: -o/--output"),
    ],
)
def test_errors_are_one_line(here, arguments, code, message):
    done = process(*arguments, cwd=here)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == code
    assert len(lines) == 1 and message in lines[0]
    assert done.stdout == b""


def test_debug_shows_the_traceback(here):
    for arguments in (["tag", "none", "--debug"], ["--debug", "tag", "none"]):
        done = process(*arguments, cwd=here)
        assert done.returncode == 1 and b"Traceback" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_a_reader_that_goes_away(here):
    text = (here / "words.txt").read_bytes() * 400
    tag = subprocess.Popen(
        [sys.executable, "-m", "scansion", "tag", "crf"],
        cwd=here,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    tag.stdout.close()
    with tag.stdin:
        try:
            tag.stdin.write(text)
        except BrokenPipeError:
            pass
    assert tag.wait(timeout=60) == 1
    assert tag.stderr.read() == b""
    tag.stderr.close()


def interrupted(here, tmp_path, *arguments, signals):
    """A training that gets so many interrupts once it has begun: exit code, whether the model is there, messages."""
    model = tmp_path / "model"
    command = [sys.executable, "-m", "scansion", "train", str(here / "train.txt"), "-o", str(model), *arguments]
    training = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path)
    seen = b""
    while b"loss" not in seen:
        line = training.stderr.readline()
        assert line, seen
        seen += line
    for _ in range(signals):
        training.send_signal(signal.SIGINT)
        time.sleep(0.3)
    rest = training.stderr.read()
    training.stderr.close()
    return training.wait(timeout=60), model.exists(), (seen + rest).decode()


FOREVER = ("-a", "l2sgd", "--max-iterations", "1000000", "--set", "period=0")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("algorithm", [FOREVER, ("-a", "pa", "--max-iterations", "1000000", "--set", "epsilon=0")])
def test_the_first_interrupt_stops_and_saves(here, tmp_path, algorithm):
    code, saved, said = interrupted(here, tmp_path, *algorithm, signals=1)
    assert (code, saved) == (0, True), said
    assert "nterrupted" in said and "Traceback" not in said
    assert main(["tag", str(tmp_path / "model"), str(here / "words.txt"), "-o", str(tmp_path / "out")]) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_outside_training_aborts(here, tmp_path):
    """While data are read, as by the second Ctrl-C while the model is saved, nothing is written."""
    model = tmp_path / "model"
    command = [sys.executable, "-m", "scansion", "train", "-", "-o", str(model), "--features", "words"]
    training = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    training.stdin.write((here / "train.txt").read_bytes())
    training.stdin.flush()
    time.sleep(1.5)  # it waits for more
    training.send_signal(signal.SIGINT)
    code = training.wait(timeout=60)
    said = training.stderr.read()
    training.stdin.close()
    training.stderr.close()
    assert code == 130 and said == b"scansion: interrupted\n"
    assert not model.exists()


def test_the_second_interrupt_aborts(call, here, tmp_path, monkeypatch):
    """The first comes in training and the model is about to be saved; the second, then, is not caught."""
    from scansion import model_file
    from scansion.training import progress

    counts = []

    def interrupt(self, entry):
        counts.append(entry)
        raise KeyboardInterrupt

    def interrupt_again(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "update", interrupt)
    monkeypatch.setattr(model_file.os, "fsync", interrupt_again)
    code, _, err = call("train", "train.txt", "-o", tmp_path / "model", "-t", "template", "-q")
    assert (code, len(counts)) == (130, 1)
    assert err == "scansion: interrupted\n"
    assert list(tmp_path.iterdir()) == []  # nor is anything left behind


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_a_bar_on_a_terminal(here, tmp_path):
    import pty

    leader, follower = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "scansion",
        "train",
        str(here / "train.txt"),
        "-o",
        str(tmp_path / "m"),
        "--max-iterations",
        "4",
    ]
    command += ["--dev", str(here / "test.txt")]
    training = subprocess.Popen(command, stderr=follower, cwd=tmp_path, env={**os.environ, "COLUMNS": "100"})
    os.close(follower)
    said = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        said += chunk
    os.close(leader)
    assert training.wait(timeout=60) == 0
    assert re.search(rb"\r\x1b\[2K\[#####\.+\] +1/4  loss \S+  dev score 0\.\d+  \d+ s left", said)
    assert b"[####################]    4/4" in said


def test_tagging_loads_little_and_starts_quickly(here):
    code = (
        "import sys, time; t = time.process_time()\nfrom scansion.cli import main\n"
        "assert main(['tag', 'crf', 'words.txt', '-o', 'out.txt']) == 0\n"
        "own = time.process_time() - t\n"
        "heavy = {'scipy', 'sklearn', 'pandas', 'matplotlib', 'safetensors', 'secrets', 'scansion.training'}\n"
        "print(sorted(heavy & set(sys.modules)), own)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    loaded = {run.stdout.split("] ")[0] for run in runs}
    assert loaded == {"["}
    # 0.15 s is the aim on a machine that has nothing else to do (benchmarks/tagging.py); this finds blunders
    assert min(float(run.stdout.split("] ")[1]) for run in runs) < 1.5


# ---- train and tag --------------------------------------------------------------------------------------------------


def labels(text):
    return [[line.split()[-1] for line in part.splitlines()] for part in text.strip().split("\n\n")]


def truth(n=10, seed=1):
    return [[row[-1] for row in rows] for rows in sentences(n, seed)]


def agreement(text):
    return flat_accuracy_score(truth(), labels(text))


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


# ---- what can be wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "broken.txt", "-o", "m"], 1, "broken.txt:2: the line has 1 column"),
        (["train", "empty.txt", "-o", "m"], 1, "empty.txt: there are no sequences in it"),
        (["train", "train.txt", "-o", "no/such/m"], 1, "no such directory"),
        (["train", "train.txt", "-o", "."], 1, "is a directory"),
        (["train", "train.txt", "-o", "m", "-t", "nothing"], 1, "nothing: No such file"),
        (["train", "train.txt", "-o", "m", "-t", "bad-template"], 1, "bad-template:1: expected %x[row,col]"),
        (["train", "train.txt", "-o", "m", "-t", "wide-template"], 1, "reads column 9, but there are 3 columns"),
        (["train", "train.txt", "-o", "m", "-t", "label-template"], 2, "reads column 2, which holds the labels"),
        (["train", "train.txt", "-o", "m", "--labels", "5"], 1, "there is no column 5"),
        (["train", "train.txt", "-o", "m", "--labels", "1,2"], 2, "--model hierarchical"),
        (["train", "train.txt", "-o", "m", "--labels", "x"], 2, "expected column numbers"),
        (["train", "train.txt", "-o", "m", "-t", "template", "--features", "ner"], 2, "two templates"),
        (["train", "train.txt", "-o", "m", "--set", "nothing=1"], 2, "CRF has no such parameter"),
        (["train", "train.txt", "-o", "m", "--set", "nothing"], 2, "expected NAME=VALUE"),
        (["train", "train.txt", "-o", "m", "--c2", "-1"], 1, "c2 must be a number >= 0"),
        (["train", "train.txt", "-o", "m", "--c2", "x"], 2, "expected a number"),
        (["train", "train.txt", "-o", "m", "--order", "-1"], 2, "expected a number from 0 on"),
        (["train", "train.txt", "-o", "m", "--max-length", "3"], 2, "--max-length goes with --model semicrf"),
        (["train", "train.txt", "-o", "m", "--model", "semicrf", "--partial"], 2, "--partial goes with"),
        (["train", "train.txt", "-o", "m", "--model", "hierarchical", "--labels=1,2", "--order", "2"], 2, "--order"),
        (["train", "train.txt", "-o", "m", "--dev", "empty.txt"], 1, "empty.txt: there are no sequences"),
        (["tag", "crf", "narrow.txt"], 1, "narrow.txt: the template reads column 1"),
        (["tag", "crf", "broken.txt"], 1, "broken.txt:2:"),
        (["tag", "crf", "test.txt", "--compressed", "--kbest", "2"], 2, "does not go with"),
        (["tag", "crf", "test.txt", "--kbest", "2", "--marginals"], 2, "does not go with"),
        (["tag", "crf", "test.txt", "--kbest", "0"], 2, "from 1 on"),
        (["tag", "crf", "test.txt", "-o", "no/such/file"], 1, "no such directory"),
        (["tag", "damaged", "test.txt"], 1, "damaged"),
        (["tag", "crf", "one.crfsuite", "--format", "jsonl"], 1, "one.crfsuite:1: the line is not JSON"),
        (["evaluate", "crf", "empty.txt"], 1, "there are no sequences"),
        (["evaluate", "crf", "words.jsonl2", "--format", "jsonl"], 1, "the sequence has no labels"),
        (["inspect", "train.txt"], 1, "train.txt"),
        (["convert", "test.txt", "--to", "crfsuite", "--spans"], 2, "--spans goes with"),
        (["convert", "test.txt", "--to", "columns", "-t", "template"], 2, "columns hold words"),
        (["convert", "one.crfsuite", "--to", "columns"], 1, "can not be written as columns"),
        (["convert", "one.crfsuite", "--to", "jsonl", "-t", "template"], 2, "has attributes already"),
        (["completion", "tcsh"], 2, "invalid choice"),
        (["tag", "crf", "words.txt", "-o", "words.txt"], 2, "words.txt would be overwritten"),
        (["convert", "words.txt", "./words.txt"], 2, "would be overwritten"),
        (["train", "train.txt", "-o", "train.txt"], 2, "train.txt would be overwritten"),
        (["train", "bad-tags.txt", "-o", "m", "--model", "semicrf", "--scheme", "iob2"], 1, "bad-tags.txt:3: in"),
        (["tag", "crf", "words.txt", "-j", "0"], 1, "n_jobs"),
        (["inspect", "crf", "--nothing"], 2, "unrecognized arguments: --nothing"),
        ([], 2, "required: VERB"),
    ],
)  # fmt: skip
def test_what_can_be_wrong(call, here, arguments, code, message):
    (here / "broken.txt").write_text("a D O\nb\n")
    (here / "empty.txt").write_text("\n")
    (here / "narrow.txt").write_text("a\n")
    (here / "bad-template").write_text("U:%x[0]\n")
    (here / "wide-template").write_text("U:%x[0,9]\n")
    (here / "label-template").write_text("U:%x[0,2]\n")
    (here / "bad-tags.txt").write_text("a D O\n\nb D NP\n")
    (here / "one.crfsuite").write_text("A\tw=1\n")
    (here / "words.jsonl2").write_text('{"tokens": [["a", "D"]]}\n')
    model = bytearray((here / "crf").read_bytes())
    model[-20] ^= 255
    (here / "damaged").write_bytes(model)
    found, _, err = call(*arguments, *["-q"] * (arguments[:1] == ["train"]))
    assert found == code, err
    assert message in err and err.count("\n") == 1 and "Traceback" not in err
    assert arguments[:1] != ["train"] or not (here / "m").exists()
    assert (here / "train.txt").read_text() == columns(sentences(30))


def test_help_has_an_example_for_each_verb(call):
    for verb in VERBS:
        if verb == "demo":
            pytest.importorskip("scansion.demo")
        code, out, _ = call(verb, "--help")
        assert code == 0 and f"scansion {verb}" in out and ("example: " in out or verb == "demo")
    code, out, _ = call("--help")
    assert code == 0 and all(verb in out for verb in VERBS)


def test_the_parser_names_what_there_is():
    from scansion import schemes
    from scansion.training import learn

    assert ALGORITHMS == learn.ALGORITHMS
    assert set(SCHEMES) - {"auto"} == set(schemes.SCHEMES) - {"conlleval"}
    assert set(verbs(build_parser())) == set(VERBS)


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


def test_pages(call, ok, here):
    pytest.importorskip("scansion.display")
    ok("inspect", "crf", "--html", "report.html")
    assert "<html" in (here / "report.html").read_text()[:300].lower()
    ok("tag", "semi", "words.txt", "--html", "words.html")
    assert "boat" in (here / "words.html").read_text()


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


def test_completion_scripts():
    for shell in ("bash", "zsh", "fish"):
        text = script(shell)
        assert "--max-iterations" in text or "-l max-iterations" in text
        assert all(verb in text for verb in VERBS)
    bash = subprocess.run(["bash", "-n"], input=script("bash").encode(), capture_output=True)
    assert bash.returncode == 0, bash.stderr
    complete = (
        script("bash") + "\nCOMP_WORDS=(scansion train --algorithm l); COMP_CWORD=3; _scansion; echo ${COMPREPLY[@]}\n"
    )
    complete += "COMP_WORDS=(scansion ta); COMP_CWORD=1; _scansion; echo ${COMPREPLY[@]}\n"
    done = subprocess.run(["bash"], input=complete.encode(), capture_output=True)
    assert done.stdout.decode().split("\n")[:2] == ["lbfgs l2sgd", "tag"]
