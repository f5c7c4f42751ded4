"""Altered files of models and data sets, with checksums made right again: refused with `ModelFileError`, or in order.

A round takes a file, alters bytes of it or pieces of its metadata and arrays some times, and loads the results. What
loads is asked everything. Faults are: other exceptions than our own, answers that are not finite, more memory than a
small file may take, a process that dies or does not answer.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import math
import os
import struct
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import scansion as sc
from scansion import model_file
from scansion.data import Dataset, encode

__all__ = ["KINDS", "alterations", "ask", "made", "written"]

MEMORY = 4 << 30  # bytes that a round may take beyond what the process has
FILES = 25  # altered files in a round

WORDS = [[f"w{(7 * b + 3 * t) % 11}" for t in range(2 + b % 4)] for b in range(12)]
X = [[{"w": word, "n": float(t % 3)} for t, word in enumerate(words)] for words in WORDS]
Y = [["ABC"[int(word[1:]) % 3] for word in words] for words in WORDS]
SEGMENTS = [[(t, min(t + 2, len(row)), row[t]) for t in range(0, len(row), 2)] for row in Y]
TREES = [{"top": [(0, 1, "P"), (1, len(row), "Q")], "low": row} for row in Y]
COLUMNS = [np.array([[t % 3, len(word)] for t, word in enumerate(words)], np.float64) for words in WORDS]
PARTS = {"top": {"w": ("start", "end"), "n": "inner"}, "low": ("inside", "transition", "initialisation", "ending")}

# ---- models --------------------------------------------------------------------------------------
MODELS: dict[str, Callable[[], Any]] = {
    "crf": lambda: sc.CRF(max_iterations=5).fit(X, Y),
    "order_2": lambda: sc.CRF(2, c1=0.1, max_iterations=8, attribute_orders={"w:w1": (0, 2)}).fit(X, Y),
    "patterns": lambda: sc.CRF(patterns=[(sc.BOS, "A"), ("A", "B", sc.EOS)], max_iterations=5).fit(X, Y),
    "semicrf": lambda: sc.SemiCRF(
        2, c1=0.02, length_features=("bins", "log"), attribute_parts={"w": ("start", "end"), "n": "inner"}
    ).fit(X, SEGMENTS),
    "hierarchical": lambda: sc.HierarchicalCRF(
        ["top", "low"], max_iterations=8, attribute_parts=PARTS, length_features={"top": ("bins", "log")}
    ).fit(X, TREES),
    "free": lambda: sc.HierarchicalCRF(
        ["top", "low"], max_iterations=5, max_length="free", length_features="length", topology="all"
    ).fit(X, TREES),
    "families": lambda: sc.SemiCRF(
        max_iterations=5,
        max_length="by label",
        length_features={"A": "histogram", "B": ("segment", "negative binomial"), "C": (1, 2)},
        rules="at_most_once(A) | never(B, C)",
    ).fit(X, SEGMENTS),
    "classes": lambda: sc.HierarchicalCRF(
        ["top", "low"], max_iterations=5, max_length={"top": "whole"}, rules="at_most(1, A, level=low)"
    ).fit(X, [{"top": row[0], "low": row} for row in Y]),
    "columns": lambda: sc.CRF(max_iterations=5, scores_of=["A", "B"]).fit(COLUMNS, Y),
    "dataset": lambda: encode(X),
}


@functools.cache
def made(name: str) -> tuple[bytes, model_file.ModelFile]:
    """A file, and what is in it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MODELS[name]().save(Path(folder, "model"))
        return Path(folder, "model").read_bytes(), model_file.read(Path(folder, "model"))


