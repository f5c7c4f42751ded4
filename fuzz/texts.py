"""Altered data files and templates: read, or refused with file and line; and the command on them.

What is read is encoded. Faults are foreign exceptions, errors of the command that "should not happen", other exit codes
than 0, 1 and 2, control characters on the terminal, and outputs that were touched though the command failed.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fuzz import Fault
from fuzz.model_files import limited
from fuzz.strange import ours
from scansion.cli import main
from scansion.data import Vocabulary
from scansion.features.templates import BUILT_IN, Template
from scansion.formats import FormatError, Reading
from scansion.formats.blocks import read

FILES = 40  # in a round
CALLS = 6

COLUMNS = "the D B-NP\nold A I-NP\nman N I-NP\nsees V B-VP\n. . O\n\na D B-NP\ndog N I-NP\n. . O\n\n"
ITEMS = "B\tw=the\tlen:3\nI\tw=man\tlen:3.5e0\n\nO\tw=sees\\:1\tx:2\nB\tw=a\n\n"
LINES = (
    '{"tokens": ["the", "man"], "labels": ["B-NP", "I-NP"]}\n'
    '{"tokens": [{"w": "a", "n": 2.5}, {"w": "b"}], "spans": [[0, 2, "NP"]]}\n'
    '{"tokens": [], "labels": []}\n'
)
SEEDS = {"columns": COLUMNS, "crfsuite": ITEMS, "jsonl": LINES}
TEMPLATES = [*BUILT_IN.values(), "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\n", 'u:x=%x[0,0]\nb:%m[-1,1,"^.?"]\n*:%X[0,0]\n']
PIECES = [
    b"\x00",
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\x1b[31m",
    b"1e999",
    b"nan",
]
PIECES += [
    b"-1",
    b":",
    b"\\",
    b"|",
    b"?",
    b"%x[",
    b"%x[0,99]",
    b'%m[0,0,"("]',
    b"{",
    b"}",
    b"[[[[",
    b'"',
    b"null",
    b"1e400",
]
PIECES += [b"x" * 5000, b"9" * 500, b"\xe2\x80\xae", b"\xe2\x80\xa8", b"B-", b"-", b"#", b"=", b"//", b"U", b"B", b"*"]


def altered(rng: np.random.Generator, content: bytes) -> bytes:
    """Bytes with some taken away, doubled, replaced or put in; sometimes packed, and packed data cut."""
    result = bytearray(content)
    for _ in range(int(rng.integers(0, 5))):
        at = int(rng.integers(len(result) + 1))
        size = int(rng.integers(1, 12))
        way = int(rng.integers(5))
        if way == 0:
            del result[at : at + size]
        elif way == 1:
            result[at:at] = result[at : at + size]
        elif way == 2:
            result[at:at] = rng.bytes(size)
        else:
            result[at : at + (way == 4)] = PIECES[int(rng.integers(len(PIECES)))]
    packed = bytes(result)
    if rng.random() < 0.1:
        packed = gzip.compress(packed, 1)
        packed = packed[: len(packed) - int(rng.choice([0, 0, 1, 9]))]
    return packed


def allowed(error: BaseException) -> bool:
    """Whether an exception is one of ours."""
    return isinstance(error, FormatError) or ours(error)


def read_all(form: str) -> Callable[[np.random.Generator], int]:
    """Rounds of files of one format."""

    def run(rng: np.random.Generator) -> int:
        with tempfile.TemporaryDirectory() as folder, limited():
            path = Path(folder, "data")
            for _ in range(FILES):
                content = altered(rng, SEEDS[form].encode())
                path.write_bytes(content)
                labels = ((-1,), (), (0,), (1, 2), (7,))[int(rng.integers(5))]
                separator = str(rng.choice(["", "", "\t", ",", " ", "|"]))
                reading = Reading(form, separator, str(rng.choice(["", "#"])), None, labels)
                try:
                    for block in read(str(path), reading):
                        if block.rows is None:
                            block.dataset(None, Vocabulary(), False)
                        block.records(None)
                except Exception as error:
                    if not allowed(error):
                        shown = f"{reading}, file {content!r}"[:1500]
                        raise Fault(f"{type(error).__name__}: {error}\n{shown}\n{traceback.format_exc()}") from error
        return FILES

    return run


def templates(rng: np.random.Generator) -> int:
    """Templates, and what they make of a file."""
    with tempfile.TemporaryDirectory() as folder, limited():
        path = Path(folder, "data")
        path.write_text(COLUMNS)
        for _ in range(FILES):
            text = altered(rng, TEMPLATES[int(rng.integers(len(TEMPLATES)))].encode()).decode(errors="replace")
            dialect = [None, "crf++", "wapiti"][int(rng.integers(3))]
            try:
                template = Template(text, dialect)
                for block in read(str(path), Reading("columns", labels=(-1,))):
                    block.dataset(template, Vocabulary(), False)
            except Exception as error:
                if not allowed(error):
                    raise Fault(
                        f"template {text!r}: {type(error).__name__}: {error}\n{traceback.format_exc()}"
                    ) from error
    return FILES


# ---- the command ---------------------------------------------------------------------------------
OPTIONS: dict[str, list[str]] = {
    "train": ["--order", "--max-length", "--c1", "--c2", "--max-iterations", "--min-freq", "-j", "--seed", "--labels"],
    "tag": ["--kbest", "--labels", "-j", "--separator", "--comment"],
    "evaluate": ["--labels", "--scheme", "--separator"],
    "inspect": ["--top"],
    "convert": ["--labels", "--from-scheme", "--to-scheme", "--separator"],
}
FLAGS = {
    "train": [
        "--partial",
        "--all-possible-states",
        "-q",
        "--model=semicrf",
        "--model=hierarchical",
        "-a=l2sgd",
        "-a=pa",
    ],
    "tag": ["--marginals", "--all-marginals", "--constraints", "--compressed"],
    "evaluate": ["--compressed"],
    "inspect": ["--json"],
    "convert": ["--to=jsonl", "--to=crfsuite", "--to=columns", "--spans", "--no-labels"],
}
VALUES = [
    "0",
    "1",
    "2",
    "-1",
    "=-1",
    "1,2",
    "99999999999999999999",
    "1e308",
    "nan",
    "inf",
    "",
    "x",
    "\x1b[2J",
    "iob2",
    "tab",
]


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Standard output and error as bytes."""
    out, err = io.BytesIO(), io.BytesIO()
    before = sys.stdout, sys.stderr, sys.stdin
    texts = io.TextIOWrapper(out, "utf-8"), io.TextIOWrapper(err, "utf-8", errors="surrogatepass")
    sys.stdout, sys.stderr = texts
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr, sys.stdin = before
        for text in texts:
            text.flush()
            text.detach()  # or the bytes would go with it


