"""Tag schemes: segments written as one label per token, and back.

Conventions
-----------
- Segments are half-open, ``(start, stop, label)``, positions count from 0.
- A label of a tag scheme is a tag and a type, ``B-NP`` (or ``NP-B`` with ``suffix=True``). The delimiter
  nearest to the tag separates them, so types may contain it. A bare tag has the type ``""``.
- Everything outside the segments carries one label, ``"O"`` unless said otherwise.

========  =====  ====================================================================================
scheme    tags   a segment of several tokens; of one token
========  =====  ====================================================================================
iob1      I B    ``I I I``; ``I``. The first tag is B only if it touches a segment of its own type
iob2      B I    ``B I I``; ``B`` (also called bio)
ioe1      I E    ``I I I``; ``I``. The last tag is E only if it touches a segment of its own type
ioe2      I E    ``I I E``; ``E``
iobes     BIES   ``B I E``; ``S`` (also called bioes)
bilou     BILU   ``B I L``; ``U``
plain     none   adjacent equal labels are one segment
conlleval any    reading only: the rules of the CoNLL-2000 evaluation script, letter by letter
========  =====  ====================================================================================

References
----------
Ramshaw and Marcus (1995), Text chunking using transformation-based learning (IOB).
Tjong Kim Sang and Veenstra (1999), Representing text chunks (IOB1, IOB2, IOE1, IOE2).
Tjong Kim Sang and Buchholz (2000), Introduction to the CoNLL-2000 shared task (conlleval).
Ratinov and Roth (2009), Design challenges and misconceptions in named entity recognition (BILOU).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion.segments import Segment

__all__ = [
    "SCHEMES",
    "Neighbours",
    "Segment",
    "Transitions",
    "convert",
    "covered",
    "detect",
    "encode",
    "neighbours",
    "scheme_name",
    "segments",
    "transitions",
]

SCHEMES = ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou", "plain", "conlleval")

_ALIASES = {"bio": "iob2", "bioes": "iobes"}

# The tags of the first, inner and last token of a segment, and of the only one.
_TAGS = {"iob1": "IIII", "iob2": "BIIB", "ioe1": "IIII", "ioe2": "IIEE", "iobes": "BIES", "bilou": "BILU"}

# Tag -> role; B and S open a segment, E and S close one.
_ROLES = {
    "iob1": {"B": "B", "I": "I"},
    "iob2": {"B": "B", "I": "I"},
    "ioe1": {"I": "I", "E": "E"},
    "ioe2": {"I": "I", "E": "E"},
    "iobes": {"B": "B", "I": "I", "E": "E", "S": "S"},
    "bilou": {"B": "B", "I": "I", "L": "E", "U": "S"},
}

# detect() prefers the earlier of two schemes that fit equally well.
_DETECTION_ORDER = ("iob2", "ioe2", "iobes", "bilou", "iob1", "ioe1")

# conlleval: (previous tag, tag) between which a chunk ends or starts when the type stays the same.
_CHUNK_ENDS = frozenset(tuple(pair) for pair in ("BB", "BO", "IB", "IO", "EE", "EI", "EO"))
_CHUNK_STARTS = frozenset(tuple(pair) for pair in ("BB", "IB", "OB", "OI", "OE", "EE", "EI"))


def segments(
    labels: Iterable[Any],
    scheme: str = "iob2",
    *,
    strict: bool = False,
    suffix: bool = False,
    delimiter: str = "-",
    outside: Any = None,
) -> list[Segment]:
    """Segments of one label sequence, from left to right.

    Between two tokens inside segments there is a boundary if and only if the type changes, the left tag
    closes (E, S, L, U) or the right tag opens (B, S, U). Every label sequence can be read that way,
    malformed ones as conlleval does: an I after O starts a segment, and so does a change of type. IOB1 and
    IOB2 therefore read alike, and so do IOE1 and IOE2, unless `strict`. O(T).

    Parameters
    ----------
    labels : iterable
        One label per token.
    scheme : str
        One of `SCHEMES`, see the module's table, or "bio", "bioes"; case does not matter.
    strict : bool
        Raise where a label is not the one that `encode` would write.
    suffix : bool
        The tag is behind the type, ``NP-B``.
    delimiter : str
        What separates tag and type.
    outside : optional
        The label outside the segments. None means "O", for plain labels that there is none: every token
        belongs to a segment.

    Returns
    -------
    list of Segment

    Raises
    ------
    ValueError
        For a label that is not of the scheme, with its position, and under `strict` for a malformed one.

    Notes
    -----
    "conlleval" keeps the script's gaps: an E before a B of the same type ends nothing (iobes and bilou put
    a boundary there), ``[`` and ``]`` are chunks of length one, ``.`` is outside.

    Examples
    --------
    >>> segments(["B-NP", "I-NP", "O", "I-VP"])
    [Segment(start=0, stop=2, label='NP'), Segment(start=3, stop=4, label='VP')]
    """
    name = _scheme(scheme)
    sequence = _as_list(labels)
    outside = _options(outside, strict=strict, suffix=suffix)
    if name == "plain":
        return _plain_segments(sequence, outside)
    if name == "conlleval" and strict:
        raise ValueError("strict=True needs a scheme of its own; 'conlleval' reads tags of any scheme")
    outside = "O" if outside is None else outside
    tags = _parse(sequence, name, suffix, _delimiter(delimiter), outside)
    found = _conlleval_segments(tags) if name == "conlleval" else _tag_segments(tags)
    if strict:
        expected = encode(found, len(sequence), name, suffix=suffix, delimiter=delimiter, outside=outside)
        for position, (label, wanted) in enumerate(zip(sequence, expected, strict=True)):
            if label != wanted:
                raise ValueError(
                    f"label {label!r} at position {position} is malformed {name}: expected {wanted!r}; "
                    "strict=False reads it as conlleval does"
                )
    return found


def encode(
    segments: Iterable[tuple[int, int, Any]],
    length: int,
    scheme: str = "iob2",
    *,
    strict: bool = False,
    suffix: bool = False,
    delimiter: str = "-",
    outside: Any = None,
) -> list[Any]:
    """Labels of one sequence of `length` tokens from its segments, the inverse of `segments`.

    Parameters
    ----------
    segments : iterable of (start, stop, label)
        In any order, without overlaps. Tag schemes need labels that are strings.
    length : int
        Number of tokens.
    scheme, suffix, delimiter : str, bool, str
        As for `segments`.
    strict : bool
        Raise if plain labels would merge touching segments with the same label, or turn a segment into
        a gap, because it has the outside label.
    outside : optional
        The label of the gaps. None means "O"; plain labels have no such default, and gaps raise.

    Returns
    -------
    list
        One label per token.

    Raises
    ------
    ValueError
        For segments that overlap, are empty or leave the sequence, naming them.

    Examples
    --------
    >>> encode([(0, 2, "NP"), (3, 4, "VP")], 4)
    ['B-NP', 'I-NP', 'O', 'B-VP']
    """
    name = _scheme(scheme)
    if name == "conlleval":
        raise ValueError("scheme 'conlleval' is for reading only; encode with one of " + ", ".join(SCHEMES[:-1]))
    items = _checked(segments, length)
    outside = _options(outside, strict=strict, suffix=suffix)
    if name == "plain":
        return _plain_labels(items, length, outside, strict)
    delimiter = _delimiter(delimiter)
    labels: list[Any] = ["O" if outside is None else outside] * length
    for index, (start, stop, label) in enumerate(items):
        if not isinstance(label, str):
            raise ValueError(f"segment {(start, stop, label)!r}: scheme {name!r} needs a string as label")
        first, inner, last, only = list(_TAGS[name])
        if name == "iob1" and index and items[index - 1][1:] == (start, label):
            first = only = "B"
        if name == "ioe1" and index + 1 < len(items) and items[index + 1][::2] == (stop, label):
            last = only = "E"
        tags = [only] if stop - start == 1 else [first, *[inner] * (stop - start - 2), last]
        if label:
            tags = [f"{label}{delimiter}{tag}" if suffix else f"{tag}{delimiter}{label}" for tag in tags]
        labels[start:stop] = tags
    return labels


def covered(
    segments: Iterable[tuple[int, int, Any]], length: int, outside: Any = "O", merge: bool = False
) -> list[tuple[int, int, Any]]:
    """Segments in order, and one for each token that they leave out: what `SemiCRF` takes as a whole sequence.

    Parameters
    ----------
    segments : iterable of (start, stop, label)
        From left to right, without overlaps.
    length : int
        Number of tokens.
    outside : optional
        The label of what lies outside.
    merge : bool
        One segment for each stretch outside, and not for each token.

    Examples
    --------
    >>> covered(segments(["O", "B-NP", "I-NP"]), 3)
    [(0, 1, 'O'), (1, 3, 'NP')]
    """
    result: list[tuple[int, int, Any]] = []

    def fill(start: int, stop: int) -> None:
        if merge and start < stop:
            result.append((start, stop, outside))
        elif not merge:
            result.extend((t, t + 1, outside) for t in range(start, stop))

    checks.flag("merge", merge)
    checks.count("length", length, 0)
    at = 0
    for start, stop, label in _checked(segments, length):
        fill(at, start)
        result.append((start, stop, label))
        at = stop
    fill(at, length)
    return result


def convert(
    labels: Iterable[Any],
    source: str,
    target: str,
    *,
    strict: bool = False,
    suffix: bool = False,
    delimiter: str = "-",
    outside: Any = "O",
) -> list[Any]:
    """Labels of one sequence, rewritten from one scheme in another.

    Parameters
    ----------
    labels : iterable
        One label per token.
    source, target : str
        Schemes, see `segments`.
    strict : bool
        Raise for labels that are malformed in `source`, and where plain labels would lose a boundary.
    suffix, delimiter : bool, str
        As for `segments`, on both sides.
    outside : optional
        The label outside the segments on both sides. With None, plain labels have no outside.

    Returns
    -------
    list
        One label per token.

    Examples
    --------
    >>> convert(["I-NP", "I-NP", "B-NP", "O"], "iob1", "iobes")
    ['B-NP', 'E-NP', 'S-NP', 'O']
    """
    sequence = _as_list(labels)
    found = segments(sequence, source, strict=strict, suffix=suffix, delimiter=delimiter, outside=outside)
    return encode(found, len(sequence), target, strict=strict, suffix=suffix, delimiter=delimiter, outside=outside)


def detect(
    label_sequences: Iterable[Iterable[Any]],
    *,
    suffix: bool = False,
    delimiter: str = "-",
    outside: Any = "O",
) -> str:
    """Scheme of some label sequences, guessed.

    Among the schemes that know all the tags, the one in which the fewest labels are malformed; of several,
    the first of iob2, ioe2, iobes, bilou, iob1, ioe1. "plain" if there is no such scheme, "iob2" if there is
    nothing but `outside`.

    Parameters
    ----------
    label_sequences : iterable of iterables
        One label per token.
    suffix, delimiter, outside : bool, str, optional
        As for `segments`.

    Returns
    -------
    str

    Examples
    --------
    >>> detect([["I-NP", "B-NP", "O"], ["I-VP"]])
    'iob1'
    """
    sequences = [_as_list(labels) for labels in label_sequences]
    delimiter = _delimiter(delimiter)
    outside = _options("O" if outside is None else outside, suffix=suffix)
    used: set[str] = set()
    for sequence in sequences:
        for label in sequence:
            if not isinstance(label, str):
                return "plain"
            if label != outside:
                used.add(_split(label, suffix, delimiter)[0])
    best, fewest = "plain", -1
    for scheme in _DETECTION_ORDER:
        if used <= _ROLES[scheme].keys():
            malformed = 0
            for sequence in sequences:
                again = convert(sequence, scheme, scheme, suffix=suffix, delimiter=delimiter, outside=outside)
                malformed += sum(map(operator.ne, sequence, again))
            if fewest < 0 or malformed < fewest:
                best, fewest = scheme, malformed
    return best


class Neighbours(NamedTuple):
    """What a scheme says of two labels side by side; the last row (column) stands for the begin (end) of a sequence.

    Attributes
    ----------
    types : list of str
        The types of segments.
    type_of : int (L,)
        The type of each label, -1 outside.
    begins : bool (L + 1, L)
        A segment begins with the second label.
    valid : bool (L + 1, L + 1)
        `encode` may write the two labels so.
    """

    types: list[str]
    type_of: npt.NDArray[np.int64]
    begins: npt.NDArray[np.bool_]
    valid: npt.NDArray[np.bool_]


def neighbours(
    labels: Iterable[Any], scheme: str, *, suffix: bool = False, delimiter: str = "-", outside: Any = None
) -> Neighbours:
    """How distinct labels of a tag scheme read side by side; ValueError for a label that is not of the scheme."""
    name = scheme_name(scheme)
    sequence = _as_list(labels)
    if name not in _ROLES:
        raise ValueError(f"scheme {name!r} has no tags of its own; choose one of {', '.join(_ROLES)}")
    outside = _options("O" if outside is None else outside, suffix=suffix)
    parsed = [*_parse(sequence, name, suffix, _delimiter(delimiter), outside), ("O", "")]  # the last: begin and end
    role = np.array([tag for tag, _ in parsed])
    types = list(dict.fromkeys(kind for tag, kind in parsed if tag != "O"))
    kind = np.array([types.index(kind) if tag != "O" else -1 for tag, kind in parsed], np.int64)
    inside, alike = kind >= 0, kind[:, None] == kind
    closes, opens = np.isin(role, ("E", "S")), np.isin(role, ("B", "S"))
    both = inside[:, None] & inside
    boundary = both & (~alike | closes[:, None] | opens)
    begins = inside & (~inside[:, None] | boundary)
    ends = inside[:, None] & (~inside | boundary)
    touches = both & alike
    right = {"iob1": begins & touches, "ioe1": True, "ioe2": True}.get(name, begins)  # where the second must open
    left = {"ioe1": ends & touches, "iob1": True, "iob2": True}.get(name, ends)  # where the first must close
    valid = np.ones(begins.shape, np.bool_)
    if right is not True:
        valid &= ~inside | (opens == right)
    if left is not True:
        valid &= ~inside[:, None] | (closes[:, None] == left)
    return Neighbours(types, kind[:-1], begins[:, :-1], valid)


def scheme_name(scheme: str) -> str:
    """The name of a scheme, one of `SCHEMES`, from that or another of its names."""
    return _scheme(scheme)


class Transitions(NamedTuple):
    """Which labels may follow each other: scores 0 and, where they may not, -inf, for chains of given scores.

    Attributes
    ----------
    transition : (L, L)
        From row to column.
    start, end : (L,)
        Of the first and of the last label.
    """

    transition: np.ndarray[Any, np.dtype[np.float64]]
    start: np.ndarray[Any, np.dtype[np.float64]]
    end: np.ndarray[Any, np.dtype[np.float64]]


def transitions(
    labels: Iterable[Any], scheme: str = "iob2", *, suffix: bool = False, delimiter: str = "-", outside: Any = None
) -> Transitions:
    """Which of some labels may follow each other in a scheme: those that `encode` writes side by side.

    Parameters
    ----------
    labels : iterable
        L labels, in the order of the scores' columns.
    scheme, suffix, delimiter, outside
        As for `segments`; "plain" allows everything.

    Examples
    --------
    >>> rules = transitions(["O", "B-NP", "I-NP"], "iob2")
    >>> np.isfinite(rules.transition).astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    >>> import scansion
    >>> unary = np.log([[0.3, 0.1, 0.6], [0.2, 0.2, 0.6]])
    >>> scansion.ChainLattice(unary, *rules).viterbi()[0]  # a phrase begins with B
    array([1, 2])
    """
    name, names = _scheme(scheme), _as_list(labels)
    if name == "plain":
        return Transitions(*(np.zeros(shape) for shape in ((len(names), len(names)), len(names), len(names))))
    if name == "conlleval":
        raise ValueError("scheme 'conlleval' reads tags of any scheme and allows everything; name one of the others")
    scores = np.where(neighbours(names, name, suffix=suffix, delimiter=delimiter, outside=outside).valid, 0.0, -np.inf)
    return Transitions(scores[:-1, :-1].copy(), scores[-1, :-1].copy(), scores[:-1, -1].copy())


def _scheme(scheme: str) -> str:
    name = str(scheme).lower()
    name = _ALIASES.get(name, name)
    if name not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; known: {', '.join((*SCHEMES, *_ALIASES))}")
    return name


def _delimiter(delimiter: str) -> str:
    if not isinstance(delimiter, str):
        raise ValueError(f"delimiter must be a string, got {delimiter!r}")
    if not delimiter:
        raise ValueError("delimiter is empty; tag and type need something between them")
    return delimiter


def _options(outside: Any, **flags: Any) -> Any:
    """The label outside, after checks of it and of what is yes or no."""
    for name, value in flags.items():
        checks.flag(name, value)
    checks.label("outside", outside)
    return outside


def _as_list(labels: Iterable[Any]) -> list[Any]:
    # tolist, item: NumPy scalars become the Python ones that users compare with.
    found = list(checks.plain("labels", labels).tolist() if isinstance(labels, np.ndarray) else labels)
    for t, label in enumerate(found):
        if isinstance(label, np.ndarray):
            raise ValueError(f"label {t} is an array of shape {label.shape}: a label must be one value")
        if isinstance(label, np.generic):
            found[t] = label.item()
    return found


def _split(label: str, suffix: bool, delimiter: str) -> tuple[str, str]:
    """Tag and type of a label."""
    if suffix:
        kind, _, tag = label.rpartition(delimiter)
    else:
        tag, _, kind = label.partition(delimiter)
    return tag, kind


def _parse(sequence: list[Any], scheme: str, suffix: bool, delimiter: str, outside: Any) -> list[tuple[str, str]]:
    """Role ("O" outside; conlleval: the tag itself) and type of each label."""
    roles = _ROLES.get(scheme)
    known: dict[str, tuple[str, str]] = {}
    parsed = []
    for position, label in enumerate(sequence):
        if not isinstance(label, str):
            raise ValueError(f"label {label!r} at position {position} is not a string; scheme 'plain' takes any label")
        if label not in known:
            tag, kind = _split(label, suffix, delimiter)
            if label == outside:
                tag, kind = "O", ""
            elif roles is not None:
                if tag not in roles:
                    raise ValueError(
                        f"label {label!r} at position {position} has no tag of scheme {scheme!r} "
                        f"({', '.join(roles)}, or {outside!r} outside); detect() guesses the scheme, "
                        "'plain' takes any label"
                    )
                tag = roles[tag]
            known[label] = tag, kind
        parsed.append(known[label])
    return parsed


def _tag_segments(tags: list[tuple[str, str]]) -> list[Segment]:
    found = []
    start = -1  # of the open segment
    before, kind_before = "O", ""
    for t, (role, kind) in enumerate([*tags, ("O", "")]):
        if start >= 0 and (role in ("O", "B", "S") or before in ("E", "S") or kind != kind_before):
            found.append(Segment(start, t, kind_before))
            start = -1
        if start < 0 and role != "O":
            start = t
        before, kind_before = role, kind
    return found


def _conlleval_segments(tags: list[tuple[str, str]]) -> list[Segment]:
    found = []
    start = -1
    before, kind_before = "O", ""
    for t, (tag, kind) in enumerate([*tags, ("O", "")]):
        pair, change = (before, tag), kind != kind_before
        ends = pair in _CHUNK_ENDS or before in ("[", "]") or (change and before not in ("O", "."))
        starts = pair in _CHUNK_STARTS or tag in ("[", "]") or (change and tag not in ("O", "."))
        if start >= 0 and (ends or starts or t == len(tags)):
            found.append(Segment(start, t, kind_before))
            start = -1
        if starts:
            start = t
        before, kind_before = tag, kind
    return found


def _plain_segments(sequence: list[Any], outside: Any) -> list[Segment]:
    found = []
    start = 0
    for t, label in enumerate(sequence):
        checks.label(f"label {t}", label)
    for t in range(1, len(sequence) + 1):
        if t == len(sequence) or sequence[t] != sequence[start]:
            if outside is None or sequence[start] != outside:
                found.append(Segment(start, t, sequence[start]))
            start = t
    return found


def _plain_labels(items: list[Segment], length: int, outside: Any, strict: bool) -> list[Any]:
    labels: list[Any] = [outside] * length
    end = 0
    for index, (start, stop, label) in enumerate([*items, Segment(length, length, None)]):
        if start > end and outside is None:
            raise ValueError(
                f"no segment covers positions {end} to {start - 1}; plain labels need outside=... for gaps"
            )
        if strict and stop > start:
            if index and items[index - 1][1:] == (start, label):
                left = tuple(items[index - 1])
                raise ValueError(f"plain labels would merge the segments {left} and {(start, stop, label)}")
            if outside is not None and label == outside:
                raise ValueError(f"segment {(start, stop, label)} has the outside label {outside!r}")
        labels[start:stop] = [label] * (stop - start)
        end = stop
    return labels


def _checked(segments: Iterable[tuple[int, int, Any]], length: Any) -> list[Segment]:
    """Segments in order, after the checks of `encode`."""
    if length is not None:
        if not isinstance(length, (int, np.integer)) or length >= 2**31:
            raise ValueError(f"length must be an integer below 2^31, got {length!r}")
        if length < 0:
            raise ValueError(f"length is {length}; it must not be negative")
    items = []
    for index, item in enumerate(segments):
        try:
            start, stop, label = item
            segment = Segment(operator.index(start), operator.index(stop), label)
        except (TypeError, ValueError):
            raise ValueError(f"segment {index} is {item!r}; expected (start, stop, label)") from None
        if not 0 <= segment.start < segment.stop or (length is not None and segment.stop > length):
            bound = "" if length is None else f" <= {length}, the length"
            raise ValueError(f"segment {index} is {tuple(segment)!r}; expected 0 <= start < stop{bound}")
        items.append(segment)
    items.sort(key=operator.attrgetter("start"))
    for left, right in zip(items, items[1:], strict=False):
        if right.start < left.stop:
            raise ValueError(f"the segments {tuple(left)!r} and {tuple(right)!r} overlap")
    return items


# ---- truth and prediction side by side, for the metrics ------------------------------------------
def _pairs(
    y_true: Iterable[Iterable[Any]],
    y_pred: Iterable[Iterable[Any]],
    name: str = "y_pred",
    *,
    equal: bool = True,
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Both sides as lists, of the same number of sequences, and these of equal lengths."""
    true, pred = list(map(_as_list, y_true)), list(map(_as_list, y_pred))
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} sequences, {name} has {len(pred)}")
    for index, (t, p) in enumerate(zip(true, pred, strict=True)):
        if equal and len(t) != len(p):
            raise ValueError(f"sequence {index}: y_true has {len(t)} labels, {name} has {len(p)}")
    return true, pred


