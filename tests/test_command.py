"""The command as a process: signals, pipes, terminals, errors; and everything that can be wrong."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from command_data import columns, sentences

import scansion
from scansion.cli import main
from scansion.cli.completion import script
from scansion.cli.parser import ALGORITHMS, SCHEMES, build_parser, verbs

VERBS = ("train", "tag", "evaluate", "inspect", "convert", "demo", "completion")


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
def test_answers_come_as_soon_as_a_sequence_is_there(here):
    command = [sys.executable, "-m", "scansion", "tag", "crf"]
    tag = subprocess.Popen(command, cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with tag.stdin, tag.stdout:
        for word, answer in (("the D", "B-NP"), ("sees V", "B-VP")):
            tag.stdin.write(f"{word}\n\n".encode())
            tag.stdin.flush()
            assert tag.stdout.readline().decode() == f"{word} {answer}\n"
            assert tag.stdout.readline() == b"\n"
        tag.stdin.close()
        assert tag.stdout.read() == b""
    assert tag.wait(timeout=60) == 0


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
    text = (here / "train.txt").read_bytes()
    training.stdin.write(text * (300_000 // len(text)))  # more than a pipe holds: when it is written, it is being read
    training.stdin.flush()
    code = None
    for _ in range(10):  # one that comes just before it waits for more is not seen until the next
        training.send_signal(signal.SIGINT)
        try:
            code = training.wait(timeout=10)
            break
        except subprocess.TimeoutExpired:
            pass
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
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    # 0.15 s is the aim on a machine that has nothing else to do (benchmarks/tagging.py); this finds blunders
    assert min(float(run.stdout.split("] ")[1]) for run in runs) < 1.5


def test_help_loads_nothing_heavy():
    code = "import sys; from scansion.cli import main; main(['train', '--help']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nFalse\n")


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
        (["tag", "crf", "words.txt", "-j", "0"], 1, "n_jobs must not be 0"),
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
