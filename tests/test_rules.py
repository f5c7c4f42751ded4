"""The language of rules and its automata, against what rules mean word by word."""

import doctest
import importlib
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_oracle import any_rule, keeps

from scansion import rules, schemes
from scansion.rules.automata import TooManyStatesError, intersection
from scansion.rules.compile import Reading, given_rules

LABELS = ("a", "b", "c")


def words(size, longest):
    return [word for n in range(longest + 1) for word in itertools.product(range(size), repeat=n)]


@pytest.mark.parametrize("chain", [True, False])
@given(st.data())
def test_automata_accept_what_keeps_the_rule(chain, data):
    rule = data.draw(any_rule(LABELS))
    machine = Reading(LABELS, chain).automaton(rule)
    for word in words(3, 4):
        assert machine.accepts(word) == keeps(rule, [LABELS[y] for y in word], chain)


@settings(max_examples=50)
@given(any_rule(LABELS))
def test_automata_are_minimal(rule):
    """No two states accept the same continuations, and every state leads to one that accepts."""
    machine = Reading(LABELS, True).automaton(rule)
    n = len(machine)
    table = np.where(machine.next < 0, n, machine.next)  # state n: nothing is accepted any more
    accepts = np.append(machine.accepting, 0).astype(np.int64)
    kind, leads = accepts, accepts.astype(np.bool_)
    for _ in range(n + 1):  # states apart, and states that lead on, by ever longer continuations
        after = np.vstack([table, np.full(table.shape[1], n)])
        kind = np.unique(np.column_stack([kind, kind[after]]), axis=0, return_inverse=True)[1].reshape(-1)
        leads = leads | leads[after].any(axis=1)
    assert len(set(kind[:n].tolist())) == n
    assert leads[:n].all() or n == 1


@given(st.lists(any_rule(LABELS), min_size=1, max_size=4))
def test_intersections(drawn):
    reading = Reading(LABELS, False)
    machines = [reading.automaton(rule) for rule in drawn]
    both = intersection(machines)
    for word in words(3, 4):
        assert both.accepts(word) == all(machine.accepts(word) for machine in machines)
    again = reading.automaton(drawn[0] if len(drawn) == 1 else rules.Rule("and", tuple(drawn)))
    assert np.array_equal(both.next, again.next) and np.array_equal(both.accepting, again.accepting)


@given(any_rule(LABELS))
def test_parts_hold_together_as_the_rule(rule):
    for word in words(3, 4):
        labels = [LABELS[y] for y in word]
        assert all(keeps(part, labels, True) for part in rule.parts()) == keeps(rule, labels, True)


# Tags ------------------------------------------------------------------------------------------------------------

TAGS = {
    "iob1": ("O", "I-x", "B-x", "I-y", "B-y"),
    "iob2": ("O", "B-x", "I-x", "B-y", "I-y"),
    "ioe1": ("O", "I-x", "E-x", "I-y", "E-y"),
    "ioe2": ("O", "I-x", "E-x", "I-y", "E-y"),
    "iobes": ("O", "B-x", "I-x", "E-x", "S-x", "S-y"),
    "bilou": ("O", "B-x", "I-x", "L-x", "U-x", "U-y"),
}


@pytest.mark.parametrize("name", TAGS)
def test_valid_tags_are_those_that_the_scheme_reads_strictly(name):
    tags = TAGS[name]
    machine = Reading(tags, True).automaton(rules.scheme(name))
    for word in words(len(tags), 4):
        assert machine.accepts(word) == keeps(rules.scheme(name), [tags[y] for y in word], True)


@pytest.mark.parametrize("name", TAGS)
@settings(max_examples=20)
@given(st.data())
def test_rules_of_segments_that_tags_write(name, data):
    rule, tags = data.draw(any_rule(("x", "y"), scheme=name)), TAGS[name]
    machine = Reading(tags, True).automaton(rule)
    for word in words(len(tags), 3):
        assert machine.accepts(word) == keeps(rule, [tags[y] for y in word], True)


def test_a_combination_may_speak_of_tags_and_of_segments():
    rule = rules.scheme("iob2") & rules.at_most_once("x", scheme="iob2") & rules.never("B-y", "B-x")
    machine = Reading(TAGS["iob2"], True).automaton(rule)
    for word in words(5, 4):
        assert machine.accepts(word) == keeps(rule, [TAGS["iob2"][y] for y in word], True)


# Text ------------------------------------------------------------------------------------------------------------


