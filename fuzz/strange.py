"""Strange arguments: valid ones of a call, some replaced by anything; and what may come of such a call."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import scansion as sc
from fuzz import Fault
from fuzz.model_files import finite
from scansion.pycrfsuite import CRFSuiteError

OURS = (ValueError, IndexError, AttributeError, RuntimeError, CRFSuiteError)
HOME = os.path.dirname(sc.__file__)

# ---- strange things ------------------------------------------------------------------------------
INTEGERS = [0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), 2**70, 10**400]
FLOATS = [0.0, -0.0, 0.5, 1e-320, 1e10, 1e99, -1e100, 1e101, 1e155, -1e308, 1.7e308, np.nan, np.inf, -np.inf]
OTHERS: list[Any] = [None, True, "", "A", "lbfgs", b"x", (), [], [[]], {}, set(), {"a": 1}, [None], ["A", 1]]
OTHERS += [object(), len, 1j, np.float32(1), np.int64(2**62), np.bool_(True), np.datetime64(0, "s"), range(3)]
OTHERS += ["\x00", "\ud800", "x" * 3000, [[], [1]], [[1, 2], [3]], {(1, 2): 3}, frozenset("A"), slice(None)]


def arrays(rng: np.random.Generator) -> Any:
    """An array of an odd kind, shape or layout."""
    shape = tuple(int(n) for n in rng.integers(0, 4, size=rng.integers(0, 5)))
    array = rng.normal(size=shape)
    ways: list[Callable[[], Any]] = [
        lambda: array,
        lambda: array.astype(rng.choice(["f2", "f4", "i1", "i8", "u8", "?", "c16", "O", "U3", "S2", "g"])),
        lambda: np.where(rng.random(shape) < 0.3, rng.choice(FLOATS), array),
        lambda: np.ma.masked_array(array, rng.random(shape) < 0.3),
        lambda: np.matrix(rng.normal(size=(2, 2))),
        lambda: np.asfortranarray(array)[::-1] if array.ndim else array,
        lambda: np.broadcast_to(np.float64(rng.choice(FLOATS)), shape),
        lambda: array.view(np.recarray),
        lambda: array.tolist(),
    ]
    return ways[int(rng.integers(len(ways)))]()


def strange(rng: np.random.Generator) -> Any:
    """Anything."""
    way = int(rng.integers(4))
    if way == 3:
        return arrays(rng)
    pool = (INTEGERS, FLOATS, OTHERS)[way]
    return pool[int(rng.integers(len(pool)))]


def near(rng: np.random.Generator, value: Any) -> Any:
    """Almost the value: an array of another shape, or with a strange entry; a list with one more or less."""
    if isinstance(value, np.ndarray) and value.size and value.ndim and value.dtype.kind in "fiub":
        ways: list[Callable[[], Any]] = [
            lambda: value[:-1],
            lambda: value[None],
            lambda: np.concatenate([value, value[-1:]]),
            lambda: np.swapaxes(value, 0, -1),
            lambda: with_entry(rng, value, rng.choice(FLOATS)),
            lambda: with_entry(rng, value, float(rng.choice([300.0, -700.0, 1e5, -1e9, 1e20, -1e99]))),
            lambda: value.tolist(),
            lambda: np.ma.masked_array(value, rng.random(value.shape) < 0.2),
            lambda: value.astype("f4") if value.dtype.kind == "f" else value.astype("i1"),
        ]
        return ways[int(rng.integers(len(ways)))]()
    if isinstance(value, (list, tuple)) and value:
        at = int(rng.integers(len(value)))
        other = strange(rng) if rng.random() < 0.5 else near(rng, value[at])
        way = int(rng.integers(4))
        changed = [*value[:at], *([other] if way else []), *value[at + (way != 1) :]]
        return changed if isinstance(value, list) or way == 2 else tuple(changed)
    if isinstance(value, dict) and value:
        changed = dict(value)
        key = list(value)[int(rng.integers(len(value)))]
        changed[key] = near(rng, value[key])
        return changed
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value + int(rng.choice([-1, 1])) if rng.random() < 0.5 else -value
    return strange(rng)


def with_entry(rng: np.random.Generator, array: np.ndarray, value: float) -> np.ndarray:
    """A copy with a value somewhere."""
    result = np.array(array, dtype=np.float64)
    result.reshape(-1)[int(rng.integers(result.size))] = value
    return result


# ---- calls ---------------------------------------------------------------------------------------
def hostile(rng: np.random.Generator, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with some replaced."""
    changed = dict(arguments)
    for _ in range(int(rng.choice([0, 1, 1, 1, 2]))):
        if changed:
            name = list(changed)[int(rng.integers(len(changed)))]
            changed[name] = near(rng, changed[name]) if rng.random() < 0.6 else strange(rng)
    return changed


def ours(error: BaseException) -> bool:
    """Whether an exception is one of ours: of a usual type, raised by a statement of the package."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = last.line or ""
    here = last.filename.startswith(HOME)
    stated = here and (line.startswith("raise") or str(error).startswith("X, sequence "))
    if isinstance(error, TypeError):  # Python's own are as good, but not those of the bindings or of NumPy
        return (here or "fuzz" in last.filename) and "incompatible function arguments" not in str(error)
    return stated and isinstance(error, OURS)


def call(what: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """The answer, or None where it is refused. Fault: a foreign exception, or an answer that is not finite."""
    try:
        answer = function(**arguments)
    except MemoryError:  # there is no room to look into it
        return None
    except Exception as error:
        if ours(error):
            return None
        text = traceback.format_exc()
        shown = {name: repr(value)[:200] for name, value in arguments.items()}
        raise Fault(f"{what}({shown}): {type(error).__name__}: {error}\n{text}") from error
    if not finite(answer):
        shown = {name: repr(value)[:300] for name, value in arguments.items()}
        raise Fault(f"{what}({shown}) is not finite: {answer!r}"[:2000])
    return answer


class Held:
    """An answer that is not looked into."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


def held(what: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """What a call gives, whatever it is; None where it is refused."""
    found = call(what, lambda **given: Held(function(**given)), arguments)
    return None if found is None else found.answer


def too_many(arguments: dict[str, Any]) -> bool:
    """Whether a call asks for more samples than there is time for."""
    n = arguments.get("n")
    return isinstance(n, (int, np.integer)) and n > 1e6
