"""Data as arrays: encoded attributes (`Dataset`), and what is known of labels and segments (`Knowledge`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scansion.data.dataset import Dataset, Vocabulary, encode
from scansion.data.frames import from_frame
from scansion.data.knowledge import Knowledge, Known
from scansion.data.partitions import Partitions
from scansion.data.targets import encode_labels, encode_segments
from scansion.data.trajectory import Trajectory

if TYPE_CHECKING:  # loaded when first used
    from scansion.data.building import Targets, build, load_targets
    from scansion.data.levels import encode_levels, level_names, levels_from_columns
    from scansion.data.rates import spread, subsample, subsample_labels, with_context

__all__ = [
    "Dataset",
    "Knowledge",
    "Known",
    "Partitions",
    "Targets",
    "Trajectory",
    "Vocabulary",
    "build",
    "encode",
    "encode_labels",
    "encode_levels",
    "encode_segments",
    "from_frame",
    "level_names",
    "levels_from_columns",
    "load_targets",
    "spread",
    "subsample",
    "subsample_labels",
    "with_context",
]

_LATER = {
    "Targets": "building",
    "build": "building",
    "encode_levels": "levels",
    "level_names": "levels",
    "levels_from_columns": "levels",
    "load_targets": "building",
    "spread": "rates",
    "subsample": "rates",
    "subsample_labels": "rates",
    "with_context": "rates",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = getattr(import_module(f"scansion.data.{_LATER[name]}"), name)
    return globals()[name]
