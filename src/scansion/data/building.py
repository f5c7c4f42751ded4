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

from scansion import _checks as checks
from scansion import model_file
from scansion.data.dataset import Dataset, Vocabulary, encode
from scansion.data.trajectory import Trajectory

__all__ = ["Builder", "Targets", "build", "load_targets"]

_AT_ONCE = 1000  # sequences that are encoded together
_TOKENS = 1 << 16  # tokens that are copied together
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
    if isinstance(value, np.ndarray):
        return _frozen(checks.plain(f"y[{b}]", value).tolist(), b)
    if isinstance(value, (list, tuple)):
        return [_frozen(one, b) for one in value]
    raise TypeError(f"y[{b}] holds {value!r} of type {type(value).__name__}: labels in files are strings or numbers")


class Builder:
    """A data set that is written some sequences at a time: `add`, then `finish`. A context manager, which cleans up.

    Memory is that of the vocabulary, and of what is added at a time.

    Parameters
    ----------
    path : path
        The file to write; targets go to ``path + ".y"``.
    vocabulary : Vocabulary
        That of all data sets which are added; it may grow on the way.
    min_freq : float
        Attributes whose values (without their signs) add up to less are left out.
    """

    def __init__(self, path: str | os.PathLike[str], vocabulary: Vocabulary, min_freq: float = 0.0) -> None:
        if not checks.is_number(min_freq) or min_freq < 0:
            raise ValueError(f"min_freq must be a number >= 0, got {min_freq!r}")
        self.path, self.vocabulary, self.min_freq = os.fspath(path), vocabulary, float(min_freq)
        self._stack = contextlib.ExitStack()
        self._files = {part: self._scratch() for part in ("offsets", "token_offsets", "ids", "values")}
        self._text, self._cuts = self._scratch(), self._scratch()
        self._plain, self._tokens, self._entries, self._written, self._sequences = True, 0, 0, 0, 0
        self._sums = np.zeros(0)
        for file in (self._files["offsets"], self._files["token_offsets"], self._cuts):
            file.write(np.zeros(1, "<i8").tobytes())

    def __enter__(self) -> Builder:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def __len__(self) -> int:
        return self._sequences

    def _scratch(self) -> Any:
        folder = os.path.dirname(os.path.abspath(self.path))
        return self._stack.enter_context(tempfile.TemporaryFile(dir=folder))

    def add(self, data: Dataset, targets: Sequence[Any] = ()) -> None:
        """Write encoded sequences with their targets; ValueError or TypeError name the sequence."""
        files = self._files
        files["offsets"].write((data.offsets[1:] + self._tokens).astype("<i8").tobytes())
        files["token_offsets"].write((data.token_offsets[1:] + self._entries).astype("<i8").tobytes())
        files["ids"].write(data.ids.astype("<i4").tobytes())
        self._plain = self._plain and data.values is None
        values = np.ones(data.ids.size) if data.values is None else data.values
        files["values"].write(values.astype("<f8").tobytes())
        for b, (length, target) in enumerate(zip(data.lengths.tolist(), targets, strict=False), self._sequences):
            _check_length(target, length, b)
            try:
                row = json.dumps(_frozen(target, b), ensure_ascii=False, allow_nan=False).encode()
            except ValueError as error:
                raise ValueError(f"y[{b}] holds a label that no file can hold: {error}") from None
            self._written += self._text.write(row)
            self._cuts.write(np.array([self._written], "<i8").tobytes())
        if self.min_freq > 0:
            self._sums = np.pad(self._sums, (0, len(self.vocabulary) - len(self._sums)))
            self._sums += np.bincount(data.ids, np.abs(values), len(self._sums))
        self._tokens, self._entries = self._tokens + data.n_tokens, self._entries + data.ids.size
        self._sequences += len(data)

    def finish(self, targets: bool, metadata: dict[str, Any] | None = None) -> None:
        """Write the files, that of the data last: where it is, all of it is."""
        if self.min_freq > 0:
            self._leave_out(self._sums < self.min_freq)
        files = dict(self._files)
        for part, array in zip(("vocabulary.text", "vocabulary.offsets"), self.vocabulary.to_arrays(), strict=True):
            files[part] = self._scratch()
            files[part].write(np.asarray(array).tobytes())
        if self._plain:
            del files["values"]
        codes = {"ids": "I32", "values": "F64", "vocabulary.text": "U8"}
        arrays = {part: (codes.get(part, "I64"), file) for part, file in files.items()}
        if targets:
            held = {"text": ("U8", self._text), "offsets": ("I64", self._cuts)}
            model_file.write_files(self.path + ".y", "targets", {}, held)
        model_file.write_files(self.path, "dataset", metadata or {}, arrays)

    def _leave_out(self, rare: Any) -> None:
        """Write ids, values and token offsets again without some attributes, and number the others anew."""
        if not rare.any():
            return
        number = np.where(rare, -1, np.cumsum(~rare) - 1).astype("<i4")
        kept = {part: self._scratch() for part in ("ids", "values", "token_offsets")}
        kept["token_offsets"].write(np.zeros(1, "<i8").tobytes())
        read = {part: self._files[part] for part in kept}
        for file in read.values():
            file.seek(0)
        before, last = 0, int(np.frombuffer(read["token_offsets"].read(8), "<i8")[0])
        while len(cuts := np.frombuffer(read["token_offsets"].read(8 * _TOKENS), "<i8")):
            n = int(cuts[-1]) - last
            ids = number[np.frombuffer(read["ids"].read(4 * n), "<i4")]
            stays = ids >= 0
            kept["ids"].write(ids[stays].tobytes())
            kept["values"].write(np.frombuffer(read["values"].read(8 * n), "<f8")[stays].tobytes())
            found = np.concatenate([[0], np.cumsum(stays)])
            kept["token_offsets"].write((before + found[cuts - last]).astype("<i8").tobytes())
            before, last = before + int(found[-1]), int(cuts[-1])
        self._files.update(kept)
        names = self.vocabulary.names()
        self.vocabulary = encode([[[names[a] for a in np.flatnonzero(~rare).tolist()]]]).vocabulary


def build(
    path: str | os.PathLike[str], X: Iterable[Any], y: Iterable[Any] | None = None, *, min_freq: float = 0.0
) -> Any:
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
    min_freq : float
        Attributes whose values (without their signs) add up to less are left out. An estimator with this `min_freq`, or
        a greater one, has the same features on what is left: a feature does not occur more often than its attribute.

    Returns
    -------
    Dataset, or with y (Dataset, Targets)
        What `fit` takes: ``crf.fit(*build(path, X, y))``. Later, `Dataset.load` and `load_targets` map them again.

    Raises
    ------
    TypeError, ValueError
        Naming the sequence; nothing is left of the files then.
    """
    vocabulary = Vocabulary()
    with Builder(path, vocabulary, min_freq) as builder:
        for sequences, targets in _in_step(X, y):
            try:
                data = encode(sequences, vocabulary)
            except (TypeError, ValueError) as error:
                where = f"among the {len(sequences)} sequences from {len(builder)} on"
                raise type(error)(f"{where}: {error}") from error
            builder.add(data, targets)
        builder.finish(y is not None)
    found = Dataset.load(path)
    return found if y is None else (found, load_targets(os.fspath(path) + ".y"))


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
