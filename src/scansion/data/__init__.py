"""Data as arrays: encoded attributes (`Dataset`) and encoded labels or segments (`Targets`)."""

from scansion.data.dataset import Dataset, Vocabulary, encode
from scansion.data.levels import LevelTargets, encode_levels, level_names, levels_from_columns
from scansion.data.targets import Targets, encode_labels, encode_segments
from scansion.data.trajectory import Trajectory

__all__ = [
    "Dataset",
    "LevelTargets",
    "Targets",
    "Trajectory",
    "Vocabulary",
    "encode",
    "encode_labels",
    "encode_levels",
    "encode_segments",
    "level_names",
    "levels_from_columns",
]
