"""What rules mean, word by word and without automata, and random rules that a given word keeps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from scansion import rules, schemes
from scansion.rules import Rule


def runs(labels: Sequence[Any]) -> list[Any]:
    """The occurrences in a chain: neighbouring equal labels are one."""
    return [y for t, y in enumerate(labels) if t == 0 or labels[t - 1] != y]


def keeps(rule: Rule, labels: Sequence[Any], chain: bool) -> bool:
    """Whether the labels of positions (chain) or of segments keep a rule."""
    if rule.name == "and":
        return all(keeps(part, labels, chain) for part in rule.arguments)
    if rule.name == "or":
        return any(keeps(part, labels, chain) for part in rule.arguments)
    if rule.name == "not":
        return not keeps(rule.arguments[0], labels, chain)
    if rule.name == "scheme":
        try:
            schemes.segments(labels, rule.arguments[0], strict=True)
        except ValueError:
            return False
        return True
    word = list(labels)
    if rule.of is not None:
        word = [segment.label for segment in schemes.segments(labels, rule.of)]
    elif chain:
        word = runs(labels)
    return word_keeps(rule, word)


def word_keeps(rule: Rule, word: list[Any]) -> bool:
    """Whether a word of occurrences keeps a rule that is no combination."""
    given, pairs = rule.arguments, list(zip(word, word[1:], strict=False))
    if rule.name in ("at_most", "at_least", "exactly", "once", "at_most_once"):
        n, chosen = (1, given) if rule.name.endswith("once") else (given[0], given[1:])
        counts = [sum(y in chosen for y in word)] if rule.together else [word.count(y) for y in chosen]
        if rule.name.startswith("at_most"):
            return all(c <= n for c in counts)
        return all(c >= n if rule.name == "at_least" else c == n for c in counts)
    if rule.name == "before":
        a, b = given
        return not any(word[i] == a and b in word[:i] for i in range(len(word)))
    if rule.name in ("first", "last"):
        return not word or word[0 if rule.name == "first" else -1] in given
    if rule.name == "follows":
        return all(b in given[1:] for a, b in pairs if a == given[0])
    if rule.name == "never":
        return given not in pairs
    if rule.name == "requires":
        return given[0] not in word or given[1] in word
    assert rule.name == "regular"
    pattern = re.sub(r"[A-Za-z0-9_-]+", lambda found: f"(?:{re.escape(found.group())};)", given[0])
    pattern = re.sub(r"(?<!\\)\.", "(?:[^;]*;)", pattern.replace(" ", ""))
    return re.fullmatch(pattern, "".join(f"{y};" for y in word)) is not None


EXPRESSIONS = ("{a}+ {b}?", "({a} | {b} {a})* .?", ". . .*", "(. {b})* {a}?", "{a}* | .* {b}", "(({a} | {b})+ .?)?")


@st.composite
def atoms(draw: st.DrawFn, labels: Sequence[Any], **options: Any) -> Rule:
    """A rule that is no combination."""
    label = st.sampled_from(list(labels))
    name = draw(
        st.sampled_from(
            ("at_most", "at_least", "exactly", "once", "at_most_once", "before", "first", "last", "follows", "never")
            + ("requires", "regular")
        )
    )
    if name == "regular":
        return rules.regular(draw(st.sampled_from(EXPRESSIONS)).format(a=draw(label), b=draw(label)), **options)
    if name in ("before", "never", "requires"):
        return getattr(rules, name)(draw(label), draw(label), **options)
    some = draw(st.lists(label, min_size=1, max_size=3))
    if name in ("first", "last"):
        return getattr(rules, name)(*some, **options)
    if name == "follows":
        return rules.follows(draw(label), *some, **options)
    numbers = () if name.endswith("once") else (draw(st.integers(0, 2)),)
    return getattr(rules, name)(*numbers, *some, together=draw(st.booleans()), **options)


@st.composite
def any_rule(draw: st.DrawFn, labels: Sequence[Any], **options: Any) -> Rule:
    """A rule, often a combination."""
    one = atoms(labels, **options)
    form = draw(st.sampled_from(("one", "one", "one", "and", "or", "not", "mixed")))
    if form == "one":
        return draw(one)
    if form == "not":
        return ~draw(one)
    a, b = draw(one), draw(one)
    return a & b if form == "and" else a | b if form == "or" else ~(a | ~b)


@st.composite
def kept_rules(
    draw: st.DrawFn, witness: Sequence[Any], labels: Sequence[Any], chain: bool, most: int = 3, **options: Any
) -> list[Rule]:
    """Rules that the witness keeps: one that it does not is turned round."""
    drawn = draw(st.lists(any_rule(labels, **options), min_size=1, max_size=most))
    return [rule if keeps(rule, witness, chain) else ~rule for rule in drawn]
