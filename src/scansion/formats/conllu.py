"""CoNLL-U of Universal Dependencies: ten columns with names; ranges of words (1-2) and empty nodes (8.1) are no tokens.

https://universaldependencies.org/format.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import BinaryIO

from scansion import _core
from scansion.formats import blocks
from scansion.formats.answers import Answers, Asked, Text
from scansion.formats.base import FormatError, check_cells, lines
from scansion.formats.blocks import Block, Record, column_index, strings
from scansion.formats.reading import Reading
from scansion.formats.targets import cell_of

__all__ = ["COLUMNS", "annotate", "read", "write"]

SPANS = ATTRIBUTES = False

COLUMNS = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]

_NAMES = {"word": "form", "token": "form", "text": "form", "pos": "xpos", "pos_tag": "xpos"}  # what others call them


def read(stream: BinaryIO, path: str, reading: Reading) -> Iterator[Block]:
    """The sequences of a file, some at a time.

    Unless others are given, labels are upos and templates see the forms; beside other labels, forms and upos.
    """
    labels = tuple("upos" if column == -1 else column for column in reading.labels)
    columns = reading.columns or (("form",) if "upos" in labels else ("form", "upos"))
    reading = reading._replace(separator="\t", labels=labels, columns=columns)
    sequences = _sequences(lines(stream, path), path)
    while some := list(islice(sequences, blocks.BLOCK_SEQUENCES)):
        rows = [[text.split("\t") for text in texts if _is_token(text)] for _, texts in some]
        texts = [text for _, texts in some for text in [*texts, ""]]
        cells = _core.Columns.from_rows(rows, len(COLUMNS))
        yield Block(path, reading, cells, numbers=[n for n, _ in some], names=COLUMNS, texts=texts)


def _is_token(line: str) -> bool:
    return not line.startswith("#") and line.split("\t", 1)[0].isdecimal()


def _sequences(numbered: Iterable[tuple[int, str]], path: str) -> Iterator[tuple[int, list[str]]]:
    """Line and lines of each sentence."""
    found: list[str] = []
    begin = 0
    for number, text in chain(numbered, [(0, "")]):
        if text.strip():
            begin = begin if found else number
            cells = text.split("\t")
            if not text.startswith("#"):
                if len(cells) != len(COLUMNS):
                    was = blocks.counted(len(cells), "column")
                    raise FormatError(path, number, f"CoNLL-U has ten columns, separated by tabs; the line has {was}")
                if not cells[0].replace(".", "").replace("-", "").isdecimal():
                    raise FormatError(path, number, f"CoNLL-U begins lines with a number, not {cells[0]!r:.40}")
            found.append(text)
        elif any(map(_is_token, found)):
            yield begin, found
            found = []


def write(out: BinaryIO, record: Record, reading: Reading) -> None:
    """A sentence: columns by their names, or the form alone; labels that are no column of CoNLL-U are in misc."""
    if record.items and record.cells is None:
        raise ValueError(f"{record.where}: the tokens have attributes and no words: they can not be written as CoNLL-U")
    names = [_NAMES.get(name.lower(), name.lower()) for name in record.names or ["form"]]
    if "form" not in names:
        names[0] = "form"
    labelled = [name.lower() for name in record.label_names] or ["label"] * len(record.labels)
    for t, cells in enumerate(record.cells or ()):
        line = dict.fromkeys(COLUMNS, "_") | {"id": str(t + 1)}
        line |= {name: cell for name, cell in zip(names, cells, strict=False) if name in COLUMNS[1:]}
        misc = [] if line["misc"] == "_" else [line["misc"]]
        for k, (name, level) in enumerate(zip(labelled, record.labels, strict=True)):
            if name in COLUMNS[1:]:
                line[name] = cell_of(level[t])
            else:
                misc.append(f"Label{k or ''}={cell_of(level[t])}")
        line["misc"] = "|".join(misc) or "_"
        values = [value or "_" for value in line.values()]
        check_cells(values, ["\t"], record.where, "a tab can not stand in CoNLL-U", empty=False)
        out.write(("\t".join(values) + "\n").encode())
    out.write(b"\n")


def annotate(out: BinaryIO, block: Block, answers: Answers, asked: Asked) -> None:
    """The lines with a model's labels in their column, and probabilities in misc."""
    rows = block.rows
    assert rows is not None
    text = Text(block, "\t", "\t", ["\t", "|"])
    tokens = [line for line in block.texts if _is_token(line)]
    if asked.kbest or asked.compressed:
        out.write(text.lines(answers, asked, tokens).encode())
        return
    targets = [column_index(c, COLUMNS, len(COLUMNS), block.path) for c in block.reading.labels]
    added = list(zip(*map(strings, text.columns(answers, asked)), strict=True))
    levels, t = len(answers.levels), 0
    names = ["Probability", *(f"Probability{k}" for k in range(1, levels))] if asked.marginals else []
    for line in block.texts:
        if _is_token(line):
            cells = line.split("\t")
            told = added[t]
            t += 1
            for column, label in zip(targets, told, strict=False):
                cells[column] = label
            more = [f"{name}={p}" for name, p in zip(names, told[levels:], strict=False)]
            more += [f"P({name})={p}" for name, p in (cell.rsplit(":", 1) for cell in told[levels + len(names) :])]
            cells[-1] = "|".join([cells[-1]] * (cells[-1] != "_") + more) or "_"
            line = "\t".join(cells)
        out.write((line + "\n").encode())
