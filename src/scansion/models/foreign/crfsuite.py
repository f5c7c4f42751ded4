"""CRFsuite's model files, as python-crfsuite and sklearn-crfsuite keep them: read and written.

Conventions: little-endian numbers of 32 bits. A header of 48 bytes tells where five chunks are: features (kind, source,
label, weight; kind 0: the source is an attribute, 1: a label), names of labels and of attributes (two CQDB, constant
quark databases: hash tables from name to number and an array from number to name), and which features each label and
each attribute has. Offsets in a CQDB count from its beginning, others from that of the file.
"""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion._checks import Ints
from scansion._files import replacing
from scansion.data import Vocabulary
from scansion.model_file import check_text
from scansion.models.crf import CRF
from scansion.models.flat_model import FlatModel
from scansion.models.foreign.assemble import Bytes, bounded, decoded, estimator, first_order, ragged
from scansion.models.weights import row_offsets

__all__ = ["content", "header", "read", "write"]

Words = npt.NDArray[np.uint32]

_HEADER = struct.Struct("<4sI4sIIIIIIIII")
_CHUNK = 12
_FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
_TABLES = 256
_NAMES = 24 + 8 * _TABLES  # where the names of a CQDB begin
_BYTE_ORDER = 0x62445371
_LARGEST_FILE = 2**32 - 1


# ---- reading -------------------------------------------------------------------------------------------------------


def read(data: bytes, encoding: str | None = None) -> CRF:
    """The model in a file; ValueError if it is damaged."""
    if len(data) < _HEADER.size:
        raise ValueError(f"it ends within the header, after {len(data)} bytes")
    _, _, kind, version, _, n_labels, n_attributes, features_at, labels_at, attributes_at, *_ = _HEADER.unpack_from(
        data
    )
    if kind != b"FOMC" or version != 100:
        raise ValueError(f"it holds a model {kind!r} of version {version}; known is b'FOMC' of version 100")
    (count,) = _numbers(data, features_at + 8, 1, "the number of features").tolist()
    _check_room(data, features_at + _CHUNK, count, _FEATURE.itemsize, "features")
    features = np.frombuffer(data, _FEATURE, count, features_at + _CHUNK)
    labels = decoded(*_names(data, labels_at, n_labels, "label"), encoding).names()
    attributes = decoded(*_names(data, attributes_at, n_attributes, "attribute"), encoding)
    bounded("feature of kind", features["kind"], 2)
    state = features["kind"] == 0
    label = bounded("label", features["label"], len(labels))
    source, weight = features["source"], features["weight"]
    states = bounded("attribute", source[state], len(attributes)), label[state], weight[state]
    pairs = bounded("label", source[~state], len(labels)), label[~state], weight[~state]
    return estimator(first_order(labels, attributes, states, pairs), "CRFsuite")


def _check_room(data: bytes, at: int, count: int, size: int, name: str) -> None:
    if at + count * size > len(data):
        raise ValueError(f"it ends within {name}: {count} of them at {at} do not fit into {len(data)} bytes")


def _numbers(data: bytes, at: int, count: int, name: str) -> Ints:
    """Numbers of 32 bits."""
    _check_room(data, at, count, 4, name)
    return np.frombuffer(data, "<u4", count, at).astype(np.int64)


def _names(data: bytes, at: int, count: int, name: str) -> tuple[Bytes, Ints]:
    """The names in a CQDB by their numbers 0 .. count - 1: all bytes, and where each begins."""
    if data[at : at + 4] != b"CQDB":
        raise ValueError(f"there are no names of {name}s at {at}")
    if count == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    backward = at + int(_numbers(data, at + 20, 1, f"names of {name}s")[0])
    starts = at + _numbers(data, backward, count, f"names of {name}s") + 8
    content = np.frombuffer(data, np.uint8)
    if int(starts.min()) < at + 8 + _NAMES or int(starts.max()) > len(data):
        raise ValueError(f"a name of the {name}s lies outside of the file")
    sizes = content[starts[:, None] + np.arange(-4, 0)].astype(np.int64) @ (1 << np.arange(0, 32, 8))
    if int(sizes.min()) < 1 or int((starts + sizes).max()) > len(data) or int(sizes.sum()) > len(data):
        raise ValueError(f"a name of the {name}s has a length that does not fit")
    if content[starts + sizes - 1].any():
        raise ValueError(f"a name of the {name}s has no end")
    return ragged(content, starts, sizes - 1)


# ---- writing -------------------------------------------------------------------------------------------------------


