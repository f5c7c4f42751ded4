"""``scansion train``: files to a model."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scansion.cli import UsageError
from scansion.cli.common import check_target, given_template, note
from scansion.cli.parser import labels_given
from scansion.data import Dataset, Vocabulary
from scansion.features.templates import BUILT_IN, Template
from scansion.formats import Block, FormatError, Reading, format_of, read
from scansion.formats.base import shown
from scansion.formats.jsonlines import Levels, Spans
from scansion.formats.targets import detect, labels_of, segments_of

__all__ = ["run"]


@dataclass
class _Sequences:
    """What was read: the attributes in pieces, and the targets."""

    parts: list[Dataset] = field(default_factory=list)
    y: list[Any] = field(default_factory=list)

    def dataset(self, vocabulary: Vocabulary) -> Dataset:
        """All of it as one data set."""

        def joined(offsets: list[Any]) -> Any:
            shifts = np.cumsum([0, *(part[-1] for part in offsets[:-1])])
            return np.concatenate([[0], *(part[1:] + shift for part, shift in zip(offsets, shifts, strict=True))])

        if len(self.parts) == 1:
            return self.parts[0]
        values = None
        if any(part.values is not None for part in self.parts):
            values = np.concatenate([np.ones(len(p.ids)) if p.values is None else p.values for p in self.parts])
        return Dataset._trusted(
            joined([part.offsets for part in self.parts]).astype(np.int64),
            joined([part.token_offsets for part in self.parts]).astype(np.int64),
            np.concatenate([part.ids for part in self.parts]),
            values,
            vocabulary,
        )


class _Reader:
    """Reads files as the command line says; what it leaves open is decided at the first sequences."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.kind: str = args.model
        self.template = given_template(args)
        self.vocabulary = Vocabulary()
        labels = labels_given(args.labels) or ((-2, -1) if self.kind == "hierarchical" else (-1,))
        if self.kind == "hierarchical" and len(labels) < 2:
            raise UsageError("--model hierarchical needs two label columns, as in --labels 2,3")
        if self.kind != "hierarchical" and len(labels) > 1:
            raise UsageError("several label columns are levels: they need --model hierarchical")
        if args.partial and self.kind != "crf":
            raise UsageError("--partial goes with --model crf")
        self.reading = Reading(
            format=args.format or format_of(args.data[0]),
            separator=args.separator or "",
            comment=args.comment or "",
            columns=args.columns,
            labels=labels,
            scheme=None if args.scheme == "auto" else args.scheme,
        )
        self.settled = False
        self.depth = 1

    def sequences(self, path: str, frozen: bool = False) -> _Sequences:
        """The sequences of one file."""
        result = _Sequences()
        form = self.args.format or format_of(path, self.reading.format)
        for block in read(path, self.reading._replace(format=form)):
            if not self.settled and len(block):
                self._settle(block)
            block.reading = self.reading._replace(format=form)
            if len(block):
                result.y.extend(self._targets(block))
                result.parts.append(block.dataset(self.template, self.vocabulary, frozen))
        return result

    def _settle(self, block: Block) -> None:
        """Decide what the command line left open: the template and the scheme."""
        self.settled = True
        if block.rows is None:
            if self.template is not None:
                raise UsageError("a template makes attributes of columns, but the file has attributes already")
        elif self.template is None:
            held = self._label_columns(block)
            given = range(block.rows.width) if self.reading.columns is None else self.reading.columns
            free = [c for c in given if c % block.rows.width not in held]
            name = "chunk" if len(free) > 1 else "pos"
            self.template = Template(BUILT_IN[name], name=f"--features {name}")
            if not self.args.quiet:
                note(f"no template given: taking the built-in one, --features {name}")
        if block.rows is not None:
            self._check_columns(block)
        if self.template is not None:
            self.reading = self.reading._replace(template=self.template.text, dialect=self.template.dialect)
        self._settle_scheme(block)

    def _label_columns(self, block: Block) -> set[int]:
        return {block._column(c) for c in self.reading.labels} if self.reading.format == "columns" else set()

    def _check_columns(self, block: Block) -> None:
        assert self.template is not None
        held = self._label_columns(block)
        for k, column in enumerate(block.feature_columns(self.template.columns)):
            if column in held:
                raise UsageError(
                    f"the template reads column {k}, which holds the labels; choose others with --labels or --columns"
                )

    def _settle_scheme(self, block: Block) -> None:
        if self.reading.scheme is not None:
            return
        given = block.labels()
        scheme = "iob2" if given and isinstance(given[0], (Spans, Levels)) else None
        if self.kind != "crf" and scheme is None:
            scheme = detect(given)
        self.reading = self.reading._replace(scheme=scheme)

    def _targets(self, block: Block) -> list[Any]:
        if self.kind == "crf":
            return labels_of(block, self.args.partial, self.reading.scheme)
        scheme = self.reading.scheme or "plain"
        if self.kind == "semicrf":
            if scheme == "plain" and not any(isinstance(given, Spans) for given in block.labels()):
                return block.labels()  # equal neighbours are one segment
            return segments_of(block, scheme)
        self.depth = len(self.reading.labels) if block.reading.format == "columns" else self._depth(block)
        # above the bottom, what lies outside is one segment from end to end: it may hold others
        levels = [segments_of(block, scheme, k, merge=k < self.depth - 1) for k in range(self.depth)]
        return list(map(list, zip(*levels, strict=True)))

    @staticmethod
    def _depth(block: Block) -> int:
        counts = {len(given) if isinstance(given, Levels) else 1 for given in block.labels()}
        if len(counts) > 1 or counts == {1}:
            raise FormatError(
                block.path, block.numbers[0], 'a hierarchical model needs "levels", as many for each sequence'
            )
        return counts.pop()


