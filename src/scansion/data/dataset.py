"""The data set: token attributes as ragged arrays of numbers.

Conventions: B sequences, N tokens in all, nnz attribute entries in all. Sequence b has the tokens
``offsets[b]:offsets[b + 1]``, token t the entries ``token_offsets[t]:token_offsets[t + 1]``; an entry is an attribute's
number and its value. An attribute may occur more than once in a token: its values add up, as in CRFsuite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._core import Vocabulary
from scansion.data.frames import is_frame, rows_of

__all__ = ["Dataset", "Vocabulary", "encode"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

_RANGE = f"values must be finite and lie within +-{checks.MOST_VALUE:g}"

_DTYPES = {  # of the arrays in a file, by safetensors' names
    "offsets": "I64",
    "token_offsets": "I64",
    "ids": "I32",
    "values": "F64",
    "vocabulary.text": "U8",
    "vocabulary.offsets": "I64",
}


class Dataset:
    """Sequences of tokens with numbered attributes. Made by `encode` or `Dataset.load`; never changed.

    Parameters
    ----------
    offsets : array of int64, shape (B + 1,)
        Where each sequence begins among the tokens.
    token_offsets : array of int64, shape (N + 1,)
        Where each token begins among the entries.
    ids : array of int32, shape (nnz,)
        Attribute numbers.
    values : array of float64, shape (nnz,), or None
        Attribute values; None where all of them are 1.
    vocabulary : Vocabulary
        The names of the attributes.
    """

    __slots__ = ("ids", "offsets", "token_offsets", "values", "vocabulary")

    offsets: Ints
    token_offsets: Ints
    ids: Numbers
    values: Floats | None
    vocabulary: Vocabulary

    def __init__(
        self,
        offsets: npt.ArrayLike,
        token_offsets: npt.ArrayLike,
        ids: npt.ArrayLike,
        values: npt.ArrayLike | None,
        vocabulary: Vocabulary,
    ) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")
        numbers = checks.plain("ids", ids)
        checks.between("ids", numbers, numbers.size, 0, len(vocabulary) - 1)
        tokens = checks.offsets(token_offsets, numbers.size, "ids")
        sequences = checks.offsets(offsets, tokens.size - 1, "token_offsets")
        weights = None
        if values is not None:
            weights = checks.scores("values", values, (numbers.size,))
            if weights.size and not (weights.max() <= checks.MOST_VALUE and weights.min() >= -checks.MOST_VALUE):
                at = checks.first(~(np.abs(weights) <= checks.MOST_VALUE))
                raise ValueError(f"values[{checks.show(at)}] is {weights[at]}: {_RANGE}")
        self._set(sequences, tokens, np.ascontiguousarray(numbers, dtype=np.int32), weights, vocabulary)

    @classmethod
    def _trusted(
        cls, offsets: Ints, token_offsets: Ints, ids: Numbers, values: Floats | None, vocabulary: Vocabulary
    ) -> Dataset:
        """The data set of arrays that are known to be right."""
        self = cls.__new__(cls)
        self._set(offsets, token_offsets, ids, values, vocabulary)
        return self

    def _set(
        self, offsets: Ints, token_offsets: Ints, ids: Numbers, values: Floats | None, vocabulary: Vocabulary
    ) -> None:
        """Hold views that cannot be written through: the kernels trust what was checked once."""
        for name, array in (
            ("offsets", offsets),
            ("token_offsets", token_offsets),
            ("ids", ids),
            ("values", values),
        ):
            if array is not None:
                array = array.view(np.ndarray)
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "vocabulary", vocabulary)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Dataset does not change: cannot set {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self.offsets, self.token_offsets, self.ids, self.values, self.vocabulary)

    def __len__(self) -> int:
        return self.offsets.size - 1

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all sequences."""
        return self.token_offsets.size - 1

    @property
    def lengths(self) -> Ints:
        """Number of tokens of each sequence, shape (B,)."""
        return np.diff(self.offsets)

    def __repr__(self) -> str:
        return (
            f"Dataset of {len(self)} sequences, {self.n_tokens} tokens, {self.ids.size} entries, "
            f"{len(self.vocabulary)} attributes"
        )

    def __getitem__(self, index: int | slice | npt.ArrayLike) -> Dataset:
        """One sequence as a data set of its own, sharing memory; or several, by slice or array of numbers."""
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        if not isinstance(index, (int, np.integer)):
            return self.take(index)
        b = int(index)
        if not -len(self) <= b < len(self):
            raise IndexError(f"sequence {b} is out of range for a data set of {len(self)} sequences")
        b %= len(self)
        first, last = int(self.offsets[b]), int(self.offsets[b + 1])
        entries = slice(int(self.token_offsets[first]), int(self.token_offsets[last]))
        return Dataset._trusted(
            np.array([0, last - first]),
            self.token_offsets[first : last + 1] - entries.start,
            self.ids[entries],
            None if self.values is None else self.values[entries],
            self.vocabulary,
        )

    def __iter__(self) -> Iterator[Dataset]:
        return (self[b] for b in range(len(self)))

    def take(self, indices: npt.ArrayLike) -> Dataset:
        """The sequences of these numbers (or where a boolean mask is true), in the order given.

        Parameters
        ----------
        indices : array of int, shape (n,), or of bool, shape (B,)
        """
        chosen = checks.plain("indices", indices)
        if chosen.dtype == np.bool_:
            checks.check_shape("indices", chosen, (len(self),))
            chosen = np.flatnonzero(chosen)
        chosen = checks.integers("indices", chosen, chosen.size, -len(self), len(self) - 1)
        chosen = np.where(chosen < 0, chosen + len(self), chosen)
        offsets, tokens = gather(self.offsets, chosen)
        token_offsets, entries = gather(self.token_offsets, tokens)
        values = None if self.values is None else self.values[entries]
        return Dataset._trusted(offsets, token_offsets, self.ids[entries], values, self.vocabulary)

    def items(self) -> list[list[tuple[str, float]]]:
        """The tokens of all sequences, one after another, each a list of (attribute name, value)."""
        names = self.vocabulary.names()
        values = np.ones(self.ids.size) if self.values is None else self.values
        entries = [(names[i], v) for i, v in zip(self.ids.tolist(), values.tolist(), strict=True)]
        bounds = self.token_offsets.tolist()
        return [entries[i:j] for i, j in zip(bounds, bounds[1:], strict=False)]

    # ---- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file like those of models (docs/model-file.md): all of it, or nothing."""
        from scansion import model_file

        text, text_offsets = self.vocabulary.to_arrays()
        arrays: dict[str, npt.NDArray[Any]] = {
            "offsets": self.offsets,
            "token_offsets": self.token_offsets,
            "ids": self.ids,
            "vocabulary.text": text,
            "vocabulary.offsets": text_offsets,
        }
        if self.values is not None:
            arrays["values"] = self.values
        model_file.write(path, "dataset", {}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = True) -> Dataset:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
        mmap : bool
            Map the file into memory (the arrays are read-only) instead of reading it. A mapped file may be replaced,
            but must not be changed or cut in place.

        Raises
        ------
        ValueError
            If the file is damaged or is not a data set.
        """
        try:
            arrays = _read(path, mmap)
            vocabulary = Vocabulary.from_arrays(arrays.pop("vocabulary.text"), arrays.pop("vocabulary.offsets"))
            values = arrays.pop("values", None)
            return cls(**arrays, values=values, vocabulary=vocabulary)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)} is not a scansion data set, or is damaged: {error}") from error


def _read(path: str | os.PathLike[str], mmap: bool) -> dict[str, Any]:
    """The arrays of a data set file by name, mapped or read; ValueError if it is not one."""
    from scansion import model_file

    with open(path, "rb") as file:
        start = file.read(8 + len(model_file.PREFIX))
    if not start.endswith(model_file.PREFIX):
        return _read_unsealed(path)
    arrays = model_file.read(path, kind="dataset", mmap=mmap).arrays
    _check_arrays({name: (model_file.DTYPE_NAMES[array.dtype], list(array.shape)) for name, array in arrays.items()})
    return arrays


def _read_unsealed(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of a file without checksums, as data sets were saved at first."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:  # checks the header against the size of the file
            metadata = file.metadata() or {}
            if metadata.get("format") != "scansion.dataset":
                raise ValueError(f"its metadata say format {metadata.get('format')!r}, not 'scansion.dataset'")
            if metadata.get("version") != "1":
                raise ValueError(f"it has version {metadata.get('version')!r}; this scansion reads version 1")
            slices = {name: file.get_slice(name) for name in file.keys()}
            _check_arrays({name: (part.get_dtype(), part.get_shape()) for name, part in slices.items()})
            return {name: file.get_tensor(name) for name in slices}
    except SafetensorError as error:
        raise ValueError(str(error)) from None


def _check_arrays(found: dict[str, tuple[str, list[int]]]) -> None:
    """Raise unless arrays of these dtypes and shapes are those of a data set."""
    for name, code in _DTYPES.items():
        if name not in found:
            if name != "values":
                raise ValueError(f"it has no array {name!r}")
        elif found[name][0] != code or len(found[name][1]) != 1:
            raise ValueError(f"the array {name!r} must be 1-D of {code}, got {' '.join(map(str, found[name]))}")
    more = found.keys() - _DTYPES.keys()
    if more:
        raise ValueError(f"it has an array that a data set does not have: {min(more)!r}")


def gather(offsets: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Offsets of the chosen rows, and the numbers of what they hold, row after row."""
    first = offsets[:-1][rows]
    lengths = offsets[1:][rows] - first
    result = np.concatenate(([0], np.cumsum(lengths)))
    return result, np.arange(result[-1]) + np.repeat(first - result[:-1], lengths)


