"""``scansion demo``: the tour that comes with the package."""

from __future__ import annotations

from typing import Any

__all__ = ["run"]


def run(args: Any) -> int:
    """Hand over to the demonstration."""
    from scansion.demo import main

    try:
        return int(main(args.rest))
    except SystemExit as stop:  # its own help, or an error in its arguments
        return stop.code if isinstance(stop.code, int) else 2
