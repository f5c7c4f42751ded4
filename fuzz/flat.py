"""Chains, patterns, segments and Sum-Difference on tiny problems, for `fuzz.lattices`; what nested lattices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import scansion as sc
from fuzz import Fault
from fuzz.enumerated import Answers, Design
from fuzz.scores import Scores
from scansion import _core
from scansion.lattice import compressed
from scansion.reference import enumeration as brute

BATCH = 48
BATCHES = 12
ATOL = 1e-9
MOST = 400  # configurations

Array = np.ndarray


@dataclass(frozen=True)
class Part:
    """One array of scores: its shape for one sequence; shared: one for all sequences of a batch."""

    name: str
    shape: tuple[int, ...]
    shared: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Drawn:
    """The scores of a batch: by name (B, *shape), or (shape) for shared ones."""

    def __init__(self, parts: Sequence[Part], rng: np.random.Generator, batch: int) -> None:
        draw = Scores(rng)
        self.parts = list(parts)
        self.arrays = {p.name: draw(rng, p.shape if p.shared else (batch, *p.shape)) for p in parts}
        self.batch = batch

    def keep(self, chosen: Array) -> None:
        """Some of the sequences only."""
        self.arrays = {p.name: self.arrays[p.name] if p.shared else self.arrays[p.name][chosen] for p in self.parts}
        self.batch = int(chosen.sum())

    def matrix(self) -> Array:
        """(n, B) for `Answers`."""
        rows = []
        for part in self.parts:
            flat = self.arrays[part.name].reshape(1 if part.shared else self.batch, part.size)
            rows.append(np.broadcast_to(flat, (self.batch, part.size)).T)
        return np.concatenate(rows)

    def rows(self, name: str) -> Array | None:
        """An array as batches take it: the rows of all sequences one after another; None: there is none."""
        array = self.arrays.get(name)
        if array is None or next(p for p in self.parts if p.name == name).shared:
            return array
        return np.ascontiguousarray(array.reshape(-1, *array.shape[2:]))


def fault(what: str, drawn: Drawn, b: int, expected: Any, found: Any, more: str = "") -> Fault:
    """What is wrong with sequence b of a batch."""
    scores = {p.name: (drawn.arrays[p.name] if p.shared else drawn.arrays[p.name][b]).tolist() for p in drawn.parts}
    return Fault(f"{what}: expected {expected}, found {found}\n  {more}\n  scores {scores}")


def check(
    what: str, drawn: Drawn, expected: Array, found: Array, more: str, rtol: float = 0.0, atol: float = ATOL
) -> None:
    """Raise unless found is expected, sequence by sequence (first axis)."""
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.shape != found.shape:
        raise Fault(f"{what} has shape {found.shape}, expected {expected.shape}; {more}")
    with np.errstate(invalid="ignore"):  # both may be -inf
        close = np.abs(found - expected) <= atol + rtol * np.abs(expected)
    close |= found == expected
    bad = ~close.reshape(len(close), -1).all(axis=1)
    if bad.any():
        b = int(np.argmax(bad))
        raise fault(what, drawn, b, expected[b].tolist(), found[b].tolist(), more)


# Flat lattices: chains, patterns, segments ----------------------------------------------------------


class Flat:
    """A shape of a chain or of segments: its parts, its configurations, its batches."""

    n_times: int
    n_labels: int
    max_length = 1
    merges = True
    text: str
    parts: list[Part]

    def columns(self, config: brute.Configuration) -> list[tuple[str, tuple[int, ...]]]:
        """The scores that a configuration adds up, by part and index."""
        raise NotImplementedError

    def batch(self, drawn: Drawn) -> Any:
        """The lattices."""
        raise NotImplementedError

    def gradient(self, batch: Any) -> dict[str, Array]:
        """Marginals beside labels, by name."""
        raise NotImplementedError

    def design(self) -> Design:
        """List the configurations."""
        T, L, M = self.n_times, self.n_labels, self.max_length
        configs = list(brute.segmentations(T, L, M))
        first = dict(zip([p.name for p in self.parts], np.cumsum([0, *(p.size for p in self.parts)]), strict=False))
        shapes = {p.name: p.shape for p in self.parts}
        counts = np.zeros((len(configs), sum(p.size for p in self.parts)))
        seen = {"labels": np.zeros((len(configs), T, L)), "boundaries": np.zeros((len(configs), T))}
        seen["segments"] = np.zeros((len(configs), T, M, L))
        seen["transitions"] = np.zeros((len(configs), max(T - 1, 0), L, L))
        codes, order, group = [], [], []
        groups: dict[tuple[int, ...], int] = {}
        for c, config in enumerate(configs):
            for name, at in self.columns(config):
                counts[c, first[name] + np.ravel_multi_index(at, shapes[name])] += 1
            labels = brute.label_sequence(config)
            for t, y in enumerate(labels):
                seen["labels"][c, t, y] = 1
                if t:
                    seen["transitions"][c, t - 1, labels[t - 1], y] = 1
            for u, v, y in config:
                seen["boundaries"][c, v - 1] = 1
                seen["segments"][c, u, v - u - 1, y] = 1
            codes.append(
                sum((2 * y + (t + 1 in {v for _, v, _ in config})) * (2 * L) ** t for t, y in enumerate(labels))
            )
            order.append(brute.tie_order(config))
            trajectory = compressed.compress(labels) if self.merges else tuple(y for _, _, y in config)
            group.append(groups.setdefault(trajectory, len(groups)))
        rank = np.empty(len(configs), np.int64)
        rank[sorted(range(len(configs)), key=order.__getitem__)] = np.arange(len(configs))
        return Design(counts, seen, np.array(codes, np.int64), rank, np.array(group), list(groups))

    def codes(self, packed: Any) -> Array:
        """Codes of packed paths, as in `design`."""
        steps, paths, *_ = packed
        if len(paths) == 1:
            return np.empty(0, np.int64)
        power = (2 * self.n_labels) ** np.arange(self.n_times, dtype=np.int64)
        sums = np.concatenate([[0], np.cumsum(power)])
        values = 2 * steps[:, 2] * (sums[steps[:, 1]] - sums[steps[:, 0]]) + power[steps[:, 1] - 1]
        if not len(values):
            return np.zeros(len(paths) - 1, np.int64)
        return np.add.reduceat(values, paths[:-1])

    def known(self, rng: np.random.Generator, batch: int, design: Design) -> tuple[Array, dict[str, Array]]:
        """Constraints: (C, B) what they allow, and the arguments of ``constrain``."""
        T, L = self.n_times, self.n_labels
        allowed = rng.random((batch, T, L)) < rng.choice([0.5, 0.8])
        ends = np.where(rng.random((batch, T)) < 0.7, -1, rng.integers(0, 2, size=(batch, T)))
        if self.max_length == 1:
            ends = np.abs(ends) * np.sign(ends + 0.5).astype(np.int64)
            ends[ends == 0] = -1
        if T:
            ends[:, -1] = np.where(ends[:, -1] == 0, -1, ends[:, -1])
        stops = design.seen["boundaries"]
        wrong = design.seen["labels"].reshape(len(stops), -1) @ ~allowed.reshape(batch, -1).T
        wrong = wrong + stops @ (ends == 0).T + (1 - stops) @ (ends == 1).T
        return wrong == 0, {"labels": allowed.reshape(-1, L), "boundaries": ends.ravel()}


class Chain(Flat):
    """Dense first-order chains."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.n_labels = int(rng.choice([1, 2, 2, 3, 3, 4, 5]))
        most = {1: 6, 2: 8, 3: 5, 4: 4, 5: 3}[self.n_labels]
        self.n_times = int(rng.integers(0 if rng.random() < 0.1 else 2, most + 1))
        T, L = self.n_times, self.n_labels
        by_time = bool(rng.random() < 0.5)
        self.parts = [
            Part("unary", (T, L)),
            Part("transition", (max(T - 1, 0), L, L) if by_time else (L, L), not by_time),
        ]
        self.parts += [Part(name, (L,), True) for name in ("start", "end") if rng.random() < 0.4]
        self.text = f"chain of {T}, {L} labels"

    def columns(self, config: brute.Configuration) -> list[tuple[str, tuple[int, ...]]]:
        y = brute.label_sequence(config)
        found = [("unary", (t, y[t])) for t in range(len(y))]
        pairs = [(t, y[t], y[t + 1]) for t in range(len(y) - 1)]
        found += [("transition", at[1:] if self.parts[1].shared else at) for at in pairs]
        found += [(p.name, (y[0 if p.name == "start" else -1],)) for p in self.parts[2:] if y]
        return found

    def batch(self, drawn: Drawn) -> sc.ChainBatch:
        offsets = np.arange(drawn.batch + 1) * self.n_times
        rest = [drawn.rows(name) for name in ("transition", "start", "end")]
        return sc.ChainBatch(drawn.rows("unary"), offsets, *rest)

    def gradient(self, batch: sc.ChainBatch) -> dict[str, Array]:
        marginals = batch.marginals()
        return {"labels": marginals.labels, "transitions": marginals.transitions}


