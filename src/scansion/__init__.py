"""scansion finds structure in sequences: labels, segments, and segments inside segments.

Everything public can be reached from here (``import scansion as sc``); modules are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # that of typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from scansion.data import Trajectory, levels_from_columns
    from scansion.display import display as display
    from scansion.lattice import (
        BOS,
        EOS,
        ChainBatch,
        ChainLattice,
        NestedBatch,
        NestedLattice,
        PatternAutomaton,
        Persistence,
        Segment,
        SegmentBatch,
        SegmentLattice,
        SegmentParts,
    )
    from scansion.models import CRF, HierarchicalCRF, SemiCRF
    from scansion.models.files import load
    from scansion.training.convergence import ConvergenceWarning

_HOME = {
    "BOS": "scansion.lattice",
    "EOS": "scansion.lattice",
    "CRF": "scansion.models",
    "ConvergenceWarning": "scansion.training.convergence",
    "HierarchicalCRF": "scansion.models",
    "ChainBatch": "scansion.lattice",
    "ChainLattice": "scansion.lattice",
    "NestedBatch": "scansion.lattice",
    "NestedLattice": "scansion.lattice",
    "PatternAutomaton": "scansion.lattice",
    "Persistence": "scansion.lattice",
    "Segment": "scansion.lattice",
    "SegmentBatch": "scansion.lattice",
    "SegmentLattice": "scansion.lattice",
    "SegmentParts": "scansion.lattice",
    "SemiCRF": "scansion.models",
    "Trajectory": "scansion.data",
    "levels_from_columns": "scansion.data",
    "load": "scansion.models.files",
}
_MODULES = (
    "data",
    "demo",
    "display",
    "features",
    "lattice",
    "metrics",
    "plot",
    "pycrfsuite",
    "reference",
    "rules",
    "schemes",
    "sklearn_crfsuite",
)

__all__ = [
    "BOS",
    "CRF",
    "EOS",
    "ChainBatch",
    "ChainLattice",
    "ConvergenceWarning",
    "HierarchicalCRF",
    "NestedBatch",
    "NestedLattice",
    "PatternAutomaton",
    "Persistence",
    "Segment",
    "SegmentBatch",
    "SegmentLattice",
    "SegmentParts",
    "SemiCRF",
    "Trajectory",
    "levels_from_columns",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("scansion")
    elif name in _MODULES:
        value = import_module(f"scansion.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", *_MODULES])
