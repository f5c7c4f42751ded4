"""A dynamic CRF (Sutton, McCallum and Rohanimanesh, 2007): a grid of levels, each a chain, tied at every time step.

Its cliques are neighbours in time at each level, and the labels of all levels at one time step; attributes go with the
labels of each level, with each kind of clique, and with nothing ("always on"). Inference is exact: the levels together
are a chain over combinations of labels (paper 000, section 9.2: 3 x 5 = 15), whose scores are sums over cliques,

    score(a -> b at t) = sum over levels d of U_d(b_d, t) + A_d(a_d, b_d, t), plus P(b, t),

so that weights are shared between combinations, which they are not in `levels.ProductChain`.

Conventions: N time steps of all sequences one after another, F attributes, L_d labels at level d, K the product of
these; the weights are a table (F + 1, C), its last row the always-on ones, C = sum of L_d + sum of L_d^2 + K.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import scansion
from scansion.training.optimizers import lbfgs

__all__ = ["Dcrf"]

Array = npt.NDArray[np.float64]
AT_ONCE = 400  # sequences whose transitions are in memory together


class Dcrf:
    """A grid of levels. X: sequences of lists of strings; y: columns of labels, one a level.

    Features are those seen in training: an attribute with a label, a transition or a combination that it occurs with.
    Always-on ones exist for all.

    Parameters
    ----------
    c2 : strength of the penalty ``c2 |w|^2``
    algorithm : "lbfgs" until it has converged, or "sgd": stochastic gradient steps
    max_iterations : of L-BFGS, or passes
    """

    def __init__(
        self, c2: float = 1.0, algorithm: str = "lbfgs", max_iterations: int | None = None, n_jobs: int = 1
    ) -> None:
        self.c2, self.algorithm, self.max_iterations, self.n_jobs = c2, algorithm, max_iterations, n_jobs

    # ---- data --------------------------------------------------------------------------------------------------------

    def _encode(self, X: Sequence[Any]) -> tuple[Any, npt.NDArray[np.int64]]:
        """Attributes as a sparse table (N, F + 1), the last column ones, and where sequences begin."""
        from scipy.sparse import csr_matrix

        ids: list[int] = []
        cuts = [0]
        for x in X:
            for token in x:
                ids += [self.names[name] for name in token if name in self.names]
                ids.append(len(self.names))
                cuts.append(len(ids))
        table = csr_matrix((np.ones(len(ids)), ids, cuts), shape=(len(cuts) - 1, len(self.names) + 1))
        return table, np.cumsum([0, *map(len, X)])

    def _numbers(self, y: Sequence[Sequence[Sequence[Any]]]) -> list[npt.NDArray[np.int64]]:
        """Numbers of the labels (N,) at each level."""
        places = [{label: i for i, label in enumerate(labels)} for labels in self.labels]
        return [
            np.array([place[label] for columns in y for label in columns[d]], np.int64)
            for d, place in enumerate(places)
        ]

    def _columns(self) -> tuple[list[slice], list[slice], slice]:
        """Where the scores of labels, transitions and combinations stand in a row of C."""
        sizes = [*self.sizes, *(n * n for n in self.sizes), math.prod(self.sizes)]
        ends = np.cumsum([0, *sizes]).tolist()
        parts = [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]
        depth = len(self.sizes)
        return parts[:depth], parts[depth : 2 * depth], parts[-1]

    def _occurring(self, numbers: list[npt.NDArray[np.int64]], offsets: npt.NDArray[np.int64]) -> Any:
        """(N, C) which labels, transitions (read at their second time step) and combinations occur where."""
        from scipy.sparse import csr_matrix

        labels, transitions, pairs = self._columns()
        n = int(offsets[-1])
        later = np.setdiff1d(np.arange(n), offsets[:-1])
        rows = [np.arange(n)] * (len(numbers) + 1) + [later] * len(numbers)
        columns = [part.start + number for part, number in zip(labels, numbers, strict=True)]
        columns.append(pairs.start + np.ravel_multi_index(numbers, self.sizes))
        columns += [
            part.start + number[later - 1] * size + number[later]
            for part, number, size in zip(transitions, numbers, self.sizes, strict=True)
        ]
        row, column = np.concatenate(rows), np.concatenate(columns)
        return csr_matrix((np.ones(len(row)), (row, column)), shape=(n, pairs.stop))

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(self, X: Sequence[Any], y: Sequence[Sequence[Sequence[Any]]]) -> Dcrf:
        self.labels = [sorted({label for columns in y for label in columns[d]}) for d in range(len(y[0]))]
        self.sizes = [len(labels) for labels in self.labels]
        names = dict.fromkeys(name for x in X for token in x for name in token)
        self.names = {name: i for i, name in enumerate(names)}
        table, offsets = self._encode(X)
        occurring = self._occurring(self._numbers(y), offsets)
        observed = (table.T @ occurring).toarray()
        self.seen = observed > 0
        self.seen[-1] = True
        self.size_ = int(self.seen.sum())
        if self.algorithm == "sgd":
            return self._descend(table, occurring, offsets)
        shape = observed.shape

        def loss(w: Array) -> tuple[float, Array]:
            weights = w.reshape(shape)
            total, expected = self._expected(table, offsets, weights)
            gradient = np.where(self.seen, expected - observed, 0.0) + 2.0 * self.c2 * weights
            value = total - float((observed * weights).sum()) + self.c2 * float((w**2).sum())
            return value, gradient.ravel()

        result = lbfgs(loss, np.zeros(math.prod(shape)), max_iterations=self.max_iterations, n_jobs=self.n_jobs)
        self.weights = result.w.reshape(shape)
        self.n_iter_, self.loss_, self.message_ = result.iterations, result.loss, result.message
        return self

    def _descend(self, table: Any, occurring: Any, offsets: npt.NDArray[np.int64]) -> Dcrf:
        """Stochastic gradient: batches of 8 sequences in random order, steps of 0.1 / (1 + passes / 2)."""
        rng = np.random.default_rng(0)
        self.weights = np.zeros(self.seen.shape)
        n, passes = len(offsets) - 1, self.max_iterations or 30
        decay = 2.0 * self.c2 / n
        done = 0
        for _ in range(passes):
            order = rng.permutation(n)
            for first in range(0, n, 8):
                chosen = np.sort(order[first : first + 8])
                rows = np.concatenate([np.arange(offsets[b], offsets[b + 1]) for b in chosen])
                cuts = np.cumsum([0, *(offsets[b + 1] - offsets[b] for b in chosen)])
                part = table[rows]
                ids = np.unique(part.indices)
                narrow = part[:, ids]
                step = 0.1 / (1.0 + 0.5 * done / n)
                expected = self._expected(narrow, cuts, self.weights[ids])[1]
                self.weights *= 1.0 - step * decay * len(chosen)
                difference = (narrow.T @ occurring[rows]).toarray() - expected
                self.weights[ids] += step * np.where(self.seen[ids], difference, 0.0)
                done += len(chosen)
        total = self._expected(table, offsets, self.weights)[0]
        told = float((table.T @ occurring).multiply(self.weights).sum())
        self.n_iter_, self.message_ = passes, "all passes"
        self.loss_ = total - told + self.c2 * float((self.weights**2).sum())
        return self

    def _expected(self, table: Any, offsets: npt.NDArray[np.int64], weights: Array) -> tuple[float, Array]:
        """The sum of log Z, and how often each feature is expected (F + 1, C)."""
        expected, total = np.zeros(weights.shape), 0.0
        labels, transitions, pairs = self._columns()
        for rows, batch in self._batches(table, offsets, weights):
            total += float(batch.log_partition().sum())
            found = batch.marginals()
            product = found.labels.reshape(-1, *self.sizes)
            counts = np.zeros((len(product), weights.shape[1]))
            counts[:, pairs] = found.labels
            later = self._later(batch.offsets)
            moves = found.transitions.reshape(-1, *self.sizes, *self.sizes)
            depth = len(self.sizes)
            for d, (here, across) in enumerate(zip(labels, transitions, strict=True)):
                counts[:, here] = product.sum(axis=tuple(1 + k for k in range(depth) if k != d))
                others = tuple(1 + k + side for k in range(depth) if k != d for side in (0, depth))
                counts[later, across] = moves.sum(axis=others).reshape(len(later), -1)
            expected += table[rows].T @ counts
        return total, expected

    @staticmethod
    def _later(offsets: Any) -> npt.NDArray[np.int64]:
        """Rows that have one before them in their sequence."""
        return np.setdiff1d(np.arange(int(offsets[-1])), np.asarray(offsets)[:-1])

    def _batches(
        self, table: Any, offsets: npt.NDArray[np.int64], weights: Array
    ) -> Iterator[tuple[slice, scansion.ChainBatch]]:
        """Chains over combinations, some sequences at a time."""
        labels, transitions, pairs = self._columns()
        depth, size = len(self.sizes), math.prod(self.sizes)
        for first in range(0, len(offsets) - 1, AT_ONCE):
            cuts = offsets[first : first + AT_ONCE + 1]
            rows = slice(int(cuts[0]), int(cuts[-1]))
            scores = table[rows] @ weights
            unary = scores[:, pairs].reshape(-1, *self.sizes)
            later = self._later(cuts - cuts[0])
            moves = np.zeros((len(later), *self.sizes, *self.sizes))
            for d, (here, across) in enumerate(zip(labels, transitions, strict=True)):
                shape = [1] * depth
                shape[d] = self.sizes[d]
                unary = unary + scores[:, here].reshape(-1, *shape)
                moves += scores[later, across].reshape(-1, *shape, *shape)
            yield (
                rows,
                scansion.ChainBatch(
                    unary.reshape(-1, size), cuts - cuts[0], moves.reshape(-1, size, size), n_jobs=self.n_jobs
                ),
            )

    # ---- answers -----------------------------------------------------------------------------------------------------

    def predict(
        self, X: Sequence[Any], given: Sequence[Sequence[Sequence[Any]]] | None = None
    ) -> list[list[list[Any]]]:
        """Columns of each sequence; `given` are columns that hold None where nothing is known."""
        table, offsets = self._encode(X)
        combinations = np.array(np.unravel_index(np.arange(math.prod(self.sizes)), self.sizes)).T
        answers: list[list[list[Any]]] = []
        for rows, batch in self._batches(table, offsets, self.weights):
            if given is not None:
                some = given[len(answers) : len(answers) + len(batch)]
                held = batch.constrain(self._allowed(some, combinations, rows.stop - rows.start))
            else:
                held = batch
            for best in held.viterbi()[0]:
                columns = combinations[np.asarray(best)].T
                answers.append([[self.labels[d][i] for i in column] for d, column in enumerate(columns)])
        return answers

    def _allowed(self, given: Any, combinations: Any, n: int) -> npt.NDArray[np.bool_]:
        """(N, K) which combinations agree with what is known."""
        allowed = np.ones((n, len(combinations)), bool)
        for d, labels in enumerate(self.labels):
            place = {label: i for i, label in enumerate(labels)}
            known = np.array([place.get(label, -1) for columns in given for label in columns[d]])
            allowed &= (known[:, None] < 0) | (known[:, None] == combinations[:, d])
        return allowed