def written(path: Path, kind: str, metadata: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a file, without waiting for the disk."""
    with mock.patch("os.fsync"):
        model_file.write(path, kind, metadata, arrays)


def sealed(content: bytes) -> bytes:
    """A file with checksums made right again, as far as its header can be read."""
    start = 8 + int.from_bytes(content[:8], "little")
    if not 65 <= start <= len(content):
        return content
    header = bytearray(content[:start])
    at = header.find(rb"\"data_crc32\":\"")
    if at >= 0:
        header[at + 17 : at + 25] = b"%08x" % zlib.crc32(content[start:])
    header = header[:start]
    header[57:65] = b"0" * 8
    header[57:65] = b"%08x" % zlib.crc32(header)
    return bytes(header) + content[start:]


# ---- questions -----------------------------------------------------------------------------------
def finite(answer: Any) -> bool:
    """Whether all numbers in an answer are."""
    if isinstance(answer, dict):
        return all(finite(value) for value in answer.values())
    if isinstance(answer, (list, tuple)):
        return all(finite(value) for value in answer)
    if isinstance(answer, np.ndarray):
        return bool(np.isfinite(answer).all())
    return not isinstance(answer, float) or math.isfinite(answer)


def ask(model: Any, path: Path, thorough: bool = True) -> None:
    """Everything, or little; AssertionError if an answer is not finite, or a file of the model gives another one."""
    if isinstance(model, Dataset):
        assert finite(model.items())
        return
    some = X[:3] if model.n_features_in_ is None else COLUMNS[:3]
    best = model.predict(some)
    told = [{"top": tree[0], "low": tree[1]} for tree in best] if isinstance(model, sc.HierarchicalCRF) else best
    before = model.log_likelihood(some, told)
    answers = {"marginals": model.predict_marginals(some), "log-likelihood": before}
    if thorough:
        lattice = model.lattice(some[0])
        answers |= {
            "k best": model.predict_kbest(some, 2),
            "samples": model.sample(some, 2),
            "log Z and entropy": (lattice.log_partition(), lattice.entropy()),
            "features": (model.strongest_features(3), model.state_features_, model.transition_features_),
            "names": (repr(model), model.size_, model.attributes_, model.classes_, len(model.report().html)),
        }
        if not isinstance(model, sc.HierarchicalCRF):
            answers["compressed"] = model.predict_compressed(some)
    for name, answer in answers.items():
        assert finite(answer), f"{name}: {answer}"
    if thorough:
        with mock.patch("os.fsync"):
            model.save(path)
        again = sc.load(path).log_likelihood(some, told)  # of equals, another may be best
        assert math.isclose(again, before, rel_tol=1e-9, abs_tol=1e-9), f"saved and loaded: {again}, before {before}"


def ours(error: BaseException) -> bool:
    """Whether an exception is one of ours: raised by a statement of the package."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    stated = last.filename.startswith(os.path.dirname(sc.__file__)) and (last.line or "").startswith("raise")
    return stated and type(error) in (ValueError, TypeError, model_file.ModelFileError)


def tried(path: Path, thorough: bool = True) -> bool:
    """Load and ask; whether it could be loaded. AssertionError for a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except model_file.ModelFileError:
            return False
        except ValueError as error:
            if "is not a scansion data set, or is damaged" in str(error):
                return False
            raise
        try:
            ask(model, path, thorough)
        except Exception as error:
            if not ours(error):
                raise
        return True


def load(path: Path) -> Any:
    """A model, or a data set."""
    with open(path, "rb") as file:
        return Dataset.load(path) if rb"\"kind\":\"dataset\"" in file.read(400) else sc.load(path)


# ---- alterations ---------------------------------------------------------------------------------
STRANGE: list[Any] = [None, True, False, 0, 1, -1, 2, 10**6, 2**31, 2**40, 2**63, 10**300, 0.0, 1.5, -1e308, 5e-324]
STRANGE += ["", "A", "w", "inside", "\x00", [], [[]], {}, {"a": 1}, [None], ["A", "A"], [0, 1], "x" * 1000]
NUMBERS = [0, 1, -1, 2, 127, 255, 2**31 - 1, -(2**31), 2**40, 2**53 + 1, 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e10, math.inf, -math.inf, 1e101, 1e155, -1e307, 1.7e308, 1e39, math.nan]
DTYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something is in a JSON value: keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


def put(value: Any, place: tuple[Any, ...], item: Any) -> None:
    """Replace what is at a place; ... takes it away."""
    for key in place[:-1]:
        value = value[key]
    if item is ...:
        del value[place[-1]]
    else:
        value[place[-1]] = item


def cast(array: np.ndarray, dtype: str) -> np.ndarray:
    """The same numbers, as far as the dtype has them."""
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def filled(array: np.ndarray, value: Any, where: Any = slice(None)) -> np.ndarray:
    """The array with `value` somewhere, as far as its dtype has it."""
    result = array.copy()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flat = result.reshape(-1)
        flat[where] = np.array(value).astype(array.dtype)
    return result


def array_alterations(array: np.ndarray, few: bool = False) -> Iterator[tuple[str, Any]]:
    """What may become of an array, in order; ...: it is left out."""
    array = np.atleast_1d(array)
    floats = array.dtype.kind == "f"
    yield "dropped", ...
    for dtype in ("i4", "f4") if few else DTYPES:
        if np.dtype(dtype) != array.dtype:
            yield f"of {dtype}", cast(array, dtype)
    yield "empty", array[:0]
    yield "deeper", array[None]
    if not few:
        yield "empty and wide", np.empty((0, 2**40), array.dtype)
        yield "flat", array.reshape(-1)
        yield "a scalar", np.zeros((), array.dtype)
    if array.size:
        yield "shorter", array[:-1]
        yield "longer", np.concatenate([array, array[-1:]])
        if not few:
            yield "twice", np.concatenate([array, array])
            yield "reversed", array[::-1].copy()
            yield "shifted", np.roll(array, 1)
        for value in (FLOATS if floats else NUMBERS)[-2 if few else 0 :]:
            yield f"all {value}", filled(array, value)
            yield f"{value} at first", filled(array, value, 0)
            yield f"{value} at last", filled(array, value, -1)


def alterations(
    stored: model_file.ModelFile, few: bool = False
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every piece of a file altered in every way, or in a few ways, one at a time: what was done, metadata, arrays."""
    for name, array in stored.arrays.items():
        for what, result in array_alterations(array, few):
            arrays = {k: v for k, v in {**stored.arrays, name: result}.items() if v is not ...}
            yield f"{name} {what}", stored.metadata, arrays
    yield "an array more", stored.metadata, {**stored.arrays, "more": np.zeros(3)}
    for place in places(stored.metadata):
        for item in (..., None, 2**40, ["A", "A"]) if few else (..., *STRANGE):
            metadata = copy.deepcopy(stored.metadata)
            put(metadata, place, item)
            shown = "dropped" if item is ... else f"= {str(item)[:20]!r}"
            yield f"{' '.join(map(str, place))} {shown}", metadata, dict(stored.arrays)


def altered(rng: np.random.Generator, stored: model_file.ModelFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata and arrays with some pieces altered."""
    metadata, arrays = copy.deepcopy(stored.metadata), dict(stored.arrays)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        way = int(rng.integers(6))
        if way < 2:
            found = list(places(metadata))
            if not found:
                continue
            place = found[int(rng.integers(len(found)))]
            item = STRANGE[int(rng.integers(len(STRANGE)))]
            if way == 1:  # something that stands elsewhere
                item = copy.deepcopy(value_at(metadata, found[int(rng.integers(len(found)))]))
            put(metadata, place, ... if rng.random() < 0.1 else item)
            continue
        name = list(arrays)[int(rng.integers(len(arrays)))]
        array = arrays[name]
        if way == 2:
            choices = list(array_alterations(array))
            array = choices[int(rng.integers(len(choices)))][1]
        elif way == 3:  # the contents of another one
            array = list(arrays.values())[int(rng.integers(len(arrays)))]
        elif array.size:
            where = rng.integers(array.size, size=int(rng.integers(1, 4)))
            numbers = FLOATS if array.dtype.kind == "f" else NUMBERS
            extreme = numbers[int(rng.integers(len(numbers)))]
            old = array.reshape(-1)[where]
            near = ~old if array.dtype == bool else old + rng.choice([-1, 1])
            array = filled(array, near if way == 4 else extreme, where)
        if array is ...:
            del arrays[name]
            if not arrays:
                break
        else:
            arrays[name] = array
    return metadata, arrays


def value_at(value: Any, place: tuple[Any, ...]) -> Any:
    """What is at a place of a JSON value."""
    for key in place:
        value = value[key]
    return value


def bytes_altered(rng: np.random.Generator, content: bytes) -> bytes:
    """A file with some bytes altered, mostly in its header."""
    result = bytearray(content)
    start = 8 + int.from_bytes(content[:8], "little")
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(65, start if rng.random() < 0.7 else len(result)))
        other = int(rng.integers(65, len(result)))
        size = int(rng.integers(1, 9))
        way = int(rng.integers(5))
        if way == 0:
            result[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            result[at] = int(rng.choice(list(b'0123456789-.eE"\\{}[],:tfnu ')))
        elif way == 2:
            result[at : at + size] = result[other : other + size].ljust(size)
        elif way == 3:
            result[at : at + 8] = struct.pack("<q", int(rng.choice(NUMBERS)))
        else:
            result[at : at + size] = rng.bytes(size)
    return sealed(bytes(result))


# ---- rounds --------------------------------------------------------------------------------------
@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Little memory, so that what takes too much is a MemoryError."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    with open("/proc/self/statm") if os.path.exists("/proc/self/statm") else io.StringIO("0") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def round_of(name: str, rng: np.random.Generator) -> tuple[int, int]:
    """Altered files of one kind: how many, and how many of them could be loaded."""
    content, stored = made(name)
    loaded = 0
    with tempfile.TemporaryDirectory() as folder, limited():
        path = Path(folder, "model")
        for number in range(FILES):
            if rng.random() < 0.3:
                path.write_bytes(bytes_altered(rng, content))
            else:
                try:
                    written(path, stored.kind, *altered(rng, stored))
                except ValueError:  # not JSON
                    continue
            try:
                loaded += tried(path)
            except BaseException as error:
                raise AssertionError(f"file {number} of a round of {name}: {type(error).__name__}: {error}") from error
    return FILES, loaded


KINDS: dict[str, Callable[[np.random.Generator], int]] = {
    name: functools.partial(lambda name, rng: round_of(name, rng)[0], name) for name in MODELS
}
