"""scansion finds structure in sequences: labels, segments, and segments inside segments.

Everything public can be reached from here (``import scansion as sc``); modules are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scansion.lattice import (
        BOS,
        EOS,
        ChainBatch,
        ChainLattice,
        PatternAutomaton,
        Segment,
        SegmentBatch,
        SegmentLattice,
        SegmentParts,
    )

_HOME = {
    "BOS": "scansion.lattice",
    "EOS": "scansion.lattice",
    "ChainBatch": "scansion.lattice",
    "ChainLattice": "scansion.lattice",
    "PatternAutomaton": "scansion.lattice",
    "Segment": "scansion.lattice",
    "SegmentBatch": "scansion.lattice",
    "SegmentLattice": "scansion.lattice",
    "SegmentParts": "scansion.lattice",
}

__all__ = [
    "BOS",
    "EOS",
    "ChainBatch",
    "ChainLattice",
    "PatternAutomaton",
    "Segment",
    "SegmentBatch",
    "SegmentLattice",
    "SegmentParts",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("scansion")
    elif name in ("lattice", "metrics", "reference", "schemes"):
        value = import_module(f"scansion.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "lattice", "metrics", "reference", "schemes"])
