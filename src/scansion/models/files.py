"""Reading model files of any kind."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from scansion import model_file
from scansion.models.foreign import HEAD, tool_of

__all__ = ["load", "maker"]

# kind -> module and class, loaded when a file needs it
_KINDS = {
    "crf": ("scansion.models.crf", "CRF"),
    "semicrf": ("scansion.models.semicrf", "SemiCRF"),
    "hierarchical": ("scansion.models.hierarchical", "HierarchicalCRF"),
}


def load(path: str | os.PathLike[str], *, mmap: bool = False, encoding: str | None = None) -> Any:
    """The estimator that `save` wrote to a file, or the model of another tool as one.

    Models of CRFsuite, CRF++ (binary and text) and Wapiti are known by their content, and become a `CRF`.

    Parameters
    ----------
    path : str or os.PathLike
    mmap : bool, default False
        Map the weights from the file instead of copying them. Processes that map one file share its pages; but a file
        that is changed in place changes the model, and one that is cut short ends the process (docs/model-file.md).
        Models of other tools are always copied.
    encoding : str, optional
        Of the text in models of other tools; UTF-8 unless given.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, or of a newer version; the message says which.
    """
    tool = maker(path)
    if tool not in (None, "scansion"):
        return _foreign(tool, path, encoding)
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


def maker(path: str | os.PathLike[str]) -> str | None:
    """The tool whose model or data set a file holds, by its content: "scansion", or a module of `foreign`."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        head = file.read(HEAD)
        return "scansion" if model_file.PREFIX in head else tool_of(head, os.fstat(file.fileno()).st_size)


def _foreign(tool: str | None, path: str | os.PathLike[str], encoding: str | None) -> Any:
    """The model of another tool."""
    if encoding is not None:
        "".encode(encoding)  # LookupError: there is no such encoding
    with open(path, "rb") as file:
        data = file.read()
    try:
        crf = import_module(f"scansion.models.foreign.{tool}").read(data, encoding)
    except (ValueError, OverflowError, MemoryError) as error:
        what = f"{os.fspath(path)} is damaged, or not a model that scansion can take over: {error}"
        raise model_file.ModelFileError(what) from error
    if encoding is not None and crf.reading_ is not None:
        crf.reading_ = crf.reading_._replace(encoding=encoding)  # of the columns, too
    return crf
