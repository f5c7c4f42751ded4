"""``scansion demo``: the tour that comes with the package."""

from __future__ import annotations

from typing import Any

__all__ = ["run"]


def run(args: Any) -> int:
    """Hand over to the demonstration."""
    from scansion.demo import main

    return main(args.rest)
