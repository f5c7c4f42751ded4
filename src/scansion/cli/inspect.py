"""``scansion inspect``: what a model has learnt."""

from __future__ import annotations

import heapq
import inspect
import json
from collections.abc import Iterable
from typing import Any

from scansion.cli import printable
from scansion.cli.common import check_target, load_model, note, show, write_text
from scansion.cli.parser import MODELS

__all__ = ["run"]


def run(args: Any) -> int:
    """Show the model as text, JSON or a page."""
    if args.html is not None:
        check_target(args.html, args.model)
    model = load_model(args.model, args.encoding)
    if args.html is not None:
        from scansion.display import report_page

        write_text(args.html, report_page(model, top=args.top))
        note(f"wrote {args.html}")
        return 0
    summary = _summary(model, args.top)
    show(json.dumps(summary, ensure_ascii=False) + "\n" if args.json else _text(summary))
    return 0


def _summary(model: Any, top: int) -> dict[str, Any]:
    """What there is to show, in JSON's types; of several levels, what belongs to one is in a list of levels."""
    reading = model.reading_
    defaults = inspect.signature(type(model).__init__).parameters
    changed = {k: v for k, v in model.get_params().items() if _plain(v) and v != defaults[k].default}
    features = list(model.level_features())
    levels = []
    for k, level in enumerate(model.levels_):
        named = {"name": level.name} if len(model.levels_) > 1 else {}
        longest = {"max_length": level.max_length} if model.segments_ else {}
        levels.append(named | longest | _level(level.labels, [f for f in features if f.level == k], top))
    return {
        "kind": next(kind for kind, name in MODELS.items() if name == type(model).__name__),
        "labels": [y for level in levels for y in level["labels"]],
        "weights": model.size_,
        "loss": model.loss_ if model.loss_ == model.loss_ else None,
        "message": model.message_,
        "parameters": changed,
        "reading": None if reading is None else reading.to_json(),
        "attributes": len({f.attribute for f in features if len(f.labels) == 1}),
        **(levels[0] if len(levels) == 1 else {"levels": levels}),
    }


def _level(labels: list[Any], features: list[Any], top: int) -> dict[str, Any]:
    """A level's labels and its strongest features."""
    states: dict[str, list[tuple[float, str]]] = {str(y): [] for y in labels}
    patterns: list[tuple[float, str]] = []
    tied: list[tuple[float, str]] = []
    for _, parent, pattern, attribute, weight in features:
        if len(pattern) == 1:
            states[str(pattern[0])].append((weight, attribute))
            continue
        name = " -> ".join(map(str, pattern)) + ("" if parent is None else f"  inside {parent}")
        if attribute is None:
            patterns.append((weight, name))
        else:
            tied.append((weight, f"{attribute}  {name}"))
    return {
        "labels": list(states),
        "state_features": {y: _strongest(found, top) for y, found in states.items()},
        "patterns": _strongest(patterns, top),
        "attribute_patterns": _strongest(tied, top),
    }


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, dict, tuple))


def _strongest(found: Iterable[tuple[float, str]], top: int) -> list[list[Any]]:
    """(name, weight) of the largest absolute weights; equal ones by name."""
    chosen = heapq.nsmallest(top, found, key=lambda pair: (-abs(pair[0]), pair[1]))
    return [[name, weight] for weight, name in chosen]


def _text(summary: dict[str, Any]) -> str:
    levels = summary.get("levels", [summary])
    first = f"{summary['kind']}: {len(summary['labels'])} labels, {summary['weights']} weights other than 0"
    first += f", {summary['attributes']} attributes"
    if summary.get("max_length") is not None:
        first += f", segments of up to {summary['max_length']} tokens"
    lines = [first]
    for level in levels:
        of = f" of {level['name']}" if len(levels) > 1 else ""
        lines.append(f"labels{of}: " + " ".join(level["labels"]))
    if summary["loss"] is not None:
        lines.append(f"loss: {summary['loss']:.6g} ({summary['message']})")
    if summary["parameters"]:
        lines.append("parameters: " + ", ".join(f"{k}={v!r}" for k, v in summary["parameters"].items()))
    reading = summary["reading"]
    if reading is not None:
        scheme = "" if reading["scheme"] is None else f", scheme {reading['scheme']}"
        lines.append(f"reads: {reading['format']}{scheme}")
        if reading["template"] is not None:
            lines.append(f"template ({reading['dialect']}):")
            lines += ["  " + line for line in reading["template"].splitlines()]
    for level in levels:
        of = f"{level['name']}: " if len(levels) > 1 else ""
        sections = {
            "patterns of labels, strongest first": level["patterns"],
            "attributes with patterns, strongest first": level["attribute_patterns"],
        }
        for title, rows in (*sections.items(), *level["state_features"].items()):
            if rows:
                lines += ["", of + title, *(f"  {weight:+9.4f}  {name}" for name, weight in rows)]
    return "".join(printable(line) + "\n" for line in lines)
