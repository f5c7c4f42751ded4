"""Answers of models in a file's terms, block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scansion import schemes
from scansion.data import Dataset
from scansion.features.templates import Template
from scansion.formats.base import check_cells, shown
from scansion.formats.blocks import Block, Codes, cut
from scansion.formats.reading import Reading
from scansion.formats.targets import constraints_of, file_labels

__all__ = ["Answers", "Asked", "Tagger", "Text"]

Span = tuple[int, int, Any]


class Asked(NamedTuple):
    """What is asked of a model: its best answer, the `kbest` best, or `compressed` ones; and which probabilities."""

    kbest: int | None = None
    marginals: bool = False
    all_marginals: bool = False
    compressed: bool = False


class Tagger:
    """Asks a model about blocks of a file.

    Parameters
    ----------
    model : estimator
    reading : Reading
        How the file is read.
    jobs : int
    """

    def __init__(self, model: Any, reading: Reading, jobs: int = 1) -> None:
        self.model = model.set_params(n_jobs=jobs)
        self.scheme = reading.scheme
        self.template = None if reading.template is None else Template(reading.template, reading.dialect)
        self.levels = model.levels_
        self.segmental = model.segments_

    def ask(self, block: Block, constrained: bool = False) -> Answers:
        """The answers for a block; constrained: they agree with what it says of the labels."""
        data = block.dataset(self.template, self.model._model.vocabulary, frozen=True)
        return Answers(self, data, constraints_of(block, self.model, self.scheme) if constrained else None)


class Answers:
    """What a model says of some sequences, computed when it is asked for.

    Parameters
    ----------
    tagger : Tagger
    data : Dataset
        B sequences, N tokens.
    known : Knowledge, or None
    """

    def __init__(self, tagger: Tagger, data: Dataset, known: Any) -> None:
        self.tagger, self.data, self.known = tagger, data, known
        self.model, self.levels, self.scheme = tagger.model, tagger.levels, tagger.scheme
        self.segmental = tagger.segmental

    def take(self, sequences: Sequence[int]) -> Answers:
        """Those of some sequences."""
        chosen = np.asarray(sequences, np.int64)
        known = None if self.known is None else self.known.take(chosen)
        return Answers(self.tagger, self.data.take(chosen), known)

    @cached_property
    def best(self) -> list[list[Any]]:
        """The best answer for each sequence, by level."""
        return list(map(self.model.by_level, self.model.predict(self.data, constraints=self.known)))

    def kbest(self, k: int) -> list[list[tuple[list[Any], float]]]:
        """The k best answers for each sequence, by level, with their probabilities."""
        found = self.model.predict_kbest(self.data, k, constraints=self.known)
        return [[(self.model.by_level(config), math.exp(min(p, 0.0))) for config, p in some] for some in found]

    def without_rules(self) -> list[tuple[list[Any], list[str]] | None]:
        """For each sequence whose answer rules changed, what it would be and the rules it would break; else None."""
        if self.model.rules is None:
            return [None] * len(self.data)
        free = self.model.predict(self.data, constraints=self.known, rules=[])
        broken = self.model.broken_rules(free)
        return [
            (self.model.by_level(answer), list(map(str, rules))) if rules else None
            for answer, rules in zip(free, broken, strict=True)
        ]

    def trajectories(self) -> list[list[Any]]:
        """The labels that each sequence goes through."""
        result: list[list[Any]] = self.model.predict_compressed(self.data, constraints=self.known)
        return result

    @cached_property
    def marginals(self) -> list[npt.NDArray[np.float64]]:
        """Probabilities of the labels at each token (N, L), for each level."""
        result: list[npt.NDArray[np.float64]] = self.model.level_marginals(self.data, self.known)
        return result

    @cached_property
    def codes(self) -> list[npt.NDArray[np.int32]]:
        """Numbers of the best labels (N,), for each level."""
        if not self.segmental:  # without the labels' names, which take their time
            best = self.model._best(self.model._inputs(self.data), self.known)
            return [np.ascontiguousarray(best, dtype=np.int32)]
        result = []
        for k, level in enumerate(self.levels):
            number = {label: i for i, label in enumerate(level.labels)}
            runs = [(stop - start, number[label]) for answer in self.best for start, stop, label in answer[k]]
            sizes, numbers = np.array(runs, np.int32).reshape(-1, 2).T
            result.append(np.repeat(numbers, sizes))
        return result

    @property
    def sure(self) -> list[npt.NDArray[np.float64]]:
        """Probabilities of the best labels (N,), for each level."""
        every = np.arange(self.data.n_tokens)
        return [table[every, codes] for table, codes in zip(self.marginals, self.codes, strict=True)]

    # ---- in the file's terms -----------------------------------------------------------------------------------

    def rows(self, answer: list[Any], size: int) -> list[list[Any]]:
        """An answer as the labels that a file has, for each level."""
        if not self.segmental:
            return answer
        return [file_labels(level, size, self.scheme or "plain") for level in answer]

    def spans(self, answer: list[Any], scheme: str) -> list[list[Span]]:
        """An answer as segments, for each level; scheme: how labels mark them."""
        levels = answer if self.segmental else [schemes.segments(level, scheme) for level in answer]
        return [[tuple(segment) for segment in level] for level in levels]

    def columns(self) -> list[Codes]:
        """The labels that a file has by number (N,), with the names of these numbers, for each level."""
        if not self.segmental:
            return [(self.codes[0], [str(y) for y in self.levels[0].labels])]
        rows = [self.rows(answer, n) for answer, n in zip(self.best, self.data.lengths.tolist(), strict=True)]
        result = []
        for level in zip(*rows, strict=True):
            number: dict[str, int] = {}
            codes = [number.setdefault(str(y), len(number)) for row in level for y in row]
            result.append((np.array(codes, np.int32), list(number)))
        return result


class Text:
    """Writes answers as text, a line a token.

    Parameters
    ----------
    block : Block
    before, between : str
        What separates answers from the line that they are added to, and from each other.
    refused : sequence of str
        What a cell must not hold, beside line ends; also nothing at all, unless `empty`.
    """

    def __init__(self, block: Block, before: str, between: str, refused: Sequence[str], empty: bool = False) -> None:
        self.before, self.between = before, between
        remedy = "convert the file to JSON lines, which hold any label"
        self.check = partial(check_cells, separators=refused, where=shown(block.path), remedy=remedy, empty=empty)

    def columns(self, answers: Answers, asked: Asked) -> list[Codes]:
        """The labels of each level, and the probabilities that are wanted, as columns (see `Answers.columns`)."""
        added = answers.columns()
        for _, names in added:
            self.check(names)
        every = np.arange(answers.data.n_tokens, dtype=np.int32)
        if asked.marginals:
            added += [(every, [f"{p:.6f}" for p in column.tolist()]) for column in answers.sure]
        if asked.all_marginals:
            for table, level in zip(answers.marginals, answers.levels, strict=True):
                self.check(map(str, level.labels))
                for k, name in enumerate(level.labels):
                    added.append((every, [f"{name}:{p:.6f}" for p in table[:, k].tolist()]))
        return added

    def lines(self, answers: Answers, asked: Asked, lines: Sequence[str]) -> str:
        """Trajectories, one a line; or the k best with these lines before them, as CRF++ writes them."""
        if asked.compressed:
            rows = [list(map(str, labels)) for labels in answers.trajectories()]
            for row in rows:
                self.check(row, separators=[" "], empty=False)
            return "".join(" ".join(row) + "\n" for row in rows)
        out: list[str] = []
        for texts, found in zip(cut(lines, answers.data.offsets), answers.kbest(asked.kbest or 1), strict=True):
            for rank, (answer, probability) in enumerate(found):
                out.append(f"# {rank} {probability:.6f}\n")
                for text, *labels in zip(texts, *answers.rows(answer, len(texts)), strict=True):
                    cells = list(map(str, labels))
                    self.check(cells)
                    out.append(text + self.before + self.between.join(cells) + "\n")
                out.append("\n")
        return "".join(out)