def run(args: Any) -> int:
    """Train a model and save it."""
    begun = time.perf_counter()
    check_target(args.output, *args.data, *filter(None, (args.dev, args.template)))
    kind, parameters = _parameters(args)
    trial = {"levels": ["level0", "level1"]} if args.model == "hierarchical" else {}
    kind(**trial | parameters).settings()  # says what is wrong with them before the work begins
    reader = _Reader(args)
    data = _Sequences()
    for path in args.data:
        found = reader.sequences(path)
        if not found.y:
            raise FormatError(path, None, "there are no sequences in it")
        data.parts += found.parts
        data.y += found.y
    X = data.dataset(reader.vocabulary)
    data.parts.clear()
    dev = _Sequences()
    if args.dev is not None:
        dev = reader.sequences(args.dev, frozen=True)
        if not dev.y:
            raise FormatError(args.dev, None, "there are no sequences in it")
    estimator = kind(**_reader_parameters(reader, args) | parameters)
    if not args.quiet:
        names = ", ".join(map(shown, args.data))
        note(f"read {len(X)} sequences, {X.n_tokens} tokens, {len(X.vocabulary)} attributes from {names}")
    extra = {"X_dev": dev.dataset(reader.vocabulary), "y_dev": dev.y} if dev.y else {}
    estimator.fit(X, data.y, **extra)
    estimator.reading_ = reader.reading
    estimator.save(args.output)
    if not args.quiet:
        took = time.perf_counter() - begun
        classes = estimator.classes_
        labels = sum(map(len, classes.values())) if isinstance(classes, dict) else len(classes)
        note(f"wrote {args.output}: {labels} labels, {estimator.size_} weights; {took:.1f} s in all")
    return 0


def _parameters(args: Any) -> tuple[Any, dict[str, Any]]:
    """The estimator's class, and the parameters that the command line gives."""
    import scansion

    kind = getattr(scansion, {"crf": "CRF", "semicrf": "SemiCRF", "hierarchical": "HierarchicalCRF"}[args.model])
    known = kind._parameter_names()
    if args.max_length is not None and args.model != "semicrf":
        raise UsageError("--max-length goes with --model semicrf")
    given = {
        "order": args.order,
        "max_length": args.max_length,
        "algorithm": args.algorithm,
        "c1": args.c1,
        "c2": args.c2,
        "max_iterations": args.max_iterations,
        "min_freq": args.min_freq,
        "patience": args.patience,
        "random_state": args.seed,
        "all_possible_states": args.all_possible_states or None,
        "all_possible_transitions": args.all_possible_transitions or None,
        "n_jobs": args.jobs,
        "verbose": not args.quiet,
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    for name in parameters:
        if name not in known:
            raise UsageError(f"--{name.replace('_', '-')} does not go with --model {args.model}")
    for name, value in args.settings:
        if name not in known:
            raise UsageError(f"--set {name}: {kind.__name__} has no such parameter; it has {', '.join(known)}")
        parameters[name] = value
    return kind, parameters


def _reader_parameters(reader: _Reader, args: Any) -> dict[str, Any]:
    """Parameters that follow from the template and the data."""
    template = reader.template
    # what begins, fills and ends a segment: with its labels' tags a chain sees as much
    parts = ("start", "inside", "end")
    prefixes: dict[str, Any] = {"U": parts, "u": parts} if template is not None else {"": parts}
    result: dict[str, Any] = {}
    if reader.kind == "hierarchical":
        if template is not None:
            prefixes |= {"B": "transition", "b": "transition", "*": ("inside", "transition")}
        levels = [f"level{k}" for k in range(reader.depth)]
        result["levels"] = levels
        result["attribute_parts"] = dict.fromkeys(levels, prefixes)
        result["max_length"] = dict.fromkeys(levels[:-1], "free")
        return result
    if reader.kind == "semicrf":
        result["attribute_parts"] = prefixes
        result["length_features"] = ("bins",)
    if template is not None:
        if template.attribute_orders:
            result["attribute_orders"] = template.attribute_orders
        if not template.bigrams:
            result["order"] = 0
    return result
