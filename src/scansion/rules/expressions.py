"""The language of rules: what must hold of the occurrences of labels in a whole sequence (docs/notation.md, section 5).

A rule is a regular language over labels. Occurrences are the maximal runs of one label in a chain (with ``scheme=`` the
segments that a tag scheme reads off the tags), the segments of a segment lattice, and the segments of one level
(``level=``, ``within=``) of a nested one. Rules are values: they compare, and `parse` reads what they print.

A new rule is a function here that makes it, and a line in `LANGUAGES` that says which words keep it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion.rules.automata import Automaton, TooManyStatesError, determinized, minimal

# fmt: off
__all__ = [
    "Rule", "at_least", "at_most", "at_most_once", "before", "exactly", "first", "follows", "last", "never", "once",
    "parse", "regular", "requires", "scheme",
]
# fmt: on

_MOST_COUNT = 1000
_DEEPEST = 60  # parentheses in a text

Letters = dict[Any, int]


@dataclass(frozen=True)
class Rule:
    """A set of label sequences; made by the functions of this module and combined by ``&``, ``|`` and ``~``.

    Attributes
    ----------
    name : str
        That of the function, or "and", "or", "not".
    arguments : tuple
        Numbers, labels; rules of a combination.
    together : bool
        Labels are counted jointly.
    of : str, optional
        The tag scheme whose segments are meant (keyword ``scheme``).
    level, within : str or int, optional
        Of nested models: the level that is meant, and the level in each of whose segments it holds by itself.
    """

    name: str
    arguments: tuple[Any, ...]
    together: bool = False
    of: str | None = None
    level: Any = None
    within: Any = None

    def __and__(self, other: Any) -> Rule:
        return _combined("and", self, other)

    def __or__(self, other: Any) -> Rule:
        return _combined("or", self, other)

    def __invert__(self) -> Rule:
        return self.arguments[0] if self.name == "not" else Rule("not", (self,))

    def __bool__(self) -> bool:
        raise TypeError("a rule is neither true nor false: combine rules with &, | and ~ in place of and, or, not")

    def __str__(self) -> str:
        if self.name == "not":
            inner = str(self.arguments[0])
            return f"~({inner})" if self.arguments[0].name in _SIGNS else f"~{inner}"
        if self.name in _SIGNS:
            return _SIGNS[self.name].join(
                f"({part})" if part.name in _SIGNS and part.name != self.name else str(part) for part in self.arguments
            )
        shown = [_shown(argument, quoted=self.name in ("regular", "scheme")) for argument in self.arguments]
        shown += ["together=True"] if self.together else []
        options = (("scheme", self.of), ("level", self.level), ("within", self.within))
        shown += [f"{name}={_shown(value)}" for name, value in options if value is not None]
        return f"{self.name}({', '.join(shown)})"

    __repr__ = __str__

    def parts(self) -> list[Rule]:
        """Rules that hold all together if and only if this one does: conjunctions and labels taken one by one."""
        if self.name == "and":
            return [part for rule in self.arguments for part in rule.parts()]
        numbers = _COUNTS.get(self.name)
        labels = () if numbers is None else self.arguments[numbers:]
        if len(labels) < 2 or self.together:
            return [self]
        assert numbers is not None
        return [replace(self, arguments=(*self.arguments[:numbers], label)) for label in labels]

    def svg(self, labels: Sequence[Any], runs: bool = True) -> str:
        """A picture of the automaton over labels that the rule becomes; runs: equal neighbours are one (chains)."""
        from scansion.display.automaton import automaton_svg
        from scansion.rules.compile import Reading

        checks.flag("runs", runs)
        return automaton_svg(Reading(labels, runs).automaton(self), labels)

    def atoms(self) -> list[Rule]:
        """The rules that this one combines."""
        if self.name in ("and", "or", "not"):
            return [atom for rule in self.arguments for atom in rule.atoms()]
        return [self]

    def labels(self) -> list[Any]:
        """The labels that a rule which is no combination names, without those of an expression."""
        return [] if self.name in ("regular", "scheme") else list(self.arguments[_COUNTS.get(self.name, 0) :])

    def language(self, letters: Letters) -> Automaton:
        """The words that keep a rule which is no combination; letters: the number of each label.

        Raises
        ------
        ValueError
            For a label that is not there, or an automaton that is too large.
        """
        size = max(letters.values(), default=-1) + 1
        texts = {str(label): letter for label, letter in letters.items()} if self.name == "regular" else {}

        def number(label: Any) -> int:
            return texts[label] if label in texts else letter_of(label, letters, self)

        try:
            return LANGUAGES[self.name](self, number, size)
        except TooManyStatesError as error:
            raise TooManyStatesError(f"the rule {self} needs {error}: make it simpler") from None


_SIGNS = {"and": " & ", "or": " | "}
_COUNTS = {"at_most": 1, "at_least": 1, "exactly": 1, "once": 0, "at_most_once": 0}  # arguments before the labels


def letter_of(label: Any, letters: Letters, rule: Rule) -> int:
    """The number of a label; ValueError says that a rule names one that is not there."""
    try:
        if label in letters and not isinstance(label, bool):
            return letters[label]
    except TypeError:
        pass
    known = ", ".join(map(repr, list(letters)[:30]))
    more = ", ..." if len(letters) > 30 else ""
    raise ValueError(f"the rule {rule} names {label!r}, which is no label here; there are {known}{more}")


def _combined(name: str, a: Rule, b: Any) -> Rule:
    if isinstance(b, str):
        b = parse(b)
    if not isinstance(b, Rule):
        raise TypeError(f"rules combine with rules, got {b!r}")
    parts = [part for rule in (a, b) for part in (rule.arguments if rule.name == name else (rule,))]
    return Rule(name, tuple(parts))


# ---- the rules -----------------------------------------------------------------------------------------------------


def _made(
    name: str, arguments: tuple[Any, ...], scheme: str | None, level: Any, within: Any, together: bool = False
) -> Rule:
    if scheme is not None:
        from scansion.schemes import scheme_name

        scheme = scheme_name(scheme)
    for what, value in (("level", level), ("within", within)):
        if isinstance(value, bool) or not (value is None or isinstance(value, (str, int, np.integer))):
            raise ValueError(f"{what} of rule {name} must be a level's name or number, got {value!r}")
    plain = tuple(a.item() if isinstance(a, np.generic) else a for a in arguments)
    for label in plain:
        try:
            hash(label)
        except TypeError:
            raise ValueError(f"{name} takes labels, got {label!r}") from None
    return Rule(name, plain, bool(together), scheme, level, within)


def _counted(name: str, n: Any, labels: tuple[Any, ...], **options: Any) -> Rule:
    number = checks.count(f"n of {name}", n, 0)
    if number > _MOST_COUNT:
        raise ValueError(f"n of {name} must be at most {_MOST_COUNT}, got {number}")
    return _made(name, (number, *_some(name, labels)), **options)


def _some(name: str, labels: tuple[Any, ...]) -> tuple[Any, ...]:
    if not labels:
        raise ValueError(f"{name} must name at least one label")
    return labels


def at_most(
    n: int, *labels: Any, together: bool = False, scheme: str | None = None, level: Any = None, within: Any = None
) -> Rule:
    """Each of the labels occurs at most n times; together: all of them do, counted jointly."""
    return _counted("at_most", n, labels, together=together, scheme=scheme, level=level, within=within)


def at_least(
    n: int, *labels: Any, together: bool = False, scheme: str | None = None, level: Any = None, within: Any = None
) -> Rule:
    """Each of the labels occurs at least n times; together: all of them do, counted jointly."""
    return _counted("at_least", n, labels, together=together, scheme=scheme, level=level, within=within)


def exactly(
    n: int, *labels: Any, together: bool = False, scheme: str | None = None, level: Any = None, within: Any = None
) -> Rule:
    """Each of the labels occurs n times; together: all of them do, counted jointly."""
    return _counted("exactly", n, labels, together=together, scheme=scheme, level=level, within=within)


def once(
    *labels: Any, together: bool = False, scheme: str | None = None, level: Any = None, within: Any = None
) -> Rule:
    """Each of the labels occurs once; together: one of them does, once."""
    return _made("once", _some("once", labels), scheme, level, within, together)


def at_most_once(
    *labels: Any, together: bool = False, scheme: str | None = None, level: Any = None, within: Any = None
) -> Rule:
    """Each of the labels occurs at most once; together: at most one of them does, once."""
    return _made("at_most_once", _some("at_most_once", labels), scheme, level, within, together)


def before(a: Any, b: Any, *, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """No a comes after a b."""
    return _made("before", (a, b), scheme, level, within)


def first(*labels: Any, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """The first occurrence, if there is one, is of one of the labels."""
    return _made("first", _some("first", labels), scheme, level, within)


def last(*labels: Any, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """The last occurrence, if there is one, is of one of the labels."""
    return _made("last", _some("last", labels), scheme, level, within)


def follows(a: Any, *labels: Any, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """After an a comes one of the labels, or nothing."""
    return _made("follows", (a, *labels), scheme, level, within)


def never(a: Any, b: Any, *, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """No a is directly followed by a b."""
    return _made("never", (a, b), scheme, level, within)


def requires(a: Any, b: Any, *, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """An a occurs only if a b does."""
    return _made("requires", (a, b), scheme, level, within)


def regular(expression: str, *, scheme: str | None = None, level: Any = None, within: Any = None) -> Rule:
    """The occurrences match a regular expression over labels.

    Labels are words, in quotes where they hold other signs; ``.`` is any label; ``*``, ``+``, ``?``, ``|`` and
    parentheses mean what they do in other regular expressions, and blanks separate.

    Examples
    --------
    >>> regular("author+ title (journal volume? | publisher) date .*")
    regular('author+ title (journal volume? | publisher) date .*')
    """
    if not isinstance(expression, str):
        raise ValueError(f"regular takes an expression over labels as text, got {expression!r}")
    _Expression(expression, lambda word: 0, 1).edges()  # says what is wrong with it
    return _made("regular", (expression,), scheme, level, within)


def scheme(name: str) -> Rule:
    """Tags follow a tag scheme: "iob1", "iob2", "ioe1", "ioe2", "iobes" or "bilou"."""
    from scansion.schemes import scheme_name

    return Rule("scheme", (scheme_name(name),))


# ---- their languages -----------------------------------------------------------------------------------------------

Number = Callable[[Any], int]


def _counts(low: int, high: int | None, chosen: Sequence[int], size: int) -> Automaton:
    """Words with low .. high letters that are chosen; high None: or more."""
    top = low if high is None else high + 1
    table = np.repeat(np.arange(top + 1)[:, None], size, axis=1)
    table[:, list(chosen)] = np.minimum(np.arange(top + 1) + 1, top)[:, None]
    count = np.arange(top + 1)
    return minimal(table, (count >= low) & (True if high is None else count <= high))


def _count_language(rule: Rule, number: Number, size: int) -> Automaton:
    numbers = _COUNTS[rule.name]
    n = rule.arguments[0] if numbers else 1
    low = 0 if rule.name.startswith("at_most") else n
    high = None if rule.name == "at_least" else n
    chosen = [number(label) for label in rule.arguments[numbers:]]
    if rule.together:
        return _counts(low, high, chosen, size)
    found = _counts(low, high, chosen[:1], size)
    for letter in chosen[1:]:
        found = found.combined(_counts(low, high, [letter], size), np.logical_and)
    return found


def _table(states: int, size: int) -> Any:
    """Every letter leaves every state as it is."""
    return np.repeat(np.arange(states)[:, None], size, axis=1)


def _before(rule: Rule, number: Number, size: int) -> Automaton:
    a, b = map(number, rule.arguments)
    table = _table(3, size)
    table[0, b] = 1
    table[1, a] = 2
    return minimal(table, [True, True, False])


def _first(rule: Rule, number: Number, size: int) -> Automaton:
    table = _table(3, size)
    table[0] = 2
    table[0, [number(label) for label in rule.arguments]] = 1
    return minimal(table, [True, True, False])


def _last(rule: Rule, number: Number, size: int) -> Automaton:
    table = np.full((2, size), 1)
    table[:, [number(label) for label in rule.arguments]] = 0
    return minimal(table, [True, False])


def _follows(rule: Rule, number: Number, size: int) -> Automaton:
    a, *allowed = map(number, rule.arguments)
    table = _table(3, size)
    table[0, a] = 1
    table[1] = 2
    table[1, allowed] = [int(letter == a) for letter in allowed]
    return minimal(table, [True, True, False])


def _never(rule: Rule, number: Number, size: int) -> Automaton:
    a, b = map(number, rule.arguments)
    table = _table(3, size)
    table[1] = 0
    table[:2, a] = 1
    table[1, b] = 2
    return minimal(table, [True, True, False])


def _requires(rule: Rule, number: Number, size: int) -> Automaton:
    a, b = map(number, rule.arguments)
    table = _table(3, size)
    table[0, a] = 1
    table[:2, b] = 2
    return minimal(table, [True, False, True])


def _regular(rule: Rule, number: Number, size: int) -> Automaton:
    edges, stop = _Expression(rule.arguments[0], number, size).edges()
    return determinized(edges, stop, size)


LANGUAGES: dict[str, Callable[[Rule, Number, int], Automaton]] = {
    **dict.fromkeys(_COUNTS, _count_language),
    "before": _before,
    "first": _first,
    "last": _last,
    "follows": _follows,
    "never": _never,
    "requires": _requires,
    "regular": _regular,
}


class _Expression:
    """A regular expression over labels as a nondeterministic automaton (Thompson's construction)."""

    _tokens = re.compile(r"""\s*(?:('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|([()|*+?.])|([^\s()|*+?.'"]+))""")

    def __init__(self, text: str, number: Number, size: int) -> None:
        self.text, self.number, self.size = text, number, size
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            found = self._tokens.match(text, at)
            if found is None:
                raise ValueError(f"regular({text!r}): cannot read {text[at:].strip()!r}")
            quoted, sign, word = found.groups()
            self.tokens.append(("sign", sign) if sign else ("word", _unquoted(quoted) if quoted else word))
            at = found.end()
        self.at = self.depth = self.states = 0
        self.found: list[tuple[int, Any, int]] = []

    def edges(self) -> tuple[list[tuple[int, Any, int]], int]:
        """The edges, and the last state; the first is 0."""
        begin = self._state()
        inner, stop = self._either()
        if self.at < len(self.tokens):
            raise ValueError(f"regular({self.text!r}): {self.tokens[self.at][1]!r} closes nothing")
        self.found.append((begin, None, inner))
        return self.found, stop

    def _state(self) -> int:
        self.states += 1
        return self.states - 1

    def _sign(self) -> str | None:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")
        return text if kind == "sign" else None

    def _either(self) -> tuple[int, int]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError(f"regular({self.text[:40]!r}...): more than {_DEEPEST} parentheses inside each other")
        begin, stop = self._state(), self._state()
        while True:
            a, b = self._sequence()
            self.found += [(begin, None, a), (b, None, stop)]
            if self._sign() != "|":
                break
            self.at += 1
        self.depth -= 1
        return begin, stop

    def _sequence(self) -> tuple[int, int]:
        begin = stop = self._state()
        while self.at < len(self.tokens) and self._sign() not in (")", "|"):
            a, b = self._item()
            self.found.append((stop, None, a))
            stop = b
        return begin, stop

    def _item(self) -> tuple[int, int]:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "word":
            begin, stop = self._state(), self._state()
            self.found.append((begin, (self.number(text),), stop))
        elif text == ".":
            begin, stop = self._state(), self._state()
            self.found.append((begin, range(self.size), stop))
        elif text == "(":
            begin, stop = self._either()
            if self._sign() != ")":
                raise ValueError(f"regular({self.text!r}): a parenthesis is not closed")
            self.at += 1
        else:
            raise ValueError(f"regular({self.text!r}): {text!r} has nothing before it to repeat")
        while self._sign() in ("*", "+", "?"):
            sign = self._sign()
            self.at += 1
            a, b = self._state(), self._state()
            self.found += [(a, None, begin), (stop, None, b)]
            self.found += [(b, None, a)] if sign in ("*", "+") else []
            self.found += [(a, None, b)] if sign in ("*", "?") else []
            begin, stop = a, b
        return begin, stop


# ---- text ----------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\s()&|~=,;#'\"]+")
_INTEGER = re.compile(r"-?\d+")
_QUOTED = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")


def _unquoted(text: str) -> str:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ValueError(f"cannot read {text}") from None
    assert isinstance(value, str)
    return value


def _shown(value: Any, quoted: bool = False) -> str:
    if not isinstance(value, str):
        return repr(value)
    plain = _WORD.fullmatch(value) and value.isprintable() and not _INTEGER.fullmatch(value)
    return value if plain and value not in ("True", "False") and not quoted else repr(value)


def parse(text: str) -> Rule:
    """Rules from text, as they print themselves: ``at_most_once(StreetName) & ~before(date, author)``.

    Several lines, or rules separated by ``;``, hold all together; what follows a ``#`` is a comment. Labels are words,
    integers, or anything in quotes.

    Raises
    ------
    ValueError
        That says what cannot be read, and where.
    """
    if not isinstance(text, str):
        raise ValueError(f"rules are parsed from text, got {text!r}")
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        reader = _Reader(line, f" (line {number})" if "\n" in text.strip() else "")
        found += reader.rules()
    if not found:
        raise ValueError(f"there is no rule in {text!r}" if len(text) < 80 else "there is no rule in the text")
    return found[0] if len(found) == 1 else Rule("and", tuple(p for r in found for p in _and_parts(r)))


def _and_parts(rule: Rule) -> tuple[Rule, ...]:
    return rule.arguments if rule.name == "and" else (rule,)


class _Reader:
    """Reads the rules of one line."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where, self.at, self.depth = text, where, 0, 0

    def rules(self) -> list[Rule]:
        found = []
        while self._peek():
            found.append(self._either())
            if self._peek() and not self._take(";"):
                self._wrong()
        return found

    def _peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        rest = self.text[self.at : self.at + 1]
        return "" if rest == "#" else rest

    def _take(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self.at += 1
        return True

    def _wrong(self, wanted: str = "") -> Any:
        rest = self.text[self.at :].strip()
        what = f"cannot read {rest[:60]!r}" if rest else "the rule ends too early"
        raise ValueError(f"{what}{f', {wanted} is missing' if wanted else ''}: {self.text.strip()[:200]!r}{self.where}")

    def _either(self) -> Rule:
        rule = self._both()
        while self._take("|"):
            rule = rule | self._both()
        return rule

    def _both(self) -> Rule:
        rule = self._one()
        while self._take("&"):
            rule = rule & self._one()
        return rule

    def _one(self) -> Rule:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError(f"rules lie more than {_DEEPEST} deep inside each other{self.where}")
        try:
            if self._take("~"):
                return ~self._one()
            if self._take("("):
                rule = self._either()
                return rule if self._take(")") else self._wrong("a closing parenthesis")
            return self._call()
        finally:
            self.depth -= 1

    def _call(self) -> Rule:
        self._peek()
        found = re.compile(r"[a-z_]+").match(self.text, self.at)
        if found is None or found.group() not in _FUNCTIONS:
            name = _WORD.match(self.text, self.at)
            if name is None:
                self._wrong()
            assert name is not None
            raise ValueError(f"there is no rule {name.group()!r}{self.where}; there are {', '.join(_FUNCTIONS)}")
        self.at = found.end()
        if not self._take("("):
            self._wrong("an opening parenthesis")
        arguments: list[Any] = []
        options: dict[str, Any] = {}
        while not self._take(")"):
            value, word = self._value()
            if word and self._take("="):
                options[str(value)] = self._value()[0]
            elif options:
                self._wrong("a keyword")
            else:
                arguments.append(value)
            if not self._take(",") and self._peek() != ")":
                self._wrong("a comma or a closing parenthesis")
        try:
            return _FUNCTIONS[found.group()](*arguments, **options)
        except TypeError as error:
            raise ValueError(f"{str(error).replace('()', '')}{self.where}") from None
        except ValueError as error:
            raise ValueError(f"{error}{self.where}") from None

    def _value(self) -> tuple[Any, bool]:
        """A label, number or truth value, and whether it is a bare word."""
        self._peek()
        quoted = _QUOTED.match(self.text, self.at)
        found = quoted or _WORD.match(self.text, self.at)
        if found is None:
            self._wrong("a label")
        assert found is not None
        self.at = found.end()
        text = found.group()
        if quoted:
            return _unquoted(text), False
        if text in ("True", "False"):
            return text == "True", False
        return (int(text), False) if _INTEGER.fullmatch(text) and len(text) < 999 else (text, True)


_FUNCTIONS: dict[str, Callable[..., Rule]] = {
    "at_most": at_most,
    "at_least": at_least,
    "exactly": exactly,
    "once": once,
    "at_most_once": at_most_once,
    "before": before,
    "first": first,
    "last": last,
    "follows": follows,
    "never": never,
    "requires": requires,
    "regular": regular,
    "scheme": scheme,
}
