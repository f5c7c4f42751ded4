"""Where the data sets lie, and how they are read.

They are looked for in ``../shared/data`` beside the project, or where the environment variable
SCANSION_DATA says. Nothing is copied or downloaded.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

__all__ = ["MissingDataError", "data_directory", "find", "open_text", "read_columns", "split_columns"]

ROOT = Path(__file__).resolve().parents[1]


class MissingDataError(FileNotFoundError):
    """A data set is not on this machine: the experiment is skipped."""


def data_directory() -> Path:
    given = os.environ.get("SCANSION_DATA")
    return Path(given).expanduser() if given else ROOT.parent / "shared" / "data"


def find(name: str) -> Path:
    """Path of a data file such as ``cora/ref.train``; the file itself or the same with ``.gz``."""
    path = data_directory() / name
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return candidate
    raise MissingDataError(f"no file {name} in {data_directory()}; SCANSION_DATA can name another directory")


def split_columns(lines: Iterable[str]) -> Iterator[list[list[str]]]:
    """Sequences of tokens, each the list of its columns; blank lines (also CRLF ones) separate sequences."""
    tokens: list[list[str]] = []
    for line in lines:
        columns = line.split()
        if columns:
            tokens.append(columns)
        elif tokens:
            yield tokens
            tokens = []
    if tokens:
        yield tokens


def open_text(name: str, encoding: str = "utf-8") -> IO[str]:
    """A data file, opened for reading."""
    path = find(name)
    return gzip.open(path, "rt", encoding=encoding) if path.suffix == ".gz" else open(path, encoding=encoding)


def read_columns(name: str) -> list[tuple[list[str], ...]]:
    """Sequences of a column file, each as a tuple of columns."""
    with open_text(name) as lines:
        return [tuple(map(list, zip(*tokens, strict=True))) for tokens in split_columns(lines)]
