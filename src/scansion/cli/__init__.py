"""The command ``scansion``: train, tag, evaluate, inspect, convert, demo.

Exit codes: 0 all right, 1 something is wrong with data, a model or a file, 2 with the command line, 130 interrupted.
Each verb is a module with ``run(args) -> int``, imported when it is used.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

__all__ = ["UsageError", "main", "printable"]

# what terminals take as commands, what turns the direction of writing, and halves of surrogate pairs
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class UsageError(Exception):
    """The command line asks for something that does not go together."""


def printable(text: str, lines: bool = False) -> str:
    """Text for a terminal: controls are escaped (not line ends and tabs of `lines`); JSON stays the same JSON."""

    def escaped(found: re.Match[str]) -> str:
        c = found[0]
        return c if lines and c in "\t\n" else f"\\x{ord(c):02x}" if c < " " else f"\\u{ord(c):04x}"

    return _UNFIT.sub(escaped, text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments behind the command's name; those of the process unless given.
    """
    if "numpy" not in sys.modules:  # nothing here uses BLAS, whose threads take time to start
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = list(sys.argv[1:] if argv is None else argv)
    # --help before a verb is about all of them
    verb = next((a for a in arguments if not a.startswith("-") or a in ("-h", "--help")), None)
    args: Any = None
    try:
        from scansion.cli.parser import build_parser

        # what the demonstration is told is its own business
        args, rest = build_parser(verb).parse_known_args(arguments)
        if rest and verb != "demo":
            raise UsageError(f"unrecognized arguments: {' '.join(rest)}")
        args.rest = rest
        code = import_module(f"scansion.cli.{args.verb}").run(args)
        sys.stdout.flush()
        return int(code)
    except SystemExit as stop:  # help, version or an error: the parser has said it
        return stop.code if isinstance(stop.code, int) else 2
    except KeyboardInterrupt:
        return _say("interrupted", args, 130)
    except BrokenPipeError:
        # whoever read the output has gone; the interpreter must not fail again when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        return _say(f"{error} (see scansion {verb} --help)", args, 2)
    except OSError as error:
        what = error.strerror or str(error)
        return _say(f"{error.filename}: {what}" if error.filename is not None else what, args, 1)
    except MemoryError:
        return _say("there is not enough memory", args, 1)
    except (ValueError, TypeError) as error:
        return _say(str(error), args, 1)
    except Exception as error:
        return _say(f"{type(error).__name__}: {error} (this should not happen; --debug tells more)", args, 1)


def _say(message: str, args: Any, code: int) -> int:
    """Say in one line what went wrong, or raise it again for its traceback."""
    if getattr(args, "debug", False):
        import traceback

        sys.stderr.write(printable(traceback.format_exc(), lines=True))
    sys.stderr.write(f"scansion: {printable(' '.join(message.split()))}\n")
    return code
