"""Chain lattices: one label per position, any order (paper 001 with segments of length one).

Conventions: T positions, L labels, natural logarithms, -inf forbidden; row = from, column = to. A batch holds the
rows of all sequences one after another, N in all, cut at `offsets`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data.dataset import cut
from scansion.data.knowledge import Knowledge
from scansion.lattice.base import FlatBatch, FlatLattice
from scansion.lattice.cores import DenseCore, Labels, PatternCore
from scansion.lattice.patterns import automaton

__all__ = ["ChainBatch", "ChainLattice", "ChainMarginals"]


class ChainMarginals:
    """Posterior probabilities of a chain lattice (or of a batch: rows of all sequences one after another).

    Attributes
    ----------
    labels : (T, L)
        ``P(y_t = j)``.
    patterns : (T, P), lattices made by ``from_patterns``
        ``P(the labels up to t end in pattern z)``: the gradient of log Z with respect to ``scores``.
    transitions : (T-1, L, L), lattices made from unary and transition scores
        ``P(y_t = i, y_{t+1} = j)``; computed when first read.
    transition_counts : (L, L), likewise
        Expected number of transitions from i to j: the sum of `transitions` over positions (and sequences), at a
        fraction of its cost.
    """

    def __init__(self, core: DenseCore | PatternCore, n_jobs: int, labels: Floats) -> None:
        self._core = core
        self._n_jobs = n_jobs
        self.labels = labels

    def __repr__(self) -> str:
        more = "transitions, transition_counts" if isinstance(self._core, DenseCore) else "patterns"
        return f"ChainMarginals(labels {self.labels.shape}; also {more})"

    @cached_property
    def patterns(self) -> Floats:
        """(T, P) posterior of each pattern."""
        if self._core.pairwise:
            raise AttributeError("a lattice made from unary and transition scores has no patterns; see transitions")
        out: Floats = self._core.posteriors(self._n_jobs, gradient=True)["starts"]  # type: ignore[call-arg]
        return out

    @cached_property
    def transitions(self) -> Floats:
        """(T-1, L, L) posterior of neighbouring labels."""
        out: Floats = self._dense.posteriors(self._n_jobs, transitions=True)["transitions"]
        return out

    @cached_property
    def transition_counts(self) -> Floats:
        """(L, L) expected number of transitions."""
        if self._dense.transition.ndim == 3:
            total: Floats = self.transitions.sum(axis=0)
            return total
        out: Floats = self._dense.posteriors(self._n_jobs, counts=True)["counts"]
        return out

    @property
    def _dense(self) -> DenseCore:
        if not self._core.pairwise:
            raise AttributeError("a lattice made from patterns has no transitions; see patterns")
        return self._core  # type: ignore[return-value]


class ChainBatch(FlatBatch[Ints, ChainMarginals]):
    """First-order chain lattices of many sequences.

    Parameters
    ----------
    unary : (N, L)
        Scores of labels, rows of all sequences one after another.
    offsets : int (B + 1,)
        Sequence b has rows ``offsets[b]:offsets[b + 1]``.
    transition : (L, L), or (sum of T_b - 1, L, L), optional
        Score of label i followed by j, for all positions or for each; 0 unless given.
    start, end : (L,), optional
        Score of the first and of the last label.
    n_jobs : int
        Threads, -1 for all processors. Results do not depend on it.
    """

    _merges = True

    def __init__(
        self, unary: Any, offsets: Any, transition: Any = None, start: Any = None, end: Any = None, n_jobs: int = 1
    ) -> None:
        scores = checks.scores("unary", unary, ("N", "L"))
        cuts = checks.offsets(offsets, len(scores), "unary")
        self._core = _dense(scores, cuts, transition, start, end)
        self.n_jobs = checks.jobs(n_jobs)

    @classmethod
    def from_patterns(cls, scores: Any, offsets: Any, patterns: Any, n_labels: int, n_jobs: int = 1) -> ChainBatch:
        """Chains of any order: scores (N, P); see `ChainLattice.from_patterns`."""
        net = automaton(patterns, n_labels)
        values = checks.scores("scores", scores, ("N", len(net.patterns)))
        cuts = checks.offsets(offsets, len(values), "scores")
        core = PatternCore.additive(net, cuts, 1, start=values)
        batch: ChainBatch = cls._of(core, checks.jobs(n_jobs))
        return batch

    @classmethod
    def from_padded(
        cls,
        scores: Any,
        lengths: Any = None,
        transition: Any = None,
        start: Any = None,
        end: Any = None,
        *,
        mask: Any = None,
        n_jobs: int = 1,
    ) -> ChainBatch:
        """Chains from an array that is as long as the longest of them, as networks give it.

        Parameters
        ----------
        scores : (B, T, L)
            What lies behind a sequence's end is not looked at, whatever it is.
        lengths : int (B,), or bool (B, T), optional
            How long each sequence is, or where it is; None: all are as long as the array.
        transition : (L, L), (B, L, L) or (B, T-1, L, L), optional
            Score of label i followed by j: for all, for each sequence, or for each of its positions (padded, too); 0
            unless given. `scansion.schemes.transitions` has those of tag schemes.
        start, end : (L,), optional
            Score of the first and of the last label.
        mask : bool (B, T), optional
            In place of `lengths`, by name.
        n_jobs : int

        Examples
        --------
        >>> batch = ChainBatch.from_padded([[[0.0, 1.0], [2.0, 0.0]], [[3.0, 1.0], [0.0, 0.0]]], [2, 1])
        >>> batch.viterbi()[0]
        [array([1, 0]), array([0])]
        >>> batch.padded(batch.best_labels(), fill=-1)
        array([[ 1,  0],
               [ 0, -1]])
        """
        array = np.asarray(scores)
        checks.check_shape("scores", array, ("B", "T", "L"))
        count, longest, size = array.shape
        if mask is not None and lengths is not None:
            raise ValueError("lengths and mask say the same: give one of them")
        sizes = _lengths(mask if lengths is None else lengths, count, longest, "mask" if lengths is None else "lengths")
        inside = np.arange(longest) < sizes[:, None]
        given: Any = None if transition is None else np.asarray(transition)
        if given is not None and given.ndim == 4:
            checks.check_shape("transition", given, (count, max(longest - 1, 0), size, size))
            given = given[inside[:, 1:]]
        elif given is not None and given.ndim == 3:
            checks.check_shape("transition", given, (count, size, size))
            given = np.repeat(given, np.maximum(sizes - 1, 0), axis=0)
        batch = cls(array[inside], np.concatenate([[0], np.cumsum(sizes)]), given, start, end, n_jobs)
        return batch

    def padded(self, rows: Any, fill: Any = 0) -> Any:
        """Rows of all sequences one after another (N, ...) as an array (B, T, ...), as long as the longest of them."""
        values, sizes = np.asarray(rows), np.diff(self.offsets)
        checks.check_shape("rows", values, (int(self.offsets[-1]), *values.shape[1:]))
        longest = int(sizes.max(initial=0))
        out = np.full((len(self), longest, *values.shape[1:]), fill, dtype=values.dtype)
        out[np.arange(longest) < sizes[:, None]] = values
        return out

    def score(self, configs: Any) -> Floats:
        """Score of one given configuration per sequence, -inf where it is forbidden: (B,).

        Parameters
        ----------
        configs : B lists of labels, or int (N,), all one after another, or int (B, T), padded
        """
        sizes = np.diff(self.offsets)
        if isinstance(configs, np.ndarray) and configs.ndim == 2 and configs.dtype.kind in "iu":
            checks.check_shape("configs", configs, (len(self), configs.shape[1]))
            if configs.shape[1] < sizes.max(initial=0):
                raise ValueError(f"configs has {configs.shape[1]} columns, but a sequence has {sizes.max()} positions")
            configs = [row[:n] for row, n in zip(configs, sizes.tolist(), strict=True)]
        elif _is_flat(configs):
            flat = checks.integers("configs", configs, int(self.offsets[-1]), 0, self.n_labels - 1)
            configs = np.split(flat, self.offsets[1:-1])
        return super().score(configs)

    def __getitem__(self, b: int) -> ChainLattice:
        lattice: ChainLattice = ChainLattice._of(self._of(self._one(b), 1))
        return lattice

    def marginals(self) -> ChainMarginals:
        """Posteriors: ``labels`` (N, L), and ``transitions`` and ``transition_counts``, or ``patterns`` (N, P)."""
        answer = self._core.posteriors(self.n_jobs)
        self._possible(answer["log_partition"])
        return ChainMarginals(self._core, self.n_jobs, answer["labels"])

    def best_labels(self) -> Ints:
        """Labels of the best configurations, rows of all sequences one after another: (N,), as `viterbi`."""
        labels: Ints = self._core.best_labels(self.n_jobs)
        if len(labels) < self.offsets[-1] or (len(labels) and labels.min() < 0):
            self.log_partition()  # says which sequence has no configuration
        return labels

    def viterbi(self) -> tuple[list[Ints], Floats]:
        """The best labelling of each sequence and its score; see `Batch.viterbi`."""
        if not isinstance(self._core, DenseCore):
            return super().viterbi()
        labels = self.best_labels()
        times = np.arange(len(labels)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        scores = self._core.scores(np.column_stack([times, times + 1, labels]), self.offsets, np.arange(len(self)))
        cuts = self.offsets.tolist()
        return [labels[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)], scores

    def kbest(self, k: int) -> list[list[tuple[Ints, float]]]:
        """The k best labellings of each sequence with their scores, best first; fewer where there are fewer."""
        found = self._kbest_labels(k)
        if found is None:
            return super().kbest(k)
        rows = cut(found.labels.astype(np.int64), self._cuts(found))
        return cut(list(zip(rows, found.scores.tolist(), strict=True)), found.firsts)

    def _kbest_labels(self, k: int) -> Labels | None:
        """What `kbest` finds in one array; None: these chains are not of first order."""
        if not isinstance(self._core, DenseCore):
            return None
        found = self._core.kbest_labels(checks.count("k", k, 1), self.n_jobs)
        if (np.diff(found.firsts) == 0).any():
            self.log_partition()  # says of which sequence there is none
        return found

    def _cuts(self, found: Labels) -> Ints:
        """Where each configuration begins among the labels, and the end."""
        lengths = np.repeat(np.diff(self.offsets), np.diff(found.firsts))
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def sample(self, n: int, rng: Any = None) -> list[Any]:
        """Draw n labellings (n, T) of each sequence, exactly and independently; rng: Generator, seed or None."""
        if not isinstance(self._core, DenseCore):
            return super().sample(n, rng)
        n, generator = checks.count("n", n, 0), checks.generator(rng)
        lengths = np.diff(self.offsets)
        drawn: list[list[Ints]] = [[np.empty((0, t), np.int64)] for t in lengths.tolist()]
        for part in self._draws(n):
            found = self._core.sample_labels(part, generator, self.n_jobs)
            if (np.diff(found.firsts) == 0).any():
                self.log_partition()  # says that there is none
            labels, ends = found.labels.astype(np.int64), np.cumsum(part * lengths).tolist()
            for tables, last, t in zip(drawn, ends, lengths.tolist(), strict=True):
                tables.append(labels[last - part * t : last].reshape(part, t))
        return [tables[-1] if len(tables) == 2 else np.concatenate(tables) for tables in drawn]

    def _config(self, levels: list[Ints]) -> Ints:
        return levels[0][:, 2].astype(np.int64)

    def _stack(self, configs: list[Ints], length: int) -> Ints:
        return np.stack(configs) if configs else np.empty((0, length), np.int64)

    def _levels(self, config: Any, length: int, name: str) -> list[Ints]:
        labels = checks.integers(name, config, length, 0, self.n_labels - 1)
        at = np.arange(length)
        return [np.stack([at, at + 1, labels], axis=1)]

    def _probable(self, marginals: ChainMarginals, rows: Ints, lengths: Ints, labels: Ints) -> Floats:
        return marginals.labels[rows, labels]


class ChainLattice(FlatLattice[Ints, ChainMarginals]):
    """A chain lattice: the distribution over labellings y of one sequence with given scores.

    ``score(y) = start[y_0] + sum_t unary[t, y_t] + sum_t transition[y_t, y_{t+1}] + end[y_{T-1}]`` and
    ``P(y) = exp(score(y)) / Z``. Every answer is exact; time O(T L^2), memory O(T L).

    Parameters
    ----------
    unary : (T, L)
        Score of label j at position t; -inf forbids.
    transition : (L, L) or (T-1, L, L), optional
        Score of label i followed by label j; at index t between positions t and t + 1. 0 unless given.
    start, end : (L,), optional
        Score of the first and of the last label.

    Examples
    --------
    >>> lattice = ChainLattice([[1.0, 0.0], [0.0, 0.0]], [[0.5, 0.0], [0.0, 0.5]])
    >>> lattice.viterbi()
    (array([0, 0]), 1.5)
    """

    def __init__(self, unary: Any, transition: Any = None, start: Any = None, end: Any = None) -> None:
        scores = checks.scores("unary", unary, ("T", "L"))
        core = _dense(scores, np.array([0, len(scores)]), transition, start, end)
        self._batch = ChainBatch._of(core, 1)

    @classmethod
    def from_patterns(cls, scores: Any, patterns: Any, n_labels: int) -> ChainLattice:
        """A chain of any order, from scores of label patterns (paper 001).

        ``score(y) = sum_t sum over patterns z that end y_0 .. y_t of scores[t, z]``.

        Parameters
        ----------
        scores : (T, P)
            Score of pattern z where its last label is at position t (`EOS`: where the last label before it is).
        patterns : sequence of tuples of int, or PatternAutomaton
            Labels 0..n_labels-1; `BOS` allowed first, `EOS` last.
        n_labels : int
        """
        net = automaton(patterns, n_labels)
        values = checks.scores("scores", scores, ("T", len(net.patterns)))
        core = PatternCore.additive(net, np.array([0, len(values)]), 1, start=values)
        lattice: ChainLattice = cls._of(ChainBatch._of(core, 1))
        return lattice

    @classmethod
    def from_hmm(cls, startprob: Any, transmat: Any, emission_logprob: Any) -> ChainLattice:
        """The lattice of a hidden Markov model and one sequence: its posterior over state sequences.

        ``P(y | x) = startprob[y_0] prod_t transmat[y_t, y_{t+1}] prod_t p(x_t | y_t) / P(x)``, and `log_partition` is
        the log likelihood of the sequence, log P(x). With a fitted hmmlearn model ``h``, the arguments are
        ``h.startprob_``, ``h.transmat_`` and ``h._compute_log_likelihood(X)``.

        Parameters
        ----------
        startprob : (L,)
            Probability of each state at the first position; 0 forbids.
        transmat : (L, L) or (T-1, L, L)
            Probability of state j after state i; rows sum to 1.
        emission_logprob : (T, L)
            Log probability, or log density, of each observation in each state.

        Examples
        --------
        >>> emission = np.log([[0.9, 0.2], [0.6, 0.5], [0.1, 0.8]])
        >>> hmm = ChainLattice.from_hmm([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], emission)
        >>> hmm.viterbi()[0]
        array([1, 1, 1])
        >>> hmm.compressed().best().trajectories  # two state sequences have it
        [(0, 1)]
        """
        emission = checks.scores("emission_logprob", emission_logprob, ("T", "L"))
        size = emission.shape[1]
        start = checks.probabilities("startprob", startprob, (size,))
        array = checks.plain("transmat", transmat)
        shape = (max(0, len(emission) - 1), size, size) if array.ndim == 3 else (size, size)
        matrix = checks.probabilities("transmat", array, shape)
        with np.errstate(divide="ignore"):
            return cls(emission, np.log(matrix), start=np.log(start))


def _dense(unary: Floats, offsets: Ints, transition: Any, start: Any, end: Any) -> DenseCore:
    size = unary.shape[1]
    if size == 0:
        raise ValueError(f"unary must have at least one label, got shape {unary.shape}")
    checks.memory(f"transitions between {size} labels and their exponentials", 3 * size * size)
    transition = np.zeros((size, size)) if transition is None else transition
    matrix = checks.plain("transition", transition)
    if matrix.ndim == 3:
        steps = int(np.maximum(np.diff(offsets) - 1, 0).sum())
        scores = checks.scores("transition", transition, (steps, size, size))
    else:
        scores = checks.scores("transition", transition, (size, size))
    first = None if start is None else checks.scores("start", start, (size,))
    last = None if end is None else checks.scores("end", end, (size,))
    return DenseCore(offsets, Knowledge.nothing(offsets), unary, scores, first, last)


def _lengths(given: Any, count: int, longest: int, name: str) -> Ints:
    """Lengths of padded sequences, from lengths or from where they are."""
    if given is None:
        return np.full(count, longest, np.int64)
    array = np.asarray(given)
    if array.dtype.kind != "b":
        return checks.integers(name, array, count, 0, longest)
    checks.check_shape(name, array, (count, longest))
    sizes: Ints = array.sum(axis=1, dtype=np.int64)
    gaps = (array != (np.arange(longest) < sizes[:, None])).any(axis=1)
    if gaps.any():
        b = int(np.argmax(gaps))
        raise ValueError(f"{name}[{b}] has gaps: a sequence begins at position 0 and is padded behind its end")
    return sizes


def _is_flat(configs: Any) -> bool:
    """Whether these are labels, one after another, and not one entry a sequence."""
    if isinstance(configs, np.ndarray):
        return configs.ndim == 1 and configs.dtype.kind in "iu"
    return (
        isinstance(configs, (list, tuple))
        and len(configs) > 0
        and all(not isinstance(y, (list, tuple)) and np.ndim(y) == 0 for y in configs)
    )