def patterns_of(rng: np.random.Generator, n_labels: int, longest: int) -> list[tuple[int, ...]]:
    """A few random patterns."""
    found: list[tuple[int, ...]] = [(y,) for y in range(n_labels)] if rng.random() < 0.6 else []
    if rng.random() < 0.3:
        found += [(a, b) for a in range(n_labels) for b in range(n_labels)]
    for _ in range(rng.integers(1, 6)):
        body = tuple(rng.integers(0, n_labels, size=rng.integers(1, longest + 1)).tolist())
        head = (sc.BOS,) if rng.random() < 0.15 else ()
        tail = (sc.EOS,) if rng.random() < 0.15 else ()
        if (*head, *body, *tail) not in found:
            found.append((*head, *body, *tail))
    return found


class Patterns(Flat):
    """Chains of any order."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.n_labels = int(rng.choice([1, 2, 2, 3, 3]))
        self.n_times = int(rng.integers(1, {1: 5, 2: 8, 3: 5}[self.n_labels] + 1))
        self.patterns = patterns_of(rng, self.n_labels, 4)
        self.parts = [Part("scores", (self.n_times, len(self.patterns)))]
        self.net = sc.PatternAutomaton(self.patterns, self.n_labels)
        self.text = f"chain of {self.n_times}, {self.n_labels} labels, patterns {self.patterns}"

    def columns(self, config: brute.Configuration) -> list[tuple[str, tuple[int, ...]]]:
        return [("scores", (u, z)) for u, _, z in brute.matching_patterns(config, self.patterns)]

    def batch(self, drawn: Drawn) -> sc.ChainBatch:
        offsets = np.arange(drawn.batch + 1) * self.n_times
        return sc.ChainBatch.from_patterns(drawn.rows("scores"), offsets, self.net, self.n_labels)

    def gradient(self, batch: sc.ChainBatch) -> dict[str, Array]:
        marginals = batch.marginals()
        return {"labels": marginals.labels, "scores": marginals.patterns}


class Segments(Flat):
    """Segment lattices with a score for every segment."""

    merges = False

    def __init__(self, rng: np.random.Generator) -> None:
        self.n_labels = int(rng.choice([1, 2, 2, 3]))
        self.n_times = int(rng.integers(1, {1: 7, 2: 5, 3: 4}[self.n_labels] + 1))
        self.max_length = int(rng.integers(1, 5))
        self.patterns = patterns_of(rng, self.n_labels, 3)
        self.net = sc.PatternAutomaton(self.patterns, self.n_labels)
        self.lay_out(rng)
        self.text = f"segments of {self.n_times} up to {self.max_length}, {self.n_labels} labels, {self.patterns}"

    def lay_out(self, rng: np.random.Generator) -> None:
        """The arrays of scores."""
        self.parts = [Part("scores", (self.n_times, self.max_length, len(self.patterns)))]

    def columns(self, config: brute.Configuration) -> list[tuple[str, tuple[int, ...]]]:
        return [("scores", (u, v - u - 1, z)) for u, v, z in brute.matching_patterns(config, self.patterns)]

    def batch(self, drawn: Drawn) -> sc.SegmentBatch:
        offsets = np.arange(drawn.batch + 1) * self.n_times
        return sc.SegmentBatch(drawn.rows("scores"), offsets, self.net, self.n_labels)

    def gradient(self, batch: sc.SegmentBatch) -> dict[str, Array]:
        marginals = batch.marginals()
        found = {"labels": marginals.labels, "boundaries": marginals.boundaries, "segments": marginals.segments}
        return {**found, "scores": marginals.patterns}


class Additive(Segments):
    """Segment lattices with additive scores."""

    def lay_out(self, rng: np.random.Generator) -> None:
        T, P = self.n_times, len(self.patterns)
        self.parts = [Part(name, (T, P)) for name in ("inside", "end") if rng.random() < 0.6]
        if not self.parts or rng.random() < 0.5:
            shared = bool(self.parts and rng.random() < 0.5)
            self.parts.append(Part("start", (P,) if shared else (T, P), shared))
        if rng.random() < 0.5:
            self.parts.append(Part("length", (self.max_length, P), True))

    def columns(self, config: brute.Configuration) -> list[tuple[str, tuple[int, ...]]]:
        found: list[tuple[str, tuple[int, ...]]] = []
        for u, v, z in brute.matching_patterns(config, self.patterns):
            rows = {"start": [u], "inside": range(u, v), "end": [v - 1], "length": [v - u - 1]}
            for part in self.parts:
                found += [(part.name, (z,) if len(part.shape) == 1 else (row, z)) for row in rows[part.name]]
        return found

    def batch(self, drawn: Drawn) -> sc.SegmentBatch:
        offsets = np.arange(drawn.batch + 1) * self.n_times
        given = {part.name: drawn.rows(part.name) for part in self.parts}
        return sc.SegmentBatch.from_parts(offsets, self.net, self.n_labels, self.max_length, **given)

    def gradient(self, batch: sc.SegmentBatch) -> dict[str, Array]:
        marginals = batch.marginals()
        found = {"labels": marginals.labels, "boundaries": marginals.boundaries, "segments": marginals.segments}
        return {**found, **{p.name: getattr(marginals.patterns, p.name) for p in self.parts}}


def flat_round(make: Callable[[np.random.Generator], Flat], rng: np.random.Generator) -> int:
    """Some batches of one shape."""
    shape = make(rng)
    design = shape.design()
    done = 0
    for _ in range(BATCHES):
        drawn = Drawn(shape.parts, rng, BATCH)
        done += flat_batch(shape, design, drawn, rng)
    return done


def flat_batch(shape: Flat, design: Design, drawn: Drawn, rng: np.random.Generator) -> int:
    """All questions of one batch, free or constrained; the number of lattices."""
    known, given = None, None
    if rng.random() < 0.4 and shape.n_times:
        known, given = shape.known(rng, drawn.batch, design)
    free = Answers(design, drawn.matrix())
    found = shape.batch(drawn)._core.log_partitions(1)
    check("log Z", drawn, free.log_partition, found, shape.text, rtol=1e-13)
    answers = free if known is None else Answers(design, drawn.matrix(), known)
    possible = answers.any
    total = drawn.batch
    if not possible.any():
        return total
    if not possible.all():
        drawn.keep(possible)
        if given is not None:
            given = {
                k: v.reshape(total, shape.n_times, -1)[possible].reshape(-1, *v.shape[1:]) for k, v in given.items()
            }
        answers = Answers(design, drawn.matrix(), None if known is None else known[:, possible])
    text = shape.text if given is None else f"{shape.text}, constrained"
    batch = shape.batch(drawn)
    if given is not None:
        batch = batch.constrain(**given)
        check("log Z", drawn, answers.log_partition, batch.log_partition(), text, rtol=1e-13)
    flat_marginals(shape, design, drawn, answers, batch, text)
    single_configurations(shape.codes, design, drawn, answers, batch, text, rng)
    flat_trajectories(shape, drawn, answers, batch, text, rng)
    return total


def flat_marginals(shape: Flat, design: Design, drawn: Drawn, answers: Answers, batch: Any, text: str) -> None:
    """Marginals, and the gradient in the shapes of the scores."""
    B, first = drawn.batch, 0
    expected: dict[str, Array] = {name: answers.expected(seen) for name, seen in design.seen.items()}
    for part in drawn.parts:
        mean = answers.expected(design.counts[:, first : first + part.size]).reshape(B, *part.shape)
        expected.setdefault(part.name, mean.sum(axis=0)[None] if part.shared else mean)
        first += part.size
    for name, value in shape.gradient(batch).items():
        want = expected[name]
        check(name, drawn, want, value.reshape(want.shape), text, atol=ATOL * (B if len(want) < B else 1))


def single_configurations(
    codes: Callable[[Any], Array],
    design: Design,
    drawn: Drawn,
    answers: Answers,
    batch: Any,
    text: str,
    rng: np.random.Generator,
) -> None:
    """Best, k best, samples, entropy; codes(packed configurations) as the design has them."""
    core = batch._core
    check("entropy", drawn, answers.entropy, batch.entropy(), text, rtol=1e-11)
    best = codes(core.best(1))
    best_configurations(best, batch.viterbi()[1], design, drawn, answers, text)
    k = int(rng.integers(1, 7))
    packed = core.kbest(k, 1)
    k_best_configurations(best, codes(packed), packed[2], k, design, drawn, answers, text)
    sampled(codes(core.sample(2, rng, 1)), design, drawn, answers, text)


def best_configurations(codes: Array, scores: Array, design: Design, drawn: Drawn, answers: Answers, text: str) -> None:
    """The best ones, with ties in order where there is one."""
    B = drawn.batch
    at = design.find(codes)
    check("viterbi is a configuration", drawn, np.ones(B), (at >= 0).astype(float), text)
    check("viterbi's distance from the best", drawn, np.zeros(B), answers.below[at, np.arange(B)], text)
    check("viterbi's score", drawn, answers.best, scores, text, rtol=1e-14)
    if design.order is not None and answers.exact:
        ties = np.where(answers.below == 0.0, design.order[:, None], len(codes) + len(design.order)).min(axis=0)
        check("viterbi's rank among ties", drawn, ties, design.order[at], text)


def k_best_configurations(
    best: Array, codes: Array, firsts: Array, k: int, design: Design, drawn: Drawn, answers: Answers, text: str
) -> None:
    """None twice, none better left out, and the first is that of Viterbi."""
    B = drawn.batch
    count = np.diff(firsts)
    check("number of k best", drawn, np.minimum(k, answers.possible.sum(axis=0)), count, f"{text}, k = {k}")
    at, owner = design.find(codes), np.repeat(np.arange(B), count)
    found = np.full((B, k), -np.inf)
    found[owner, np.arange(len(at)) - firsts[owner]] = np.where(at >= 0, answers.below[at, owner], np.nan)
    expected = np.full((B, k), -np.inf)
    top = -np.sort(-answers.below, axis=0)[:k].T
    expected[:, : top.shape[1]] = top
    check("k best", drawn, expected, found, f"{text}, k = {k}", rtol=1e-13)
    if answers.exact:
        check("the first of k best", drawn, best, codes[firsts[:-1]], f"{text}, k = {k}")
    distinct = len(np.unique(owner * len(design.codes) + at))
    if distinct < len(at):
        raise Fault(f"k best holds a configuration twice; {text}")


def sampled(codes: Array, design: Design, drawn: Drawn, answers: Answers, text: str) -> None:
    """Samples are configurations that do occur."""
    at, owner = design.find(codes), np.repeat(np.arange(drawn.batch), 2)
    odds = np.where(at >= 0, answers.probability[at, owner], 0.0).reshape(-1, 2).min(axis=1)
    check("samples of probability above 1e-14", drawn, np.ones(drawn.batch), (odds > 1e-14).astype(float), text)


def flat_trajectories(
    shape: Flat, drawn: Drawn, answers: Answers, batch: Any, text: str, rng: np.random.Generator
) -> None:
    """Lengths, places, single trajectories and the best ones."""
    groups, T = answers.design.groups, shape.n_times
    if T == 0:
        return
    length = np.array([len(g) for g in groups])
    for b in rng.choice(drawn.batch, size=min(2, drawn.batch), replace=False):
        lattice = batch[int(b)].compressed()
        odds = answers.grouped[:, b]
        expected = np.array([odds[length == c].sum() for c in range(T + 1)])
        one = Drawn(drawn.parts, rng, 0)
        one.arrays = {p.name: drawn.arrays[p.name] if p.shared else drawn.arrays[p.name][[b]] for p in drawn.parts}
        check("lengths", one, expected[None], lattice.lengths[None], text)
        c = int(rng.integers(1, T + 1))
        if expected[c] > 1e-3:
            places = np.zeros((c, shape.n_labels))
            for g, p in zip(groups, odds, strict=True):
                if len(g) == c:
                    places[np.arange(c), g] += p / expected[c]
            check("places", one, places[None], lattice.marginals(c)[None], text)
        g = int(rng.integers(len(groups)))
        with np.errstate(divide="ignore"):
            want = max(float(np.log(odds[g])), -600.0)
        got = max(lattice.log_probability(groups[g]), -600.0)
        loose = 1e-14 * abs(float(answers.log_partition[b]))  # a difference of two logarithms
        check("log_probability of a trajectory", one, np.array([want]), np.array([got]), text, atol=ATOL + loose)
    if len(groups) > 60:
        return
    index = {g: i for i, g in enumerate(groups)}
    for b, best in enumerate(compressed.best_all(batch, 2)):
        odds = answers.grouped[:, b]
        top = np.sort(odds)[::-1][: len(best)]
        same = np.array([odds[index[t]] for t in best.trajectories])
        if not np.allclose(best.probabilities, top, rtol=0, atol=ATOL) or not np.allclose(same, top, rtol=0, atol=ATOL):
            raise fault("best trajectories", drawn, b, top.tolist(), [list(best), same.tolist()], text)


# Sum-Difference --------------------------------------------------------------------------------------


def sum_difference_round(rng: np.random.Generator) -> int:
    """The Sum-Difference algorithm where its guard lets it pass."""
    shape = Patterns(rng)
    design = shape.design()
    T, P, done = shape.n_times, len(shape.patterns), 0
    for _ in range(BATCHES):
        drawn = Drawn(shape.parts, rng, BATCH)
        fires = rng.random((T, P)) < rng.choice([0.3, 0.7, 1.1])
        drawn.arrays["scores"] = np.where(fires, drawn.arrays["scores"], 0.0)
        known, allowed = None, None
        if rng.random() < 0.4:
            known, given = shape.known(rng, drawn.batch, design)
            allowed = given["labels"].reshape(drawn.batch, T, -1).view(np.uint8)
            known = (
                design.seen["labels"].reshape(len(design.codes), -1) @ (allowed.reshape(drawn.batch, -1) == 0).T
            ) == 0
        answers = Answers(design, drawn.matrix(), known)
        expected = answers.expected(design.counts).reshape(drawn.batch, T, P)
        for b in np.flatnonzero(answers.any):
            posteriors = np.empty((T, P))
            mask = None if allowed is None else np.ascontiguousarray(allowed[b])
            given_fires = None if fires.all() else np.ascontiguousarray(fires).view(np.uint8)
            scores = np.ascontiguousarray(drawn.arrays["scores"][b])
            log_z, kappa, fine = _core.sum_difference(shape.net._native, scores, given_fires, mask, posteriors)
            if not fine:
                continue
            known = mask if mask is None else mask.tolist()
            text = f"{shape.text}, kappa {kappa}, fires {fires.tolist()}, allowed {known}"
            if not abs(log_z - answers.log_partition[b]) <= ATOL + 1e-13 * abs(answers.log_partition[b]):
                raise fault("log Z", drawn, b, answers.log_partition[b], log_z, text)
            live = np.where(fires, expected[b], 0.0)
            if not np.allclose(np.where(fires, posteriors, 0.0), live, rtol=0, atol=1e-8):
                raise fault("posteriors", drawn, b, live.tolist(), posteriors.tolist(), text)
        done += drawn.batch
    return done


def long_segments(rng: np.random.Generator) -> int:
    """Segments too long to enumerate: additive scores against the same written out, which another kernel takes."""
    count = 24
    for _ in range(count):
        draw = Scores(rng)
        T, L = int(rng.integers(10, 30)), int(rng.integers(1, 4))
        M = int(rng.integers(8, 24))
        patterns = [(y,) for y in range(L)] + [(a, b) for a in range(L) for b in range(L) if rng.random() < 0.7]
        P = len(patterns)
        parts = {"start": draw(rng, (T, P)), "inside": draw(rng, (T, P)), "length": draw(rng, (M, P))}
        for name in ("start", "inside", "length"):  # longer patterns depend on the start alone
            if name != "start":
                parts[name][:, L:] = 0.0
            if rng.random() < 0.3 and len(parts) > 1 + (name == "inside"):
                del parts[name]
        if not parts or any(np.abs(part[np.isfinite(part)]).max(initial=0.0) > 1e5 for part in parts.values()):
            continue  # what is written out is rounded
        shown = {name: part.tolist() for name, part in parts.items()}
        text = f"segments of at most {M} in {T} positions, {L} labels, patterns {patterns}, {shown}"
        try:
            short = sc.SegmentLattice.from_parts(patterns, L, M, **parts)
            full = sc.SegmentLattice(brute.expand_parts(len(short), P, M, **parts)[:, : max(1, M)], patterns, L)
            expected = full.log_partition()
        except ValueError as error:
            if "no configuration is possible" in str(error) or "range of scores" in str(error):
                continue
            raise
        for name, a, b in (
            ("log Z", expected, short.log_partition()),
            ("labels", full.marginals().labels, short.marginals().labels),
            ("boundaries", full.marginals().boundaries, short.marginals().boundaries),
            ("entropy", full.entropy(), short.entropy()),
            ("best", full.viterbi()[1], short.viterbi()[1]),
        ):
            if not np.allclose(a, b, rtol=1e-11, atol=ATOL):
                raise Fault(f"{name}: expected {a}, found {b}\n  {text}"[:6000])
    return count
