"""Pictures in HTML: what a model learnt, and what it says of sequences.

``scansion.display(...)`` shows a sequence in a notebook; the module itself can be called. Pages are self-contained: one
file, no network, readable in light and dark, by keyboard and on paper.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from scansion.display.notebook import display
from scansion.display.page import Page
from scansion.display.report import report, report_page
from scansion.display.sequence import Sequence, sequence_page

__all__ = ["Page", "Sequence", "display", "report", "report_page", "sequence_page"]


class _Display(ModuleType):
    """The module, which is also the function `display`: ``sc.display(tokens, segments)``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Page:
        return display(*args, **kwargs)


sys.modules[__name__].__class__ = _Display
