"""The command ``scansion``: train, tag, evaluate, inspect, convert, demo.

Exit codes: 0 all right, 1 something is wrong with data, a model or a file, 2 with the command line, 130 interrupted.
Each verb is a module with ``run(args) -> int``, imported when it is used.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # that of typing: an interrupt is in good hands in main, so that nothing is loaded before
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from typing import Any

__all__ = ["UsageError", "main", "printable"]

# what terminals take as commands, what turns the direction of writing, and halves of surrogate pairs
_UNFIT = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


class UsageError(Exception):
    """The command line asks for something that does not go together."""


def printable(text: str, lines: bool = False) -> str:
    """Text for a terminal: controls are escaped (not line ends and tabs of `lines`); JSON stays the same JSON."""

    def escaped(found: re.Match[str]) -> str:
        c = found[0]
        return c if lines and c in "\t\n" else f"\\x{ord(c):02x}" if c < " " else f"\\u{ord(c):04x}"

    import re

    return re.sub(_UNFIT, escaped, text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments behind the command's name; those of the process unless given.
    """
    if argv is not None:
        return _run(list(argv), [])
    interrupts: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    def ignored(what: Any) -> None:
        # an interrupt in a callback, which cannot raise it: it comes again
        signal.raise_signal(signal.SIGINT) if what.exc_type is KeyboardInterrupt else sys.__unraisablehook__(what)

    try:
        import signal

        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = ignored
        code = _run(sys.argv[1:], interrupts)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: the exit code tells so
    except KeyboardInterrupt:  # before or after the work, or while something was said
        code = 130
        sys.stderr.write("scansion: interrupted\n")
    return code


def _run(arguments: list[str], interrupts: list[int]) -> int:
    """The exit code; errors are said in one line. interrupts: those that came."""
    if "numpy" not in sys.modules:  # nothing here uses BLAS, whose threads take time to start
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
        if interrupts and isinstance(error, ImportError):  # extension modules tell of an interrupt in other words
            return _say("interrupted", args, 130)
        return _say(f"{type(error).__name__}: {error} (this should not happen; --debug tells more)", args, 1)


def _say(message: str, args: Any, code: int) -> int:
    """Say in one line what went wrong, or raise it again for its traceback."""
    if getattr(args, "debug", False):
        import traceback

        sys.stderr.write(printable(traceback.format_exc(), lines=True))
    sys.stderr.write(f"scansion: {printable(' '.join(message.split()))}\n")
    return code
