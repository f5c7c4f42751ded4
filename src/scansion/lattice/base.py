"""What all lattices share: the questions, for one sequence (`Lattice`) and for many at once (`Batch`).

A `Lattice` is a `Batch` of one: every question is answered in one place. Empty sequences are allowed everywhere: they
have exactly one configuration, the empty one, with score 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data.knowledge import Knowledge, Known
from scansion.lattice.cores import Packed

if TYPE_CHECKING:
    from scansion.lattice.compressed import Compressed

Config = TypeVar("Config")  # one configuration
Marginals = TypeVar("Marginals")
Self = TypeVar("Self")

_RANDOMS_AT_ONCE = 4_000_000
_ROWS_AT_ONCE = 200_000  # of sequences that are asked about several times at once


class Batch(ABC, Generic[Config, Marginals]):
    """Many sequences' lattices; every question is asked of all of them in one call."""

    _core: Any
    n_jobs: int

    @classmethod
    def _of(cls, core: Any, n_jobs: int) -> Any:
        batch = cls.__new__(cls)
        batch._core = core
        batch.n_jobs = n_jobs
        return batch

    @property
    def offsets(self) -> Ints:
        """(B + 1,) sequence b has rows ``offsets[b]:offsets[b + 1]``."""
        offsets: Ints = self._core.offsets
        return offsets

    @property
    def n_labels(self) -> int:
        """Number of labels L (of nested lattices at the bottom level)."""
        return int(self._core.n_labels)

    def __len__(self) -> int:
        return len(self._core.offsets) - 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} sequences, {self.offsets[-1]} positions, {self.n_labels} labels)"

    # ---- what the kinds differ in ------------------------------------------------------------------------------

    @abstractmethod
    def _config(self, levels: list[Ints]) -> Config:
        """A configuration, from its segments (n, 3) at each level."""

    @abstractmethod
    def _levels(self, config: Any, length: int, name: str) -> list[Ints]:
        """The segments (n, 3) of a given configuration at each level, checked."""

    @abstractmethod
    def marginals(self) -> Marginals:
        """Posterior probabilities, rows of all sequences one after another."""

    @abstractmethod
    def __getitem__(self, b: int) -> Any: ...

    @abstractmethod
    def constrain(self, labels: Any = None, boundaries: Any = None) -> Any:
        """The same lattices with partial knowledge."""

    def _one(self, b: int) -> Any:
        try:
            b = range(len(self))[b]
        except IndexError:
            raise IndexError(f"the batch has {len(self)} sequences, there is no sequence {b}") from None
        return self._core.select(b)

    # ---- questions ---------------------------------------------------------------------------------------------

    def log_partition(self) -> Floats:
        """Log of the summed weights of all configurations, log Z, for each sequence: (B,)."""
        return self._possible(self._core.log_partitions(self.n_jobs))

    def _possible(self, log_partitions: Floats, what: str | None = None) -> Floats:
        dead = np.flatnonzero(log_partitions == -np.inf)
        if dead.size:
            b = int(dead[0])
            where = f" of sequence {b}" if len(self) > 1 else ""
            told = self._core.what if what is None else what
            raise ValueError(
                f"no configuration is possible: {told} leave none beyond position {self._core.furthest(b)}{where}"
            )
        return log_partitions

    def _found(self, packed: Packed) -> list[list[Config]]:
        """Configurations by sequence; there is at least one of each, or an error says of which there is none."""
        steps, paths, firsts, _ = packed
        if (np.diff(firsts) == 0).any():
            self.log_partition()
        depth, cuts = self._core.n_levels, paths.tolist()
        configs = [
            self._config([steps[cuts[i + d] : cuts[i + d + 1]] for d in range(depth)])
            for i in range(0, len(cuts) - 1, depth)
        ]
        return [configs[a:b] for a, b in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)]

    def viterbi(self) -> tuple[list[Config], Floats]:
        """The best configuration of each sequence and its score: list of B, (B,).

        Ties: reading configurations from the end, the smaller label wins, then the shorter segment; of nested lattices,
        in a fixed way.
        """
        packed = self._core.best(self.n_jobs)
        return [configs[0] for configs in self._found(packed)], packed.scores

    def most_accurate(self) -> tuple[list[Config], Floats]:
        """The configuration of each sequence with the most positions expected to be right, and their number (B,).

        Of all possible ones, that with the largest sum of the marginals of its labels, over positions and, of nested
        lattices, levels. Among configurations of the same labels, boundaries are chosen by theirs. To be preferred to
        `viterbi` where every position counts by itself, and not whether the whole is right.
        """
        found: Any = self.marginals()
        packed = self._core.gains(found.labels, getattr(found, "boundaries", None)).best(self.n_jobs)
        return [configs[0] for configs in self._found(packed)], packed.scores

    def kbest(self, k: int) -> list[list[tuple[Config, float]]]:
        """The k best configurations of each sequence with their scores, best first, none twice.

        Fewer than k where fewer have a score above -inf.
        """
        packed = self._core.kbest(checks.count("k", k, 1), self.n_jobs)
        scores = iter(packed.scores.tolist())
        return [[(config, next(scores)) for config in configs] for configs in self._found(packed)]

    def score(self, configs: Sequence[Any]) -> Floats:
        """Score of one given configuration per sequence, -inf where it is forbidden: (B,)."""
        configs = checks.one_each("configs", configs, len(self))
        lengths = np.diff(self.offsets).tolist()
        levels = [self._levels(c, lengths[b], f"configs[{b}]") for b, c in enumerate(configs)]
        return self._scores([one for config in levels for one in config])

    def _scores(self, paths: list[Ints]) -> Floats:
        """Scores of one configuration per sequence, from the paths of all their levels."""
        cuts = np.concatenate([[0], np.cumsum([len(path) for path in paths], dtype=np.int64)]).astype(np.int64)
        steps = np.ascontiguousarray(np.concatenate([*paths, np.empty((0, 3), np.int64)]))
        scores: Floats = self._core.scores(steps, cuts, np.arange(len(self)))
        return scores

    def log_probability(self, configs: Sequence[Any]) -> Floats:
        """Log probability of one given configuration per sequence: score - log Z, (B,)."""
        return self.score(configs) - self.log_partition()

    def segment_probabilities(self, configs: Sequence[Any]) -> list[Any]:
        """How probable each segment of a given configuration is by itself, whatever surrounds it.

        Of ``Segment(start, stop, label)``, the probability that there is such a segment (paper 000, equation 34); of a
        chain, that of each label. One configuration per sequence, such as `viterbi` gives. Returns for each sequence an
        array (segments,), of nested lattices one for each level, root first.
        """
        configs = checks.one_each("configs", configs, len(self))
        lengths = np.diff(self.offsets).tolist()
        return self._probabilities([self._levels(c, lengths[b], f"configs[{b}]") for b, c in enumerate(configs)])

    @abstractmethod
    def _probabilities(self, configs: list[list[Ints]]) -> list[Any]:
        """`segment_probabilities`, from the segments (n, 3) of each sequence at each level."""

    def sample(self, n: int, rng: Any = None) -> list[Any]:
        """Draw n configurations of each sequence, exactly and independently; rng: Generator, seed or None."""
        n = checks.count("n", n, 0)
        generator = checks.generator(rng)
        drawn: list[list[Config]] = [[] for _ in range(len(self))]
        for part in self._draws(n):
            for configs, more in zip(drawn, self._found(self._core.sample(part, generator, self.n_jobs)), strict=True):
                configs.extend(more)
        return [self._stack(configs, int(t)) for configs, t in zip(drawn, np.diff(self.offsets), strict=True)]

    def _draws(self, n: int) -> list[int]:
        """N in parts whose random numbers fit into memory."""
        at_once = max(1, _RANDOMS_AT_ONCE // max(1, self._core.randoms))
        return [min(at_once, n - done) for done in range(0, n, at_once)]

    def _stack(self, configs: list[Config], length: int) -> Any:
        return configs

    def entropy(self) -> Floats:
        """Entropy of the distribution over configurations, in nats: (B,)."""
        self.log_partition()
        entropies: Floats = self._core.entropies(self.n_jobs)
        return entropies

    # ---- knowledge ---------------------------------------------------------------------------------------------

    def under(self: Self, known: Knowledge) -> Self:
        """The same lattices with this knowledge in place of what they hold; it may leave nothing possible."""
        assert isinstance(self, Batch)
        return self._of(replace(self._core, known=known), self.n_jobs)  # type: ignore[no-any-return]

    def _constrained(
        self: Self, given: list[tuple[Any, Any]], sizes: Sequence[int], bounds: Sequence[int | None]
    ) -> Self:
        """The same lattices under labels and boundaries by level, added to what they hold.

        sizes: number of labels by level; bounds: longest segment by level, None for no bound.
        """
        assert isinstance(self, Batch)
        core, depth = self._core, len(given)
        rows, known = int(core.offsets[-1]), []
        last = core.offsets[1:][np.diff(core.offsets) > 0] - 1
        for d, (labels, boundaries) in enumerate(given):
            where = f"[{d}]" if depth > 1 else ""
            try:
                more = Known.parse(labels, boundaries, rows, sizes[d])
            except ValueError as error:
                raise ValueError(f"level {d}: {error}" if depth > 1 else str(error)) from None
            both, clash = core.known.levels[d].also(more)
            if clash is not None:
                self._contradiction(f"boundaries{where}[{clash}]", clash, "contradicts what was known before")
            if both.allowed is not None and not both.allowed.any(axis=1).all():
                row = int(np.argmin(both.allowed.any(axis=1)))
                self._contradiction(f"labels{where}[{row}]", row, f"allows no {'state' if depth > 1 else 'label'}")
            if both.ends is not None:
                bad = last[both.ends[last] == 0]
                if bad.size:
                    self._contradiction(
                        f"boundaries{where}[{bad[0]}]", int(bad[0]), "is 0, but a segment always ends there"
                    )
                if bounds[d] == 1 and (both.ends == 0).any():
                    row = int(np.argmax(both.ends == 0))
                    what = (
                        f"every segment of level {d} has length 1" if depth > 1 else "every segment has length 1 here"
                    )
                    self._contradiction(f"boundaries{where}[{row}]", row, f"is 0, but {what}")
            known.append(both)
        held = Knowledge(tuple(known), core.offsets)
        self._check_nesting(held, last)
        result = self.under(held)
        result._possible(result._core.log_partitions(self.n_jobs), "the constraints (labels, boundaries)")
        return result

    # ---- rules -------------------------------------------------------------------------------------------------

    def restrict(self: Self, *rules: Any, tolerance: float = 1e-10, max_states: int | None = None) -> Self:
        """The same lattices with nothing but the configurations that keep the rules (docs/concepts/rules.md).

        Parameters
        ----------
        rules : Rule, or text
            Labels are integers. See `scansion.rules`.
        tolerance : float
            Most probability, under the rules that were taken, of configurations that break another one and are summed
            all the same; `left_out` tells how much there is. Best configurations and samples always keep all rules.
        max_states : int, optional
            Of the automaton of rules that are taken together; beyond it an error names them.
        """
        from scansion.rules.restricted import RestrictedCore, rule_set

        assert isinstance(self, Batch)
        compiled = rule_set(self, rules, tolerance, max_states)
        return self._of(RestrictedCore.of(self._core, compiled), self.n_jobs)  # type: ignore[no-any-return]

    @property
    def left_out(self) -> Floats:
        """(B,) bound on the probability of what breaks a rule and is summed all the same; see `restrict`."""
        found: Floats = getattr(self._core, "left_out", np.zeros(len(self)))
        return found

    def _check_nesting(self, held: Knowledge, last: Ints) -> None:
        """Raise where boundaries of several levels contradict each other; last: the sequences' last rows."""

    def _contradiction(self, what: str, row: int, why: str) -> None:
        b = int(np.searchsorted(self.offsets, row, side="right")) - 1
        position = row - int(self.offsets[b])
        where = f" (sequence {b}, position {position})" if len(self) > 1 else f" (position {position})"
        raise ValueError(f"{what} {why}{where}: no configuration is possible")


class FlatBatch(Batch[Config, Marginals]):
    """Chains and segments: one level."""

    _merges: bool  # whether neighbouring equal labels are one place of a trajectory

    def constrain(self: Self, labels: Any = None, boundaries: Any = None) -> Self:
        """The same lattices with partial knowledge; a second call adds to the first.

        Parameters
        ----------
        labels : int (N,), -1 for unknown, or bool (N, L), true for allowed labels
        boundaries : int (N,)
            1: a segment ends at this row, 0: none does, -1: unknown.
        """
        assert isinstance(self, FlatBatch)
        return self._constrained([(labels, boundaries)], [self.n_labels], [self._core.max_length])

    def _probabilities(self, configs: list[list[Ints]]) -> list[Floats]:
        found = []
        cells = max(1, self._core.max_length * self.n_labels)
        for part in parts_of(np.diff(self.offsets) * cells, 16 * _ROWS_AT_ONCE):
            batch = self if len(part) == len(self) else self._of(self._core.take(part), self.n_jobs)
            answers: Any = batch.marginals()
            for b, first in zip(part.tolist(), batch.offsets.tolist(), strict=False):
                start, stop, label = configs[b][0].T
                found.append(self._probable(answers, first + start, stop - start, label))
        return found

    @abstractmethod
    def _probable(self, marginals: Any, rows: Ints, lengths: Ints, labels: Ints) -> Floats:
        """What marginals say of segments that begin at these rows."""


def parts_of(sizes: Ints, most: int) -> list[Ints]:
    """Numbers of items in parts whose sizes add up to at most so much, or of one item."""
    parts, total = [], 0
    first = 0
    for i, size in enumerate(sizes.tolist()):
        if i > first and total + size > most:
            parts.append(np.arange(first, i))
            first, total = i, 0
        total += size
    return [*parts, np.arange(first, len(sizes))] if len(sizes) else []


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

        Ties: reading configurations from the end, the smaller label wins, then the shorter segment; of nested lattices,
        in a fixed way.
        """
        configs, scores = self._batch.viterbi()
        return configs[0], float(scores[0])

    def most_accurate(self) -> tuple[Config, float]:
        """The configuration with the most positions expected to be right, and their number.

        Of all possible ones, that with the largest sum of the marginals of its labels, over positions and, of nested
        lattices, levels; among configurations of the same labels, boundaries are chosen by theirs.
        """
        configs, scores = self._batch.most_accurate()
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
        return float(self._batch._scores(self._batch._levels(config, len(self), "config"))[0])

    def log_probability(self, config: Any) -> float:
        """Log probability of a configuration: score - log Z."""
        return self.score(config) - self.log_partition()

    def segment_probabilities(self, config: Any) -> Any:
        """How probable each segment (of a chain: each label) of a configuration is by itself: (segments,).

        Of nested lattices one array for each level, root first; see `Batch.segment_probabilities`.
        """
        return self._batch._probabilities([self._batch._levels(config, len(self), "config")])[0]

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

        Of nested lattices both are dicts level -> array, or lists with one entry per level, None for nothing known.

        Raises
        ------
        ValueError
            If no configuration is left; the message names the position.
        """
        assert isinstance(self, Lattice)
        return self._of(self._batch.constrain(labels, boundaries))  # type: ignore[no-any-return]

    def restrict(self: Self, *rules: Any, tolerance: float = 1e-10, max_states: int | None = None) -> Self:
        """A lattice of the configurations that keep the rules alone; applied to a restricted lattice it adds to it.

        Its `log_partition` minus that of this lattice is the log probability that the rules hold. Best configurations
        are found by relaxation: with no rule first, then with those that the answer breaks, until it keeps all.

        Parameters
        ----------
        rules : Rule, or text
            Labels are integers; ``level`` of nested lattices as well. See `scansion.rules`.
        tolerance : float
            Most probability, under the rules that were taken, of configurations that break another one and are summed
            all the same; `left_out` tells how much there is. Best configurations and samples always keep all rules.
        max_states : int, optional
            Of the automaton of rules that are taken together; beyond it an error names them.

        Examples
        --------
        >>> from scansion import ChainLattice, rules
        >>> lattice = ChainLattice([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
        >>> lattice.viterbi()[0], lattice.restrict(rules.at_most_once(0)).viterbi()[0]
        (array([0, 1, 0]), array([1, 1, 0]))
        """
        assert isinstance(self, Lattice)
        restricted = self._batch.restrict(*rules, tolerance=tolerance, max_states=max_states)
        return self._of(restricted)  # type: ignore[no-any-return]

    @property
    def left_out(self) -> float:
        """Bound on the probability of what breaks a rule and is summed all the same; see `restrict`."""
        return float(self._batch.left_out[0])


class FlatLattice(Lattice[Config, Marginals]):
    """One sequence's chain or segments."""

    _batch: FlatBatch[Config, Marginals]

    def compressed(self, max_length: int | None = None) -> Compressed:
        """The distribution over trajectories: labels without their transition points (paper 004).

        Parameters
        ----------
        max_length : int, optional
            Longest trajectory to look at; bounds time and memory. None: the length of the sequence.
        """
        from scansion.lattice.compressed import Compressed

        return Compressed(self._batch, max_length)
