"""The demonstration: labelled references, a simulator, and a tour of the library (``scansion demo``, ``make demo``).

`references` are the data, `attributes` their features, `Robot` is the simulator, `main` the tour.
"""

from __future__ import annotations

from collections.abc import Sequence

from scansion.demo.bibliography import FIELDS, PARTS, Reference, attributes, parse, references, tokens_of
from scansion.demo.robot import Robot

__all__ = ["FIELDS", "PARTS", "Reference", "Robot", "attributes", "main", "parse", "references", "tokens_of"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour; argv: the arguments behind ``scansion demo``. Returns the exit code."""
    from scansion.demo.tour import main as run

    return run(argv)
