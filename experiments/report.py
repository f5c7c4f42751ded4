"""What an experiment hands back, and how it becomes Markdown and JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Figure", "Options", "Report", "Table", "machine", "percent", "seconds", "spread"]


@dataclass(frozen=True)
class Options:
    """What the command line decides: a short run to see that everything works, the number of threads, how to train."""

    quick: bool = False
    jobs: int = 1
    training: tuple[str, ...] = ("optimum", "authors")  # of the tables of paper 001, see `rows`

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
class Figure:
    """A picture with a caption; `draw` makes a Matplotlib figure when the report is written, see `figures.py`."""

    name: str
    caption: str
    draw: Callable[[], Any]


@dataclass
class Report:
    """Tables to read, numbers to compute with, pictures, and remarks."""

    name: str
    title: str
    tables: list[Table] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def markdown(self, command: str) -> str:
        parts = [f"# {self.title}", f"`{command}`; {machine()}", *(table.markdown() for table in self.tables)]
        return "\n\n".join([*parts, *self.notes]) + "\n"

    def write(self, directory: Path, command: str) -> list[Path]:
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"{self.name}.md", directory / f"{self.name}.json"]
        pictures = [directory / f"{self.name}-{figure.name}.png" for figure in self.figures]
        shown = [f"![{figure.caption}]({path.name})" for figure, path in zip(self.figures, pictures, strict=True)]
        paths[0].write_text("\n\n".join([self.markdown(command).rstrip("\n"), *shown]) + "\n", encoding="utf-8")
        content = {"experiment": self.name, "command": command, "machine": machine(), "results": self.results}
        paths[1].write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for figure, path in zip(self.figures, pictures, strict=True):
            figure.draw().savefig(path, dpi=110, metadata={"Software": None})
        return [*paths, *pictures]


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


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean and standard deviation of several runs."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    return f"{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"
