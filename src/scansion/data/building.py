"""A data set built in one pass over sequences, with bounded memory, then mapped from its file."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from scansion import model_file
from scansion.data.dataset import Dataset, Vocabulary, encode
from scansion.data.trajectory import Trajectory

__all__ = ["Targets", "build", "load_targets"]

_AT_ONCE = 1000  # sequences that are encoded together
_MISSING = object()


class Targets(Sequence[Any]):
    """y out of a file: targets are read when they are asked for.

    Parameters
    ----------
    text : uint8 (n,)
        JSON of the targets, one after another.
    offsets : int64 (B + 1,)
        Where each begins.
    """

    def __init__(self, text: Any, offsets: Any) -> None:
        self._text, self._offsets = text, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[b] for b in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"target {index} is out of range for {len(self)} of them")
        b = index % len(self)
        return json.loads(self._text[self._offsets[b] : self._offsets[b + 1]].tobytes(), object_hook=_thawed)


def _thawed(found: dict[str, Any]) -> Any:
    return set(found["one of"]) if found.keys() == {"one of"} else found


def _frozen(value: Any, b: int) -> Any:
    """A part of a target as JSON holds it; sets are written as {"one of": members}."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Trajectory):
        raise TypeError(f"y[{b}] is a Trajectory: data sets hold labels, segments and levels")
    if isinstance(value, (set, frozenset)):
        return {"one of": sorted((_frozen(one, b) for one in value), key=lambda one: (str(one), repr(one)))}
    if isinstance(value, dict):
        return {str(key): _frozen(one, b) for key, one in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_frozen(one, b) for one in value]
    raise TypeError(f"y[{b}] holds {value!r} of type {type(value).__name__}: labels in files are strings or numbers")


def build(path: str | os.PathLike[str], X: Iterable[Any], y: Iterable[Any] | None = None) -> Any:
    """Write a data set in one pass, and map it into memory.

    Memory is that of the vocabulary and of some sequences, whatever X holds: it may be a generator over files. The data
    are written twice, beside `path`.

    Parameters
    ----------
    path : path
        The file to write; with y, ``path`` and ``path + ".y"``.
    X : iterable of sequences
        As in `encode`.
    y : iterable of targets, optional
        As in `fit`, read in step with X. Labels are strings or numbers; no trajectories.

    Returns
    -------
    Dataset, or with y (Dataset, Targets)
        What `fit` takes: ``crf.fit(*build(path, X, y))``. Later, `Dataset.load` and `load_targets` map them again.

    Raises
    ------
    TypeError, ValueError
        Naming the sequence; nothing is left of the files then.
    """
    name = os.fspath(path)
    with contextlib.ExitStack() as stack:

        def scratch() -> Any:
            return stack.enter_context(tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(name))))

        files = {part: scratch() for part in ("offsets", "token_offsets", "ids", "values")}
        text, cuts = scratch(), scratch()
        vocabulary, tokens, entries, plain, n, written = Vocabulary(), 0, 0, True, 0, 0
        for part in ("offsets", "token_offsets"):
            files[part].write(np.zeros(1, "<i8").tobytes())
        cuts.write(np.zeros(1, "<i8").tobytes())
        for sequences, targets in _in_step(X, y):
            try:
                data = encode(sequences, vocabulary)
            except (TypeError, ValueError) as error:
                raise type(error)(f"among the {len(sequences)} sequences from {n} on: {error}") from error
            files["offsets"].write((data.offsets[1:] + tokens).astype("<i8").tobytes())
            files["token_offsets"].write((data.token_offsets[1:] + entries).astype("<i8").tobytes())
            files["ids"].write(data.ids.astype("<i4").tobytes())
            plain = plain and data.values is None
            values = np.ones(data.ids.size) if data.values is None else data.values
            files["values"].write(values.astype("<f8").tobytes())
            for b, (length, target) in enumerate(zip(data.lengths.tolist(), targets, strict=False)):
                _check_length(target, length, n + b)
                row = json.dumps(_frozen(target, n + b), ensure_ascii=False, allow_nan=False).encode()
                written += text.write(row)
                cuts.write(np.array([written], "<i8").tobytes())
            tokens, entries, n = tokens + data.n_tokens, entries + data.ids.size, n + len(data)
        for part, array in zip(("vocabulary.text", "vocabulary.offsets"), vocabulary.to_arrays(), strict=True):
            files[part] = scratch()
            files[part].write(np.asarray(array).tobytes())
        if plain:
            del files["values"]
        codes = {"ids": "I32", "values": "F64", "vocabulary.text": "U8"}
        arrays = {part: (codes.get(part, "I64"), file) for part, file in files.items()}
        if y is not None:
            model_file.write_files(name + ".y", "targets", {}, {"text": ("U8", text), "offsets": ("I64", cuts)})
        model_file.write_files(name, "dataset", {}, arrays)
    found = Dataset.load(name)
    return found if y is None else (found, load_targets(name + ".y"))


def load_targets(path: str | os.PathLike[str]) -> Targets:
    """Map the y that `build` wrote (a file that ends in ".y")."""
    stored: dict[str, Any] = model_file.read(path, kind="targets", mmap=True).arrays
    offsets, text = (stored.get(name, np.zeros(0)) for name in ("offsets", "text"))
    whole = offsets.dtype == np.int64 and text.dtype == np.uint8 and offsets.ndim == text.ndim == 1 and len(offsets) > 0
    if not whole or offsets[0] != 0 or offsets[-1] != len(text) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{os.fspath(path)} does not hold targets that fit together")
    return Targets(text, offsets)


def _check_length(target: Any, length: int, b: int) -> None:
    """Raise for lists of labels that are not as long as their sequence: better here than after hours."""
    if isinstance(target, list) and target and not any(isinstance(one, (list, tuple, dict)) for one in target):
        if len(target) != length:
            raise ValueError(f"y[{b}] has {len(target)} labels, but sequence {b} of X has {length} tokens")


def _in_step(X: Iterable[Any], y: Iterable[Any] | None) -> Iterator[tuple[list[Any], list[Any]]]:
    """Some sequences at a time with their targets."""
    if y is None:
        rows = iter(X)
        while some := list(islice(rows, _AT_ONCE)):
            yield some, []
        return
    both = enumerate(zip_longest(X, y, fillvalue=_MISSING))
    while pairs := list(islice(both, _AT_ONCE)):
        for b, (x, target) in pairs:
            if x is _MISSING or target is _MISSING:
                more, less = ("y", "X") if x is _MISSING else ("X", "y")
                raise ValueError(f"{less} has {b} sequences, but {more} has more")
        yield [x for _, (x, _) in pairs], [target for _, (_, target) in pairs]
