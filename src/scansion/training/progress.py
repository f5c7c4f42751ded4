"""Progress of training: a line that renews itself on a terminal, one line an iteration elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, TextIO

__all__ = ["Progress"]

_BAR = 20


class Progress:
    """Writes iterations to standard error when verbose.

    Parameters
    ----------
    verbose : bool
    total : int or None
        Number of iterations, if it is known: then a bar shows how far it got, and how much time is left.
    """

    def __init__(self, verbose: bool, total: int | None = None, stream: TextIO | None = None) -> None:
        self.verbose = bool(verbose)
        self.total = total
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.verbose and self.stream.isatty()
        self.begun = time.perf_counter()

    def update(self, entry: dict[str, Any]) -> None:
        """Show one iteration: the fields of a training log entry."""
        if not self.verbose:
            return
        iteration = entry["iteration"]
        text = f"{iteration:>5}"
        if self.total:
            text += f"/{self.total}"
        for name, form in (("loss", ".6g"), ("gradient_norm", ".3g"), ("active", "d"), ("dev_score", ".4f")):
            if entry.get(name) is not None and not (self.live and name in ("gradient_norm", "active")):
                text += f"  {name.replace('_', ' ')} {entry[name]:{form}}"
        if not self.live:
            self.stream.write(f"{text}  {entry['seconds']:.2f} s\n")
            self.stream.flush()
            return
        elapsed = time.perf_counter() - self.begun
        if self.total:
            done = int(_BAR * min(1.0, iteration / self.total))
            left = elapsed / iteration * max(0, self.total - iteration)
            text = "[" + "#" * done + "." * (_BAR - done) + "]" + text + f"  {_duration(left)} left"
        else:
            text += f"  {_duration(elapsed)}"
        width = shutil.get_terminal_size().columns - 1  # a line that breaks could not be renewed
        self.stream.write("\r\x1b[2K" + text[: max(10, width)])
        self.stream.flush()

    def close(self, message: str) -> None:
        """End with a sentence."""
        if self.verbose:
            self.stream.write(("\n" if self.live else "") + message + "\n")
            self.stream.flush()


def _duration(seconds: float) -> str:
    """Time for people: 12 s, 3:05, 1:02:03."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
