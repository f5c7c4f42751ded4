"""``scansion convert``: between formats and tag schemes, sequence by sequence; models between tools."""

from __future__ import annotations

from typing import Any

from scansion.cli import UsageError
from scansion.cli.common import check_target, check_template, given_reading, given_template, load_model, open_output
from scansion.cli.parser import labels_given
from scansion.formats import Reading, format_module, format_of
from scansion.formats.blocks import Record, Spans, read
from scansion.formats.targets import OUTSIDE, detect
from scansion.models.files import maker
from scansion.schemes import convert, encode, segments

__all__ = ["run"]


def run(args: Any) -> int:
    """Convert a file."""
    tool = maker(args.source)
    if tool is not None:
        return _model(args, tool)
    if args.target_format == "scansion":
        raise UsageError(f"--to scansion is for models, but {args.source} holds none")
    template = given_template(args)
    source = args.source_format or format_of(args.source)
    target = args.target_format or format_of(args.target, source)
    reading = given_reading(args, source, () if args.no_labels else labels_given(args.labels) or (-1,))
    comma = target == "csv" and not args.target.lower().endswith((".tsv", ".tab"))
    separator = args.output_separator if args.output_separator is not None else "," if comma else "\t"
    writing = Reading(format=target, separator=separator)
    writer = format_module(target)
    if args.spans and not writer.SPANS:
        raise UsageError("--spans goes with --to jsonl")
    if template is not None and not writer.ATTRIBUTES:
        raise UsageError("columns hold words, not attributes: a template goes with --to crfsuite or --to jsonl")
    if args.target != "-":
        check_target(args.target, args.source)
    scheme = None if args.from_scheme == "auto" else args.from_scheme
    count = 0
    with open_output(args.target) as out:
        for block in read(args.source, reading):
            check_template(template, block)
            records = block.records(template)
            if scheme is None and any(record.labels for record in records):
                scheme = detect([row for record in records for row in record.labels if not record.spans])
            for record in records:
                _rewrite(record, scheme or "iob2", args, writer.SPANS)
                record.number = count
                writer.write(out, record, writing)
                count += 1
    return 0


def _model(args: Any, tool: str) -> int:
    """A model of ours becomes one of CRFsuite, others' become ours, unless the file's name or --to say otherwise."""
    if args.target == "-":
        raise UsageError(f"{args.source} holds a model: name the file to write, as in scansion convert MODEL OUT")
    usual = "crfsuite" if tool == "scansion" or args.target.lower().endswith(".crfsuite") else "scansion"
    wanted = args.target_format or usual
    if wanted not in ("scansion", "crfsuite"):
        raise UsageError(f"{args.source} holds a model: --to scansion or --to crfsuite")
    check_target(args.target, args.source)
    load_model(args.source, args.encoding).save(args.target, format=wanted)
    return 0


def _rewrite(record: Record, scheme: str, args: Any, spans: bool) -> None:
    """Labels in the scheme that is wanted; those of spans, where labels are; and spans where they are to be written."""
    wanted = args.to_scheme
    try:
        if record.spans is not None:
            record.labels = [encode(level, len(record), wanted or "iob2", outside=OUTSIDE) for level in record.spans]
            if wanted is not None and not args.spans and len(record.spans) < 2:
                record.spans = None
        elif wanted is not None:
            record.labels = [convert(level, scheme, wanted, outside=OUTSIDE) for level in record.labels]
        if spans and record.spans is None and (args.spans or len(record.labels) > 1):
            read, outside = wanted or scheme, None if (wanted or scheme) == "plain" else OUTSIDE
            record.spans = [Spans(segments(level, read, outside=outside)) for level in record.labels]
    except ValueError as error:
        raise ValueError(f"{record.where}: {error}") from None
