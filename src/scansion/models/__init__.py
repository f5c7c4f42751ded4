"""Estimators.

`crf` chains, `semicrf` segments: `base` is what these two share, `flat` the features and weights under both;
`hierarchical` segments inside segments, its features and weights in `nested`; `learner` fit and predict of all;
`estimator` scikit-learn's rules; `files` reading models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scansion.models.crf import CRF
    from scansion.models.hierarchical import HierarchicalCRF
    from scansion.models.semicrf import SemiCRF

__all__ = ["CRF", "HierarchicalCRF", "SemiCRF"]

_HOME = {"CRF": "crf", "HierarchicalCRF": "hierarchical", "SemiCRF": "semicrf"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"scansion.models.{_HOME[name]}"), name)
    globals()[name] = value
    return value
