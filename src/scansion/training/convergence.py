"""Says when training stopped before it was done, and what to do."""

from __future__ import annotations

import sys

from scansion import _checks as checks

__all__ = ["ConvergenceWarning", "warn"]


class ConvergenceWarning(UserWarning):
    """Training stopped before its stopping rules held; scikit-learn's filter of this name holds for it as well."""


def warn(text: str) -> None:
    """Warn, by a class that is scikit-learn's too if that was imported."""
    theirs = sys.modules.get("sklearn.exceptions")
    category: type[ConvergenceWarning] = ConvergenceWarning
    if theirs is not None:
        category = type("ConvergenceWarning", (ConvergenceWarning, theirs.ConvergenceWarning), {})
    checks.warn(text, category)
