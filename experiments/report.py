"""What an experiment hands back, and how it becomes Markdown and JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Options", "Report", "Table", "machine", "percent", "seconds"]


@dataclass(frozen=True)
class Options:
    """What the command line decides: a short run to see that everything works, and the number of threads."""

    quick: bool = False
    jobs: int = 1

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


@dataclass
class Table:
    """A table with a caption; cells are strings or numbers, None is empty."""

    caption: str
    header: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [self.caption, "", *(_line(row) for row in (self.header, ["---"] * len(self.header), *self.rows))]
        return "\n".join(lines)


@dataclass
class Report:
    """Tables to read, numbers to compute with, and remarks."""

    name: str
    title: str
    tables: list[Table] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    plots: dict[str, Callable[[Path], None]] = field(default_factory=dict)  # file name -> what draws it

    def markdown(self, command: str) -> str:
        parts = [f"# {self.title}", f"`{command}`; {machine()}", *(table.markdown() for table in self.tables)]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def write(self, directory: Path, command: str) -> list[Path]:
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{self.name}.md", directory / f"{self.name}.json"]
        paths[0].write_text(self.markdown(command), encoding="utf-8")
        content = {"experiment": self.name, "command": command, "machine": machine(), "results": self.results}
        paths[1].write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for name, draw in self.plots.items():
            try:
                draw(directory / name)
            except ModuleNotFoundError as missing:  # a report can be read without its plots
                print(f"{name} was not drawn: {missing}", file=sys.stderr)
                continue
            paths.append(directory / name)
        return paths


def _line(cells: Iterable[Any]) -> str:
    return "| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |"


def machine() -> str:
    """Processor, cores and Python: what timings depend on."""
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def percent(value: float) -> str:
    return f"{100 * value:.2f}"


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"
