"""Every rule on every kind of lattice, with and without constraints and -inf, each question against enumeration.

test_restricted.py draws problems and rules at random; here none is left to chance.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from nested_oracle import NestedProblem, plain
from numpy.testing import assert_allclose
from rules_oracle import keeps
from strategies import Case, ChainProblem, Known, PartsProblem, PatternProblem, SegmentProblem

import scansion as sc
from scansion import rules, schemes
from scansion.reference import compressed as reference
from scansion.reference import enumeration as brute
from scansion.rules.compile import Reading, RuleSet

T, L, M = 4, 3, 3
ATOL = 1e-9


def every_rule(a: Any, b: Any, c: Any, **options: Any) -> list[rules.Rule]:
    """Each function of the language, with its options, and each combination."""
    counted = [
        make(n, *labels, together=together, **options)
        for make in (rules.at_most, rules.at_least, rules.exactly)
        for n, labels, together in ((0, (a,), False), (1, (a, b), False), (1, (a, b), True), (2, (c,), False))
    ]
    once = [make(*labels, **options) for make in (rules.once, rules.at_most_once) for labels in ((a,), (a, b, c))]
    ordered = [
        rules.before(a, b, **options),
        rules.before(a, a, **options),
        rules.first(a, **options),
        rules.first(b, c, **options),
        rules.last(a, **options),
        rules.last(b, c, **options),
        rules.follows(a, b, **options),
        rules.follows(b, a, c, **options),
        rules.never(a, b, **options),
        rules.never(c, c, **options),
        rules.requires(a, b, **options),
        rules.requires(c, c, **options),
    ]
    regular = [
        rules.regular(text.format(a=a, b=b, c=c), **options)
        for text in ("{a}+ {b}? .*", "({a} | {b} {c})*", ". . .*", "(.* {c})? {a}", ".*")
    ]
    simple = counted + once + ordered + regular
    combined = []
    for one, two in zip(simple[::3], simple[1::3], strict=False):
        combined += [one & two, one | two, ~one, ~(one | ~two)]
    return simple + combined


@cache
def problem(kind: str, forbidden: bool) -> Any:
    """A problem of T positions; with some scores of -inf."""
    rng = np.random.default_rng([7, forbidden])
    pairs = [(y,) for y in range(L)] + list(itertools.product(range(L), repeat=2))
    longer = [*pairs, (0, 1, 0), (2, 2, 1), (1, 0, 2)]

    def scores(*shape: int) -> np.ndarray:
        out = rng.normal(size=shape)
        if forbidden:
            out[rng.random(shape) < 0.12] = -np.inf
        return out

    if kind == "chain":
        return ChainProblem(scores(T, L), scores(L, L), scores(L), rng.normal(size=L), ())
    if kind == "chain, transitions by position":
        return ChainProblem(scores(T, L), scores(T - 1, L, L), None, None, ())
    if kind == "patterns":
        return PatternProblem(scores(T, len(longer)), longer, L, ())
    if kind == "segments":
        return SegmentProblem(scores(T, M, len(longer)), longer, L, ())
    assert kind == "parts"
    n = len(pairs)
    parts = {"start": scores(T, n), "inside": rng.normal(size=(T, n)), "end": scores(T, n), "length": scores(M, n)}
    return PartsProblem(T, pairs, L, M, parts, ())


KNOWN = {
    "nothing known": None,
    "a label": Known(np.array([-1, 1, -1, -1]), None),
    "some labels": Known(np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], bool), None),
    "boundaries": Known(None, np.array([-1, 1, 0, -1])),
}


def check(lattice: Any, scored: brute.Scored, case: Case) -> None:
    """All questions; scored: what is possible under the rules."""
    p = case.problem
    possible = dict(scored)
    if not possible:
        for question in ("log_partition", "viterbi", "marginals", "entropy", "most_accurate"):
            with pytest.raises(ValueError, match="no configuration is possible"):
                getattr(lattice, question)()
        return
    log_z = brute.log_partition(scored)
    assert_allclose(lattice.log_partition(), log_z, rtol=0, atol=ATOL)
    assert_allclose(lattice.entropy(), brute.entropy(scored), rtol=0, atol=ATOL)
    answer, table = lattice.marginals(), brute.label_marginals(scored, p.n_times, p.n_labels)
    assert_allclose(answer.labels, table, rtol=0, atol=ATOL)
    if isinstance(p, ChainProblem):
        expected = brute.transition_marginals(scored, p.n_times, p.n_labels)
        assert_allclose(answer.transitions, expected, rtol=0, atol=ATOL)
    elif not case.is_chain:
        expected = brute.segment_marginals(scored, p.n_times, p.max_length, p.n_labels)
        assert_allclose(answer.segments, expected, rtol=0, atol=ATOL)
        assert_allclose(answer.boundaries, brute.boundary_marginals(scored, p.n_times), rtol=0, atol=ATOL)
    best, score = lattice.viterbi()
    assert_allclose([score, possible[brute.config_of(best)]], max(possible.values()), rtol=0, atol=ATOL)
    found, expected = lattice.kbest(5), sorted(possible.values(), reverse=True)[:5]
    assert_allclose([s for _, s in found], expected, rtol=0, atol=ATOL)
    assert_allclose([possible[brute.config_of(c)] for c, _ in found], expected, rtol=0, atol=ATOL)
    assert len({brute.config_of(c) for c, _ in found}) == len(found)
    assert all(brute.config_of(c) in possible for c in lattice.sample(3, 0))
    gain = {config: sum(table[t, y] for u, v, y in config for t in range(u, v)) for config in possible}
    accurate, value = lattice.most_accurate()
    assert_allclose([value, gain[brute.config_of(accurate)]], max(gain.values()), rtol=0, atol=1e-5)
    for config, free in case.scored[:: max(1, len(case.scored) // 6)]:
        kept = possible.get(config, -np.inf)
        assert kept in (free, -np.inf)
        assert_allclose(lattice.log_probability(case.native(config)), kept - log_z, rtol=0, atol=ATOL)
    known = reference.trajectories(scored, case.is_chain)
    told = lattice.compressed()
    assert_allclose(told.lengths, reference.length_distribution(known, p.n_times), rtol=0, atol=ATOL)
    trajectory, q = max(known.items(), key=lambda item: item[1])
    assert_allclose(np.exp(told.log_probability(trajectory)), q, rtol=0, atol=ATOL)


def labels_of(config: brute.Configuration) -> list[int]:
    """Its labels, one a segment (a position in chains)."""
    return [label for _, _, label in config]


CHAINS, SEGMENTS = ("chain", "chain, transitions by position", "patterns"), ("segments", "parts")
KINDS = [(kind, known) for kind in CHAINS for known in KNOWN if known != "boundaries"]
KINDS += list(itertools.product(SEGMENTS, KNOWN))


@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize(("kind", "known"), KINDS)
def test_flat_lattices(kind: str, known: str, forbidden: bool) -> None:
    case = Case(problem(kind, forbidden), KNOWN[known])
    some = 0
    for rule in every_rule(0, 1, 2):
        scored = [(c, s) for c, s in case.scored if s > -np.inf and keeps(rule, labels_of(c), case.is_chain)]
        check(case.lattice.restrict(rule), scored, case)
        some += 0 < len(scored) < len(case.scored)
    assert some > 20  # rules that forbid something and leave something


@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("kind", ["chain", "segments"])
def test_many_rules_at_once(kind: str, forbidden: bool) -> None:
    case = Case(problem(kind, forbidden), None)
    listed = every_rule(0, 1, 2)
    for first in range(len(listed)):
        some = listed[first::17]
        scored = [(c, s) for c, s in case.scored if s > -np.inf]
        scored = [(c, s) for c, s in scored if all(keeps(rule, labels_of(c), case.is_chain) for rule in some)]
        check(case.lattice.restrict(*some), scored, case)


# ---- tags ---------------------------------------------------------------------------------------------------------


def tags(scheme: str) -> list[str]:
    """The tags of two types."""
    letters = {"iobes": "BIES", "bilou": "BILU", "ioe1": "IE", "ioe2": "IE"}.get(scheme, "IB")
    return ["O", *(f"{letter}-{kind}" for kind in "xy" for letter in letters)]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scheme", [name for name in schemes.SCHEMES if name not in ("plain", "conlleval")])
def test_tag_schemes(scheme: str, known: bool, order: int) -> None:
    labels = tags(scheme)
    n, length = len(labels), 3
    rng = np.random.default_rng(len(scheme) + order)
    given: Any
    if order == 1:
        transition = rng.normal(size=(n, n))
        transition[rng.random((n, n)) < 0.05] = -np.inf
        given = ChainProblem(rng.normal(size=(length, n)), transition, None, None, ())
    else:
        patterns = [(y,) for y in range(n)] + [tuple(rng.integers(0, n, 3).tolist()) for _ in range(5)]
        patterns = list(dict.fromkeys(patterns))
        given = PatternProblem(rng.normal(size=(length, len(patterns))), patterns, n, ())
    mask = np.ones((length, n), bool)
    mask[1, ::3] = False
    case = Case(given, Known(mask, None) if known else None)
    whole = rules.scheme(scheme)
    for rule in (whole, ~whole, *every_rule("x", "y", "x", scheme=scheme)[::2], whole & rules.once("x", scheme=scheme)):
        compiled = RuleSet.compiled([rule], Reading(labels, True))
        scored = [(c, s) for c, s in case.scored if s > -np.inf and keeps(rule, [labels[y] for _, _, y in c], True)]
        check(case.lattice.restrict(compiled), scored, case)


# ---- nested -------------------------------------------------------------------------------------------------------


@cache
def nested(known: bool, forbidden: bool, general: bool) -> NestedProblem:
    """A root and two levels of two states; T positions."""
    rng = np.random.default_rng([4, known, forbidden])
    sizes = (1, 2, 2)

    def scores(*shape: int) -> np.ndarray:
        out = rng.normal(size=shape)
        if forbidden:
            out[rng.random(shape) < 0.15] = -np.inf
        return out

    persist = [sc.Persistence(inside=np.zeros((T, 1))), scores(T, 2, 2), sc.Persistence(inside=scores(T, 2))]
    transit, init, end = ([scores(up, low, low) if k == 0 else scores(up, low) for up, low in itertools.pairwise(sizes)]
                          for k in range(3))  # fmt: skip
    children = [np.ones((up, low), bool) for up, low in itertools.pairwise(sizes)]
    labels = {2: np.array([-1, 1, -1, -1])} if known else {}
    boundaries = {1: np.array([-1, -1, 1, -1])} if known else {}
    return NestedProblem(T, sizes, persist, transit, init, end, children, labels, boundaries, general)


def words(tree: Any, level: int, within: int) -> list[list[int]]:
    """The labels of a level, inside each segment of the level `within`."""
    return [[y for u, _, y in tree[level] if begin <= u < stop] for begin, stop, _ in tree[within]]


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("level", "within"), [(1, 0), (2, 0), (2, 1)])
def test_nested_lattices(level: int, within: int, known: bool, forbidden: bool, general: bool) -> None:
    p = nested(known, forbidden, general)
    assert len(p.scored) > 20
    place = {"level": level} | ({"within": within} if within else {})
    for rule in every_rule(0, 1, 0, **place)[:: 2 if general else 1]:
        scored = [(t, s) for t, s in p.scored if all(keeps(rule, word, False) for word in words(t, level, within))]
        lattice = p.lattice().restrict(rule)
        possible = dict(scored)
        if not possible:
            for question in ("log_partition", "viterbi", "marginals", "entropy"):
                with pytest.raises(ValueError, match="no configuration is possible"):
                    getattr(lattice, question)()
            continue
        assert_allclose(lattice.log_partition(), brute.log_partition(scored), rtol=0, atol=ATOL)
        assert_allclose(lattice.entropy(), brute.entropy(scored), rtol=0, atol=ATOL)
        best, score = lattice.viterbi()
        assert_allclose([score, possible[plain(best)]], max(possible.values()), rtol=0, atol=ATOL)
        found = lattice.kbest(4)
        assert_allclose([s for _, s in found], sorted(possible.values(), reverse=True)[:4], rtol=0, atol=ATOL)
        assert len({plain(c) for c, _ in found} & set(possible)) == len(found)
        assert all(plain(c) in possible for c in lattice.sample(2, 0))
        answer = lattice.marginals()
        q = brute.probabilities(scored)
        for d, size in enumerate(p.sizes):
            expected = np.zeros((T, size))
            for (tree, _), share in zip(scored, q, strict=True):
                for u, v, y in tree[d]:
                    expected[u:v, y] += share
            assert_allclose(answer.labels[d], expected, rtol=0, atol=ATOL)
