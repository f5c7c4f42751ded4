"""Models of other tools: CRFsuite, CRF++, Wapiti.

Each module reads the files of one tool, ``read(data, encoding)``, from the format as the tool's own source documents
it, and gives an ordinary `scansion.CRF`; `crfsuite` writes them as well. Nothing in a file is trusted: what does not
fit is a ValueError, which `scansion.load` turns into a ModelFileError, never a crash, and no number in a file sizes
anything before it was compared with the size of the file.
"""

from __future__ import annotations

import struct

__all__ = ["HEAD", "tool_of"]

HEAD = 64
"""Bytes at the beginning of a file that tell whose it is."""


def tool_of(head: bytes, size: int) -> str | None:
    """The module here that reads a file which begins so and has so many bytes; None: none does."""
    if head.startswith(b"lCRF"):
        return "crfsuite"
    if head.startswith(b"#mdl#"):
        return "wapiti"
    if head.startswith(b"version: 1"):
        return "crfpp"
    if len(head) >= 36:  # CRF++'s binary models have no magic number: their sizes must add up
        version, kind, _, weights, _, units, labels = struct.unpack_from("<IIdIIII", head)
        if version // 100 == 1 and kind == 0 and 0 < labels and 36 + labels + units + 4 * weights <= size:
            return "crfpp"
    return None
