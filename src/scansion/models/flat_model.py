"""Flat models, chains and segments: from encoded sequences and weights to lattices, and to objectives for training.

Conventions as in `scansion.models.weights`, with one level: L labels, P label patterns of which the first L are the
labels themselves, N tokens. Columns of all blocks are patterns; those of lengths and spans are labels. The blocks:
always-on patterns (label pairs and longer), attributes by part, lengths, spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge, Vocabulary
from scansion.data.dataset import unusual
from scansion.lattice.chain import ChainBatch
from scansion.lattice.cores import DenseCore, PatternCore
from scansion.lattice.patterns import BOS, EOS, Pattern, PatternAutomaton
from scansion.lattice.segment import SegmentBatch
from scansion.models.inputs import INTERCEPT, Inputs
from scansion.models.packing import Contents
from scansion.models.weights import Block, Level, Mark, Model
from scansion.rules.automata import Automaton
from scansion.rules.compile import Reading, RuleSet
from scansion.rules.expressions import Rule

if TYPE_CHECKING:
    from scansion.training.objective import NativeObjective

__all__ = ["PARTS", "FlatModel"]

PARTS = ("start", "inside", "end", "inner")


@dataclass
class FlatModel(Model):
    """Label patterns, features and weights of a chain or of segments.

    Attributes
    ----------
    patterns : tuple of tuples
        All label patterns; the first L are ``(0,), (1,), ...``.
    segments : bool
        Segments (SemiCRF) or single positions (CRF).
    n_forbidden : int
        The last so many patterns must not occur, and have no features.
    first, last : bool (L,), or None
        The labels that may begin and end a sequence; None: all.
    """

    patterns: tuple[Pattern, ...] = ()
    segments: bool = False
    n_forbidden: int = 0
    first: Bools | None = None
    last: Bools | None = None

    @property
    def no_configuration(self) -> str:
        """What to say of a sequence that leaves none."""
        if not self.segments:
            return "leaves no labels: beyond position {furthest} every one is forbidden to follow (transitions)"
        return (
            "leaves no segmentation: none gets beyond position {furthest} without a segment that repeats the label "
            "before it, may not follow it, or is longer or shorter than its label allows (repeats, transitions, "
            "max_length, min_length)"
        )

    whole_parts = ("length",)  # of which the native code takes every feature

    # ---- layout ------------------------------------------------------------------------------------------------

    @property
    def level(self) -> Level:
        """The only level."""
        return self.levels[0]

    @property
    def labels(self) -> list[Any]:
        """The labels, by number."""
        return self.level.labels

    @property
    def n_labels(self) -> int:
        """L."""
        return len(self.labels)

    @property
    def max_length(self) -> int:
        """M, the longest segment."""
        assert self.level.max_length is not None
        return self.level.max_length

    @property
    def bounded(self) -> bool:
        """Whether the model excludes configurations, so that what is known of a sequence may be impossible."""
        bounds = self.first, self.last, self.level.limits, self.level.shortest
        return self.n_forbidden > 0 or any(bound is not None for bound in bounds)

    @property
    def n_bias(self) -> int:
        """Number of always-on patterns."""
        return sum(len(block) for block in self.blocks if block.always)

    def n_columns(self, block: Block) -> int:
        """P, or L where columns are labels alone."""
        return self.n_labels if block.part in ("length", "span") else len(self.patterns)

    def column_names(self, block: Block) -> Sequence[tuple[Any, ...]]:
        """Labels of the patterns; BOS and EOS as they are."""
        names: list[tuple[Any, ...]] = [self.pattern_name(z) for z in range(len(self.patterns))]
        return names

    def pattern_name(self, z: int) -> tuple[Any, ...]:
        """Labels of a pattern; BOS and EOS as they are."""
        return tuple(y if y in (BOS, EOS) else self.labels[y] for y in self.patterns[z])

    def clique(self, block: Block, column: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """No parent, and the labels of a pattern; BOS and EOS are numbers, which labels may be as well."""
        marks = {y: mark for y, mark in ((BOS, Mark.START), (EOS, Mark.END)) if y in column and y not in self.labels}
        return None, tuple(marks.get(y, y) for y in column) if marks else column

    def _of_labels(self, block: Block) -> bool:
        return True

    def orders(self) -> Ints:
        """(W,) the order of each feature: length of its label pattern minus one (BOS and EOS counted)."""
        length = np.array([len(p) - 1 for p in self.patterns], np.int64)
        return np.concatenate([np.zeros(0, np.int64), *(length[block.columns] for block in self.blocks)])

    @property
    def automaton(self) -> PatternAutomaton:
        """The pattern automaton."""
        if "automaton" not in self._cache:
            self._cache["automaton"] = PatternAutomaton(self.patterns, self.n_labels)
        net: PatternAutomaton = self._cache["automaton"]
        return net

    @property
    def dense(self) -> bool:
        """Whether the first-order chain kernel serves: labels and label pairs only."""
        if "dense" not in self._cache:
            plain = all(len(p) <= 2 and p[0] != BOS and p[-1] != EOS for p in self.patterns)
            self._cache["dense"] = plain and not self.segments
        return bool(self._cache["dense"])

    def _features_on(self, *parts: str) -> Bools:
        """(P,) patterns that have features of attributes in one of the parts."""
        found = np.zeros(len(self.patterns), np.bool_)
        for block in self.blocks:
            if block.part in parts:
                found[block.columns] = True
        return found

    @property
    def varying(self) -> bool:
        """Whether token features sit on longer patterns that depend on the start alone."""
        if "varying" not in self._cache:
            longer = ~self.extent if not self.dense else np.arange(len(self.patterns)) >= self.n_labels
            self._cache["varying"] = bool((self._features_on("start") & longer).any())
        return bool(self._cache["varying"])

    def alive(self, inputs: Inputs | None = None) -> float:
        """Mean number of label patterns alive at a position of the inputs, and of those of the calls to come.

        Where attributes are tied to longer patterns, these are the labels, the always-on patterns and those of the
        attributes there, each with its prefixes; elsewhere, and while no inputs were given, all patterns.
        """
        if "alive" in self._cache:
            return float(self._cache["alive"])
        if inputs is None or not self.varying or inputs.data.n_tokens == 0:
            return float(len(self.patterns))
        lengths = np.array([len(pattern) for pattern in self.patterns])
        tied = 0.0
        for block in self.blocks:
            if block.part == "start" and not block.always:
                prefixes = np.where(block.columns < self.n_labels, 0, lengths[block.columns] - 1)
                of_row = np.bincount(block.row, prefixes, len(block.rows) - 1)
                ids = inputs.data.ids
                tied += float(of_row[ids[ids < len(of_row)]].sum())
        alive = self.n_labels + self.n_bias + tied / inputs.data.n_tokens
        self._cache["alive"] = min(alive, float(len(self.patterns)))
        return float(self._cache["alive"])

    @property
    def extent(self) -> Bools:
        """(P,) patterns whose score depends on more than a segment's start: labels, and what has such features.

        Patterns that end in EOS are not among them: the kernels read their start scores with those of the others.
        """
        if "extent" not in self._cache:
            extent = self._features_on("inside", "end", "inner") & [p[-1] != EOS for p in self.patterns]
            extent[: self.n_labels] = True
            self._cache["extent"] = extent
        result: Bools = self._cache["extent"]
        return result

    @property
    def columns(self) -> int:
        """Patterns that have a column in the arrays of extent scores: the labels, or all."""
        if "columns" not in self._cache:
            wide = self._features_on("inside", "end", "inner")[self.n_labels :].any()
            self._cache["columns"] = len(self.patterns) if wide else self.n_labels
        return int(self._cache["columns"])

    @property
    def native(self) -> _core.FlatModel:
        """The layout for the native code."""
        if "native" not in self._cache:
            self._cache["native"] = self._native(None)
        result: _core.FlatModel = self._cache["native"]
        return result

    def _native(self, rules: Automaton | None) -> _core.FlatModel:
        """The layout for the native code; with rules, all sums and best configurations are of what they accept."""
        dense = self.dense and rules is None
        bias = np.full(len(self.patterns), -1, np.int32)
        for block, where in self.parts():
            if block.always:
                bias[block.columns] = np.arange(where.start, where.stop)
        pair = None
        if dense:
            pair = np.array([p[0] * self.n_labels + p[-1] for p in self.patterns], np.int32)
        native = _core.FlatModel(
            self.automaton._native,
            None if dense else self.automaton.topology(self.extent, rules),
            self.max_length,
            bias,
            pair,
            self.extent.astype(np.uint8),
            self.columns,
            self.varying,
            self.n_weights,
        )
        forbidden = np.zeros(len(self.patterns), np.uint8)
        forbidden[len(self.patterns) - self.n_forbidden :] = 1
        ends = (None if mask is None else mask.astype(np.uint8) for mask in (self.first, self.last))
        native.set_bounds(self.level.limits, self.level.shortest, forbidden if self.n_forbidden else None, *ends)
        for block, where in self.parts():
            if block.part == "length" and len(block):
                native.set_lengths(self.level.basis, block.rows, block.columns, where.start)
            elif not block.always and len(block):
                part = len(PARTS) if block.part == "span" else PARTS.index(block.part)
                native.set_features(part, block.rows, block.columns, where.start)
        return native

    def _has(self, *parts: str) -> bool:
        return any(block.part in parts and len(block) for block in self.blocks)

    @property
    def tagger(self) -> _core.Tagger | None:
        """From the tokens of one sequence to its best labels in one native call; None: there is more than they say."""
        weights, tagger = self._cache.get("tagger", (None, None))
        if weights is not self.weights and not self._has("span") and self.vocabulary.index(INTERCEPT) < 0:
            tagger = _core.Tagger(self.native, self.vocabulary, self.weights, list(self.labels), unusual)
            self._cache["tagger"] = self.weights, tagger
        made: _core.Tagger | None = tagger
        return made

    # ---- lattices ----------------------------------------------------------------------------------------------

    def batch(self, inputs: Inputs, n_jobs: int, pairs: Floats | None = None) -> ChainBatch | SegmentBatch:
        """The lattices of encoded sequences under the weights, in the kernels' compact form.

        Scores have columns for some patterns only: `lattices` makes those that answer for all of them. pairs (L, L):
        scores of label pairs, from a batch under the same weights, where they do not depend on the sequences.
        """
        data, columns = inputs.data, self.columns
        n = data.n_tokens
        start = np.zeros((n, columns))
        nothing = Knowledge.nothing(data.offsets)
        if self.dense:
            size, out = self.n_labels, None
            if pairs is None or self.varying:
                steps = int(np.maximum(np.diff(data.offsets) - 1, 0).sum()) if self.varying else 0
                pairs = out = np.zeros((steps, size, size) if self.varying else (size, size))
            _core.score_arrays(
                self.native, inputs.native, self.weights, start, None, None, None, None, None, out, n_jobs
            )
            chain: ChainBatch = ChainBatch._of(DenseCore(data.offsets, nothing, start, pairs, None, None), n_jobs)
            return chain
        inside = np.zeros((n, columns)) if self.max_length > 1 or self._has("inside", "inner") else None
        end = np.zeros((n, columns)) if self._has("end") or self.last is not None else None
        timed = self._has("length") or self.level.limits is not None or self.level.shortest is not None
        by_length = np.zeros((self.max_length, columns)) if timed else None
        full = None
        if self._has("span") and inputs.spans[0] is not None:
            full = np.zeros((n, self.max_length, columns))
        starts = np.zeros((n, len(self.patterns)) if self.varying else len(self.patterns))
        _core.score_arrays(
            self.native, inputs.native, self.weights, start, inside, end, by_length, full, starts, None, n_jobs
        )
        core = PatternCore(
            data.offsets,
            nothing,
            self.automaton,
            self.max_length,
            self.extent,
            starts,
            full,
            start,
            inside,
            end,
            by_length,
        )
        kind: type[ChainBatch] | type[SegmentBatch] = SegmentBatch if self.segments else ChainBatch
        batch: ChainBatch | SegmentBatch = kind._of(core, n_jobs)
        return batch

    def lattices(self, inputs: Inputs, n_jobs: int) -> ChainBatch | SegmentBatch:
        """The same lattices with a score for every pattern, as their constructors make them."""
        batch = self.batch(inputs, n_jobs)
        core = batch._core
        if isinstance(core, DenseCore):
            return batch
        n, size, longest, net = inputs.data.n_tokens, len(self.patterns), self.max_length, self.automaton

        def wide(part: Floats | None) -> Floats | None:
            if part is None or part.shape[-1] == size:
                return part
            padded = np.zeros((*part.shape[:-1], size))
            padded[..., : part.shape[-1]] = part
            return padded

        start, inside, end, by_length, full = map(wide, (core.start, core.inside, core.end, core.by_length, core.full))
        assert start is not None and core.starts is not None
        start = start + core.starts
        if not self.segments:
            return ChainBatch.from_patterns(start, core.offsets, net, self.n_labels, n_jobs)
        if full is None:
            parts = {"start": start, "inside": inside, "end": end, "length": by_length}
            return SegmentBatch.from_parts(core.offsets, net, self.n_labels, longest, **parts, n_jobs=n_jobs)
        within = np.zeros((n, size))
        for d in range(min(longest, n)):  # what is written for segments that pass the end of a sequence is ignored
            full[:, d] += start
            if inside is not None:
                within[: n - d] += inside[d:]
                full[:, d] += within
            if end is not None:
                full[: n - d, d] += end[d:]
            if by_length is not None:
                full[:, d] += by_length[d]
        return SegmentBatch(full, core.offsets, net, self.n_labels, n_jobs)

    def compiled(self, rules: tuple[Rule, ...]) -> RuleSet:
        """Rules compiled for the labels of the model."""
        return RuleSet.compiled(rules, Reading(self.labels, not self.segments))

    def tokens_at_once(self) -> int:
        """Number of tokens whose scores fit into a moderate amount of memory."""
        return 2**62

    def held(self, known: Knowledge) -> Knowledge:
        """What is known, as the lattices hold it."""
        return known

    def feature_name(self, part: str, name: str) -> str:
        """An attribute's name with the part of the segment that it is read from."""
        plain = "inside" if self.segments else "start"
        return {plain: "", "length": "", "span": "segment:"}.get(part, f"{part}:") + name

    # ---- files -------------------------------------------------------------------------------------------------

    def packed_structure(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata that only flat models have: their label patterns."""
        longer = self.patterns[self.n_labels :]
        arrays = {
            "patterns.symbols": np.array([y for p in longer for y in p], np.int32),
            "patterns.offsets": np.concatenate([[0], np.cumsum([len(p) for p in longer])]).astype(np.int64),
        }
        arrays.update((name, mask) for name in ("first", "last") if (mask := getattr(self, name)) is not None)
        return arrays, {"segments": self.segments, "n_forbidden": self.n_forbidden}

    def block_kinds(self) -> set[tuple[str, bool]]:
        """The parts that blocks can have, and whether they are always on."""
        if not self.segments:
            return {("pattern", True), ("start", False), ("length", False)}
        return {("pattern", True), *((part, False) for part in (*PARTS, "length", "span"))}

    def check_block(self, block: Block) -> None:
        """Raise unless the native code can take a block's features."""
        last = len(self.patterns) - self.n_forbidden
        if block.always and not ((block.columns >= self.n_labels) & (block.columns < last)).all():
            raise ValueError("an always-on feature is of a single label, or of a pattern that must not occur")

    # ---- objectives --------------------------------------------------------------------------------------------

    def objective(
        self, inputs: Inputs, known: Knowledge, weight: Floats | None, rules: Automaton | None = None
    ) -> NativeObjective:
        """The objective on encoded sequences; weight (B,) of each sequence; rules: on what an automaton accepts."""
        from scansion.training.objective import NativeObjective

        n = self.n_labels
        size = 7 * n * n if self.dense else 4 * n * self.automaton.n_states
        checks.memory(f"tables for learning transitions between {n} labels", size)
        self.alive(inputs)  # counted here, for the choice of an engine
        level, complete = known.level, known.complete
        status = np.where(complete, 2, np.where(known.known, 1, 0)).astype(np.uint8)
        if known.trajectories is not None:
            status[np.diff(known.trajectories[0]) > 0] = 3
        allowed = runs = may_end = None
        if (known.known & ~complete).any():
            if self.segments:
                runs, may_end = level.runs(known.offsets, self.n_labels, self.max_length)
                if runs is not None and self.level.limits is not None:
                    np.minimum(runs, self.level.limits, out=runs)
            else:
                # the automaton engine reads runs, the dense one the mask
                mask = level.mask(self.n_labels)
                mask = np.ones((inputs.data.n_tokens, self.n_labels), np.bool_) if mask is None else mask
                allowed = np.ascontiguousarray(mask).view(np.uint8)
                runs = mask.astype(np.int32)
                may_end = np.ones(inputs.data.n_tokens, np.uint8)
        ends = (level.ends == 1).astype(np.uint8) if self.segments and level.ends is not None else None
        arrays = level.numbers, ends, status, allowed, runs, may_end, weight
        native = _core.FlatObjective(self.native if rules is None else self._native(rules), inputs.native, *arrays)
        if known.trajectories is not None:
            native.set_trajectories(*known.trajectories, not self.segments)
        return NativeObjective(native, np.flatnonzero(known.known), inputs, known)

    def warn_of_symmetry(self, known: Knowledge) -> None:
        """Nothing to warn of: labels that y does not tell are none of the model's."""

    def check_known(self, objective: NativeObjective, known: Knowledge) -> None:
        """Raise if no configuration has the trajectory of a sequence."""
        if known.trajectories is not None:
            from scansion.models.trajectories import check_possible

            check_possible(objective, self.weights, known, self.max_length)


def unpacked(segments: bool, contents: Contents, levels: list[Level], vocabulary: Vocabulary) -> FlatModel:
    """The model in a file, without its features; ValueError or KeyError if something does not fit."""
    if len(levels) != 1 or levels[0].max_length is None:
        raise ValueError("it has not one level with a longest segment")
    level, n, longest = levels[0], levels[0].size, levels[0].max_length
    if contents.metadata["segments"] is not segments:
        raise ValueError("segments do not go with its kind")
    bounded = level.limits is not None or level.shortest is not None
    segmental = longest > 1 or len(level.basis) or len(level.span_vocabulary) or bounded
    if not segments and segmental:
        raise ValueError("it has features of segments, but its kind has no segments")
    symbols = contents.integers("patterns.symbols", EOS, n - 1).tolist()
    cuts = checks.offsets(contents.array("patterns.offsets"), len(symbols), "patterns.symbols").tolist()
    longer = tuple(tuple(symbols[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True))
    forbidden = checks.count("n_forbidden", contents.metadata["n_forbidden"], 0)
    if forbidden > len(longer):
        raise ValueError(f"{forbidden} of {len(longer)} patterns are forbidden")
    patterns = tuple((y,) for y in range(n)) + longer
    ends = (contents.mask(name, (n,)) if name in contents.arrays else None for name in ("first", "last"))
    model = FlatModel(levels, vocabulary, [], np.zeros(0), {}, patterns, segments, forbidden, *ends)
    model.automaton  # noqa: B018  (built now: patterns that are wrong are found here)
    return model
