"""python-crfsuite's interface: `Trainer`, `Tagger` and `ItemSequence` for programs that were written for it.

    from scansion import pycrfsuite                                   # in place of: import pycrfsuite

For packages that cannot be edited, before they are imported::

    import sys, scansion.pycrfsuite
    sys.modules["pycrfsuite"] = scansion.pycrfsuite

Training writes CRFsuite's model files, and tagging reads them; `Tagger.open` takes every model that `scansion.load`
knows and that is a chain. What departs from python-crfsuite is listed in docs/coming-from-crfsuite.md.
"""

from __future__ import annotations

from scansion.pycrfsuite._dumpparser import ParsedDump
from scansion.pycrfsuite._logparser import LabelScore, TrainLogParser
from scansion.pycrfsuite._tagger import ItemSequence, Tagger
from scansion.pycrfsuite._trainer import BaseTrainer, CRFSuiteError, Trainer

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "CRFsuiteError",
    "ItemSequence",
    "LabelScore",
    "ParsedDump",
    "Tagger",
    "TrainLogParser",
    "Trainer",
]

CRFsuiteError = CRFSuiteError

CRFSUITE_VERSION = "0.12.2"  # whose behaviour this is
