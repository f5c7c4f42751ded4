"""The objective over shards that workers hold, and the workers: this process, or processes on this machine.

The optimiser knows ``f(w) -> (loss, gradient)``; here it is a sum over shards of the data. `Workers` is all that it
takes to have the shards elsewhere: something to run where they are, values that stay there, and values that come back.
Local processes are below, Dask is `scansion.dask`.

Sums are taken in one order that depends on the number of shards alone, neighbours first:
((s0 + s1) + (s2 + s3)) + ..., whatever finishes first and whoever computes it: the same shards give the same bits, on
one worker and on many.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Floats, Ints

__all__ = ["Here", "Processes", "Sharded", "Workers", "pairwise"]

Value = TypeVar("Value")
LossAndGradient = tuple[float, Floats]


class Workers(Protocol):
    """What runs functions where the data are. A handle stands for a value that stays at a worker."""

    def share(self, value: Any) -> Any:
        """A handle of a value for all workers."""

    def apply(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """Handles of ``function(columns[0][i], columns[1][i], ...)`` for every i; entries may be handles."""

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """The values, in order; raises what their functions raised."""

    def total(self, handles: Sequence[Any]) -> Any:
        """The sum of the values, by `pairwise`."""


def pairwise(values: Sequence[Value], add: Callable[[Value, Value], Value]) -> Value:
    """The sum of neighbours, of neighbouring sums, and so on."""
    row = list(values)
    while len(row) > 1:
        row = [add(*row[i : i + 2]) if i + 1 < len(row) else row[i] for i in range(0, len(row), 2)]
    return row[0]


def added(one: LossAndGradient, other: LossAndGradient) -> LossAndGradient:
    """The sum of two losses and of their gradients."""
    return one[0] + other[0], one[1] + other[1]


def evaluated(shard: Any, loss: str, w: Floats, threads: int) -> LossAndGradient:
    """The loss of this name on a shard, and its gradient."""
    gradient = np.empty_like(w)
    return getattr(shard, loss)(w, gradient, threads), gradient


class Sharded:
    """The objective over all shards of the data, which workers hold (see `scansion.training.objective.Objective`).

    Parameters
    ----------
    workers : Workers
    shards : list of handles of Objective
    n_examples : int
    moments : scansion.models.units.Moments
        Of the attributes in all shards.
    """

    def __init__(self, workers: Workers, shards: Sequence[Any], n_examples: int, moments: Any) -> None:
        self.workers, self.shards, self.moments = workers, list(shards), moments
        self.examples: Ints = np.arange(n_examples)

    def map(self, w: Floats, loss: str = "log_loss", threads: int = 1) -> list[LossAndGradient]:
        """Loss and gradient of every shard at weights w, in the order of the shards."""
        return self.workers.fetch(self._asked(w, loss, threads))

    def log_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        return self._total(w, gradient, "log_loss", threads)

    def margin_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        return self._total(w, gradient, "margin_loss", threads)

    def curvature(self, w: Floats, units: Floats | None, out: Floats, threads: int) -> None:
        """Refused, as passes are, which come before it."""
        raise ValueError("the curvature of the loss is not evaluated by shards: use 'lbfgs'")

    def run_pass(self, online: _core.Online, order: Ints, w: Floats, total: Floats) -> float:
        """Refused: a pass takes one sequence after another."""
        raise ValueError("stochastic algorithms take one sequence after another, not shards at a time: use 'lbfgs'")

    def _asked(self, w: Floats, loss: str, threads: int) -> list[Any]:
        n, weights = len(self.shards), self.workers.share(np.array(w))
        return self.workers.apply(evaluated, self.shards, [loss] * n, [weights] * n, [threads] * n)

    def _total(self, w: Floats, gradient: Floats, loss: str, threads: int) -> float:
        value, gradient[:] = self.workers.total(self._asked(w, loss, threads))
        return float(value)


class Here:
    """The process itself as the only worker: values are their own handles."""

    def share(self, value: Any) -> Any:
        """As in `Workers`."""
        return value

    def apply(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """As in `Workers`."""
        return [function(*row) for row in zip(*columns, strict=True)]

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """As in `Workers`."""
        return list(handles)

    def total(self, handles: Sequence[Any]) -> Any:
        """As in `Workers`."""
        return pairwise(handles, added)


class _Reference(NamedTuple):
    """A handle as it is sent."""

    key: int


class _Handle:
    """A value that one process has, or all of them (process None)."""

    def __init__(self, owner: Processes, process: int | None, key: int) -> None:
        self.owner, self.process, self.key = owner, process, key

    def __del__(self) -> None:
        self.owner._dropped.append((self.process, self.key))


class Processes:
    """Processes on this machine, for data that threads do not share well; a context manager that ends them.

    Parameters
    ----------
    n : int, optional
        How many; as many as there are processors unless given.

    Notes
    -----
    Part i stays with process i modulo n. Functions and data go there by pickle: scripts need the usual
    ``if __name__ == "__main__"``. A process that dies ends training with an error.

    Examples
    --------
    >>> from scansion.data import Partitions
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    >>> with Processes(2) as workers:  # doctest: +SKIP
    ...     CRF().fit(Partitions([X, X], workers), y + y)
    """

    def __init__(self, n: int | None = None) -> None:
        count = checks.count("n", os.cpu_count() or 1 if n is None else n, 1)
        context = multiprocessing.get_context("spawn")
        self._keys = itertools.count()
        self._dropped: list[tuple[int | None, int]] = []
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=1.0)
            if process.is_alive():
                process.terminate()
                process.join()
        self._pipes, self._processes = [], []

    def share(self, value: Any) -> Any:
        """As in `Workers`."""
        key = next(self._keys)
        for k in range(len(self._pipes)):
            self._send(k, ("set", key, value))
        return _Handle(self, None, key)

    def apply(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """As in `Workers`."""
        dropped, self._dropped = self._dropped, []
        for process, key in dropped:
            for k in range(len(self._pipes)) if process is None else [process]:
                self._send(k, ("drop", key))
        handles = []
        for i, row in enumerate(zip(*columns, strict=True)):
            process, key = i % len(self._pipes), next(self._keys)
            arguments = [_Reference(one.key) if isinstance(one, _Handle) else one for one in row]
            self._send(process, ("run", key, function, arguments))
            handles.append(_Handle(self, process, key))
        return handles

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """As in `Workers`."""
        asked = [(handle.process or 0, handle.key, next(self._keys)) for handle in handles]
        for process, key, number in asked:
            self._send(process, ("get", key, number))
        values = [self._received(process, number) for process, _, number in asked]
        for value in values:
            if isinstance(value, _Failed):
                raise value.error
        return values

    def total(self, handles: Sequence[Any]) -> Any:
        """As in `Workers`."""
        return pairwise(self.fetch(handles), added)

    def _send(self, process: int, message: Any) -> None:
        try:
            self._pipes[process].send(message)
        except (BrokenPipeError, ConnectionError):
            self._gone(process)

    def _received(self, process: int, number: int) -> Any:
        while True:  # answers to questions that were interrupted come first
            try:
                answered, value = self._pipes[process].recv()
            except (EOFError, ConnectionError):
                self._gone(process)
            if answered == number:
                return value

    def _gone(self, process: int) -> None:
        self._processes[process].join(timeout=1.0)
        code = self._processes[process].exitcode
        raise RuntimeError(f"worker process {process} has ended (exit code {code}): its part of the data is lost")


class _Failed(NamedTuple):
    """In place of a value: what its function raised."""

    error: Exception


def _serve(pipe: Connection) -> None:
    """Run what is asked for until the pipe is closed; Ctrl-C is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    values: dict[int, Any] = {}
    while True:
        try:
            kind, key, *rest = pipe.recv()
        except (EOFError, ConnectionError):
            return
        if kind == "set":
            values[key] = rest[0]
        elif kind == "drop":
            values.pop(key, None)
        elif kind == "get":
            pipe.send((rest[0], values[key]))
        else:
            function, arguments = rest
            given = [values[one.key] if isinstance(one, _Reference) else one for one in arguments]
            failed = [one for one in given if isinstance(one, _Failed)]
            try:
                values[key] = failed[0] if failed else function(*given)
            except Exception as error:
                values[key] = _Failed(error)