def command(rng: np.random.Generator) -> int:
    """The command with odd options on odd files."""
    with tempfile.TemporaryDirectory() as folder, limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = Path(folder)
        good, bad, model, output = (str(there / name) for name in ("good.txt", "bad.txt", "model", "output"))
        Path(good).write_text(COLUMNS * 3)
        with captured():
            main(["train", good, "-o", model, "--max-iterations", "5", "-q"])
        for _ in range(CALLS):
            form = str(rng.choice(list(SEEDS)))
            Path(bad).write_bytes(altered(rng, SEEDS[form].encode() * 3))
            Path(output).write_bytes(b"before")
            verb = str(rng.choice(list(OPTIONS)))
            data = str(rng.choice([good, bad, bad, bad + ".none"]))
            given = {
                "train": [data, "-o", output],
                "tag": [model if rng.random() < 0.8 else bad, data, "-o", output],
                "evaluate": [data],
                "inspect": [model if rng.random() < 0.5 else bad],
                "convert": [data, output],
            }[verb]
            if rng.random() < 0.5 and verb in ("train", "tag", "evaluate"):
                given += ["--format", form]
            for option in rng.choice(OPTIONS[verb], size=int(rng.integers(0, 3))):
                given += [f"{option}={rng.choice(VALUES)}" if rng.random() < 0.8 else str(option)]
            for flag in rng.choice(FLAGS[verb], size=int(rng.integers(0, 2))):
                given += str(flag).split("=") if str(flag).startswith("-a") else [str(flag)]
            if verb == "train" and not any("iterations" in option for option in given):
                given += ["--max-iterations", "5"]
            with captured() as (_, err):
                code = main([verb, *given])
            told = err.getvalue().decode(errors="replace")
            shown = f"scansion {verb} {given}: exit code {code}, {told[-1500:]!r}, file {Path(bad).read_bytes()!r}"[
                :4000
            ]
            if code not in (0, 1, 2) or "should not happen" in told or "Traceback" in told:
                raise Fault(shown)
            if any(c < " " and c not in "\n\t\r" for c in told):
                raise Fault(f"control characters: {shown}")
            if code and verb != "inspect" and os.path.exists(output) and Path(output).read_bytes() != b"before":
                raise Fault(f"the output was touched: {shown}")
            left = [name for name in os.listdir(folder) if name.startswith(".scansion")]
            if left:
                raise Fault(f"{left} is left: {shown}")
    return CALLS


KINDS = {**{form: read_all(form) for form in SEEDS}, "templates": templates, "command": command}
