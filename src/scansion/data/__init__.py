"""Data as arrays: encoded attributes (`Dataset`) and encoded labels or segments (`Targets`)."""

from scansion.data.dataset import Dataset, Vocabulary, encode
from scansion.data.targets import Targets, encode_labels, encode_segments

__all__ = ["Dataset", "Targets", "Vocabulary", "encode", "encode_labels", "encode_segments"]