def cut(rows: Any, offsets: Ints) -> list[Any]:
    """Rows of all sequences, a list or an array, as one piece for each."""
    cuts = offsets.tolist()
    return [rows[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def encode(X: Iterable[Any], vocabulary: Vocabulary | None = None, *, frozen: bool = False) -> Dataset:
    """Number the attributes of sequences of tokens.

    Tokens follow python-crfsuite's rules. Of a dict, ``{"w": "the"}`` is the attribute ``"w:the"`` of value 1,
    ``{"len": 3}`` the attribute ``"len"`` of value 3, True is 1 and False 0; a dict, list, tuple or set as value gives
    its own attributes, the key and ``":"`` put before their names. An iterable of strings gives attributes of value 1.
    bytes are read as UTF-8. It departs from python-crfsuite in this: tuples and frozensets are read like lists and
    sets, mappings that are not dicts like dicts; the attributes of a set come in the order of their names, so that
    numbers do not change from run to run; a NUL does not end a name; a string as token, and NaN or infinity as value,
    are errors.

    Parameters
    ----------
    X : iterable of sequences
        A sequence is an iterable of tokens; or a numeric array, shape (tokens, columns), or SciPy sparse matrix, whose
        columns are attributes named "0", "1", ... and whose zeros are left out; or a DataFrame with a row a token,
        whose columns are the attributes; or a `pycrfsuite.ItemSequence` or
        another object whose method ``items()`` gives the tokens; or a `Dataset` of one sequence. A `Dataset` as X is
        numbered anew if its vocabulary is not the one given.
    vocabulary : Vocabulary, optional
        Numbers to use; a new vocabulary unless given. New attributes are added to it, in order of first appearance,
        even if an error comes later.
    frozen : bool
        Leave the vocabulary as it is, and leave out attributes that it does not hold, as prediction does.

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError, ValueError
        Naming the sequence, the position in it and the offending type, attribute or value. Exceptions from the
        caller's own iterators pass through.
    """
    if isinstance(X, Dataset) and (vocabulary is None or vocabulary is X.vocabulary):
        return X
    if is_frame(X):
        raise TypeError(
            "X is one DataFrame: X, y = scansion.data.from_frame(frame, group=..., labels=...) makes sequences of it, "
            "or give a list of frames, one per sequence"
        )
    if isinstance(X, (str, bytes, bytearray, dict, set, frozenset)) or not hasattr(X, "__iter__"):
        raise TypeError(f"X must be a list of sequences, got {_describe(X)}")
    if hasattr(X, "tocsr"):
        raise TypeError("X is one sparse matrix: give a list of matrices, one per sequence")
    if vocabulary is None:
        vocabulary = Vocabulary()
    elif not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")
    checks.flag("frozen", frozen)
    data = Dataset._trusted(*encoded_arrays(X, vocabulary, bool(frozen)), vocabulary)
    _check_values(data)
    return data


def _check_values(data: Dataset) -> None:
    """Raise if an attribute's value is out of range."""
    if data.values is None or not data.values.size:
        return
    if data.values.max() <= checks.MOST_VALUE and data.values.min() >= -checks.MOST_VALUE:
        return
    entry = checks.first(np.abs(data.values) > checks.MOST_VALUE)[0]
    token = int(np.searchsorted(data.token_offsets, entry, side="right")) - 1
    b = int(np.searchsorted(data.offsets, token, side="right")) - 1
    name, position = data.vocabulary.names()[data.ids[entry]], token - data.offsets[b]
    raise ValueError(
        f"X, sequence {b}, position {position}: attribute {name!r} has the value {data.values[entry]}: {_RANGE}"
    )


def encoded_arrays(X: Any, vocabulary: Vocabulary, frozen: bool) -> tuple[Ints, Ints, Numbers, Floats | None]:
    """Offsets, token offsets, numbers and values of the `Dataset` that `encode` makes of a list of sequences."""
    return _core.encode(X, vocabulary, frozen, unusual)


def _describe(value: Any) -> str:
    """A value's type, and for strings the value."""
    if isinstance(value, (str, bytes)):
        return f"the string {value[:40]!r}" + (" ..." if len(value) > 40 else "")
    return f"an object of type {type(value).__name__}"


def unusual(sequence: Any, number: int) -> Any:
    """A sequence that is neither list nor tuple, for the kernel.

    Returns an iterable of tokens that is not a tuple, or (row offsets, columns, values or None, vocabulary of the
    columns or None where the column's number is its name).
    """
    if isinstance(sequence, np.ndarray):
        sequence = checks.plain(f"X[{number}]", sequence)
    if isinstance(sequence, np.ndarray) and sequence.ndim == 2 and sequence.dtype.kind in "biuf":
        rows, columns = np.nonzero(sequence)
        values = np.ascontiguousarray(sequence[rows, columns], dtype=np.float64)
        offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(sequence)))))
        return offsets, columns, values, None
    if isinstance(sequence, np.ndarray) and (sequence.ndim == 0 or sequence.dtype.kind not in "OUST"):
        raise ValueError(
            f"X, sequence {number} is an array of shape {sequence.shape} and dtype {sequence.dtype}: "
            "a sequence given as an array must be 2-D, tokens by columns, and of real numbers"
        )
    if hasattr(sequence, "tocsr"):
        return _sparse(sequence, number)
    if is_frame(sequence):
        return iter(rows_of(sequence))
    if isinstance(sequence, Dataset):
        if len(sequence) != 1:
            raise ValueError(f"X, sequence {number} is a Dataset of {len(sequence)} sequences: it must be of one")
        return sequence.token_offsets, sequence.ids.astype(np.int64), sequence.values, sequence.vocabulary
    wrong = isinstance(sequence, (str, bytes, bytearray, dict, set, frozenset))
    if not wrong and (hasattr(sequence, "__iter__") or hasattr(sequence, "__getitem__")):
        return iter(sequence)
    if not wrong and callable(getattr(sequence, "items", None)):
        return iter(sequence.items())
    raise TypeError(f"X, sequence {number} must be a list of tokens, got {_describe(sequence)}")


def _sparse(matrix: Any, number: int) -> tuple[Ints, Ints, Floats, None]:
    """Rows of a SciPy sparse matrix without the zeros that it may store."""
    rows = matrix.tocsr()
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"X, sequence {number} is a sparse matrix of shape {rows.shape} and dtype {rows.dtype}: "
            "it must be 2-D, tokens by columns, and of real numbers"
        )
    values = np.ascontiguousarray(rows.data, dtype=np.float64)
    try:
        offsets = checks.offsets(rows.indptr, values.size, "the matrix")
        columns = checks.integers("indices", rows.indices, values.size, 0, rows.shape[1] - 1)
        checks.check_shape("indptr", offsets, (rows.shape[0] + 1,))
    except ValueError as error:
        raise ValueError(f"X, sequence {number} is a damaged sparse matrix: {error}") from error
    kept = values != 0.0
    if not kept.all():
        offsets = np.concatenate(([0], np.cumsum(kept)))[offsets]
        columns, values = columns[kept], values[kept]
    return offsets, columns, values, None