@given(any_rule(("a", "B-NP", "two words", "3", "it's", "x#y", 4, -1)))
def test_rules_are_read_back_as_they_print(rule):
    again = rules.parse(str(rule))
    assert str(again) == str(rule)
    if rule.name != "regular":
        assert again == rule


def test_text():
    rule = rules.parse(
        """
        # what an address has
        at_most_once(StreetName, ZipCode)   # one of each
        before(author, date) | ~first(date); never('a b', 3)
        regular("author+ title (journal volume? | publisher) date .*", scheme=iob2)
        """
    )
    expected = (
        rules.at_most_once("StreetName", "ZipCode")
        & (rules.before("author", "date") | ~rules.first("date"))
        & rules.never("a b", 3)
        & rules.regular("author+ title (journal volume? | publisher) date .*", scheme="bio")
    )
    assert rule == expected
    assert rules.parse("at_most(2, a, b, together=True)") == rules.at_most(2, "a", "b", together=True)
    assert rules.parse("at_most(1, a, level=words, within=0)") == rules.at_most(1, "a", level="words", within=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rule"),
        ("# nothing", "no rule"),
        ("at_most_twice(a)", "no rule 'at_most_twice'; there are at_most,"),
        ("at_most_once(a", "a comma or a closing parenthesis is missing"),
        ("at_most_once a", "an opening parenthesis is missing"),
        ("(before(a, b)", "a closing parenthesis is missing"),
        ("before(a, b) before(b, a)", r"cannot read 'before\(b, a\)'"),
        ("before(a)", "missing 1 required positional argument: 'b'"),
        ("before(a, b, order=1)", "unexpected keyword argument 'order'"),
        ("at_most(a, b)", "n of at_most must be an integer, got 'a'"),
        ("at_most(-1, b)", "n of at_most must be at least 0"),
        ("at_most(100000, b)", "n of at_most must be at most 1000"),
        ("at_most(2)", "at_most must name at least one label"),
        ("before(a, b) &", "ends too early"),
        ("once(a)\nonce(b", r"line 2"),
        ("regular('(a')", "a parenthesis is not closed"),
        ("regular('a)')", "closes nothing"),
        ("regular('* a')", "nothing before it"),
        ("regular('a \\' b')", "cannot read"),
        ("scheme(iob3)", "unknown scheme 'iob3'"),
        ("before(a, b, scheme=iob3)", "unknown scheme 'iob3'"),
        ("~" * 100 + "once(a)", "more than 60 deep"),
        ("regular('" + "(" * 100 + "')", "more than 60 parentheses"),
    ],
)
def test_text_that_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        rules.parse(text)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (rules.once("d"), "once\\(d\\) names 'd', which is no label here; there are 'a', 'b', 'c'"),
        (rules.regular("a d?"), "names 'd'"),
        (rules.before("a", True), "names True"),
        (rules.once("x", scheme="iob2"), "does not go with these labels: label 'a'"),
        (rules.scheme("plain"), "has no tags of its own"),
    ],
)
def test_labels_that_are_not_there(rule, message):
    with pytest.raises(ValueError, match=message):
        Reading(LABELS, True).automaton(rule)


def test_tags_are_for_chains():
    with pytest.raises(ValueError, match="about tags"):
        Reading(TAGS["iob2"], False).automaton(rules.scheme("iob2"))


def test_what_is_too_large_is_refused_by_name():
    counts = [rules.exactly(900, y) for y in LABELS]
    with pytest.raises(TooManyStatesError, match=r"exactly\(900, a\)"):
        Reading(LABELS, False).automaton(counts[0] | counts[1] | counts[2])
    with pytest.raises(TooManyStatesError, match="the rule regular"):
        Reading(LABELS, False).automaton(rules.regular(".* a" + " ." * 16))


def test_rules_are_values():
    assert rules.once("a") == rules.once("a") != rules.once("b")
    assert len({rules.once("a"), rules.once("a"), rules.at_most_once("a")}) == 2
    assert ~~rules.once("a") == rules.once("a")
    assert rules.once(np.int64(3)) == rules.once(3)
    with pytest.raises(TypeError, match="&, | and ~"):
        bool(rules.once("a"))
    with pytest.raises(TypeError, match="rules combine with rules"):
        rules.once("a") & 3
    with pytest.raises(ValueError, match="takes labels"):
        rules.once(["a"])
    with pytest.raises(ValueError, match="must be a level's name"):
        rules.once("a", level=True)


