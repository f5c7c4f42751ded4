"""Checks at the border: what the kernels are given is right, or a ValueError says what is not.

Conventions: every message names the argument and the offending index or value. Arrays come back C-contiguous and
are copied only where that is needed; the caller's arrays are never written to.
"""

from __future__ import annotations

import contextlib
import math
import operator
import os
import sys
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MOST_SCORE = 1e100
"""The range of scores: sums of 1e15 of them are exact in the kernels."""

MOST_VALUE, MOST_WEIGHT = 1e40, 1e60
"""The ranges of attribute values and of weights: products of the two are scores."""

MOST_COUNT = 2**31 - 1
"""The largest integer that is taken for a number of things."""

_EXACT_INTEGERS = 2**53
_CONTAINER = "/sys/fs/cgroup"  # where Linux says what a container may take
_PLAIN = frozenset({float, int, str, bool, type(None)})


class Absent:
    """In place of a method that a class does not have: asking for it is an AttributeError that says why."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __get__(self, instance: Any, owner: Any) -> Any:
        raise AttributeError(self.why)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of something in the line that called the package, however deep in it that is noticed."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "scansion":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def scores(name: str, value: Any, shape: tuple[int | str, ...]) -> Floats:
    """`value` as float64 of `shape`, within +-`MOST_SCORE` or -inf; a string in `shape` stands for any size."""
    array = plain(name, value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    if array.dtype.itemsize > 8:
        raise ValueError(f"{name} has dtype {array.dtype}, which float64 cannot hold without loss")
    check_shape(name, array, shape)
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        memory(f"the numbers of {name}", array.size)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        large = (array > _EXACT_INTEGERS) | (array < -_EXACT_INTEGERS if array.dtype.kind == "i" else False)
        if large.any():
            at = first(large)
            raise ValueError(f"{name}[{show(at)}] = {array[at]} is an integer that float64 cannot hold exactly")
    result: Floats = np.ascontiguousarray(array, dtype=np.float64)
    if result.size:
        top = result.max()  # NaN wins every comparison in max
        if not top < np.inf:
            bad = np.isnan(result) if np.isnan(top) else result == np.inf
            at = first(bad)
            raise ValueError(f"{name}[{show(at)}] is {result[at]}: scores must be finite or -inf")
        if top > MOST_SCORE or result.min() < -MOST_SCORE:
            large = (np.abs(result) > MOST_SCORE) & (result > -np.inf)
            if large.any():
                at = first(large)
                raise ValueError(
                    f"{name}[{show(at)}] = {result[at]} is beyond the range of scores, +-{MOST_SCORE:g} (-inf forbids)"
                )
    return result


def finite(name: str, value: Any, shape: tuple[int | str, ...]) -> Floats:
    """`value` as `scores`, none of them -inf."""
    array = scores(name, value, shape)
    if array.size and array.min() == -np.inf:
        raise ValueError(f"{name}[{show(first(array == -np.inf))}] is -inf: numbers must be finite")
    return array


def plain(name: str, value: Any) -> npt.NDArray[Any]:
    """`value` as an array; neither masked entries nor the two dimensions of np.matrix are lost on the way."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        at = first(np.ma.getmaskarray(value))
        raise ValueError(f"{name}[{show(at)}] is masked: fill masked entries in first, for example by {name}.filled(0)")
    if isinstance(value, np.matrix):
        raise ValueError(f"{name} is an np.matrix: give an array, np.asarray({name})")
    if isinstance(value, (list, tuple)):  # NumPy would read the data of masked arrays in them
        for i, entry in enumerate(value):
            if type(entry) not in _PLAIN:
                plain(f"{name}[{i}]", entry)
    try:
        return np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} is not an array: {error}") from error


def probabilities(name: str, value: Any, shape: tuple[int | str, ...]) -> Floats:
    """`value` as float64 of `shape` whose rows (last axis) are distributions."""
    array = scores(name, value, shape)
    if (array < 0).any():
        at = first(array < 0)
        raise ValueError(f"{name}[{show(at)}] = {array[at]} is not a probability")
    sums = np.asarray(array.sum(axis=-1))
    wrong = np.abs(sums - 1.0) > 1e-6
    if wrong.any():
        at = first(wrong)
        where = f"{name}[{show(at)}]" if at else name
        raise ValueError(f"{where} must sum to 1, got {sums[at]}")
    return array


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int | str, ...]) -> None:
    """Raise unless `array` has `shape`."""
    fits = array.ndim == len(shape) and all(
        isinstance(want, str) or want == got for want, got in zip(shape, array.shape, strict=False)
    )
    if not fits:
        wanted = ", ".join(str(n) for n in shape) + ("," if len(shape) == 1 else "")
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")


