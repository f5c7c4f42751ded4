"""Altered models of CRFsuite, CRF++ and Wapiti: refused with `ModelFileError`, or in order.

A file is altered in some bytes, numbers or pieces and loaded. What loads is asked everything. Faults are: other
exceptions than our own, answers that are not finite, more memory than a small file may take.
"""

from __future__ import annotations

import functools
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz.model_files import FILES, MODELS, NUMBERS, limited, tried

SEEDS = sorted(Path(__file__).parent.parent.joinpath("tests", "foreign").glob("*.model"))


@functools.cache
def files() -> dict[str, bytes]:
    """The models that are altered."""
    with tempfile.TemporaryDirectory() as folder:
        MODELS["crf"]().save(Path(folder, "model"), format="crfsuite")
        found = {"crfsuite": Path(folder, "model").read_bytes()}
    return found | {path.name: path.read_bytes() for path in SEEDS}


def altered(rng: np.random.Generator, content: bytes) -> bytes:
    """A file with some bytes altered; half of them at its beginning, where sizes and places are."""
    result = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        near = min(len(result), 200) if rng.random() < 0.5 else len(result)
        at, other, size = int(rng.integers(near)), int(rng.integers(len(result))), int(rng.integers(1, 40))
        way = int(rng.integers(7))
        if way == 0:
            result[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            result[at] = int(rng.choice(list(b"0123456789-.:=#,\n \0xpUB*ub")))
        elif way == 2:
            result[at : at + size] = result[other : other + size]
        elif way == 3:
            at -= at % 4
            result[at : at + 4] = struct.pack("<I", int(rng.choice(NUMBERS)) % 2**32)
        elif way == 4:
            at -= at % 4
            (old,) = struct.unpack("<I", bytes(result[at : at + 4]).ljust(4, b"\0"))
            result[at : at + 4] = struct.pack("<I", (old + int(rng.integers(-9, 10))) % 2**32)
        elif way == 5:
            del result[at : at + size]
        else:
            result[at : at + 8] = struct.pack("<d", rng.choice([np.inf, np.nan, 1e101, -1e308, 5e-324]))
        if not result:
            break
    return bytes(result)


def round_of(name: str, rng: np.random.Generator) -> int:
    """Altered files of one kind: how many."""
    content = files()[name]
    with tempfile.TemporaryDirectory() as folder, limited():
        path = Path(folder, "model")
        for number in range(FILES):
            made = altered(rng, content)
            path.write_bytes(made)
            try:
                tried(path, thorough=number % 10 == 0)
            except BaseException as error:
                raise AssertionError(f"file {number} of a round of {name}: {type(error).__name__}: {error}") from error
    return FILES


KINDS: dict[str, Callable[[np.random.Generator], int]] = {
    name.split(".")[0]: functools.partial(round_of, name) for name in ("crfsuite", *(path.name for path in SEEDS))
}
