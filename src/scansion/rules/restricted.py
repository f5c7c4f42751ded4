"""Lattices under rules: the questions of all lattices, asked of the configurations that keep the rules.

`RestrictedCore` stands before the core of a lattice and answers for it (docs/notation.md, section 5). Taken together,
many rules are an automaton that is too large, and nearly all of them hold anyway. So

- best configurations are asked for without rules, and again with those that the answer breaks, until it keeps all:
  what is best among more and keeps all rules is best among those that do; so with k best ones;
- sums take the rules whose breaking is probable: each of the others is added by itself to see how probable that is,
  until all that is left out is together below a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Floats, Ints
from scansion.data.dataset import gather
from scansion.lattice.cores import Core, Packed
from scansion.rules.automata import MOST_STATES, TooManyStatesError
from scansion.rules.compile import Reading, RuleSet, alike, given_rules

__all__ = ["RestrictedCore", "probable_rules", "rule_set"]

_FEW_STATES = 8  # of a product that sums take as it is
_AT_ONCE = 3  # rules that are added together where not all may fit in

# answers with a row for each token, if they have so many dimensions
_FLAT_ROWS = {"labels": 2, "boundaries": 1, "segments": 3, "full": 3, "starts": 2, "start": 2, "inside": 2, "end": 2}
_NESTED_ROWS = {"labels": 2, "boundaries": 1, "spans": 3, "start": 2, "stop": 2, "transit": 4, "init": 3, "end": 3}


def rule_set(batch: Any, rules: Sequence[Any], tolerance: Any = 1e-10, max_states: int | None = None) -> RuleSet:
    """Rules compiled for a batch, unless they are already; labels are integers."""
    if len(rules) == 1 and isinstance(rules[0], RuleSet):
        return rules[0]
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0.0 <= tolerance < 1.0:
        raise ValueError(f"tolerance must be a number of at least 0 and below 1, got {tolerance!r}")
    most = MOST_STATES if max_states is None else checks.count("max_states", max_states, 1)
    given = given_rules(*rules)
    if not given:
        raise ValueError("restrict needs at least one rule")
    if batch._core.n_levels > 1:
        from scansion.rules.nested import nested_rules

        labels = [range(size) for size in batch._core.sizes]
        return nested_rules(given, labels, None, tolerance=float(tolerance), most_states=most)
    return RuleSet.compiled(given, Reading(range(batch.n_labels), batch._merges), float(tolerance), most)


@dataclass(frozen=True)
class RestrictedCore(Core):
    """A core under rules; `base` has the scores."""

    base: Any
    rules: RuleSet

    what = "the scores and the rules"

    @classmethod
    def of(cls, core: Any, rules: RuleSet) -> RestrictedCore:
        """A core under rules, which are added to those that it is under."""
        if isinstance(core, RestrictedCore):
            rules = replace(rules, parts=core.rules.parts + rules.parts, _products={})
            core = core.unrestricted
        return cls(core.offsets, core.known, core, rules)

    # ---- what the core is like ---------------------------------------------------------------------------------

    @cached_property
    def unrestricted(self) -> Any:
        """The core without rules."""
        return self.base if self.base.known is self.known else replace(self.base, known=self.known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("base", "unrestricted"):
            raise AttributeError(name)
        return getattr(self.base, name)

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        """Number of levels."""
        return int(self.base.n_levels)

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.base.n_labels)

    @property
    def native(self) -> Any:
        """The object that answers without rules."""
        return self.unrestricted.native

    def select(self, b: int) -> RestrictedCore:
        """The core of one sequence."""
        return self.of(self.unrestricted.select(b), self.rules)

    def take(self, sequences: Ints) -> RestrictedCore:
        """The core of some sequences."""
        return self.of(self.unrestricted.take(sequences), self.rules)

    def whole(self) -> RestrictedCore:
        """As of the core without rules."""
        return self.of(self.unrestricted.whole(), self.rules)

    def _under(self, core: Any, taken: tuple[int, ...]) -> Any:
        """A core under some of the rules."""
        if not taken:
            return core
        try:
            most = MOST_STATES if self.rules.lenient else None  # the limit is on what sums take, not on what they must
            if self.n_levels > 1:
                found = core.restricted(self.rules.by_level(taken, most))
            else:
                found = core.restricted(self.rules.product(taken, most))
            found.native  # noqa: B018  (made now: it may be too large)
            return found
        except TooManyStatesError as error:
            raise error if "rules" in str(error) else self.rules.too_many(taken) from None

    def broken(self, packed: Packed) -> Bools:
        """(rules, configurations): which rules the configurations break."""
        if self.n_levels > 1:
            return self._broken_nested(packed)
        return self.rules.broken(np.ascontiguousarray(packed.steps[:, 2]), packed.paths)

    def _broken_nested(self, packed: Packed) -> Bools:
        from scansion.rules.nested import words

        n = (len(packed.paths) - 1) // self.n_levels
        out = np.zeros((len(self.rules), n), np.bool_)
        for (level, within), parts in self.rules.places().items():
            labels, offsets, config = words(packed, self.n_levels, level, within)
            broken = self.rules.broken(labels, offsets, parts)
            for r, row in zip(parts, broken, strict=True):
                out[r, config[row]] = True
        return out

    def generalized(self, levels: Any = None) -> RestrictedCore:
        """As of nested cores."""
        return self.of(self.unrestricted.generalized(levels), self.rules)

    # ---- best configurations -----------------------------------------------------------------------------------

    def best(self, threads: int) -> Packed:
        """Best configurations; none for a sequence that is impossible."""
        return self._relaxed(lambda core: core.best(threads))

    def kbest(self, k: int, threads: int) -> Packed:
        """The k best configurations of each sequence, best first."""
        return self._relaxed(lambda core: core.kbest(k, threads))

    def best_labels(self, threads: int) -> Ints:
        """(N,) labels of the best configurations of chains; fewer where a sequence is impossible."""
        plain = self.rules.decided_by_label  # forbidden transitions: they cost nothing
        labels: Ints = self._under(self.unrestricted, plain).best_labels(threads)
        if len(labels) < self.offsets[-1] or (len(labels) and labels.min() < 0):
            return self.best(threads).steps[:, 2].astype(np.int64)
        broken = self.rules.broken(labels, self.offsets)
        some = np.flatnonzero(broken.any(axis=0))
        if some.size:
            broken[list(plain)] = True
            again = self.take(some)
            packed = again._relaxed(lambda core: core.best(threads), broken[:, some])
            rows = gather(self.offsets, some)[1]
            if len(packed.steps) < len(rows):
                return packed.steps[:, 2].astype(np.int64)
            labels[rows] = packed.steps[:, 2]
        return labels

    def _relaxed(self, ask: Callable[[Any], Packed], first: Bools | None = None) -> Packed:
        """Configurations that keep all rules, asked for under those that the answers break.

        first (rules, sequences): the rules to begin with, none unless given.
        """
        n = len(self.offsets) - 1
        taken = np.zeros((n, len(self.rules)), np.bool_) if first is None else first.T.copy()
        todo = np.arange(n)
        owners, answers = [np.zeros(0, np.int64)], []
        while todo.size:
            again = []
            for rules, sequences in alike(taken, todo):
                core = self._under(
                    self.unrestricted if len(sequences) == n else self.unrestricted.take(sequences), rules
                )
                packed = ask(core)
                broken = _by_sequence(self.broken(packed), packed.firsts)
                stuck = np.asarray(
                    (broken & taken[sequences]).any(axis=1)
                )  # an empty sequence has no other configuration
                fine = np.asarray(~broken.any(axis=1) | stuck)
                kept = packed if fine.all() else _chosen(packed, np.flatnonzero(fine), self.n_levels)
                owners.append(sequences[fine])
                answers.append(_without(kept, stuck[fine], self.n_levels) if stuck.any() else kept)
                taken[sequences] |= broken
                again.append(sequences[~fine])
            todo = np.concatenate(again)
        return _ordered(answers, np.concatenate(owners), self.n_levels)

    @cached_property
    def _needed(self) -> Bools:
        """(sequences, rules) that the best configurations were asked for under."""
        n = len(self.offsets) - 1
        taken = np.zeros((n, len(self.rules)), np.bool_)
        todo = np.arange(n)
        while todo.size:
            again = []
            for rules, sequences in alike(taken, todo):
                packed = self._under(self.unrestricted.take(sequences), rules).best(1)
                broken = _by_sequence(self.broken(packed), packed.firsts) & ~taken[sequences]
                taken[sequences] |= broken
                again.append(sequences[broken.any(axis=1)])
            todo = np.concatenate(again)
        return taken

    def gains(self, labels: Any, boundaries: Any) -> RestrictedCore:
        """See `Core.gains`."""
        return self.of(self.unrestricted.gains(labels, boundaries), self.rules)

    # ---- sums --------------------------------------------------------------------------------------------------

    @cached_property
    def _chosen_rules(self) -> tuple[Bools, Floats]:
        """(sequences, rules) that sums take, and how much each sequence leaves out at most."""
        n = len(self.offsets) - 1
        everything = tuple(range(len(self.rules)))
        left_out = np.zeros(n)
        if self._small(everything):
            return np.ones((n, len(everything)), np.bool_), left_out
        taken = self._needed.copy()
        todo = np.arange(n)
        while todo.size:
            again = []
            for rules, sequences in alike(taken, todo):
                breaking = self.breaking(sequences, rules)
                total = breaking.sum(axis=1)
                enough = np.asarray(total <= self.rules.tolerance)
                if self.rules.lenient:
                    wanted = probable_rules(breaking, self.rules.tolerance)
                    enough |= ~self.rules.fit_in(taken[sequences], wanted)
                else:
                    # without those above its share, a sequence leaves out no more than it may
                    wanted = breaking > self.rules.tolerance / max(len(everything) - len(rules), 1)
                left_out[sequences[enough]] = total[enough]
                taken[sequences[~enough]] |= wanted[~enough]
                again.append(sequences[~enough])
            todo = np.concatenate(again)
        return taken, left_out

    def breaking(self, sequences: Ints, taken: tuple[int, ...]) -> Floats:
        """(sequences, rules) how probable it is, under rules that are taken, that another one is broken."""
        base = self.unrestricted.take(sequences)
        log_z = self._under(base, taken).log_partitions(1)
        out = np.zeros((len(sequences), len(self.rules)))
        for r in range(len(self.rules)):
            if r not in taken:
                kept = self._under(base, tuple(sorted((*taken, r)))).log_partitions(1)
                with np.errstate(invalid="ignore"):
                    out[:, r] = np.where(log_z > -np.inf, np.clip(-np.expm1(kept - log_z), 0.0, 1.0), 0.0)
        return out

    @property
    def left_out(self) -> Floats:
        """(B,) bound on the probability of what breaks a rule and is summed all the same."""
        return self._chosen_rules[1]

    @property
    def left_out_so_far(self) -> Floats | None:
        """The same, None if nothing was summed."""
        return self._chosen_rules[1] if "_chosen_rules" in vars(self) else None

    @cached_property
    def _groups(self) -> list[tuple[Ints, Any]]:
        kinds = alike(self._chosen_rules[0], np.arange(len(self.offsets) - 1))
        whole = self.unrestricted
        return [
            (sequences, self._under(whole if len(kinds) == 1 else whole.take(sequences), rules))
            for rules, sequences in kinds
        ]

    def _small(self, taken: tuple[int, ...]) -> bool:
        """Whether the product of all rules is small enough to be taken as it is."""
        if len(taken) == 1:
            return True
        if math.prod(min(len(p.machine), 3) for p in self.rules.parts) > 3**12:
            return False
        try:
            if self.n_levels > 1:
                return len(taken) <= 2
            self.rules.product(taken, _FEW_STATES)
        except TooManyStatesError:
            return False
        return True

    def groups(self) -> list[tuple[Ints, Any]]:
        """Sequences and the cores that answer for them."""
        return self._groups

    @cached_property
    def _broken_empty(self) -> bool:
        """Whether empty sequences break a rule: the kernels know nothing of it."""
        return any(not part.machine.accepting[0] for part in self.rules.parts if part.within == 0)

    def log_partitions(self, threads: int) -> Floats:
        """(B,) log Z, -inf where nothing is possible."""
        out = np.empty(len(self.offsets) - 1)
        for sequences, core in self.groups():
            out[sequences] = core.log_partitions(threads)
        if self._broken_empty:
            out[np.diff(self.offsets) == 0] = -np.inf
        return out

    def entropies(self, threads: int) -> Floats:
        """(B,) entropies in nats."""
        out = np.empty(len(self.offsets) - 1)
        for sequences, core in self.groups():
            out[sequences] = core.entropies(threads)
        return out

    def posteriors(self, threads: int, **options: Any) -> dict[str, Any]:
        """As of the core without rules."""
        groups = self.groups()
        if len(groups) == 1:
            found: dict[str, Any] = groups[0][1].posteriors(threads, **options)
        else:
            found = self._gathered([(sequences, core.posteriors(threads, **options)) for sequences, core in groups])
        if self._broken_empty:
            found["log_partition"][np.diff(self.offsets) == 0] = -np.inf
        return found

    def _gathered(self, parts: list[tuple[Ints, dict[str, Any]]]) -> dict[str, Any]:
        """The answers of several cores as one: rows where they belong, what is not by row added up."""
        rows = [gather(self.offsets, sequences)[1] for sequences, _ in parts]
        steps = np.concatenate([[0], np.cumsum(np.maximum(np.diff(self.offsets) - 1, 0))])
        n = int(self.offsets[-1])

        def one(name: str, given: list[Any], least: dict[str, int]) -> Any:
            """least: the dimensions of an array that has a row for each token, by name."""
            example = given[0]
            if example is None:
                return None
            if name == "log_partition":
                at, size = [sequences for sequences, _ in parts], len(self.offsets) - 1
            elif name == "transitions":
                at, size = [gather(steps, sequences)[1] for sequences, _ in parts], int(steps[-1])
            elif name in least and example.ndim >= least[name]:
                at, size = rows, n
            else:
                return sum(given[1:], given[0])
            out = np.zeros((size, *example.shape[1:]))
            for where, values in zip(at, given, strict=True):
                out[where] = values
            return out

        out: dict[str, Any] = {}
        for name, example in parts[0][1].items():
            given = [answer[name] for _, answer in parts]
            if isinstance(example, list):  # by level
                out[name] = [one(name, list(level), _NESTED_ROWS) for level in zip(*given, strict=True)]
            else:
                out[name] = one(name, given, _FLAT_ROWS)
        return out

    def sample(self, n: int, generator: np.random.Generator, threads: int) -> Packed:
        """Random configurations, n of each sequence: what breaks a rule is drawn again."""
        self_possible = self.log_partitions(threads) > -np.inf
        parts = []
        for sequences, core in self.groups():
            packed = core.sample(n, generator, threads)
            wrong = np.flatnonzero(self.broken(packed).any(axis=0))
            owner = np.repeat(np.arange(len(sequences)), np.diff(packed.firsts))
            for i in wrong.tolist():
                while self_possible[sequences[owner[i]]]:
                    one = core.take(owner[i : i + 1]).sample(1, generator, threads)
                    if not self.broken(one).any():
                        packed = _replaced(packed, i, one, self.n_levels)
                        break
            impossible = ~self_possible[sequences]
            parts.append(_without(packed, impossible, self.n_levels) if impossible.any() else packed)
        owners = np.concatenate([np.zeros(0, np.int64), *(sequences for sequences, _ in self.groups())])
        return _ordered(parts, owners, self.n_levels)

    @property
    def randoms(self) -> int:
        """How many random numbers a draw of all sequences takes."""
        return int(self.base.randoms)

    def scores(self, steps: Ints, paths: Ints, owners: Ints) -> Floats:
        """Scores of packed configurations, -inf where they break a rule; owners: the sequence of each."""
        found: Floats = self.unrestricted.scores(steps, paths, owners)
        packed = Packed(steps, paths, np.arange(len(owners) + 1), found)
        return np.where(self.broken(packed).any(axis=0), -np.inf, found)

    def impossible_rules(self, b: int) -> str | None:
        """Rules that leave nothing of sequence b possible: one that does so alone, or all of them."""
        core = self.unrestricted.select(b)
        if not core.log_partitions(1)[0] > -np.inf:
            return None
        names = [str(part.rule) for part in self.rules.parts]
        for i, part in enumerate(self.rules.parts):
            alone = self.of(core, replace(self.rules, parts=(part,), _products={}))
            if not alone.log_partitions(1)[0] > -np.inf:
                return names[i]
        return ", ".join(names)

    def furthest(self, b: int) -> int:
        """Positions of sequence b that some configuration can cover."""
        for sequences, core in self.groups():
            at = np.flatnonzero(sequences == b)
            if at.size:
                return int(core.furthest(int(at[0])))
        raise AssertionError(b)


# ---- packed configurations -----------------------------------------------------------------------------------------


def probable_rules(breaking: Floats, tolerance: float) -> Bools:
    """(sequences, rules) the most probable to be broken, a few at a time, while the others are above the tolerance."""
    order = np.argsort(-breaking, axis=1, kind="stable")
    ranked = np.take_along_axis(breaking, order, axis=1)
    rest = ranked[:, ::-1].cumsum(axis=1)[:, ::-1]  # of this and all that are less probable
    chosen = (rest > tolerance) & (np.arange(breaking.shape[1]) < _AT_ONCE)
    out = np.zeros(breaking.shape, np.bool_)
    np.put_along_axis(out, order, chosen, axis=1)
    return out


def _by_sequence(broken: Bools, firsts: Ints) -> Bools:
    """(sequences, rules) that some configuration of a sequence breaks, from (rules, configurations)."""
    if broken.shape[1] == len(firsts) - 1 and (np.diff(firsts) == 1).all():
        return np.ascontiguousarray(broken.T)
    total = np.concatenate([np.zeros((len(broken), 1), np.int64), np.cumsum(broken, axis=1)], axis=1)
    return np.ascontiguousarray((np.diff(total[:, firsts], axis=1) > 0).T)


def _chosen(packed: Packed, sequences: Ints, levels: int) -> Packed:
    """The configurations of some sequences."""
    firsts, configs = gather(packed.firsts, sequences)
    paths = (configs[:, None] * levels + np.arange(levels)).ravel()
    cuts, rows = gather(packed.paths, paths)
    return Packed(packed.steps[rows], cuts, firsts, packed.scores[configs])


def _without(packed: Packed, dropped: Bools, levels: int) -> Packed:
    """No configuration for some of the sequences."""
    counts = np.diff(packed.firsts)
    configs = np.flatnonzero(~np.repeat(dropped, counts))
    cuts, rows = gather(packed.paths, (configs[:, None] * levels + np.arange(levels)).ravel())
    firsts = np.concatenate([[0], np.cumsum(np.where(dropped, 0, counts))])
    return Packed(packed.steps[rows], cuts, firsts, packed.scores[configs])


def _ordered(parts: list[Packed], owners: Ints, levels: int) -> Packed:
    """Configurations of several groups of sequences as one, in the order of the sequences."""
    if len(parts) == 1 and (np.diff(owners) > 0).all():
        return parts[0]
    steps = np.concatenate([np.zeros((0, 3), np.int64), *(part.steps for part in parts)])
    scores = np.concatenate([np.zeros(0), *(part.scores for part in parts)])
    cuts = [np.concatenate([[0], *(np.diff(getattr(part, name)) for part in parts)]) for name in ("paths", "firsts")]
    whole = Packed(steps, np.cumsum(cuts[0]).astype(np.int64), np.cumsum(cuts[1]).astype(np.int64), scores)
    return _chosen(whole, np.argsort(owners, kind="stable"), levels)


def _replaced(packed: Packed, i: int, one: Packed, levels: int) -> Packed:
    """Configuration i replaced by another one."""
    begin, end = packed.paths[i * levels], packed.paths[(i + 1) * levels]
    steps = np.concatenate([packed.steps[:begin], one.steps, packed.steps[end:]])
    lengths = np.diff(packed.paths)
    lengths[i * levels : (i + 1) * levels] = np.diff(one.paths)
    paths = np.concatenate([[0], np.cumsum(lengths)])
    return Packed(steps, paths, packed.firsts, packed.scores)
