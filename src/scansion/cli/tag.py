"""``scansion tag``: labels for the sequences of a file, block by block."""

from __future__ import annotations

import re
from typing import Any

from scansion.cli import UsageError
from scansion.cli.common import check_target, given_rules, load_model, note, open_output, reading_for, write_text
from scansion.cli.pages import HTML_LIMIT, entries, truth_of
from scansion.cli.suspicious import in_block, warn
from scansion.formats import FormatError, format_module
from scansion.formats.answers import Asked, Tagger
from scansion.formats.blocks import Block, read

__all__ = ["run"]


def run(args: Any) -> int:
    """Tag a file."""
    if args.compressed and (args.kbest or args.marginals or args.all_marginals or args.html):
        raise UsageError("--compressed gives trajectories alone: it does not go with --kbest, --marginals or --html")
    if args.kbest and (args.marginals or args.all_marginals):
        raise UsageError("--kbest gives probabilities of whole sequences: it does not go with --marginals")
    if args.output != "-":
        check_target(args.output, args.file, args.model)
    if args.html is not None:
        check_target(args.html, args.file, args.model)
    model = load_model(args.model, args.encoding)
    _add_rules(model, given_rules(args))
    reading = reading_for(model, args, args.file)
    tagger = Tagger(model, reading, args.jobs)
    if args.compressed and not hasattr(model, "predict_compressed"):
        raise UsageError("--compressed goes with models of one level")
    asked = Asked(args.kbest, args.marginals, args.all_marginals, args.compressed)
    writer = format_module(reading.format)
    shown_entries: list[Any] = []
    left_out = 0
    first = True
    with open_output(args.output, reading.encoding) as out:
        for block in read(args.file, reading):
            if first:
                warn(in_block(block))
                first = False
            try:
                answers = tagger.ask(block, args.constraints) if len(block) else None
                writer.annotate(out, block, answers, asked)
            except ValueError as error:
                raise _with_line(error, block) if args.constraints else error from None
            out.flush()
            if args.html is not None and answers is not None:
                chosen = list(range(min(len(block), HTML_LIMIT - len(shown_entries))))
                shown = entries(block, answers, chosen, truth_of(block, tagger))
                shown_entries += shown
                left_out += len(block) - len(shown)
    if args.html is not None:
        from scansion.display import sequence_page

        write_text(args.html, sequence_page(shown_entries))
        if left_out:
            note(f"{args.html} shows the first {len(shown_entries)} sequences; {left_out} are left out")
    return 0


def _add_rules(model: Any, rules: list[Any]) -> None:
    """Let a model keep these rules too; an error says that its labels are others."""
    from scansion.rules.compile import given_rules as listed

    if rules:
        own = [] if model.rules is None else listed(model.rules)
        model.set_params(rules=[*own, *rules])
        try:
            model.ask([], lambda batch: [])
        except ValueError as error:
            raise UsageError(str(error)) from None


_ABOUT = re.compile(r"(?:y|constraints)\[(\d+)\](?:\[(\d+)\])?(.*)|sequence (\d+), token (\d+):(.*)", re.DOTALL)


def _with_line(error: ValueError, block: Block) -> ValueError:
    """An error about what is known of a sequence, with file and line in place of its number."""
    found = _ABOUT.match(str(error))
    if found is None or isinstance(error, FormatError):
        return error
    b, t = int(found[1] or found[4]), found[2] or found[5]
    what = "the label" if t else "the sequence that begins here"
    return FormatError(block.path, block.line(b, int(t or 0)), f"{what}{found[3] or ':' + found[6]}")
