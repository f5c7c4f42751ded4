"""Command line: ``python -m experiments [names] [--quick] [--out DIR] [--jobs N] [--training HOW]``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path

from experiments.data import MissingDataError
from experiments.report import Options

NAMES = (
    "bibliography",
    "punctuation",
    "relations",
    "partial",
    "chunking",
    "robot",
    "strokes",
    "words",
    "learning",
    "letters",
    "synthetic",
    "noun_phrases",
    "kitchen",
    "salads",
    "cad120",
    "tapia",
    "names",
)
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Experiments on real data.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(NAMES)}; all of them by default")
    parser.add_argument("--quick", action="store_true", help="a few iterations only; writes nothing without --out")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write, experiments/results by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="threads (default: all)")
    parser.add_argument(
        "--training",
        choices=Options.training,
        help="bibliography, punctuation: only to the optimum, or only by the authors' optimiser and rule to stop",
    )
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(NAMES))
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}; there are {', '.join(NAMES)}")
    options = Options(given.quick, given.jobs, (given.training,) if given.training else Options.training)
    out = given.out if given.out is not None else None if given.quick else RESULTS
    for name in given.names or NAMES:
        command = f"python -m experiments {name}" + (" --quick" if given.quick else "") + f" --jobs {given.jobs}"
        command += f" --training {given.training}" if given.training else ""
        options.say(f"{name}:")
        begin = time.perf_counter()
        try:
            report = import_module(f"experiments.{name}").run(options)
        except MissingDataError as missing:
            print(f"{name}: skipped, {missing}")
            continue
        print(report.markdown(command))
        if out is not None:
            for path in report.write(out, command):
                options.say(f"  wrote {os.path.relpath(path)}")
        options.say(f"  {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
