"""What attributes are made of: `templates` over columns, `spans` and `gazetteers` of whole segments, `lengths`."""

from __future__ import annotations

from scansion.features.gazetteers import Gazetteer, SegmentText

__all__ = ["Gazetteer", "SegmentText"]