def test_neighbours_tell_where_segments_begin():
    tags = TAGS["iobes"]
    told = schemes.neighbours(tags, "iobes")
    for i, j in itertools.product(range(len(tags)), repeat=2):
        starts = [segment.start for segment in schemes.segments([tags[i], tags[j]], "iobes")]
        assert told.begins[i, j] == (1 in starts)
    assert told.begins[-1].tolist() == [tag != "O" for tag in tags]
    assert [told.types[k] for k in told.type_of if k >= 0] == [tag[2:] for tag in tags if tag != "O"]


# Learning rules from data ----------------------------------------------------------------------------------------


def test_rules_that_hold_in_data():
    y = [["a", "b", "b", "c"], ["a", "c", "d"], ["a", "b", "c"], ["b", "b", "c", "d"]] * 5
    found = {str(one.rule): (one.kept, one.broken) for one in rules.learn(y)}
    assert found["at_most_once(b)"] == (15, 0)
    assert found["at_least(1, c)"] == (20, 0)
    assert found["first(a, b)"] == (20, 0) and found["last(c, d)"] == (20, 0)
    assert found["before(b, c)"] == (15, 0) and "before(c, b)" not in found
    assert "at_least(1, a)" not in found and "requires(d, c)" not in found
    for one in rules.learn(y):
        assert all(keeps(one.rule, row, True) for row in y)
    most = {str(one.rule): (one.kept, one.broken) for one in rules.learn(y, 0.7)}
    assert most["at_least(1, a)"] == (15, 5) and most["first(a)"] == (15, 5)


def test_what_never_follows_needs_occasions():
    rng = np.random.default_rng(0)
    y = [["a", *rng.permutation(list("bcd")).tolist(), "e"] for _ in range(60)]
    y = [row for row in y if ("b", "c") not in zip(row, row[1:], strict=False)]
    found = {str(one.rule) for one in rules.learn(y)}
    assert "never(b, c)" in found and "never(c, b)" not in found
    assert not any(rule.startswith("never") for rule in map(str, (one.rule for one in rules.learn(y[:6], support=3))))


def test_rules_are_learnt_from_segments_levels_and_tags():
    segments = [[(0, 2, "a"), (2, 3, "a")], [(0, 1, "a"), (1, 3, "b")]] * 5
    names = {str(one.rule) for one in rules.learn(segments, support=5)}
    assert "at_most_once(b)" in names and "at_most_once(a)" not in names
    nested = [[[(0, 3, "x")], row] for row in segments]
    assert {str(one.rule) for one in rules.learn(nested, support=5, level=1)} >= {"at_most_once(b, level=1)"}
    tags = [["B-x", "I-x", "O", "B-y"]] * 10
    assert "before(x, y, scheme=iob2)" in {str(one.rule) for one in rules.learn(tags, scheme="bio")}
    proposal = rules.learn(tags, scheme="iob2")[0]
    machine = Reading(TAGS["iob2"], True).automaton(given_rules(proposal)[0])
    assert all(machine.accepts([TAGS["iob2"].index(tag) for tag in row]) for row in tags)
    assert rules.parse(str(proposal)) == proposal.rule


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([["a"]], {"confidence": 0}, "confidence must be"),
        ([["a"]], {"support": 0}, "support must be at least 1"),
        ([["a", None]], {}, r"y\[0\]\[1\] = None: rules are learnt from complete labels"),
        ([[[(0, 1, "a")]]], {"level": 1}, r"y\[0\] has no segments of level 1"),
    ],
)
def test_data_that_rules_cannot_be_learnt_from(y, options, message):
    with pytest.raises(ValueError, match=message):
        rules.learn(y, **options)


# Documentation ---------------------------------------------------------------------------------------------------


def test_the_page_runs_and_its_pictures_are_drawn_by_the_code():
    pages = Path(__file__).parents[1] / "docs" / "concepts"
    result = doctest.testfile(str(pages / "rules.md"), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0
    once = rules.at_most_once("StreetName").svg(["Number", "StreetName", "City", "Zip"])
    assert (pages / "rules-once.svg").read_text() == once + "\n"
    fields = ["author", "title", "journal", "volume", "publisher", "date"]
    regular = rules.regular("author+ title (journal volume? | publisher) date").svg(fields, runs=False)
    assert (pages / "rules-regular.svg").read_text() == regular + "\n"
    assert regular.count('class="ring"') == 1 and "publisher" in regular


@pytest.mark.parametrize("module", ["expressions", "learn"])
def test_docstrings(module):
    found = doctest.testmod(importlib.import_module(f"scansion.rules.{module}"))
    assert found.failed == 0 and found.attempted > 0
