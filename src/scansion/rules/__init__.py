"""Rules: what must hold of a whole sequence, exactly (docs/concepts/rules.md).

`expressions` the language; `automata` and `compile` what becomes of it; `restricted` lattices under rules; `learn`
rules that hold in data.
"""

from __future__ import annotations

# fmt: off
from scansion.rules.expressions import (
    Rule,
    at_least,
    at_most,
    at_most_once,
    before,
    exactly,
    first,
    follows,
    last,
    never,
    once,
    parse,
    regular,
    requires,
    scheme,
)

# fmt: on
from scansion.rules.learn import Proposal, learn

# fmt: off
__all__ = [
    "Proposal", "Rule", "at_least", "at_most", "at_most_once", "before", "exactly", "first", "follows", "last",
    "learn", "never", "once", "parse", "regular", "requires", "scheme",
]
# fmt: on
