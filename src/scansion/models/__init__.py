"""Estimators.

`estimator` fit, questions and files of all; `flat_estimator` what `crf` (chains) and `semicrf` (segments) share,
`hierarchical` segments inside segments. Below them: `inputs` encoded sequences; `select_flat`, `select_nested` which
features there are; `weights` their layout; `flat_model`, `nested_model` from weights to lattices and objectives;
`packing`, `files` model files.
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