def write(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that CRFsuite reads; ValueError if CRFsuite has no such models."""
    made = content(model)
    with replacing(path, "wb") as file:
        file.write(made)


def content(model: Any) -> bytes:
    """A model as the bytes of a file; ValueError if CRFsuite has no such models."""
    _check(model)
    attribute, label, weight = (np.zeros(0, np.int64) for _ in range(3))
    before, after, pair_weight = (np.zeros(0, np.int64) for _ in range(3))
    for block, where in model.parts():
        used = np.flatnonzero(model.weights[where])
        column, found = block.columns[used].astype(np.int64), model.weights[where][used]
        if block.always:
            before, after = np.array([model.patterns[z] for z in column.tolist()], np.int64).reshape(-1, 2).T
            pair_weight = found
        elif block.part == "start":
            attribute, label, weight = block.row[used], column, found
    rows = np.unique(attribute)
    attribute = np.searchsorted(rows, attribute)
    order = np.lexsort((after, before))
    before, after, pair_weight = before[order], after[order], pair_weight[order]
    features = np.zeros(len(label) + len(after), _FEATURE)
    features["kind"][len(label) :] = 1
    features["source"] = np.concatenate([attribute, before])
    features["label"] = np.concatenate([label, after])
    features["weight"] = np.concatenate([weight, pair_weight])
    n = model.n_labels
    chunks = [
        _chunk(b"FEAT", len(features), features.tobytes()),
        _database(*Vocabulary(list(model.labels)).to_arrays()),
        _database(*model.vocabulary.subset(rows).to_arrays()),
    ]
    places = [_HEADER.size]
    for chunk in chunks:
        places.append(places[-1] + len(chunk))
    chunks.append(bytes(-places[3] % 4))
    places[3] += len(chunks[3])
    # CRFsuite keeps room for two labels more, which nothing refers to
    chunks.append(_references(b"LFRF", row_offsets(before, n), len(label), places[3], n + 2))
    places.append(places[3] + len(chunks[4]))
    chunks.append(_references(b"AFRF", row_offsets(attribute, len(rows)), 0, places[4], len(rows)))
    size = places[4] + len(chunks[5])
    if size > _LARGEST_FILE:
        raise ValueError(f"the file would have {size} bytes; CRFsuite's files end at {_LARGEST_FILE}")
    header = _HEADER.pack(b"lCRF", size, b"FOMC", 100, 0, n, len(rows), *places)
    return b"".join([header, *chunks])


def header(data: bytes) -> dict[str, str]:
    """What the header of a file says, as CRFsuite writes it out."""
    magic, size, kind, version, *numbers = _HEADER.unpack_from(data)
    told = {"magic": magic.decode(), "size": str(size), "type": kind.decode(), "version": str(version)}
    names = ("num_features", "num_labels", "num_attrs")
    told |= {name: str(number) for name, number in zip(names, numbers[:3], strict=True)}
    places = ("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs")
    return told | {name: f"0x{number:X}" for name, number in zip(places, numbers[3:], strict=True)}


def _check(model: Any) -> None:
    """Raise unless CRFsuite has such models: chains of first order whose attributes go with single labels."""
    if not isinstance(model, FlatModel) or model.segments:
        raise ValueError("CRFsuite's files hold chains: a SemiCRF or HierarchicalCRF cannot be written as one")
    for z, pattern in enumerate(model.patterns):
        if len(pattern) > 2 or min(pattern) < 0:
            raise ValueError(f"CRFsuite's files hold pairs of labels, not the pattern {model.pattern_name(z)!r}")
    for block, where in model.parts():
        tied = not block.always and bool((model.weights[where][block.columns >= model.n_labels] != 0).any())
        if tied:
            raise ValueError("CRFsuite's files hold attributes of single labels, but some go with pairs here")
    wrong = [y for y in model.labels if not isinstance(y, str)]
    if wrong:
        raise ValueError(f"CRFsuite's labels are strings, got {wrong[0]!r}: convert the labels")
    for label in model.labels:
        check_text(label, "the label")


def _chunk(name: bytes, count: int, body: bytes) -> bytes:
    return struct.pack("<4sII", name, _CHUNK + len(body), count) + body


def _references(name: bytes, cuts: Ints, first: int, at: int, room: int) -> bytes:
    """Which features each source has: they are numbered from `first` on, source after source."""
    n = len(cuts) - 1
    sizes = np.diff(cuts)
    offsets = np.zeros(room, "<u4")
    starts = np.arange(n) + cuts[:-1]
    offsets[:n] = at + _CHUNK + 4 * room + 4 * starts
    body = np.zeros(n + int(cuts[-1]), "<u4")
    inner = np.ones(len(body), np.bool_)
    inner[starts] = False
    body[starts] = sizes
    body[inner] = first + np.arange(int(cuts[-1]))
    return _chunk(name, room, offsets.tobytes() + body.tobytes())


def _database(text: Bytes, offsets: Ints) -> bytes:
    """A CQDB of names by number."""
    n = len(offsets) - 1
    lengths = np.diff(offsets)
    if n and np.isin(0, text):
        raise ValueError("a name holds a NUL, which ends a name in CRFsuite's files")
    places = np.concatenate([[0], np.cumsum(lengths + 9)]).astype(np.int64)  # number, size, name, NUL
    names = np.zeros(int(places[-1]), np.uint8)
    head = np.stack([np.arange(n), lengths + 1], axis=1).astype("<u4").view(np.uint8).reshape(n, 8)
    names[places[:-1, None] + np.arange(8)] = head
    names[np.repeat(places[:-1] + 8 - offsets[:-1], lengths) + np.arange(len(text))] = text
    hashed = _hashed(names, places[:-1] + 8, lengths + 1)
    table = (hashed % _TABLES).astype(np.int64)
    sizes = 2 * np.bincount(table, minlength=_TABLES)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    buckets = np.zeros((2 * n, 2), "<u4")
    where = starts[table] + _placed(table, (hashed >> 8).astype(np.int64) % np.maximum(sizes[table], 1), sizes)
    buckets[where, 0] = hashed
    buckets[where, 1] = _NAMES + places[:-1]
    after = _NAMES + len(names)
    directory = np.zeros((_TABLES, 2), "<u4")
    directory[:, 0] = np.where(sizes > 0, after + 8 * starts[:-1], 0)
    directory[:, 1] = sizes
    backward = after + 16 * n
    total = backward + 4 * n
    header = struct.pack("<4sIIIII", b"CQDB", total, 0, _BYTE_ORDER, n, backward if n else 0)
    links = (_NAMES + places[:-1]).astype("<u4")
    return b"".join([header, directory.tobytes(), names.tobytes(), buckets.tobytes(), links.tobytes()])


def _placed(table: Ints, home: Ints, sizes: Ints) -> Ints:
    """Where linear probing puts each name in its table: at its home, or in the first free place after it.

    In the order of their homes, name i comes to lie at ``max(home_i, place before + 1)``, which is ``i + max over j <=
    i of home_j - j``. Tables are rings: on a second lap names meet those that the first one left over, and as tables
    are half empty there are no more of them on a third.
    """
    n = len(table)
    base = np.concatenate([[0], np.cumsum(3 * sizes)])[table]
    laps = np.concatenate([base + home, base + home + sizes[table]])
    order = np.argsort(laps, kind="stable")
    at = np.arange(2 * n)
    place = np.empty(2 * n, np.int64)
    place[order] = at + np.maximum.accumulate(laps[order] - at)
    found: Ints = (place[n:] - base) % np.maximum(sizes[table], 1)
    return found


def _hashed(content: Bytes, starts: Ints, lengths: Ints) -> Words:
    """Jenkins' hash `hashlittle` (lookup3, 2006) of pieces of bytes, with the initial value 0.

    Twelve bytes are three numbers a, b, c, which are added and mixed; the last twelve or fewer are mixed in another
    way. All pieces are at the same place at once: those that have ended drop out.
    """
    state = np.repeat((0xDEADBEEF + lengths.astype(np.uint32))[:, None], 3, axis=1).astype(np.uint32)
    padded = np.concatenate([content, np.zeros(12, np.uint8)])
    left, at, going = lengths.copy(), starts.copy(), np.arange(len(starts))
    while len(going):
        size = np.minimum(left[going], 12)
        piece = padded[at[going][:, None] + np.arange(12)]
        piece[np.arange(12) >= size[:, None]] = 0
        state[going] += piece.view("<u4").astype(np.uint32)
        last = left[going] <= 12
        _mix(state, going[~last], _ROUNDS)
        _mix(state, going[last], _FINAL)
        left[going] -= 12
        at[going] += 12
        going = going[~last]
    hashed: Words = state[:, 2]
    return hashed


# lookup3: target, what is taken from it (or mixed into it), rotation, and what is added to the latter
_ROUNDS = ((0, 2, 4, 1), (1, 0, 6, 2), (2, 1, 8, 0), (0, 2, 16, 1), (1, 0, 19, 2), (2, 1, 4, 0))
_FINAL = ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24))


def _mix(state: Words, rows: Ints, steps: tuple[tuple[int, ...], ...]) -> None:
    """Mix a, b, c of some rows: within a hash (steps of four numbers), or at its end (of three)."""
    some = state[rows]
    for x, y, turn, *more in steps:
        turned = (some[:, y] << np.uint32(turn)) | (some[:, y] >> np.uint32(32 - turn))
        if more:
            some[:, x] = (some[:, x] - some[:, y]) ^ turned
            some[:, y] += some[:, more[0]]
        else:
            some[:, x] = (some[:, x] ^ some[:, y]) - turned
    state[rows] = some
