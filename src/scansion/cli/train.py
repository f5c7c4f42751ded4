"""``scansion train``: files to a model."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from scansion import __version__
from scansion.cli import UsageError
from scansion.cli.common import check_target, check_template, given_reading, given_rules, given_template, note
from scansion.cli.parser import MODELS, labels_given
from scansion.cli.suspicious import in_block, in_model, in_targets, warn
from scansion.data import Dataset, Vocabulary
from scansion.features.templates import BUILT_IN, Template
from scansion.formats import FormatError, format_of
from scansion.formats.base import shown
from scansion.formats.blocks import Block, Spans, read
from scansion.formats.reading import Column
from scansion.formats.targets import detect, labels_of, segments_of
from scansion.models.packing import json_value

__all__ = ["run"]


def _gathered(blocks: Iterable[tuple[Dataset, list[Any]]], vocabulary: Vocabulary) -> tuple[Dataset, list[Any]]:
    """All blocks as one data set, and the targets."""
    parts, y = [], []
    for part, targets in blocks:
        parts.append(part)
        y.extend(targets)
    if len(parts) == 1:
        return parts[0], y
    offsets, tokens = (
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(getattr(part, name)) for part in parts]))])
        for name in ("offsets", "token_offsets")
    )
    values = None
    if any(part.values is not None for part in parts):
        values = np.concatenate([np.ones(len(p.ids)) if p.values is None else p.values for p in parts])
    ids = np.concatenate([part.ids for part in parts])
    return Dataset._trusted(offsets.astype(np.int64), tokens.astype(np.int64), ids, values, vocabulary), y


class _Reader:
    """Reads files as the command line says; what it leaves open is decided at the first sequences."""

    def __init__(self, args: Any, parameters: Sequence[str]) -> None:
        self.args = args
        self.nested = "levels" in parameters  # y is by level
        self.segmental = "max_length" in parameters  # y is segments
        self.template = given_template(args)
        self.vocabulary = Vocabulary()
        labels = labels_given(args.labels) or ((-2, -1) if self.nested else (-1,))
        if self.nested and len(labels) < 2:
            raise UsageError("--model hierarchical needs two label columns, as in --labels 2,3")
        if not self.nested and len(labels) > 1:
            raise UsageError("several label columns are levels: they need --model hierarchical")
        if args.partial and self.segmental:
            raise UsageError("--partial goes with --model crf")
        scheme = None if args.scheme == "auto" else args.scheme
        self.reading = given_reading(args, args.format or format_of(args.data[0]), labels)._replace(scheme=scheme)
        self.settled = False
        self.depth = 1

    def blocks(self, paths: Sequence[str], frozen: bool = False) -> Iterator[tuple[Dataset, list[Any]]]:
        """The sequences of files with their targets; frozen: attributes that were not seen before are left out."""
        for path in paths:
            empty = True
            form = self.args.format or format_of(path, self.reading.format)
            for block in read(path, self.reading._replace(format=form)):
                if not len(block):
                    continue
                empty = False
                if not self.settled:
                    self._settle(block)
                block.reading = self.reading._replace(format=form)
                targets = self._targets(block)
                yield block.dataset(self.template, self.vocabulary, frozen), targets
            if empty:
                raise FormatError(path, None, "there are no sequences in it")

    def _settle(self, block: Block) -> None:
        """Decide what the command line left open: the template and the scheme."""
        self.settled = True
        check_template(self.template, block)
        # what the file's names say of its columns
        self.reading = self.reading._replace(labels=block.reading.labels, columns=block.reading.columns)
        if block.rows is not None:
            held = block.label_columns
            if block.names and self.reading.columns is None:
                self.reading = self.reading._replace(
                    columns=tuple(n for c, n in enumerate(block.names) if c not in held)
                )
            group, block.reading = block.reading.group, self.reading
            if self.template is None:
                given = range(block.rows.width) if self.reading.columns is None else self.reading.columns
                name = "chunk" if sum(block._column(c) not in held for c in given) > 1 else "pos"
                self.template = Template(BUILT_IN[name], name=f"--features {name}")
                if not self.args.quiet:
                    note(f"no template given: taking the built-in one, --features {name}")
            for k, column in enumerate(block.feature_columns(self.template.columns)):
                if column in held:
                    remedy = "choose others with --labels or --columns"
                    raise UsageError(f"the template reads column {k}, which holds the labels; {remedy}{block.hint}")
            self.reading = self.reading._replace(template=self.template.text, dialect=self.template.dialect)
            self._told(block, group)
        if self.reading.scheme is None:
            labels = block.labels()
            spans = isinstance(labels[0], Spans)
            scheme = "iob2" if spans else detect(labels) if self.segmental else None
            self.reading = self.reading._replace(scheme=scheme)

    def _told(self, block: Block, group: Column | None) -> None:
        """Say which columns were found, and what looks wrong about them."""
        if self.args.quiet:
            return
        if block.names:
            reading = self.reading
            words, labels = (", ".join(map(str, some)) for some in (reading.columns or (), reading.labels))
            by = "" if group is None else f", sequences by {group}"
            note(f"columns: {words or 'all'}; labels: {labels}{by}")
        warn(in_block(block, self.template))

    def _targets(self, block: Block) -> list[Any]:
        if not self.segmental:
            return labels_of(block, self.args.partial, self.reading.scheme)
        scheme = self.reading.scheme or "plain"
        if not self.nested:
            if scheme == "plain" and not any(isinstance(given, Spans) for given in block.labels()):
                return block.labels()  # equal neighbours are one segment
            return segments_of(block, scheme)
        self.depth = block.depth
        # above the bottom, what lies outside is one segment from end to end: it may hold others
        levels = [segments_of(block, scheme, k, merge=k < self.depth - 1) for k in range(self.depth)]
        return list(map(list, zip(*levels, strict=True)))


def run(args: Any) -> int:
    """Train a model and save it."""
    begun = time.perf_counter()
    check_target(args.output, *args.data, *args.rules, *filter(None, (args.dev, args.template)))
    kind, parameters = _parameters(args)
    known = kind._parameter_names()
    trial = {"levels": ["level0", "level1"]} if "levels" in known else {}
    kind(**trial | parameters).settings()  # says what is wrong with them before the work begins
    reader = _Reader(args, known)
    X, y = _gathered(reader.blocks(args.data), reader.vocabulary) if args.cache is None else _cached(reader, args)
    reader.vocabulary = X.vocabulary
    extra = {}
    if args.dev is not None:
        extra = dict(zip(("X_dev", "y_dev"), _gathered(reader.blocks([args.dev], True), X.vocabulary), strict=True))
    estimator = kind(**_reader_parameters(reader, args) | parameters)
    if not args.quiet:
        names = ", ".join(map(shown, args.data))
        note(f"read {len(X)} sequences, {X.n_tokens} tokens, {len(X.vocabulary)} attributes from {names}")
        warn(in_targets(y, X.n_tokens, args.data[0]))
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: None if args.quiet else note(f"warning: {message}")
        estimator.fit(X, y, **extra)
    estimator.reading_ = reader.reading
    estimator.save(args.output)
    if not args.quiet:
        took = time.perf_counter() - begun
        labels = sum(len(level.labels) for level in estimator.levels_)
        warn(in_model(estimator))
        note(f"wrote {args.output}: {labels} labels, {estimator.size_} weights; {took:.1f} s in all")
    return 0


def _cached(reader: _Reader, args: Any) -> tuple[Dataset, Any]:
    """The sequences of the files, mapped from where they were written; written now unless they are there."""
    from scansion.data.building import Builder, load_targets

    os.makedirs(args.cache, exist_ok=True)
    made_from = _made_from(args)
    name = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:16]
    path = os.path.join(args.cache, name)
    blocks = reader.blocks(args.data)
    if "-" in args.data or not os.path.exists(path):
        with Builder(path, reader.vocabulary, args.min_freq or 0.0) as builder:
            for part, targets in blocks:
                builder.add(part, targets)
            builder.finish(True, made_from)
    else:
        next(blocks)  # decides what the command line leaves open
        if not args.quiet:
            note(f"reading {path}, which was written from the same files before")
    return Dataset.load(path), load_targets(path + ".y")


def _made_from(args: Any) -> dict[str, Any]:
    """What a data set depends on: the files as they are now, and how they are read."""
    names = ["columns", "comment", "dialect", "encoding", "features", "format", "group", "header", "labels"]
    names += ["min_freq", "model", "partial", "scheme", "separator"]
    files = [[os.path.abspath(path), *_stamp(path)] for path in [*args.data, args.template] if path not in (None, "-")]
    return {"files": files, "version": __version__} | {name: json_value(getattr(args, name)) for name in names}


def _stamp(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]


def _parameters(args: Any) -> tuple[Any, dict[str, Any]]:
    """The estimator's class, and the parameters that the command line gives."""
    import scansion

    kind = getattr(scansion, MODELS[args.model])
    known = kind._parameter_names()
    if args.max_length is not None and ("max_length" not in known or "levels" in known):
        raise UsageError("--max-length goes with --model semicrf")
    names = ("order", "max_length", "algorithm", "c1", "c2", "max_iterations", "min_freq", "patience")
    given = {name: getattr(args, name) for name in (*names, "all_possible_states", "all_possible_transitions")}
    given |= {"random_state": args.seed, "n_jobs": args.jobs, "train_with_rules": args.train_with_rules}
    given["rules"] = given_rules(args) or None
    parameters = {name: value for name, value in given.items() if value is not None and value is not False}
    parameters["verbose"] = not args.quiet
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
    if reader.nested:
        if template is not None:
            prefixes |= {"B": "transition", "b": "transition", "*": ("inside", "transition")}
        levels = [f"level{k}" for k in range(reader.depth)]
        return {
            "levels": levels,
            "attribute_parts": dict.fromkeys(levels, prefixes),
            "max_length": dict.fromkeys(levels[:-1], "free"),
        }
    result: dict[str, Any] = {"attribute_parts": prefixes, "length_features": ("bins",)} if reader.segmental else {}
    if template is not None:
        if template.attribute_orders:
            result["attribute_orders"] = template.attribute_orders
        if not template.bigrams:
            result["order"] = 0
    return result
