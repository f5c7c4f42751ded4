"""Progress of training: a line that renews itself on a terminal, one line an iteration elsewhere."""

from __future__ import annotations

import sys
from typing import Any, TextIO

__all__ = ["Progress"]


class Progress:
    """Writes iterations to standard error when verbose.

    Parameters
    ----------
    verbose : bool
    total : int or None
        Number of iterations, if it is known: then a bar shows how far it got.
    """

    def __init__(self, verbose: bool, total: int | None = None, stream: TextIO | None = None) -> None:
        self.verbose = bool(verbose)
        self.total = total
        self.stream = stream if stream is not None else sys.stderr
        self.live = self.verbose and self.stream.isatty()

    def update(self, entry: dict[str, Any]) -> None:
        """Show one iteration: the fields of a training log entry."""
        if not self.verbose:
            return
        text = f"{entry['iteration']:>5}"
        if self.total:
            text += f"/{self.total}"
        for name, form in (("loss", ".6g"), ("gradient_norm", ".3g"), ("active", "d"), ("dev_score", ".4f")):
            if entry.get(name) is not None:
                text += f"  {name.replace('_', ' ')} {entry[name]:{form}}"
        text += f"  {entry['seconds']:.2f} s"
        if self.live:
            if self.total:
                done = int(20 * entry["iteration"] / self.total)
                text = "[" + "#" * done + "." * (20 - done) + "]" + text
            self.stream.write("\r\x1b[2K" + text)
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def close(self, message: str) -> None:
        """End with a sentence."""
        if self.verbose:
            self.stream.write(("\n" if self.live else "") + message + "\n")
            self.stream.flush()
