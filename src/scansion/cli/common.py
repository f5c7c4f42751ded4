"""What the verbs share: models and how they read files, output, templates."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

from scansion.cli import UsageError, printable
from scansion.cli.parser import labels_given
from scansion.features.templates import BUILT_IN, Template
from scansion.formats import FormatError, Reading, format_of
from scansion.formats.blocks import Block
from scansion.formats.reading import NAMED, Column, is_utf8

__all__ = [
    "check_target",
    "check_template",
    "given_reading",
    "given_rules",
    "given_template",
    "load_model",
    "note",
    "open_output",
    "reading_for",
    "show",
    "write_text",
]


def note(message: str) -> None:
    """Say something on standard error."""
    sys.stderr.write(f"scansion: {printable(message)}\n")


def show(text: str) -> None:
    """Print text, or JSON, that holds names out of models and data."""
    write_text("-", printable(text, lines=True))


def load_model(path: str, encoding: str | None = None) -> Any:
    """The model of a file; where a model of another tool is not in UTF-8, in the encoding that is given."""
    import scansion
    from scansion.model_file import ModelFileError

    try:
        return scansion.load(path)
    except ModelFileError:
        if encoding is None:
            raise
        return scansion.load(path, encoding=encoding)


def given_template(args: Any) -> Template | None:
    """The template that the command line names."""
    if args.template is not None and args.features is not None:
        raise UsageError("--template and --features are two templates; give one")
    if args.features is not None:
        return Template(BUILT_IN[args.features], name=f"--features {args.features}")
    if args.template is None:
        return None
    with open(args.template, "rb") as file:
        content = file.read()
    try:
        return Template(content.decode(), args.dialect, args.template)
    except UnicodeDecodeError:
        raise FormatError(args.template, None, "the template is not valid UTF-8") from None


def given_rules(args: Any) -> list[Any]:
    """The rules that the command line gives, in files and by themselves."""
    from scansion.rules import parse

    found = []
    for path in args.rules:
        with open(path, "rb") as file:
            content = file.read()
        try:
            found.append(parse(content.decode()))
        except UnicodeDecodeError:
            raise FormatError(path, None, "the rules are not valid UTF-8") from None
        except ValueError as error:
            raise FormatError(path, None, str(error)) from None
    for text in args.rule:
        try:
            found.append(parse(text))
        except ValueError as error:
            raise UsageError(f"--rule: {error}") from None
    return found


def check_template(template: Template | None, block: Block) -> None:
    """Raise if a template can make nothing of what a file holds."""
    if template is not None and block.rows is None:
        raise UsageError("a template makes attributes of columns, but the file has attributes already")


def given_reading(args: Any, form: str, labels: tuple[Column, ...]) -> Reading:
    """How to read a file of this format as the command line says."""
    reading = Reading(form, args.separator or "", args.comment or "", args.columns, labels)
    return _checked(reading._replace(header=args.header, group=args.group, encoding=args.encoding or "utf-8"))


def _checked(reading: Reading) -> Reading:
    """Raise where something is said of a header, of groups or of names in a format that has none."""
    for name in ("header", "group"):
        if getattr(reading, name) is not None and reading.format != "csv":
            raise UsageError(f"--{name} goes with CSV and TSV (--format csv), but the format is {reading.format}")
    names = [column for column in (*reading.labels, *(reading.columns or ())) if isinstance(column, str)]
    if names and reading.format not in NAMED:
        raise UsageError(
            f"expected column numbers, got {names[0]!r}: columns of the format {reading.format} have no names"
        )
    return reading


def reading_for(model: Any, args: Any, path: str) -> Reading:
    """How to read a file for a model: as in training, unless the command line or the file's name say otherwise."""
    reading: Reading = model.reading_ or Reading(format="crfsuite")
    changes: dict[str, Any] = {"format": args.format or format_of(path, reading.format)}
    if changes["format"] != "csv":
        changes |= {"header": None, "group": None}
    for name in ("separator", "comment", "header", "group", "columns", "encoding"):
        if getattr(args, name) is not None:
            changes[name] = getattr(args, name)
    labels = labels_given(args.labels)
    if labels is not None:
        changes["labels"] = labels
    return _checked(reading._replace(**changes))


@contextlib.contextmanager
def open_output(path: str, encoding: str = "utf-8") -> Iterator[IO[bytes]]:
    """A file to write UTF-8 to, which takes its place when the block ends; "-" is standard output."""
    with contextlib.ExitStack() as stack:
        if path == "-":
            sys.stdout.flush()
            stack.callback(sys.stdout.buffer.flush)
            file: Any = sys.stdout.buffer
        else:
            from scansion._files import replacing

            file = stack.enter_context(replacing(path, "wb", through=True))
        yield file if is_utf8(encoding) else codecs.EncodedFile(file, "utf-8", encoding)


def write_text(path: str, text: str) -> None:
    """Write a text file."""
    with open_output(path) as file:
        file.write(text.encode())


def check_target(path: str, *sources: str) -> None:
    """Raise before the work is done if a file can not be written where it is to go, or would overwrite a source."""
    for source in sources:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise UsageError(f"{path} would be overwritten while it is read; write to another file")
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise FileNotFoundError(2, "no such directory", directory)
    if os.path.isdir(path):
        raise IsADirectoryError(21, "is a directory; name a file", path)
    if not os.access(directory, os.W_OK):
        raise PermissionError(13, "cannot write in this directory", directory)
