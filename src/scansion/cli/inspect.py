"""``scansion inspect``: what a model has learnt."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from typing import Any

from scansion.cli.common import check_target, load_model, note, write_text

__all__ = ["run"]


def run(args: Any) -> int:
    """Show the model as text, JSON or a page."""
    if args.html is not None:
        check_target(args.html, args.model)
    model = load_model(args.model)
    if args.html is not None:
        from scansion.display import report_page

        write_text(args.html, report_page(model, top=args.top))
        note(f"wrote {args.html}")
        return 0
    summary = _summary(model, args.top)
    if args.json:
        write_text("-", json.dumps(summary, ensure_ascii=False) + "\n")
    else:
        write_text("-", _text(summary))
    return 0


def _summary(model: Any, top: int) -> dict[str, Any]:
    """What there is to show, in JSON's types."""
    reading = model.reading_
    changed = {k: v for k, v in model.get_params().items() if _plain(v) and v != _default(model, k)}
    result: dict[str, Any] = {
        "kind": model._kind,
        "labels": [str(y) for y in model.classes_],
        "weights": model.size_,
        "loss": model.loss_ if model.loss_ == model.loss_ else None,
        "message": model.message_,
        "parameters": changed,
        "reading": None if reading is None else reading.to_json(),
    }
    if model._kind in ("crf", "semicrf"):
        features = model.state_features_
        result["attributes"] = len({name for name, _ in features})
        if model._kind == "semicrf":
            result["max_length"] = model.model_.max_length
        by_label: dict[str, list[tuple[float, str]]] = {str(y): [] for y in model.classes_}
        for (name, label), weight in features.items():
            by_label[str(label)].append((weight, name))
        result["state_features"] = {y: _strongest(found, top) for y, found in by_label.items()}
        result["patterns"] = _strongest(
            ((w, " -> ".join(map(str, p))) for p, w in model.pattern_features_.items()), top
        )
        tied = model.attribute_pattern_features_
        result["attribute_patterns"] = _strongest(
            ((w, f"{name}  {' -> '.join(map(str, p))}") for (name, p), w in tied.items()), top
        )
    return result


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, dict, tuple))


def _default(model: Any, name: str) -> Any:
    import inspect

    return inspect.signature(type(model).__init__).parameters[name].default


def _strongest(found: Iterable[tuple[float, str]], top: int) -> list[list[Any]]:
    """(name, weight) of the largest absolute weights; equal ones by name."""
    chosen = heapq.nsmallest(top, found, key=lambda pair: (-abs(pair[0]), pair[1]))
    return [[name, weight] for weight, name in chosen]


def _text(summary: dict[str, Any]) -> str:
    labels = summary["labels"]
    lines = [f"{summary['kind']}: {len(labels)} labels, {summary['weights']} weights other than 0"]
    if "attributes" in summary:
        lines[0] += f", {summary['attributes']} attributes"
    if "max_length" in summary:
        lines[0] += f", segments of up to {summary['max_length']} tokens"
    lines.append("labels: " + " ".join(labels))
    if summary["loss"] is not None:
        lines.append(f"loss: {summary['loss']:.6g} ({summary['message']})")
    if summary["parameters"]:
        lines.append("parameters: " + ", ".join(f"{k}={v!r}" for k, v in summary["parameters"].items()))
    reading = summary["reading"]
    if reading is not None:
        told = f"reads: {reading['format']}"
        if reading["scheme"] is not None:
            told += f", scheme {reading['scheme']}"
        lines.append(told)
        if reading["template"] is not None:
            lines.append(f"template ({reading['dialect']}):")
            lines += ["  " + line for line in reading["template"].splitlines()]
    for title, rows in (
        ("patterns of labels", summary.get("patterns")),
        ("attributes with patterns", summary.get("attribute_patterns")),
    ):
        if rows:
            lines += ["", f"{title}, strongest first"]
            lines += [f"  {weight:+9.4f}  {name}" for name, weight in rows]
    for label, rows in summary.get("state_features", {}).items():
        if rows:
            lines += ["", f"{label}"]
            lines += [f"  {weight:+9.4f}  {name}" for name, weight in rows]
    return "\n".join(lines) + "\n"
