"""Altered models of CRFsuite, CRF++ and Wapiti: refused with `ModelFileError`, or in order.

    python -m fuzz.foreign_models --seconds 60 --seed 1

A file is altered in some bytes, numbers or pieces and loaded. What loads is asked everything. Faults are: other
exceptions than our own, answers that are not finite, more memory than a small file may take.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

from fuzz.model_files import MODELS, NUMBERS, limited, tried

__all__ = ["altered", "files", "run"]

FOLDER = Path(__file__).parent.parent / "tests" / "foreign"


def files() -> dict[str, bytes]:
    """The models that are altered."""
    with tempfile.TemporaryDirectory() as folder:
        MODELS["crf"]().save(Path(folder, "model"), format="crfsuite")
        found = {"crfsuite": Path(folder, "model").read_bytes()}
    return found | {path.name: path.read_bytes() for path in sorted(FOLDER.glob("*.model"))}


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


def run(seconds: float, seed: int) -> dict[str, int]:
    """Altered files until the time is over; prints the faults and returns how many files, loaded ones and faults."""
    rng, contents = np.random.default_rng(seed), files()
    counts = dict.fromkeys(("files", "loaded", "faults"), 0)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, limited():
        path = Path(folder, "model")
        while time.monotonic() < end:
            name = list(contents)[counts["files"] % len(contents)]
            made = altered(rng, contents[name])
            path.write_bytes(made)
            counts["files"] += 1
            try:
                counts["loaded"] += tried(path, thorough=counts["files"] % 10 == 0)
            except BaseException:
                counts["faults"] += 1
                print(f"FAULT: seed {seed}, {name}, file {counts['files']}\n{traceback.format_exc()}", flush=True)
    return counts


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    counts = run(args.seconds, args.seed)
    print(", ".join(f"{n} {name}" for name, n in counts.items()))
    return 1 if counts["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
