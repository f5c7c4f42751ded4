"""Stands in for the native kernel on this branch only, so that others can build on the interface; it will go."""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion.reference import enumeration as brute
from scansion.reference import nested, trees


class NestedBatch:
    def __init__(self, offsets, sizes, children, transit, init, end, parts, bounds, free, root, allowed, low, high):  # type: ignore[no-untyped-def]
        self.__dict__.update(locals())

    def dense(self, b: int) -> Any:
        a, z = int(self.offsets[b]), int(self.offsets[b + 1])
        n = z - a
        persist = []
        for d, size in enumerate(self.sizes):
            bound = n if d == 0 or self.bounds[d] == 0 else min(n, self.bounds[d])
            R = np.full((n, max(bound, 1), size), -np.inf)
            inside, start, stop, length, spans = self.parts[d]
            for u in range(n):
                for m in range(1, min(bound, n - u) + 1):
                    v = u + m
                    if d == 0 and m < n:
                        continue
                    if any(self.high[a + t] <= d for t in range(u, v - 1)):
                        continue
                    if (v < n and self.low[a + v - 1] > d) or (u > 0 and self.low[a + u - 1] > d):
                        continue
                    x = np.zeros(size)
                    if d == 0:
                        x = self.root[b].copy()
                    else:
                        if inside is not None:
                            x = x + inside[a + u : a + v].sum(axis=0)
                        if start is not None:
                            x = x + (start if start.ndim == 1 else start[a + u])
                        if stop is not None:
                            x = x + (stop if stop.ndim == 1 else stop[a + v - 1])
                        if length is not None:
                            x = x + length[m - 1]
                        if spans is not None:
                            x = x + spans[a + u, m - 1]
                    if self.allowed[d] is not None:
                        x = np.where(self.allowed[d][a + u : a + v].all(axis=0), x, -np.inf)
                    R[u, m - 1] = x
            persist.append(R)

        def cut(arrays: Any, ndim: int, rows: int) -> Any:
            return [x if x.ndim == ndim else x[a : a + rows] for x in arrays]

        kids = [c.astype(bool) for c in self.children]
        return (persist, cut(self.transit, 3, max(n - 1, 0)), cut(self.init, 2, n), cut(self.end, 2, n), kids)

    def scored(self, b: int) -> Any:
        found = trees.enumerate_trees(*self.dense(b))
        return sorted([x for x in found if x[1] > -np.inf], key=lambda x: -x[1])

    def log_partitions(self, out: Any, threads: int) -> None:
        for b in range(len(out)):
            out[b] = nested.log_partition(nested.complete(*self.dense(b)))

    def posteriors(self, log_partition, labels, boundaries, spans, start, stop, length, transit, init, end, threads):  # type: ignore[no-untyped-def]
        for b in range(len(log_partition)):
            a, z = int(self.offsets[b]), int(self.offsets[b + 1])
            s = nested.complete(*self.dense(b))
            log_partition[b] = nested.log_partition(s)
            if log_partition[b] == -np.inf or a == z:
                continue
            m = nested.marginals(s)
            for d in range(len(self.sizes)):
                labels[d][a:z] += m.labels[d]
                boundaries[d][a:z] += m.boundaries[d]
                if d == 0:
                    continue
                k = 0 if spans[d] is None else min(z - a, spans[d].shape[1])
                if spans[d] is not None:
                    spans[d][a:z, :k] += m.segments[d][:, :k]
                by_start = m.segments[d].sum(axis=1)
                by_stop = np.zeros_like(by_start)
                for n in range(z - a):
                    by_stop[n:] += m.segments[d][: z - a - n, n]
                    if length[d] is not None and n < len(length[d]):
                        length[d][n] += m.segments[d][:, n].sum(axis=0)
                for out, x in ((start[d], by_start), (stop[d], by_stop)):
                    if out is not None:
                        if out.ndim == 1:
                            out += x.sum(axis=0)
                        else:
                            out[a:z] += x
            for outs, xs, ndim in ((transit, m.transit, 3), (init, m.init, 2), (end, m.end, 2)):
                for out, x in zip(outs, xs, strict=True):
                    if out is not None and out.ndim == ndim:
                        out += x.sum(axis=0)
                    elif out is not None:
                        out[a : a + len(x)] += x
        return 0

    def _pack(self, found: Any) -> Any:
        steps, paths, firsts = [], [0], [0]
        for configs in found:
            for tree in configs:
                for level in tree:
                    steps += level
                    paths.append(len(steps))
            firsts.append((len(paths) - 1) // len(self.sizes))
        return np.array(steps, np.int64).reshape(-1, 3), np.array(paths), np.array(firsts)

    def _best(self, b: int) -> Any:
        s = nested.complete(*self.dense(b))
        n, depth = s.n_times, s.n_levels
        levels: Any = [[] for _ in range(depth)]
        if n == 0:
            return levels
        Dh, al = nested.inside(s, best=True)
        if Dh[0][0, n].max() == -np.inf:
            return None

        def expand(d: int, i: int, j: int, p: int) -> None:
            levels[d].append((i, j, p))
            if d == depth - 1:
                return
            u, chain = int(np.argmax(al[d][i, j, p] + s.E[d][j - 1][p])), []
            while True:
                ways = [(Dh[d + 1][i, j, u] + s.I[d][i][p, u], i, -1)]
                for t in range(i + 1, j):
                    x = al[d][i, t, p] + s.A[d + 1][t - 1][p, :, u]
                    ways.append((Dh[d + 1][t, j, u] + x.max(), t, int(x.argmax())))
                _, t, v = max(ways)
                chain.append((t, j, u))
                if v < 0:
                    break
                j, u = t, v
            for t, v, u in reversed(chain):
                expand(d + 1, t, v, u)

        expand(0, 0, n, int(Dh[0][0, n].argmax()))
        return levels

    def best(self, threads: int) -> Any:
        found = [self._best(b) for b in range(len(self.offsets) - 1)]
        return self._pack([[] if f is None else [f] for f in found])

    def kbest(self, k: int, threads: int) -> Any:
        return self._pack([[t for t, _ in self.scored(b)[:k]] for b in range(len(self.offsets) - 1)])

    def sample(self, n: int, seeds: Any, threads: int) -> Any:
        out = []
        for b in range(len(self.offsets) - 1):
            scored = self.scored(b)
            draw = np.random.default_rng(int(seeds[b, 0]))
            p = np.array(brute.probabilities(scored)) if scored else np.empty(0)
            out.append([scored[i][0] for i in draw.choice(len(p), n, p=p)] if scored else [])
        return self._pack(out)

    def entropies(self, out: Any, threads: int) -> None:
        for b in range(len(out)):
            out[b] = brute.entropy(self.scored(b))

    def scores(self, steps: Any, paths: Any, owners: Any, out: Any) -> None:
        depth = len(self.sizes)
        for k, b in enumerate(owners):
            dense = self.dense(int(b))
            tree = tuple(
                tuple(map(tuple, steps[paths[k * depth + d] : paths[k * depth + d + 1]])) for d in range(depth)
            )
            s = nested.complete(*dense)
            out[k] = 0.0 if s.n_times == 0 else trees.tree_score(tree, dense[0], s.A[1:], s.I, s.E)

    def furthest(self, b: int) -> int:
        return 0
