"""``scansion tag``: labels for the sequences of a file, block by block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scansion.cli import UsageError
from scansion.cli.common import check_target, given_rules, load_model, note, open_output, reading_for, write_text
from scansion.cli.suspicious import in_block, warn
from scansion.formats import format_module
from scansion.formats.answers import Answers, Asked, Tagger
from scansion.formats.blocks import Block, read

__all__ = ["run"]

HTML_LIMIT = 200


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
    model = load_model(args.model)
    _add_rules(model, given_rules(args))
    reading = reading_for(model, args, args.file)
    tagger = Tagger(model, reading, args.jobs)
    if args.compressed and not hasattr(model, "predict_compressed"):
        raise UsageError("--compressed goes with models of one level")
    asked = Asked(args.kbest, args.marginals, args.all_marginals, args.compressed)
    writer = format_module(reading.format)
    entries: list[Any] = []
    left_out = 0
    first = True
    with open_output(args.output) as out:
        for block in read(args.file, reading):
            if first:
                warn(in_block(block))
                first = False
            answers = tagger.ask(block, args.constraints) if len(block) else None
            writer.annotate(out, block, answers, asked)
            out.flush()
            if args.html is not None and answers is not None:
                shown = _entries(block, answers, HTML_LIMIT - len(entries))
                entries += shown
                left_out += len(block) - len(shown)
    if args.html is not None:
        from scansion.display import sequence_page

        write_text(args.html, sequence_page(entries))
        if left_out:
            note(f"{args.html} shows the first {len(entries)} sequences; {left_out} are left out")
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


def _entries(block: Block, answers: Answers, room: int) -> list[Any]:
    """The first sequences of a block, for a page: the best answers, and the marginals of the lowest level."""
    from scansion.display import Sequence
    from scansion.formats.targets import detect, spans_of

    if room <= 0:
        return []
    some = answers.head(room)
    labels = [str(y) for y in some.levels[-1].labels]
    scheme = some.scheme or detect([labels])
    tables = np.split(some.marginals[-1], some.data.offsets[1:-1])
    entries = []
    free = some.without_rules()
    for words, found, table, ruled in zip(block.words(), some.kbest(3), tables, free, strict=False):
        read = [
            ([[(u, v, str(y)) for u, v, y in spans_of(level, scheme)] for level in some.spans(answer, scheme)], p)
            for answer, p in found
        ]
        entry = Sequence(words, read[0][0], None, table, labels, read[1:] or None)
        if ruled is not None:
            answer, broken = ruled
            levels = [[(u, v, str(y)) for u, v, y in spans_of(one, scheme)] for one in some.spans(answer, scheme)]
            entry = replace(entry, without_rules=(levels, broken))
        entries.append(entry)
    return entries
