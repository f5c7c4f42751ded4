"""Reading model files of any kind."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from scansion import model_file

__all__ = ["load"]

# kind -> module and class, loaded when a file needs it
_KINDS = {
    "crf": ("scansion.models.crf", "CRF"),
    "semicrf": ("scansion.models.semicrf", "SemiCRF"),
    "hierarchical": ("scansion.models.hierarchical", "HierarchicalCRF"),
}


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """The estimator that `save` wrote to a file.

    Parameters
    ----------
    path : str or os.PathLike
    mmap : bool, default False
        Map the weights from the file instead of copying them. Processes that map one file share its pages; but a file
        that is changed in place changes the model, and one that is cut short ends the process (docs/model-file.md).

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, or of a newer version; the message says which.
    """
    stored = model_file.read(path, mmap=mmap)
    if stored.kind == "dataset":
        raise model_file.ModelFileError(
            f"{os.fspath(path)} holds a data set, not a model: use scansion.data.Dataset.load"
        )
    if stored.kind not in _KINDS:
        raise model_file.ModelFileError(
            f"{os.fspath(path)} holds a model of unknown kind {stored.kind!r}: upgrade scansion"
        )
    module, name = _KINDS[stored.kind]
    try:
        return getattr(import_module(module), name)._from_file(stored)
    except model_file.ModelFileError as error:
        raise model_file.ModelFileError(f"{os.fspath(path)}: {error}") from error
