"""What is in a model, by names."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ParsedDump"]


@dataclass
class ParsedDump:
    """The contents of a model, as `Tagger.info` tells them.

    Attributes
    ----------
    header : dict
        Of the model's file: magic, size, type, version, num_features, num_labels, num_attrs and places, as strings.
    labels, attributes : dict name -> number, a string
    transitions : dict (label, next label) -> weight
    state_features : dict (attribute, label) -> weight
    """

    header: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    transitions: dict[tuple[str, str], float] = field(default_factory=dict)
    state_features: dict[tuple[str, str], float] = field(default_factory=dict)
