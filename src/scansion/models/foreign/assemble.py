"""From weights in another tool's order to an estimator.

Conventions: A attributes, L labels. Features are three arrays, or four: attribute, label (or label and next label),
weight. Weights of 0 are left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data import Vocabulary
from scansion.features.templates import Template
from scansion.formats.reading import Reading
from scansion.models.crf import CRF
from scansion.models.flat_model import FlatModel
from scansion.models.weights import Block, Level, row_offsets

__all__ = ["bounded", "decoded", "estimator", "first_order", "ragged", "strings", "templated"]

Bytes = npt.NDArray[np.uint8]

_NAMES_AT_ONCE = 1 << 16
_REMEDY = (
    ": tell its encoding, as in load(path, encoding='euc-jp') or --encoding euc-jp (of Wapiti, latin-1 where patterns "
    "such as '^.?' cut characters of several bytes)"
)


def estimator(model: FlatModel, tool: str, reading: Reading | None = None, **parameters: Any) -> CRF:
    """The estimator of a model; parameters: those that choose the kinds of features that the tool makes."""
    crf = CRF(**parameters)
    crf._finish(model, [], math.nan, f"read from a model of {tool}")
    crf.reading_ = reading
    return crf


def first_order(
    labels: list[str],
    vocabulary: Vocabulary,
    states: tuple[Ints, Ints, Floats],
    pairs: tuple[Ints, Ints, Floats],
    tied: tuple[Ints, Ints, Ints, Floats] | None = None,
) -> FlatModel:
    """A chain of first order.

    Parameters
    ----------
    labels : list of L str
    vocabulary : Vocabulary
        The A attributes.
    states : attribute, label, weight
    pairs : label, next label, weight
        Always on.
    tied : attribute, label, next label, weight, optional
        Attributes on pairs of labels.

    Raises
    ------
    ValueError
        If something is there twice, or a weight is not finite.
    """
    n = len(labels)
    if not n:
        raise ValueError("it has no labels")
    if len(set(labels)) < n:
        raise ValueError("it has a label twice")
    attribute, label, weight = _nonzero(*states)
    before, after, always_weight = _nonzero(*pairs)
    code = before * n + after
    order = np.argsort(code, kind="stable")
    always, always_weight = code[order], always_weight[order]
    others = np.zeros(0, np.int64)
    if tied is not None:
        row, one, two, tied_weight = _nonzero(*tied)
        others = np.setdiff1d(one * n + two, always)
        known = np.concatenate([always, others])
        ranked = np.argsort(known)
        column = n + ranked[np.searchsorted(known, one * n + two, sorter=ranked)]
        attribute, label = np.concatenate([attribute, row]), np.concatenate([label, column])
        weight = np.concatenate([weight, tied_weight])
    order = np.lexsort((label, attribute))
    attribute, label, weight = attribute[order], label[order], weight[order]
    again = (np.diff(attribute) == 0) & (np.diff(label) == 0)
    if again.any() or (np.diff(always) == 0).any():
        raise ValueError("it has a feature twice")
    if not (np.abs(np.concatenate([weight, always_weight])) <= checks.MOST_WEIGHT).all():
        raise ValueError(f"a weight does not lie within +-{checks.MOST_WEIGHT:g}")
    longer = [(int(z) // n, int(z) % n) for z in np.concatenate([always, others]).tolist()]
    patterns = tuple((y,) for y in range(n)) + tuple(longer)
    empty = np.zeros(0, np.int32)
    blocks = [
        Block(0, "pattern", True, np.array([0, len(always)]), np.arange(n, n + len(always), dtype=np.int32)),
        Block(0, "start", False, row_offsets(attribute, len(vocabulary)), label.astype(np.int32)),
        Block(0, "length", False, np.zeros(1, np.int64), empty),
    ]
    level = Level("label", labels, 1, np.zeros((0, 1)), [], Vocabulary())
    return FlatModel([level], vocabulary, blocks, np.concatenate([always_weight, weight]), patterns=patterns)


def templated(
    tool: str,
    dialect: str,
    lines: list[str],
    labels: list[str],
    keys: Vocabulary,
    firsts: tuple[Ints, Ints],
    weights: tuple[Ints, Floats],
) -> CRF:
    """The estimator of a tool whose attributes, here keys, are expanded lines of a template.

    Parameters
    ----------
    tool, dialect : str
    lines : list of str
        The template, empty where attributes are given in files.
    labels : list of L str
    keys : Vocabulary of A
    firsts : two arrays (A,)
        Number of the first weight of each key: of its L weights of labels, and of its L x L of pairs; -1: it has none.
    weights : numbers and values
        Of the weights that are not 0.
    """
    n = len(labels)
    single, double = (np.flatnonzero(first >= 0) for first in firsts)
    start = np.concatenate([firsts[0][single], firsts[1][double]])
    key, width = np.concatenate([single, double]), np.repeat([n, n * n], [len(single), len(double)])
    order = np.argsort(start, kind="stable")
    start, key, width = start[order], key[order], width[order]
    if (np.diff(start) < width[:-1]).any():
        raise ValueError("two keys share a weight")
    number, weight = weights
    owner = np.searchsorted(start, number, "right") - 1
    used = (
        np.flatnonzero((owner >= 0) & (number - start[owner] < width[owner])) if len(start) else np.zeros(0, np.int64)
    )
    owner, weight = owner[used], weight[used]
    row, place, paired = key[owner], number[used] - start[owner], order[owner] >= len(single)
    # lines without a marker are always on: those of pairs are no attributes at all
    plain = [line for line in map(str.strip, lines) if line[:1] in ("B", "b", "*") and "%" not in line]
    always = paired & np.isin(row, [keys.index(line) for line in plain if line in keys])
    repeats = np.bincount([keys.index(line) for line in plain if line in keys], minlength=len(keys))
    stars = [line for line in plain if line[0] == "*" and line in keys]
    if stars:
        keys = Vocabulary(["U" + name[1:] if name in stars else name for name in keys.names()])
    states = row[~paired], place[~paired], weight[~paired]
    code, place_of = np.unique(place[always], return_inverse=True)
    counted = weight[always] * repeats[row[always]]  # a line that is there twice counts twice, as attributes do
    total: Floats = np.bincount(place_of, counted, len(code)).astype(np.float64)
    some = paired & ~always
    tied = row[some], place[some] // n, place[some] % n, weight[some]
    model = first_order(labels, keys, states, (code // n, code % n, total), tied)
    template = Template("\n".join(lines), dialect) if lines else None
    reading = None if template is None else Reading(template=template.text, dialect=dialect)
    orders = {"B": 1, "b": 1, "*": (0, 1)} if template is None else template.attribute_orders
    given = {"order": 1 if len(double) else 0, "attribute_orders": orders or None}
    return estimator(model, tool, reading, **given, all_possible_states=True, all_possible_transitions=True)


def _nonzero(*features: Any) -> Any:
    """Features whose weight, the last array, is not 0; numbers as int64."""
    weight = np.asarray(features[-1], np.float64)
    kept = np.flatnonzero(weight)
    return *(np.asarray(numbers)[kept].astype(np.int64) for numbers in features[:-1]), weight[kept]


def bounded(name: str, numbers: Any, size: int) -> Any:
    """Numbers that are all below `size`, or ValueError."""
    if len(numbers) and int(numbers.max()) >= size:
        raise ValueError(f"it speaks of {name} {int(numbers.max())}, but there are {size}")
    return numbers


def ragged(data: Bytes, starts: Ints, lengths: Ints) -> tuple[Bytes, Ints]:
    """Pieces of bytes one after another, and where each begins; they lie within the data."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    text = np.empty(int(offsets[-1]), np.uint8)
    for first in range(0, len(starts), _NAMES_AT_ONCE):
        cuts = offsets[first : first + _NAMES_AT_ONCE + 1]
        some = slice(first, first + len(cuts) - 1)
        places = np.arange(cuts[0], cuts[-1]) + np.repeat(starts[some] - cuts[:-1], lengths[some])
        text[cuts[0] : cuts[-1]] = data[places]
    return text, offsets


def decoded(text: Bytes, offsets: Ints, encoding: str | None) -> Vocabulary:
    """Names by number; ValueError where they are not in the encoding (None: UTF-8), or not distinct."""
    if encoding is None:
        try:
            return Vocabulary.from_arrays(text, offsets)
        except ValueError as error:
            raise ValueError(f"{error}{_REMEDY if 'UTF-8' in str(error) else ''}") from None
    cuts, content = offsets.tolist(), text.tobytes()
    return Vocabulary(strings([content[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)], encoding))


def strings(pieces: list[bytes], encoding: str | None) -> list[str]:
    """Pieces of bytes as text; ValueError where they are not in the encoding (None: UTF-8)."""
    try:
        return [piece.decode(encoding or "utf-8") for piece in pieces]
    except UnicodeDecodeError as error:
        raise ValueError(f"{error}{_REMEDY}") from None
