"""CRF++'s model files, binary and text (``crf_learn -t``).

A model holds labels, the lines of its template, keys, which are expanded lines, and weights: a key that begins with U
has one for each of the L labels, from its number on; one that begins with B has L x L, of label and next label. In
binary files the keys are a trie in a double array (Darts): unit i has `base` and `check`; the child of a state s by the
byte c is the unit ``base[s] + c + 1`` if its check is ``base[s]``, the end of a key is ``base[s]``, whose own base is
-1 - number.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from scansion._checks import Floats, Ints
from scansion.models.crf import CRF
from scansion.models.foreign.assemble import Bytes, bounded, decoded, strings, templated

__all__ = ["read"]

_HEADER = struct.Struct("<IIdIIII")
_LONGEST = 1 << 16  # bytes in a key
_SPREAD = 1000  # bytes of keys for each unit of their trie, at most


def read(data: bytes, encoding: str | None = None) -> CRF:
    """The model in a file; ValueError if it is damaged."""
    parts = _text(data) if data.startswith(b"version: ") else _binary(data)
    factor, labels, lines, text, offsets, numbers, weights = parts
    if not np.isfinite(factor):
        raise ValueError(f"its cost factor is {factor}")
    names, template = strings(labels, encoding), strings(lines, encoding)
    keys = decoded(text, offsets, encoding)
    if (np.diff(offsets) == 0).any():
        raise ValueError("a key is empty")
    first = text[offsets[:-1]]
    pairs = first == ord("B")
    if not (pairs | (first == ord("U"))).all():
        raise ValueError("a key begins neither with U nor with B")
    bounded("weight", numbers + np.where(pairs, len(names) ** 2, len(names)) - 1, len(weights))
    firsts = np.where(pairs, -1, numbers), np.where(pairs, numbers, -1)
    used = np.flatnonzero(weights)
    with np.errstate(over="ignore"):
        values = weights[used] * factor
    return templated("CRF++", "crf++", template, names, keys, firsts, (used, values))


def _binary(data: bytes) -> tuple[Any, ...]:
    if len(data) < _HEADER.size:
        raise ValueError(f"it ends within the header, after {len(data)} bytes")
    version, _, factor, n_weights, _, trie_size, labels_size = _HEADER.unpack_from(data)
    if version // 100 != 1:
        raise ValueError(f"it has version {version}; known are 100 to 199")
    at = _HEADER.size + labels_size
    lines_size = int.from_bytes(data[at : at + 4], "little")
    trie_at = at + 4 + lines_size
    if trie_at + trie_size + 4 * n_weights != len(data) or trie_size % 8:
        raise ValueError(f"its parts do not add up to the {len(data)} bytes that it has")
    labels = _strings(data[_HEADER.size : at])
    lines = [line for line in _strings(data[at + 4 : trie_at]) if line]
    units = np.frombuffer(data, np.dtype("<i4"), trie_size // 4, trie_at).reshape(-1, 2).astype(np.int64)
    weights = np.frombuffer(data, "<f4", n_weights, trie_at + trie_size).astype(np.float64)
    return factor, labels, lines, *_keys(units[:, 0], units[:, 1] & 0xFFFFFFFF), weights


def _strings(text: bytes) -> list[bytes]:
    """Strings that each end with a NUL."""
    if not text.endswith(b"\0"):
        raise ValueError("its labels or its template have no end")
    return text[:-1].split(b"\0")


def _keys(base: Ints, check: Ints) -> tuple[Bytes, Ints, Ints]:
    """All keys of a trie, their bytes and where each begins, and their numbers; O(bytes of the keys)."""
    size = len(base)
    at = np.arange(size)
    code = at - check
    states = np.flatnonzero((base > 0) & (base < size))
    owner = np.full(size, -1, np.int64)
    owner[base[states]] = states
    if (owner[base[states]] != states).any():
        raise ValueError("two states of its trie share their children")
    inside = (check > 0) & (code >= 0) & (code <= 256)
    parent = np.full(size, -1, np.int64)
    parent[inside] = owner[check[inside]]
    ends = np.flatnonzero(inside & (code == 0) & (base < 0) & (parent >= 0))
    here, total = parent[ends], 0
    levels: list[tuple[Ints, Bytes]] = []
    alive = np.arange(len(ends))
    depth = np.zeros(len(ends), np.int64)
    while len(alive):  # from the ends of all keys to the root, a byte at a time
        alive = alive[here[alive] != 0]
        units = here[alive]
        if (parent[units] < 0).any() or (code[units] == 0).any():
            raise ValueError("a key of its trie does not begin at the root")
        total += len(alive)
        if len(levels) > _LONGEST or total > _SPREAD * size:
            raise ValueError("a key of its trie has no end")
        levels.append((alive, (code[units] - 1).astype(np.uint8)))
        depth[alive] += 1
        here[alive] = parent[units]
    offsets = np.concatenate([[0], np.cumsum(depth)]).astype(np.int64)
    text = np.empty(int(offsets[-1]), np.uint8)
    for k, (some, letters) in enumerate(levels):
        text[offsets[some + 1] - 1 - k] = letters
    return *_stripped(text, offsets), -1 - base[ends]


def _stripped(text: Bytes, offsets: Ints) -> tuple[Bytes, Ints]:
    """Keys without white space at their ends, which is the template's: it is not kept there."""
    ending = text[offsets[1:] - 1] if (np.diff(offsets) > 0).all() else np.zeros(0, np.uint8)
    if not np.isin(ending, np.frombuffer(b" \t\r", np.uint8)).any():
        return text, offsets
    cuts, content = offsets.tolist(), text.tobytes()
    return _joined([content[a:b].rstrip(b" \t\r") for a, b in zip(cuts[:-1], cuts[1:], strict=True)])


def _joined(keys: list[bytes]) -> tuple[Bytes, Ints]:
    offsets = np.concatenate([[0], np.cumsum([len(key) for key in keys])]).astype(np.int64)
    return np.frombuffer(b"".join(keys), np.uint8), offsets


def _text(data: bytes) -> tuple[Any, ...]:
    parts = data.replace(b"\r\n", b"\n").split(b"\n\n", 4)
    if len(parts) < 5:
        raise ValueError(f"it has {len(parts)} of the five parts: header, labels, template, keys, weights")
    header = dict(re.findall(rb"^([a-z-]+): *(\S+)", parts[0], re.MULTILINE))
    if not header.get(b"version", b"").startswith(b"1"):
        raise ValueError("its version is not one of 100 to 199")
    entries = [line.split(b" ", 1) for line in parts[3].split(b"\n")]
    if any(len(entry) < 2 or not re.fullmatch(rb"\d{1,10}", entry[0]) for entry in entries):
        raise ValueError("a line of its keys is not a number and a key")
    numbers = np.array([int(entry[0]) for entry in entries], np.int64)
    factor, weights = float(header.get(b"cost-factor", b"1")), _floats(parts[4])
    labels, lines = parts[1].split(b"\n"), parts[2].split(b"\n")
    return factor, labels, lines, *_joined([entry[1].rstrip(b" \t") for entry in entries]), numbers, weights


def _floats(text: bytes) -> Floats:
    return np.array([float(line) for line in text.split(b"\n") if line], np.float64)
