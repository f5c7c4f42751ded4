"""Data in parts, each of which is where a worker can read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["Partitions"]


class Partitions:
    """X or y in parts: `fit` encodes and evaluates each part where a worker has it, and adds up in their order.

    Parameters
    ----------
    parts : iterable
        Lists of sequences (of targets), or what stands for one at the workers (of Dask: a future, or delayed).
    workers : scansion.training.shards.Workers

    Attributes
    ----------
    columns : int, or None
        Columns of sequences that are arrays, once they were encoded.
    """

    def __init__(self, parts: Iterable[Any], workers: Any) -> None:
        self.parts, self.workers = list(parts), workers
        self.columns: int | None = None

    def __len__(self) -> int:
        return len(self.parts)
