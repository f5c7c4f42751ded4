"""What all lattices share: the questions, for one sequence (`Lattice`) and for many at once (`Batch`).

A `Lattice` is a `Batch` of one: every question is answered in one place. Empty sequences are allowed everywhere: they
have exactly one configuration, the empty one, with score 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data.knowledge import Knowledge, Known
from scansion.lattice.cores import Core, Packed

if TYPE_CHECKING:
    from scansion.lattice.compressed import Compressed

Config = TypeVar("Config")  # one configuration
Marginals = TypeVar("Marginals")
Self = TypeVar("Self")

_UNIFORMS_AT_ONCE = 4_000_000


class Batch(ABC, Generic[Config, Marginals]):
    """Many sequences' lattices; every question is asked of all of them in one call."""

    _core: Core
    n_jobs: int
    _merges: bool  # whether neighbouring equal labels are one place of a trajectory

    @classmethod
    def _of(cls, core: Any, n_jobs: int) -> Any:
        batch = cls.__new__(cls)
        batch._core = core
        batch.n_jobs = n_jobs
        return batch

    @property
    def offsets(self) -> Ints:
        """(B + 1,) sequence b has rows ``offsets[b]:offsets[b + 1]``."""
        return self._core.offsets

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return self._core.n_labels

    def __len__(self) -> int:
        return len(self._core.offsets) - 1

    @abstractmethod
    def _config(self, steps: Ints) -> Config: ...

    @abstractmethod
    def _steps(self, config: Any, length: int, name: str) -> Ints: ...

    @abstractmethod
    def marginals(self) -> Marginals:
        """Posterior probabilities, rows of all sequences one after another."""

    @abstractmethod
    def __getitem__(self, b: int) -> Any: ...

    def _one(self, b: int) -> Any:
        try:
            b = range(len(self))[b]
        except IndexError:
            raise IndexError(f"the batch has {len(self)} sequences, there is no sequence {b}") from None
        return self._core.select(b)

    def log_partition(self) -> Floats:
        """Log of the summed weights of all configurations, log Z, for each sequence: (B,)."""
        return self._possible(self._core.log_partitions(self.n_jobs))

    def _possible(self, log_partitions: Floats, what: str = "the scores") -> Floats:
        dead = np.flatnonzero(log_partitions == -np.inf)
        if dead.size:
            b = int(dead[0])
            where = f" of sequence {b}" if len(self) > 1 else ""
            raise ValueError(
                f"no configuration is possible: {what} leave none beyond position {self._core.furthest(b)}{where}"
            )
        return log_partitions

    def _unpack(self, packed: Packed) -> list[list[Config]]:
        steps, paths, firsts = packed
        configs = [self._config(steps[paths[i] : paths[i + 1]]) for i in range(len(paths) - 1)]
        return [configs[firsts[b] : firsts[b + 1]] for b in range(len(self))]

    def viterbi(self) -> tuple[list[Config], Floats]:
        """The best configuration of each sequence and its score: list of B, (B,).

        Ties: reading configurations from the end, the smaller label wins, then the shorter segment.
        """
        packed = self._core.best(self.n_jobs)
        steps, paths, firsts = packed
        missing = np.diff(firsts) == 0
        if missing.any() or (len(steps) and steps[:, 2].min() < 0):
            self.log_partition()
        scores = self._core.scores(steps, paths)
        return [configs[0] for configs in self._unpack(packed)], scores

    def kbest(self, k: int) -> list[list[tuple[Config, float]]]:
        """The k best configurations of each sequence with their scores, best first, none twice.

        Fewer than k where fewer have a score above -inf.
        """
        k = checks.count("k", k, 1)
        return [
            sorted(
                zip(configs, self._score_all(b, configs), strict=True),
                key=lambda pair: -pair[1],
            )
            for b, configs in enumerate(self._required(self._unpack(self._core.kbest(k, self.n_jobs))))
        ]

    def _required(self, answers: list[list[Config]]) -> list[list[Config]]:
        if not all(answers):
            self.log_partition()
        return answers

    def _score_all(self, b: int, configs: list[Config]) -> list[float]:
        core = self._core.select(b)
        length = int(core.offsets[1])
        one = [self._steps(config, length, "config") for config in configs]
        return [float(core.scores(steps, np.array([0, len(steps)]))[0]) for steps in one]

    def score(self, configs: Sequence[Any]) -> Floats:
        """Score of one given configuration per sequence, -inf where it is forbidden: (B,)."""
        configs = checks.one_each("configs", configs, len(self))
        lengths = np.diff(self.offsets)
        packed = [self._steps(c, int(lengths[b]), f"configs[{b}]") for b, c in enumerate(configs)]
        firsts = np.concatenate([[0], np.cumsum([len(s) for s in packed], dtype=np.int64)]).astype(np.int64)
        steps = np.concatenate([*packed, np.empty((0, 3), np.int64)])
        return self._core.scores(np.ascontiguousarray(steps), firsts)

    def log_probability(self, configs: Sequence[Any]) -> Floats:
        """Log probability of one given configuration per sequence: score - log Z, (B,)."""
        return self.score(configs) - self.log_partition()

    def sample(self, n: int, rng: Any = None) -> list[Any]:
        """Draw n configurations of each sequence, exactly and independently; rng: Generator, seed or None."""
        n = checks.count("n", n, 0)
        generator = checks.generator(rng)
        rows = int(self.offsets[-1]) + len(self)
        drawn: list[list[Config]] = [[] for _ in range(len(self))]
        at_once = max(1, _UNIFORMS_AT_ONCE // max(1, rows))
        while n > 0:
            part = min(n, at_once)
            packed = self._core.sample(part, generator.random(part * rows), self.n_jobs)
            for configs, more in zip(drawn, self._required(self._unpack(packed)), strict=True):
                configs.extend(more)
            n -= part
        return [self._stack(configs, int(t)) for configs, t in zip(drawn, np.diff(self.offsets), strict=True)]

    def _stack(self, configs: list[Config], length: int) -> Any:
        return configs

    def entropy(self) -> Floats:
        """Entropy of the distribution over configurations, in nats: (B,)."""
        self.log_partition()
        return self._core.entropies(self.n_jobs)

    def constrain(self: Self, labels: Any = None, boundaries: Any = None) -> Self:
        """The same lattices with partial knowledge; a second call adds to the first.

        Parameters
        ----------
        labels : int (N,), -1 for unknown, or bool (N, L), true for allowed labels
        boundaries : int (N,)
            1: a segment ends at this row, 0: none does, -1: unknown.
        """
        assert isinstance(self, Batch)
        core = self._core
        more = Known.parse(labels, boundaries, int(core.offsets[-1]), core.n_labels)
        known, clash = core.known.level.also(more)
        if clash is not None:
            self._contradiction(f"boundaries[{clash}]", clash, "contradicts what was known before")
        if known.allowed is not None and not known.allowed.any(axis=1).all():
            row = int(np.argmin(known.allowed.any(axis=1)))
            self._contradiction(f"labels[{row}]", row, "allows no label")
        if known.ends is not None:
            lengths = np.diff(core.offsets)
            last = core.offsets[1:][lengths > 0] - 1
            bad = last[known.ends[last] == 0]
            if bad.size:
                self._contradiction(f"boundaries[{bad[0]}]", int(bad[0]), "is 0, but a segment always ends there")
            if core.max_length == 1 and (known.ends == 0).any():
                row = int(np.argmax(known.ends == 0))
                self._contradiction(f"boundaries[{row}]", row, "is 0, but every segment has length 1 here")
        result = self.under(Knowledge((known,), core.offsets))
        result._possible(result._core.log_partitions(self.n_jobs), "the constraints (labels, boundaries)")
        return result

    def under(self: Self, known: Knowledge) -> Self:
        """The same lattices with this knowledge in place of what they hold; it may leave nothing possible."""
        from dataclasses import replace

        assert isinstance(self, Batch)
        return self._of(replace(self._core, known=known), self.n_jobs)  # type: ignore[no-any-return]

    def _contradiction(self, what: str, row: int, why: str) -> None:
        b = int(np.searchsorted(self.offsets, row, side="right")) - 1
        position = row - int(self.offsets[b])
        where = f" (sequence {b}, position {position})" if len(self) > 1 else f" (position {position})"
        raise ValueError(f"{what} {why}{where}: no configuration is possible")


class Lattice(ABC, Generic[Config, Marginals]):
    """One sequence's lattice."""

    _batch: Batch[Config, Marginals]

    @classmethod
    def _of(cls, batch: Any) -> Any:
        lattice = cls.__new__(cls)
        lattice._batch = batch
        return lattice

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return self._batch.n_labels

    def __len__(self) -> int:
        return int(self._batch.offsets[1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(length {len(self)}, {self.n_labels} labels)"

    def _repr_html_(self) -> str | None:
        """The best configuration and the marginals, for notebooks; None: the plain form serves."""
        from scansion.display.notebook import lattice_html

        return lattice_html(self)

    def log_partition(self) -> float:
        """Log of the summed weights of all configurations, log Z."""
        return float(self._batch.log_partition()[0])

    def viterbi(self) -> tuple[Config, float]:
        """The best configuration and its score.

        Ties: reading configurations from the end, the smaller label wins, then the shorter segment.
        """
        configs, scores = self._batch.viterbi()
        return configs[0], float(scores[0])

    def kbest(self, k: int) -> list[tuple[Config, float]]:
        """The k best configurations with their scores, best first, none twice.

        Fewer than k if fewer have a score above -inf.
        """
        return self._batch.kbest(k)[0]

    def marginals(self) -> Marginals:
        """Posterior probabilities of labels, patterns and segments."""
        return self._batch.marginals()

    def score(self, config: Any) -> float:
        """Score of a configuration, -inf if it is forbidden."""
        steps = self._batch._steps(config, len(self), "config")
        return float(self._batch._core.scores(steps, np.array([0, len(steps)]))[0])

    def log_probability(self, config: Any) -> float:
        """Log probability of a configuration: score - log Z."""
        return self.score(config) - self.log_partition()

    def sample(self, n: int, rng: Any = None) -> Any:
        """Draw n configurations exactly and independently; rng: NumPy Generator, seed or None."""
        return self._batch.sample(n, rng)[0]

    def entropy(self) -> float:
        """Entropy of the distribution over configurations, in nats."""
        return float(self._batch.entropy()[0])

    def constrain(self: Self, labels: Any = None, boundaries: Any = None) -> Self:
        """A new lattice with partial knowledge; applied to a constrained lattice it adds to it.

        Parameters
        ----------
        labels : int (T,), -1 for unknown, or bool (T, L), true for allowed labels
        boundaries : int (T,)
            1: a segment ends at t, 0: none does, -1: unknown.

        Raises
        ------
        ValueError
            If no configuration is left; the message names the position.
        """
        assert isinstance(self, Lattice)
        return self._of(self._batch.constrain(labels, boundaries))  # type: ignore[no-any-return]

    def compressed(self, max_length: int | None = None) -> Compressed:
        """The distribution over trajectories: labels without their transition points (paper 004).

        Parameters
        ----------
        max_length : int, optional
            Longest trajectory to look at; bounds time and memory. None: the length of the sequence.
        """
        from scansion.lattice.compressed import Compressed

        return Compressed(self._batch, max_length)
