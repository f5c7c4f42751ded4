"""Rules that hold in data: which labels occur at most once, which come before others, which never follow others.

A rule is proposed if enough sequences speak of it and a large enough share of them keeps it. What was never seen may be
chance: a rule that a label never follows another is proposed only where it should have done so often if labels followed
each other at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion import schemes
from scansion.rules import expressions
from scansion.rules.expressions import Rule

__all__ = ["Proposal", "learn"]

_EXPECTED = 5.0  # how often neighbours should have occurred by chance for never to be proposed


@dataclass(frozen=True)
class Proposal:
    """A rule with its counts; it serves wherever a rule does.

    Attributes
    ----------
    rule : Rule
    kept, broken : int
        Sequences that the rule speaks of, and which keep it or do not.
    """

    rule: Rule
    kept: int
    broken: int

    def __str__(self) -> str:
        return f"{self.rule}  # {self.kept} keep it" + (f", {self.broken} do not" if self.broken else "")

    __repr__ = __str__


def learn(
    y: Iterable[Any], confidence: Any = 1.0, *, support: int = 10, scheme: str | None = None, level: Any = None
) -> list[Proposal]:
    """Rules that hold in the targets of training, best supported first.

    Parameters
    ----------
    y : iterable
        Labels, one list a sequence; or segments ``(start, stop, label)``; of nested ones, lists of those by level.
    confidence : float
        Least share of the sequences that a rule speaks of which keep it.
    support : int
        Least number of sequences that a rule speaks of.
    scheme : str, optional
        The tag scheme of labels: rules are of the segments that it reads off them, and all tags must be valid.
    level : int, optional
        Of nested targets: the level, 0 at the top.

    Returns
    -------
    list of Proposal
        ``at_most_once``, ``at_least(1, ...)``, ``first``, ``last``, ``before``, ``requires``, ``never``. Print them
        and give those that mean something to `predict` or to an estimator.

    Examples
    --------
    >>> learn([["a", "b", "b"], ["a", "c"], ["a", "b"]], support=3)
    [at_most_once(a)  # 3 keep it, at_least(1, a)  # 3 keep it, first(a)  # 3 keep it]
    """
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0.0 < confidence <= 1.0:
        raise ValueError(f"confidence must be a number above 0 and at most 1, got {confidence!r}")
    checks.count("support", support, 1)
    words = [_word(b, one, scheme, level) for b, one in enumerate(y)]
    options = {name: value for name, value in (("scheme", scheme), ("level", level)) if value is not None}
    found = _Counts([word for word in words if word]).proposals(float(confidence), support, options)
    return sorted(found, key=lambda one: -one.kept)


def _word(b: int, target: Any, scheme: str | None, level: Any) -> list[Any]:
    """The occurrences in one target."""
    if target is None:
        return []
    one = list(target.values() if isinstance(target, dict) else target)
    if level is not None:
        try:
            return [label for _, _, label in sorted(one[checks.count("level", level, 0)])]
        except (TypeError, ValueError, IndexError):
            raise ValueError(f"y[{b}] has no segments of level {level}") from None
    if scheme is not None:
        return [segment.label for segment in schemes.segments(one, scheme)]
    if one and all(isinstance(item, (tuple, list)) and len(item) == 3 for item in one):
        return [label for _, _, label in sorted(one)]
    for t, label in enumerate(one):
        if label is None or isinstance(label, (set, frozenset, list, dict, np.ndarray)):
            raise ValueError(f"y[{b}][{t}] = {label!r}: rules are learnt from complete labels")
    return [label for t, label in enumerate(one) if t == 0 or one[t - 1] != label]


class _Counts:
    """What occurs in words that are not empty."""

    def __init__(self, words: Sequence[list[Any]]) -> None:
        self.words = words
        self.labels = list(dict.fromkeys(label for word in words for label in word))
        self.holding = {label: [word for word in words if label in word] for label in self.labels}

    def proposals(self, confidence: float, support: int, options: dict[str, Any]) -> list[Proposal]:
        """The rules that hold."""
        found: list[Proposal] = []

        def propose(rule: Rule, kept: int, of: int) -> None:
            if of >= support and kept >= confidence * of:
                found.append(Proposal(rule, kept, of - kept))

        n = len(self.words)
        for a in self.labels:
            with_a = self.holding[a]
            once = sum(word.count(a) == 1 for word in with_a)
            propose(expressions.at_most_once(a, **options), once, len(with_a))
            propose(expressions.at_least(1, a, **options), len(with_a), n)
        for name, at in (("first", 0), ("last", -1)):
            chosen = _common(Counter(word[at] for word in self.words), confidence * n)
            if 2 * len(chosen) <= len(self.labels):
                propose(
                    getattr(expressions, name)(*chosen, **options), sum(word[at] in chosen for word in self.words), n
                )
        for a in self.labels:
            for b in self.labels:
                if a == b:
                    continue
                both = [word for word in self.holding[a] if b in word]
                propose(
                    expressions.before(a, b, **options), sum(_last(word, a) < word.index(b) for word in both), len(both)
                )
                if len(self.holding[b]) < confidence * n:  # else it is there anyway
                    propose(expressions.requires(a, b, **options), len(both), len(self.holding[a]))
        return found + self._never(confidence, support, options)

    def _never(self, confidence: float, support: int, options: dict[str, Any]) -> list[Proposal]:
        pairs = Counter(pair for word in self.words for pair in zip(word, word[1:], strict=False))
        after, before = Counter[Any](), Counter[Any]()
        for (a, b), count in pairs.items():
            after[a] += count
            before[b] += count
        total, found = sum(pairs.values()), []
        for a in self.labels:
            for b in self.labels:
                expected = after[a] * before[b] / total if total and a != b else 0.0
                if expected >= _EXPECTED:
                    of = sum(a in word[:-1] for word in self.words)
                    broken = sum((a, b) in zip(word, word[1:], strict=False) for word in self.words)
                    if of >= support and of - broken >= confidence * of:
                        found.append(Proposal(expressions.never(a, b, **options), of - broken, broken))
        return found


def _common(counts: Counter[Any], enough: float) -> list[Any]:
    """The most frequent ones, as many as are needed for a total of `enough`."""
    chosen, total = [], 0
    for label, count in counts.most_common():
        if total >= enough:
            break
        chosen.append(label)
        total += count
    return chosen


def _last(word: list[Any], label: Any) -> int:
    return len(word) - 1 - word[::-1].index(label)
