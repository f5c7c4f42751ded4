"""Model files of the first layout, in which flat and hierarchical models had one each, as those of the present one."""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion.model_file import ModelFile

__all__ = ["renewed"]


def renewed(stored: ModelFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata and arrays in the present layout; KeyError, ValueError or TypeError if the pieces do not fit."""
    return _nested(stored) if stored.kind == "hierarchical" else _flat(stored)


def _flat(stored: ModelFile) -> tuple[dict[str, Any], dict[str, Any]]:
    old, arrays = stored.metadata, dict(stored.arrays)
    parts, names, labels = old["parts"], old["basis_names"], old["labels"]
    n, longer = len(labels), len(arrays["patterns.offsets"]) - 1
    always = (
        longer
        - checks.count("n_forbidden", old["n_forbidden"], 0)
        - checks.count("n_silent", old.get("n_silent", 0), 0)
    )
    if always < 0:
        raise ValueError(f"{longer} patterns are fewer than those without an always-on feature")
    arrays["0.basis"] = arrays.pop("basis")
    for name in ("text", "offsets"):
        arrays[f"0.spans.{name}"] = arrays.pop(f"cell_attributes.{name}")
    for name in ("limits", "length_counts"):
        if name in arrays:
            arrays[f"0.{name}"] = arrays.pop(name)
    blocks = [("pattern", np.array([0, always]), np.arange(n, n + always, dtype=np.int32))]
    blocks += [(part, arrays[f"{part}.rows"], arrays[f"{part}.pattern"]) for part in parts]
    size = len(names)
    blocks.append(("length", np.arange(size + 1) * n, np.tile(np.arange(n, dtype=np.int32), size)))
    if old["segments"]:
        blocks.append(("span", arrays["cells.rows"], arrays["cells.pattern"]))
    for i, (_, rows, columns) in enumerate(blocks):
        arrays[f"block{i}.rows"], arrays[f"block{i}.columns"] = rows, columns
    level = {"name": "label", "labels": labels, "max_length": old["max_length"], "basis_names": names}
    described = [{"level": 0, "part": part, "always": part == "pattern"} for part, _, _ in blocks]
    return {**old, "levels": [level], "blocks": described}, arrays


def _nested(stored: ModelFile) -> tuple[dict[str, Any], dict[str, Any]]:
    metadata, arrays = dict(stored.metadata), dict(stored.arrays)
    sizes = [len(level["labels"]) for level in metadata["levels"]]
    if 0 in sizes:
        raise ValueError(f"level {sizes.index(0)} has no labels")
    attributes = len(arrays["attributes.offsets"]) - 1
    weights = [np.zeros(0)]
    for i, block in enumerate(metadata["blocks"]):
        k, part = checks.count("level", block["level"], 0), block["part"]
        size, parents = sizes[k], sizes[k - 1] if k else 1
        width = {"transition": parents * size * size, "initialisation": parents * size, "ending": parents * size}
        spans = len(arrays[f"{k}.spans.offsets"]) - 1
        rows = {"length": len(metadata["levels"][k]["basis_names"]), "span": spans}.get(part, attributes)
        index = np.asarray(arrays.pop(f"block{i}.index"))
        index = checks.integers(f"block{i}.index", index, index.size, 0, 2**62)
        columns = width.get(part, size)
        starts = np.arange((1 if block["always"] else rows) + 1) * columns
        arrays[f"block{i}.rows"] = np.searchsorted(index, starts).astype(np.int64)
        arrays[f"block{i}.columns"] = (index % columns).astype(np.int32)
        weights.append(np.asarray(arrays.pop(f"block{i}.weights")))
    arrays["weights"] = np.concatenate(weights)
    return metadata, arrays
