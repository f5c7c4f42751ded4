"""A model's answers for blocks of a file, in the file's terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.data import Dataset
from scansion.features.templates import Template
from scansion.formats import Block, Reading

__all__ = ["Tagger"]

Levels = list[list[Any]]  # labels of each token, for each level


class Tagger:
    """Answers of an estimator.

    Parameters
    ----------
    model : estimator
    reading : Reading
        How the file is read.
    """

    def __init__(self, model: Any, reading: Reading, jobs: int = 1) -> None:
        self.model = model.set_params(n_jobs=jobs)
        self.reading = reading
        self.kind: str = model._kind
        self.scheme = reading.scheme
        self.template = None if reading.template is None else Template(reading.template, reading.dialect)
        # of each level, the top first; models of one level have one list
        self.classes: Levels = list(model.classes_.values()) if self.kind == "hierarchical" else [model.classes_]
        self.labels: list[Any] = self.classes[-1]

    @property
    def segmental(self) -> bool:
        """Whether answers are segments."""
        return self.kind != "crf"

    def dataset(self, block: Block) -> Dataset:
        """A block's attributes by number."""
        return block.dataset(self.template, self.model._model.vocabulary, frozen=True)

    def known(self, block: Block) -> Any:
        """What a block's labels say, as constraints."""
        from scansion.formats.targets import labels_of, segment_constraints

        if self.kind == "hierarchical":
            return self._known_levels(block)
        rows = labels_of(block, True, self.scheme)
        if self.kind == "crf":
            return rows
        return segment_constraints(rows, self.scheme or "plain", self.labels)

    def _known_levels(self, block: Block) -> list[Any]:
        """What a block's labels say of each level: labels, and where segments end."""
        from scansion.formats.targets import OUTSIDE, labels_of, segment_constraints

        classes = list(self.model.classes_.values())
        levels = []
        for k, labels in enumerate(classes):
            targets = segment_constraints(labels_of(block, True, self.scheme, k), self.scheme or "plain", labels).level
            assert targets.ends is not None
            inner = k == len(classes) - 1
            # above the bottom, neighbours outside are one segment
            outside = np.array([y == OUTSIDE for y in labels])[targets.numbers] & (targets.numbers >= 0)
            both = np.zeros(len(targets.ends), np.bool_)
            both[:-1] = outside[:-1] & outside[1:]
            ends = targets.ends if inner or self.scheme == "plain" else np.where(both, 0, targets.ends)
            levels.append(([None if y < 0 else labels[y] for y in targets.numbers.tolist()], ends.tolist()))
        cuts = block.offsets.tolist()
        return [
            [
                {"labels": names[a:b], "boundaries": [None if e < 0 else e for e in ends[a : b - 1]] + [1] * (b > a)}
                for names, ends in levels
            ]
            for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        ]

    # ---- answers -----------------------------------------------------------------------------------------------

    def codes(self, data: Dataset, known: Any = None) -> npt.NDArray[np.int32]:
        """The best label of each token by number (N,); labels only."""
        return np.ascontiguousarray(self.model._best(self.model._inputs(data), known), dtype=np.int32)

    def best(self, data: Dataset, known: Any = None) -> list[Any]:
        """The best configuration of each sequence, as the estimator gives it."""
        result: list[Any] = self.model.predict(data, constraints=known)
        return result

    def marginals(self, data: Dataset, known: Any = None) -> list[npt.NDArray[np.float64]]:
        """Probabilities of the labels at each token (N, L), for each level."""

        def tables(batch: Any) -> list[Any]:
            found = batch.marginals().labels
            return [found[1:] if self.kind == "hierarchical" else [found]]  # without the root

        blocks = [[np.zeros((0, len(labels))) for labels in self.classes], *self.model.ask(data, tables, known)]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def rows(self, config: Any, size: int) -> Levels:
        """A configuration as the labels that a file has, for each level."""
        if self.kind == "crf":
            return [list(config)]
        from scansion.formats.targets import file_labels

        if self.kind == "semicrf":
            return [file_labels(config, size, self.scheme or "plain")]
        return [file_labels(level, size, self.scheme or "plain") for level in config]

    def segments(self, config: Any, scheme: str) -> list[list[tuple[int, int, Any]]]:
        """A configuration as segments, for each level; scheme: how labels mark them."""
        if self.kind == "crf":
            from scansion.schemes import segments

            return [[tuple(s) for s in segments(config, scheme)]]
        levels = [config] if self.kind == "semicrf" else config
        return [[tuple(segment) for segment in level] for level in levels]

    def predicted(self, config: Any, size: int) -> list[npt.NDArray[np.int32]]:
        """Numbers of the model's labels of a configuration, token by token (T,), for each level."""
        numbers = [{label: i for i, label in enumerate(labels)} for labels in self.classes]
        if self.kind == "crf":
            return [np.array([numbers[0][y] for y in config], np.int32)]
        codes = [np.zeros(size, np.int32) for _ in numbers]
        for code, number, level in zip(codes, numbers, [config] if self.kind == "semicrf" else config, strict=True):
            for start, stop, label in level:
                code[start:stop] = number[label]
        return codes
