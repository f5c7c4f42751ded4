"""Tagging with python-crfsuite's interface."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Floats, Ints
from scansion.data import Dataset, encode
from scansion.data.dataset import encoded_arrays
from scansion.models.crf import CRF
from scansion.models.files import load
from scansion.models.foreign import crfsuite
from scansion.models.inputs import Inputs
from scansion.pycrfsuite._dumpparser import ParsedDump

__all__ = ["ItemSequence", "Tagger", "encoded"]

Arrays = tuple[Ints, Ints, npt.NDArray[np.int32], Floats | None]


class ItemSequence:
    """The attributes of a sequence, read once for several uses.

    Parameters
    ----------
    pyseq : iterable of items
        An item is a dict (``{"w": "the"}`` is the attribute "w:the" of value 1, ``{"len": 3}`` "len" of value 3), or an
        iterable of strings; see `scansion.data.encode`.

    Examples
    --------
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0}]
    """

    __slots__ = ("_data",)
    _data: Dataset

    def __init__(self, pyseq: Any) -> None:
        self._data = pyseq._data if isinstance(pyseq, ItemSequence) else encode([pyseq])

    def items(self) -> list[dict[str, float]]:
        """The attributes of each item with their values."""
        return [dict(item) for item in self._data.items()]

    def __len__(self) -> int:
        return self._data.n_tokens

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return ItemSequence, (self.items(),)


def encoded(xseq: Any, vocabulary: Any, frozen: bool) -> Arrays:
    """One sequence by the numbers of a vocabulary: the arrays of its `Dataset`."""
    return encoded_arrays([xseq._data if isinstance(xseq, ItemSequence) else xseq], vocabulary, frozen)


class Tagger:
    """Labels sequences with a model.

    Examples
    --------
    >>> tagger = Tagger()
    >>> tagger.labels()
    Traceback (most recent call last):
    ...
    ValueError: The tagger is not opened
    """

    def __init__(self) -> None:
        self._crf: CRF | None = None
        self._arrays: Arrays | None = None  # the sequence that was set
        self._batch: Any = None
        self._pairs: Floats | None = None  # scores of label pairs (L, L), where all sequences have the same
        self._marginals: Floats | None = None

    # ---- models ------------------------------------------------------------------------------------------------

    def open(self, name: str | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file: CRFsuite's, or another one that `scansion.load` reads and that holds a `CRF`.

        Returns a context that closes the tagger.
        """
        crf = load(name)
        if not isinstance(crf, CRF):
            raise ValueError(f"{os.fspath(name)} holds a {type(crf).__name__}; tagging needs a CRF")
        return self._opened(crf)

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model of which these are the bytes: the content of a file of CRFsuite."""
        if not value.startswith(b"lCRF"):
            raise ValueError("Invalid model")
        return self._opened(crfsuite.read(bytes(value)))

    def _opened(self, crf: CRF) -> contextlib.closing[Tagger]:
        self.close()
        self._crf = crf
        return contextlib.closing(self)

    def close(self) -> None:
        """Close the model."""
        self._crf = self._arrays = self._batch = self._pairs = self._marginals = None

    @property
    def _opened_crf(self) -> CRF:
        if self._crf is None:
            raise ValueError("The tagger is not opened")
        return self._crf

    def labels(self) -> list[str]:
        """The labels."""
        return self._opened_crf.classes_

    # ---- questions ---------------------------------------------------------------------------------------------

    def set(self, xseq: Any) -> None:
        """Set the sequence that `tag`, `probability` and `marginal` speak of."""
        self._arrays = encoded(xseq, self._opened_crf.model_.vocabulary, True)
        self._batch = self._marginals = None

    def tag(self, xseq: Any = None) -> list[str]:
        """The most probable labels of a sequence, or of the one that was set."""
        model = self._opened_crf.model_
        if xseq is not None:
            self.set(xseq)
        size = self._size()
        if not size:
            return []
        if self._pairs is None or self._batch is not None:
            best = self._lattices().best_labels()
        else:  # the same without the objects between: short sequences are done before these are made
            assert self._arrays is not None
            data, best = _core.EncodedData(*self._arrays), np.empty(size, np.int64)
            unary = np.zeros((size, len(self._pairs)))
            _core.score_arrays(model.native, data, model.weights, unary, None, None, None, None, None, None, 1)
            _core.ChainBatch(unary, self._arrays[0], self._pairs, None, None, None).best_labels(best, 1)
        labels = model.labels
        return [labels[y] for y in best.tolist()]

    def probability(self, yseq: Sequence[str]) -> float:
        """The probability of labels of the sequence that was set."""
        crf, labels = self._opened_crf, list(yseq)
        if self._size() == 0:
            return 0.0
        if len(labels) != self._size():
            raise ValueError(f"The numbers of items and labels differ: |x| = {self._size()}, |y| = {len(labels)}")
        numbers = np.array([_number(crf, y) for y in labels])
        return math.exp(self._lattices()[0].log_probability(numbers))

    def marginal(self, y: str, pos: int) -> float:
        """The probability of a label at a position of the sequence that was set."""
        crf = self._opened_crf
        if self._size() == 0:
            return 0.0
        if not 0 <= checks.count("pos", pos, -checks.MOST_COUNT) < self._size():
            raise ValueError(f"The position, {pos} is out of range of {self._size()}")
        if self._marginals is None:
            self._marginals = self._lattices().marginals().labels
        return float(self._marginals[pos, _number(crf, y)])

    def _size(self) -> int:
        return 0 if self._arrays is None else len(self._arrays[1]) - 1

    def _lattices(self) -> Any:
        if self._batch is None:
            model = self._opened_crf.model_
            assert self._arrays is not None
            data = Dataset._trusted(*self._arrays, model.vocabulary)
            self._batch = model.batch(Inputs(data, (None,)), 1, self._pairs)
            if model.dense and not model.varying:
                self._pairs = self._batch._core.transition
        return self._batch

    # ---- contents ----------------------------------------------------------------------------------------------

    def info(self) -> ParsedDump:
        """What is in the model, by names; weights as they are, not as `dump` rounds them."""
        if self._crf is None:
            raise RuntimeError("The tagger is not opened")
        return crfsuite_contents(self._crf)

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write what is in the model as text, to a file or to standard output."""
        told = self.info()
        lines = ["FILEHEADER = {", *(f"  {name}: {value}" for name, value in told.header.items()), "}", ""]
        for title, names in (("LABELS", told.labels), ("ATTRIBUTES", told.attributes)):
            lines += [f"{title} = {{", *(f"  {number:>5}: {name}" for name, number in names.items()), "}", ""]
        for title, kind, weights in (
            ("TRANSITIONS", 1, told.transitions),
            ("STATE_FEATURES", 0, told.state_features),
        ):
            rows = (f"  ({kind}) {source} --> {label}: {w:f}" for (source, label), w in weights.items())
            lines += [f"{title} = {{", *rows, "}", ""]
        text = "\n".join(lines) + "\n"
        if filename is None:
            sys.stdout.write(text)
        else:
            with open(filename, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)


def _number(crf: CRF, label: str) -> int:
    try:
        return int(crf.model_.labels.index(label))
    except ValueError:
        raise RuntimeError(f"Failed to convert into label identifier: {label}") from None


def crfsuite_contents(crf: CRF) -> ParsedDump:
    """The contents of a model as CRFsuite would tell them of its file."""
    states = crf.state_features_
    attributes = {name: str(i) for i, name in enumerate(dict.fromkeys(name for name, _ in states))}
    labels = {label: str(i) for i, label in enumerate(crf.classes_)}
    number = {label: i for i, label in enumerate(crf.classes_)}
    pairs = sorted(crf.transition_features_.items(), key=lambda item: (number[item[0][0]], number[item[0][1]]))
    return ParsedDump(crfsuite.header(crfsuite.content(crf.model_)), labels, attributes, dict(pairs), states)
