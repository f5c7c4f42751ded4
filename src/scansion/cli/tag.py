"""``scansion tag``: labels for the sequences of a file, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion.cli import UsageError
from scansion.cli.common import check_target, load_model, note, open_output, reading_for, write_text
from scansion.formats import Block, format_module, read
from scansion.formats.answers import Answers, Asked, Tagger

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
    reading = reading_for(model, args, args.file)
    tagger = Tagger(model, reading, args.jobs)
    if len(tagger.levels) > 1 and args.compressed:
        raise UsageError("--compressed goes with models of one level")
    asked = Asked(args.kbest, args.marginals, args.all_marginals, args.compressed)
    page = _Page(tagger) if args.html is not None else None
    writer = format_module(reading.format)
    with open_output(args.output) as out:
        for block in read(args.file, reading):
            answers = tagger.ask(block, args.constraints) if len(block) else None
            writer.annotate(out, block, answers, asked)
            out.flush()
            if page is not None and answers is not None:
                page.add(block, answers)
    if page is not None:
        page.write(args.html)
    return 0


class _Page:
    """Sequences for the page that `scansion.display` makes."""

    def __init__(self, tagger: Tagger) -> None:
        from scansion.formats.targets import detect

        self.entries: list[Any] = []
        self.left_out = 0
        self.labels = [str(y) for y in tagger.levels[-1].labels]
        self.scheme: str = tagger.scheme or detect([self.labels])

    def add(self, block: Block, answers: Answers) -> None:
        """Add the sequences of a block, up to the limit."""
        from scansion.display import Sequence

        room = max(0, HTML_LIMIT - len(self.entries))
        self.left_out += max(0, len(block) - room)
        if not room:
            return
        some = answers.head(room)
        tables = np.split(some.marginals[-1], some.data.offsets[1:-1])  # of several levels, the bottom's
        for words, found, table in zip(block.words(), some.kbest(3), tables, strict=False):
            others = [(self._levels(some, answer), p) for answer, p in found]
            levels = others[0][0] if others else []
            self.entries.append(Sequence(words, levels, None, table, self.labels, others[1:] or None))

    def _levels(self, answers: Answers, answer: list[Any]) -> list[list[tuple[int, int, str]]]:
        from scansion.formats.targets import spans_of

        levels = answers.spans(answer, self.scheme)
        return [[(u, v, str(y)) for u, v, y in spans_of(level, self.scheme)] for level in levels]

    def write(self, path: str) -> None:
        """Write the page."""
        from scansion.display import sequence_page

        write_text(path, sequence_page(self.entries))
        if self.left_out:
            note(f"{path} shows the first {len(self.entries)} sequences; {self.left_out} are left out")
