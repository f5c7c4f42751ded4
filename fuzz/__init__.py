"""Random problems against oracles: ``python -m fuzz``, ``make fuzz``.

A *target* is a module of this package with a table ``KINDS``: name of a kind of problem -> a function that takes a
NumPy generator, tries a round of problems of that kind and returns how many there were. It raises `Fault` where an
answer is wrong. To add a target, write the module and name it in ``TARGETS`` of ``rounds.py``.

Rounds run in a process of their own: one that dies or hangs is reported like a wrong answer. A round depends on the
seed, its kind and its number only, so that every fault can be repeated by the command that is printed with it.
"""

from __future__ import annotations


class Fault(AssertionError):  # noqa: N818 - it is no error of the fuzzer
    """A wrong answer; the message says which, and on what."""
