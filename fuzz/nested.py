"""Nested lattices on tiny problems, for `fuzz.lattices`: free, timed or dense levels, cliques fixed or by time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import scansion as sc
from fuzz import Fault
from fuzz.enumerated import Answers, Design
from fuzz.flat import ATOL, BATCH, BATCHES, Drawn, Part, check, single_configurations
from scansion.reference import enumeration as brute
from scansion.reference import trees

MOST_TREES = 250
FORMS = ("dense", "timed", "free", "free")


class Nested:
    """A shape: levels, their forms and bounds, who may be whose child."""

    def __init__(self, rng: np.random.Generator) -> None:
        depth = int(rng.choice([2, 3, 3, 4]))
        self.n_times = int(rng.integers(1, 6))
        self.sizes = [int(rng.choice([1, 2, 2, 3])) for _ in range(depth)]
        self.forms = [str(rng.choice(FORMS)) for _ in range(depth)]
        self.bounds = [int(rng.integers(1, 4)) for _ in range(depth)]
        if rng.random() < 0.5:
            self.bounds[-1] = 1
        self.general = bool(rng.random() < 0.3)
        share = rng.choice([1.0, 0.7])
        pairs = list(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        self.children = [rng.random(pair) < share for pair in pairs]
        for mask in self.children:
            mask[np.arange(len(mask)), rng.integers(mask.shape[1], size=len(mask))] = True
        while trees.n_trees(self.n_times, self.sizes, self.longest, self.children) > MOST_TREES:
            self.n_times -= 1
        self.lay_out(rng, pairs)
        self.text = (
            f"nested, {self.n_times} positions, sizes {self.sizes}, forms {self.forms}, longest {self.longest}, "
            f"general {self.general}, children {[mask.astype(int).tolist() for mask in self.children]}"
        )

    @property
    def longest(self) -> list[int]:
        """Longest segment by level."""
        free = [form == "free" or d == 0 for d, form in enumerate(self.forms)]
        return [max(1, self.n_times) if f else min(b, self.n_times) for f, b in zip(free, self.bounds, strict=True)]

    def lay_out(self, rng: np.random.Generator, pairs: list[tuple[int, int]]) -> None:
        """The arrays of scores, with the counts that each takes."""
        T = self.n_times
        self.parts: list[Part] = []
        for d, (form, size, longest) in enumerate(zip(self.forms, self.sizes, self.longest, strict=True)):
            if form == "dense":
                self.parts.append(Part(f"spans{d}", (T, longest, size)))
                continue
            self.parts.append(Part(f"inside{d}", (T, size)))
            for name in ("start", "stop"):
                if rng.random() < 0.5:
                    shared = bool(rng.random() < 0.5)
                    self.parts.append(Part(f"{name}{d}", (size,) if shared else (T, size), shared))
            if form == "timed" and rng.random() < 0.6:
                self.parts.append(Part(f"length{d}", (longest, size), True))
            if form == "timed" and rng.random() < 0.3:
                self.parts.append(Part(f"spans{d}", (T, longest, size)))
        for name in ("transit", "init", "end"):
            for d, (p, s) in enumerate(pairs):
                shape = (p, s, s) if name == "transit" else (p, s)
                shared = bool(rng.random() < 0.6)
                self.parts.append(Part(f"{name}{d}", shape if shared else (T, *shape), shared))

    def design(self) -> Design:
        """List the trees."""
        listed = list(trees.trees(self.n_times, self.sizes, self.longest, self.children))
        counted = [trees.counts(tree, self.sizes) for tree in listed]
        seen = {
            f"{name}{d}": np.stack([found[name][d] for found in counted])
            for name in counted[0]
            for d in range(len(counted[0][name]))
        }
        rows = [self._counts(part, seen).reshape(len(listed), part.size) for part in self.parts]
        codes = np.array([self._code(tree) for tree in listed], np.int64)
        return Design(np.concatenate(rows, axis=1), seen, codes)

    def _counts(self, part: Part, seen: dict[str, np.ndarray]) -> np.ndarray:
        """How often the scores of one array count, (C, *shape)."""
        name, d = part.name[:-1], part.name[-1]
        if name in ("transit", "init", "end"):
            found = seen[part.name]
            if part.shared:
                return found.sum(axis=1)
            if name == "transit":  # a row for the last position too
                found = np.concatenate(
                    [found, np.zeros_like(found[:, :1], shape=(len(found), 1, *found.shape[2:]))], axis=1
                )
            return found
        spans = seen[f"segments{d}"]  # (C, T, T, S)
        if name == "inside":
            return seen[f"labels{d}"]
        if name == "length":
            return spans.sum(axis=1)[:, : part.shape[0]]
        if name == "spans":
            return spans[:, :, : part.shape[1]]
        if name == "start":
            edge = spans.sum(axis=2)
        else:
            edge = np.zeros(spans.shape[:2] + spans.shape[3:])
            for u in range(self.n_times):
                for n in range(self.n_times - u):
                    edge[:, u + n] += spans[:, u, n]
        return edge.sum(axis=1) if part.shared else edge

    def _code(self, tree: trees.Tree) -> int:
        code = 0
        for level, size in zip(tree, self.sizes, strict=True):
            ends = {v for _, v, _ in level}
            for t, y in enumerate(brute.label_sequence(level)):
                code = code * 2 * size + 2 * y + (t + 1 in ends)
        return code

    def codes(self, packed: Any) -> np.ndarray:
        """Codes of packed configurations."""
        steps, paths, *_ = packed
        depth = len(self.sizes)
        found = []
        for first in range(0, len(paths) - 1, depth):
            levels = [steps[paths[first + d] : paths[first + d + 1]].tolist() for d in range(depth)]
            found.append(self._code(tuple(tuple(map(tuple, level)) for level in levels)))
        return np.array(found, np.int64)

    def batch(self, drawn: Drawn) -> sc.lattice.NestedBatch:
        """The lattices."""
        persist: list[Any] = []
        for d, (form, longest) in enumerate(zip(self.forms, self.longest, strict=True)):
            if form == "dense":
                persist.append(drawn.rows(f"spans{d}"))
                continue
            names = ("inside", "start", "stop", "length", "spans")
            given = {name: drawn.rows(f"{name}{d}") for name in names}
            persist.append(sc.Persistence(**given, max_length=longest if form == "timed" else None))
        cliques = [
            [drawn.rows(f"{name}{d}") for d in range(len(self.sizes) - 1)] for name in ("transit", "init", "end")
        ]
        batch = sc.NestedBatch(persist, *cliques, np.arange(drawn.batch + 1) * self.n_times, self.children)
        batch._core = replace(batch._core, general=self.general)
        return batch

    def known(self, rng: np.random.Generator, batch: int, design: Design) -> tuple[np.ndarray, dict[str, Any]]:
        """Constraints: (C, B) what they allow, and the arguments of ``constrain``."""
        T = self.n_times
        labels, boundaries = {}, {}
        wrong = np.zeros((len(design.codes), batch))
        for d, size in enumerate(self.sizes):
            if rng.random() < 0.5:
                allowed = rng.random((batch, T, size)) < 0.8
                labels[d] = allowed.reshape(-1, size)
                wrong += design.seen[f"labels{d}"].reshape(len(wrong), -1) @ ~allowed.reshape(batch, -1).T
            if rng.random() < 0.5 and d:
                ends = np.where(rng.random((batch, T)) < 0.7, -1, rng.integers(0, 2, size=(batch, T)))
                if self.longest[d] == 1:
                    ends[ends == 0] = -1
                ends[:, -1] = np.where(ends[:, -1] == 0, -1, ends[:, -1])
                boundaries[d] = ends.ravel()
                stops = design.seen[f"boundaries{d}"]
                wrong += stops @ (ends == 0).T + (1 - stops) @ (ends == 1).T
        return wrong == 0, {"labels": labels, "boundaries": boundaries}


def nested_round(rng: np.random.Generator) -> int:
    """Some batches of one shape."""
    shape = Nested(rng)
    design = shape.design()
    done = 0
    for _ in range(BATCHES):
        done += nested_batch(shape, design, Drawn(shape.parts, rng, BATCH), rng)
    return done


def nested_batch(shape: Nested, design: Design, drawn: Drawn, rng: np.random.Generator) -> int:
    """All questions of one batch, free or constrained; the number of lattices."""
    T, total = shape.n_times, drawn.batch
    for part in drawn.parts:  # the last row of transitions by time is not read
        if part.name.startswith("transit") and not part.shared:
            drawn.arrays[part.name][:, -1] = 0.0
    known, given = None, None
    if rng.random() < 0.4:
        known, given = shape.known(rng, total, design)
    free = Answers(design, drawn.matrix())
    check("log Z", drawn, free.log_partition, shape.batch(drawn)._core.log_partitions(1), shape.text, rtol=1e-13)
    answers = free if known is None else Answers(design, drawn.matrix(), known)
    possible = answers.any
    if not possible.any():
        return total
    if not possible.all():
        drawn.keep(possible)
        for arrays in () if given is None else given.values():
            for d, array in arrays.items():
                arrays[d] = array.reshape(total, T, -1)[possible].reshape(-1, *array.shape[1:])
        answers = Answers(design, drawn.matrix(), None if known is None else known[:, possible])
    batch, text = shape.batch(drawn), shape.text
    if given is not None:
        batch, text = batch.constrain(**given), f"{text}, constrained by {given}"
        check("log Z", drawn, answers.log_partition, batch.log_partition(), text, rtol=1e-13)
    nested_marginals(shape, design, drawn, answers, batch, text)
    single_configurations(shape.codes, design, drawn, answers, batch, text, rng)
    return total


def nested_marginals(shape: Nested, design: Design, drawn: Drawn, answers: Answers, batch: Any, text: str) -> None:
    """Marginals by level, and the gradient in the shapes of the scores."""
    B, T = drawn.batch, shape.n_times
    found = batch.marginals()
    for name in ("labels", "boundaries", "segments", "transit", "init", "end"):
        for d, value in enumerate(getattr(found, name)):
            expected = answers.expected(design.seen[f"{name}{d}"])
            value = value.reshape(B, T, *value.shape[1:])
            if name == "transit":
                value = value[:, : max(T - 1, 0)]
            if name == "segments":
                if value[:, :, T:].any():
                    raise Fault(f"segments[{d}] beyond the sequence; {text}")
                expected, value = expected[:, :, : value.shape[2]], value[:, :, :T]
            check(f"{name}[{d}]", drawn, expected, value, text)
    log_z, gradient = batch.log_partition_and_gradient()
    check("log Z with the gradient", drawn, answers.log_partition, log_z, text, rtol=1e-13)
    first = 0
    for part in drawn.parts:
        expected = answers.expected(design.counts[:, first : first + part.size]).reshape(B, *part.shape)
        first += part.size
        name, d = part.name[:-1], int(part.name[-1])
        value = getattr(gradient, "persist" if name not in ("transit", "init", "end") else name)[d]
        if not isinstance(value, np.ndarray):
            value = getattr(value, name)
        if part.shared:
            check(f"gradient of {part.name}", drawn, expected.sum(axis=0)[None], value[None], text, atol=ATOL * B)
        else:
            check(f"gradient of {part.name}", drawn, expected, value.reshape(expected.shape), text)