def _segment_sets(
    true: list[list[Any]], pred: list[list[Any]], name: str, scheme: str, reading: dict[str, Any]
) -> list[tuple[set[Segment], set[Segment]]]:
    """Both sides of each sequence as sets of segments, after the checks."""
    kinds = [_holds_segments(true), _holds_segments(pred)]
    if None in kinds:  # nothing but empty sequences: of the other side's kind
        kinds = [any(kinds)] * 2
    if not any(kinds):
        _pairs(true, pred, name)
    columns: list[list[set[Segment]]] = [[], []]
    for side, sequences, others in ((0, true, pred), (1, pred, true)):
        for index, sequence in enumerate(sequences):
            try:
                if kinds[side]:
                    found = _checked(sequence, None if kinds[1 - side] else len(others[index]))
                else:
                    found = segments(sequence, scheme, **reading)
            except ValueError as error:
                raise ValueError(f"{name if side else 'y_true'}[{index}]: {error}") from None
            try:
                columns[side].append(set(found))
            except TypeError:
                raise ValueError(f"{name if side else 'y_true'}[{index}]: a label has no hash") from None
    return list(zip(*columns, strict=True))


def _holds_segments(sequences: list[list[Any]]) -> bool | None:
    """Whether the sequences list segments, not labels; None if all are empty."""
    first = next((sequence[0] for sequence in sequences if sequence), None)
    if isinstance(first, (tuple, list)) and len(first) == 3:
        return all(hasattr(position, "__index__") for position in first[:2])
    return False if any(sequences) else None
