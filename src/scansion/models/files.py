"""Reading model files of any kind."""

from __future__ import annotations

import os
from typing import Any

from scansion import model_file
from scansion.models.crf import CRF
from scansion.models.hierarchical import HierarchicalCRF
from scansion.models.learner import Learner
from scansion.models.semicrf import SemiCRF

__all__ = ["load"]

_KINDS: dict[str, type[Learner]] = {"crf": CRF, "semicrf": SemiCRF, "hierarchical": HierarchicalCRF}


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator that `save` wrote to a file.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, or of a newer version; the message says which.
    """
    stored = model_file.read(path)
    if stored.kind not in _KINDS:
        raise model_file.ModelFileError(
            f"{os.fspath(path)} holds a model of unknown kind {stored.kind!r}: upgrade scansion"
        )
    return _KINDS[stored.kind]._from_file(stored)