def first(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first true entry."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def show(index: tuple[int, ...]) -> str:
    """An index as it is written between brackets."""
    return ", ".join(str(i) for i in index)


def among(value: Any, choices: tuple[Any, ...]) -> bool:
    """Whether a value is one of some plain ones; also of arrays, which cannot be asked."""
    return isinstance(value, (str, int, float, np.generic, type(None))) and value in choices


def count(name: str, value: Any, least: int, most: int = MOST_COUNT) -> int:
    """`value` as an int in least..most."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {_short(number)}")
    if number > most:
        raise ValueError(f"{name} must be at most {most}, got {_short(number)}")
    return number


def _short(number: int) -> str:
    """An integer as text; of one that is too long for that, about how large it is."""
    if abs(number) < 10**40:
        return str(number)
    return f"{'-' if number < 0 else ''}10 to the power of about {int(number.bit_length() * 0.30103)}"


def flag(name: str, value: Any) -> None:
    """Raise unless `value` is plainly yes or no: True, False, an integer or None."""
    if not isinstance(value, (int, np.integer, np.bool_, type(None))):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def label(name: str, value: Any) -> None:
    """Raise unless `value` can be told from other labels: an array cannot, nor can what has no hash."""
    if getattr(value, "__hash__", None) is None or isinstance(value, np.ndarray):
        raise ValueError(f"{name} is {value!r}: a label must be one value that has a hash")


def is_number(value: Any) -> bool:
    """Whether a value is a real number that float64 can hold, not True or False."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def memory(what: str, numbers: int) -> None:
    """Raise a MemoryError if so many numbers of 8 bytes do not fit into what is left, as far as the system says."""
    if numbers < 2**24:
        return
    left = _left()
    if left is not None and 8 * numbers > left:
        raise MemoryError(f"{what} take {8e-9 * numbers:.1f} GB, but {1e-9 * left:.1f} GB of memory are left")


def _left() -> int | None:
    """Bytes of memory that are left to the machine, the container and the process, where the system says."""
    found = []
    with contextlib.suppress(OSError, KeyError, ValueError):
        found.append(_numbers("/proc/meminfo")["MemAvailable:"] * 1024)
    with contextlib.suppress(OSError, KeyError, ValueError):  # of a container without a limit that is "max"
        limit, used = (_numbers(f"{_CONTAINER}/memory.{name}")[""] for name in ("max", "current"))
        stat = _numbers(f"{_CONTAINER}/memory.stat")  # pages of files make room where it is needed
        found.append(limit - used + stat["active_file"] + stat["inactive_file"])
    with contextlib.suppress(OSError, KeyError, ValueError, ImportError):  # ulimit -v, as of batch systems
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            with open("/proc/self/statm") as file:
                found.append(limit - int(file.read().split()[0]) * resource.getpagesize())
    return min(found, default=None)


def _numbers(path: str) -> dict[str, int]:
    """The lines of a file of the system: name ("" where there is none) and number."""
    with open(path) as file:
        lines = [["", *line.split()][-3 if "kB" in line else -2 :] for line in file]
    return {line[0]: int(line[1]) for line in lines}


def jobs(value: Any) -> int:
    """Number of threads: a positive integer; None is 1; -1 all processors, -2 all but one, and so on.

    At most 64, or as many as there are processors: the value may come out of a model file.
    """
    if value is None:
        return 1
    number = count("n_jobs", value, -MOST_COUNT)
    if number == 0:
        raise ValueError("n_jobs must not be 0: give a number of threads, or -1 for all processors")
    processors = os.cpu_count() or 1
    return min(number, max(64, processors)) if number > 0 else max(1, processors + 1 + number)


def integers(name: str, value: Any, length: int, low: int, high: int) -> Ints:
    """`value` as int64 of shape (length,), every entry in low..high."""
    return np.ascontiguousarray(between(name, value, length, low, high), dtype=np.int64)


def weights(value: Any, n: int) -> Floats | None:
    """sample_weight as (n,) numbers >= 0, or None."""
    if value is None:
        return None
    weight = finite("sample_weight", value, (n,))
    if (weight < 0).any():
        b = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight[{b}] = {weight[b]} must not be negative")
    return weight


def between(name: str, value: Any, length: int, low: int, high: int) -> npt.NDArray[Any]:
    """`value` as an array of integers of shape (length,), every entry in low..high; without a copy of its size."""
    array = plain(name, value)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} must be an array of integers, got dtype {array.dtype}")
    check_shape(name, array, (length,))
    if array.size and (array.min() < low or array.max() > high):
        at = first((array < low) | (array > high))
        raise ValueError(f"{name}[{show(at)}] = {array[at]} is out of range: it must lie in {low}..{high}")
    return array


def offsets(value: Any, rows: int, rows_name: str) -> Ints:
    """`value` as int64 (B + 1,): 0 = offsets[0] <= offsets[1] <= ... <= offsets[B] = rows."""
    array = plain("offsets", value)
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size < 1:
        raise ValueError(f"offsets must be a 1-D array of integers with at least one entry, got {array!r}")
    result = np.ascontiguousarray(array, dtype=np.int64)
    if result[0] != 0:
        raise ValueError(f"offsets[0] must be 0, got {result[0]}")
    drops = result[1:] < result[:-1]
    if drops.any():
        at = int(np.argmax(drops))
        raise ValueError(f"offsets must not decrease, but offsets[{at + 1}] = {result[at + 1]} < {result[at]}")
    if result[-1] != rows:
        raise ValueError(f"offsets[-1] must be the number of rows of {rows_name}, {rows}, got {result[-1]}")
    return result


def generator(rng: Any) -> np.random.Generator:
    """A NumPy generator from a generator, a seed or None."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0):
        return np.random.default_rng(rng)
    raise ValueError(f"rng must be a numpy Generator, a non-negative integer seed or None, got {rng!r}")


def one_each(name: str, value: Any, length: int) -> Sequence[Any]:
    """`value` as a sequence of `length` entries."""
    if not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        raise ValueError(f"{name} must be a sequence with one entry per sequence of the batch, got {value!r}")
    if len(value) != length:
        raise ValueError(f"{name} must have one entry per sequence, {length}, got {len(value)}")
    result: Sequence[Any] = value
    return result
