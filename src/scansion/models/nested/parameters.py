"""The parameters of `HierarchicalCRF` that choose levels, features and topology, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion.data import level_names
from scansion.features.lengths import length_basis
from scansion.features.spans import functions
from scansion.models.build import _parsed
from scansion.models.nested.model import CLIQUES, PERSISTENCE

__all__ = ["ATTRIBUTE_PARTS", "AUTO", "FREE", "NestedRules", "by_level"]

ATTRIBUTE_PARTS = (*PERSISTENCE, *CLIQUES)
AUTO, FREE = "auto", "free"


@dataclass(frozen=True)
class NestedRules:
    """The parameters, by level; their meaning is in `scansion.HierarchicalCRF`.

    Attributes
    ----------
    levels : K names
    max_length : K of int, None (the longest seen), "free", "auto"
    topology : None, "seen", "all", or K dicts parent label -> child labels (of the root: an empty one)
    repeats : K of True, False, None
    transitions : "all" or "seen"
    attribute_parts : K dicts prefix -> bits, one for each of ATTRIBUTE_PARTS
    length_features : K tuples
    functions : K lists of functions of spans
    min_freq : float
    all_possible_states, all_possible_transitions : bool
    """

    levels: list[str]
    max_length: list[int | str | None]
    topology: Any
    repeats: list[bool | None]
    transitions: str
    attribute_parts: list[dict[str, int]]
    length_features: list[tuple[str, ...]]
    functions: list[list[Callable[..., Any]]]
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool

    @classmethod
    def checked(cls, parameters: Mapping[str, Any]) -> NestedRules:
        """From an estimator's parameters; ValueError says what is wrong with them."""
        names = level_names(parameters["levels"])

        def each(name: str, default: Any = None) -> list[Any]:
            return by_level(names, name, parameters[name], default)

        limits = [_limit(value) for value in each("max_length", AUTO)]
        lengths = [_lengths(*one) for one in zip(names, limits, each("length_features", ()), strict=True)]
        given = parameters["segment_features"]
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"segment_features must be a dict level -> function f(x, start, stop), got {given!r}")
        chosen = [functions("segment_features", one) for one in each("segment_features")]
        for name, limit, some in zip(names, limits, chosen, strict=True):
            if some and limit == FREE:
                raise ValueError(f"level {name!r} has segment_features, which need a max_length other than {FREE!r}")
        for value in each("repeats"):
            if not (value is None or isinstance(value, (bool, np.bool_))):
                raise ValueError(f"repeats must be True, False or None, got {value!r}")
        if parameters["transitions"] not in ("all", "seen"):
            raise ValueError(f"transitions must be 'all' or 'seen', got {parameters['transitions']!r}")
        least = parameters["min_freq"]
        if isinstance(least, bool) or not isinstance(least, Real) or not 0.0 <= float(least) < np.inf:
            raise ValueError(f"min_freq must be a number >= 0, got {least!r}")
        parts = parameters["attribute_parts"]
        if parts is not None and not isinstance(parts, Mapping):
            raise ValueError(f"attribute_parts must be a dict level -> parts, got {parts!r}")
        return cls(
            names,
            limits,
            _topology(names, parameters["topology"]),
            each("repeats"),
            parameters["transitions"],
            [_parts(name, one) for name, one in zip(names, each("attribute_parts"), strict=True)],
            lengths,
            chosen,
            float(least),
            bool(parameters["all_possible_states"]),
            bool(parameters["all_possible_transitions"]),
        )

    @property
    def least(self) -> float:
        """Smallest sum of a feature's values in training."""
        return self.min_freq if self.min_freq > 0 else -np.inf

    @property
    def bounds(self) -> list[int | None]:
        """Longest segment by level where it was given as a number."""
        return [limit if isinstance(limit, int) else None for limit in self.max_length]

    def longest(self, k: int, seen: int, complete: bool) -> int | None:
        """Longest segment of level k, None for no bound; seen: that of the longest in y, 0 if none is known.

        complete: whether all segments of the level are known.
        """
        limit = self.max_length[k]
        if limit == AUTO:
            additive = not self.functions[k] and set(self.length_features[k]) <= {"length"}
            limit = FREE if additive and not (complete and seen == 1) else None
        if limit is None and seen < 1:
            raise ValueError(
                f"y holds no segment of level {self.levels[k]!r} whose two ends are known: give max_length"
            )
        return seen if limit is None else limit if isinstance(limit, int) else None

    def labels(self, k: int) -> list[Any]:
        """Labels of level k that the topology names."""
        found: dict[Any, None] = {}
        if isinstance(self.topology, list):
            if k + 1 < len(self.levels):
                found.update(dict.fromkeys(self.topology[k + 1]))
            for children in self.topology[k].values():
                found.update(dict.fromkeys(children))
        return list(found)


def by_level(names: list[str], name: str, value: Any, default: Any = None) -> list[Any]:
    """A parameter that is one value for all levels, or a dict of them."""
    if not isinstance(value, Mapping):
        return [value] * len(names)
    for level in value:
        if level not in names:
            raise ValueError(f"{name} has the level {level!r}, which is not one of the levels: {', '.join(names)}")
    return [value.get(level, default) for level in names]


def _limit(value: Any) -> int | str | None:
    if isinstance(value, str) and value not in (AUTO, FREE):
        raise ValueError(f"max_length must be a number, None, {AUTO!r} or {FREE!r}, got {value!r}")
    return value if value is None or isinstance(value, str) else checks.count("max_length", value, 1)


def _lengths(name: str, limit: int | str | None, wanted: Any) -> tuple[str, ...]:
    if wanted is None:
        wanted = ()
    if not isinstance(wanted, (str, Iterable)):
        raise ValueError(f"length_features must be among 'bins', 'length', 'log', got {wanted!r}")
    chosen = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    length_basis(chosen, 1)
    if limit == FREE and set(chosen) - {"length"}:
        raise ValueError(
            f"level {name!r} has no bound on its length (max_length={FREE!r}): of length_features it can have 'length' "
            f"alone, got {wanted!r}"
        )
    return chosen


def _topology(names: list[str], given: Any) -> Any:
    if given is None or (isinstance(given, str) and given in ("seen", "all")):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"topology must be None, 'seen', 'all' or a dict parent -> children, got {given!r}")
    parents = names[:-1]
    if given and all(level in parents and isinstance(entry, Mapping) for level, entry in given.items()):
        tables = [given.get(level, {}) for level in parents]
    elif len(names) == 2:
        tables = [given]
    else:
        raise ValueError(
            f"topology of {len(names)} levels must have one dict parent -> children for each level that has one below "
            f"it ({', '.join(parents) or 'none has'}), got {given!r}"
        )
    for table in tables:
        for parent, children in table.items():
            if isinstance(children, (str, bytes)) or not isinstance(children, Iterable) or not list(children):
                raise ValueError(f"topology[{parent!r}] must be a list of child labels, got {children!r}")
    return [{}, *({p: list(children) for p, children in table.items()} for table in tables)]


def _parts(level: str, given: Any) -> dict[str, int]:
    """Prefix -> bits of one level."""
    rules = given if given is None or isinstance(given, Mapping) else {"": given}

    def bits(name: str, value: Any) -> int:
        parts = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
        result = 0
        for part in parts:
            if part not in ATTRIBUTE_PARTS:
                raise ValueError(f"{name} must name parts among {', '.join(ATTRIBUTE_PARTS)}, got {part!r}")
            result |= 1 << ATTRIBUTE_PARTS.index(part)
        return result

    return _parsed(f"attribute_parts[{level!r}]", rules, bits)
