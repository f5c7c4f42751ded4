"""``scansion evaluate``: how a model's labels agree with those of a file."""

from __future__ import annotations

import json
from typing import Any

from scansion.cli import printable
from scansion.cli.common import check_target, load_model, note, reading_for, show, write_text
from scansion.cli.pages import HTML_LIMIT, entries, possible_labels
from scansion.cli.suspicious import in_block, unknown_labels, warn
from scansion.formats import FormatError
from scansion.formats.answers import Tagger
from scansion.formats.blocks import read
from scansion.formats.targets import detect, labels_of
from scansion.metrics import flat_accuracy_score, flat_classification_report, segment_scores, sequence_accuracy_score

__all__ = ["run"]


def run(args: Any) -> int:
    """Print the scores, for each level."""
    if args.html is not None:
        check_target(args.html, args.file, args.model)
    model = load_model(args.model, args.encoding)
    reading = reading_for(model, args, args.file)
    tagger = Tagger(model, reading, args.jobs)
    count = len(tagger.levels)
    truth: list[list[Any]] = [[] for _ in range(count)]
    guess: list[list[Any]] = [[] for _ in range(count)]
    page = _Page(count)
    for block in read(args.file, reading):
        if not len(block):
            continue
        if not truth[0]:
            warn(in_block(block))
        answers = tagger.ask(block)
        sizes = answers.data.lengths.tolist()
        rows = [answers.rows(answer, size) for answer, size in zip(answers.best, sizes, strict=True)]
        for level in range(count):
            guess[level].extend(row[level] for row in rows)
            truth[level].extend(labels_of(block, False, tagger.scheme, level))
        if args.html is not None:
            page.add(block, answers, [side[-len(block) :] for side in truth], [side[-len(block) :] for side in guess])
    if not truth[0]:
        raise FormatError(args.file, None, "there are no sequences in it")
    for level in range(count):
        warn(unknown_labels(truth[level], possible_labels(tagger, level), args.file))
    if not args.json:  # labels as they are shown, before a table is laid out
        every = {y for level in (*truth, *guess) for row in level for y in row}
        names = {y: printable(y) if isinstance(y, str) else y for y in every}
        truth, guess = ([[[names[y] for y in row] for row in level] for level in side] for side in (truth, guess))
    reports = []
    for level in range(count):
        scheme = args.scheme if args.scheme != "auto" else tagger.scheme or detect(truth[level])
        reports.append(_report(truth[level], guess[level], scheme, tagger.segmental or scheme != "plain"))
    if args.html is not None:
        called = [level.name if count > 1 else "" for level in tagger.levels]
        page.write(args.html, truth, guess, [text for _, text in reports], called)
        note(f"wrote {args.html}")
    if args.json:
        figures = [numbers for numbers, _ in reports]
        show(json.dumps(figures[0] if count == 1 else {"levels": figures}, ensure_ascii=False) + "\n")
        return 0
    for level, (_, text) in enumerate(reports):
        show((f"level {level}:\n" if count > 1 else "") + text)
    return 0


class _Page:
    """What ``--html`` shows, gathered block by block: of all sequences those with most errors."""

    def __init__(self, levels: int) -> None:
        self.sure: list[list[Any]] = [[] for _ in range(levels)]
        self.found: list[tuple[int, int, Any]] = []  # minus the errors, number, entry
        self.count = 0

    def add(self, block: Any, answers: Any, truth: list[list[Any]], guess: list[list[Any]]) -> None:
        """The sequences of a block."""
        for level, sure in zip(self.sure, answers.sure, strict=True):
            level.append(sure)
        pairs = [zip(one, other, strict=True) for one, other in zip(truth, guess, strict=True)]
        errors = [sum(y != z for y, z in zip(*rows, strict=True)) for level in pairs for rows in level]
        wrong = [-sum(errors[b :: len(block)]) for b in range(len(block))]
        best = sorted(range(len(block)), key=lambda b: (wrong[b], b))[:HTML_LIMIT]
        chosen = sorted(best)
        made = entries(block, answers, chosen, truth)
        self.found += [(wrong[b], self.count + b, one) for b, one in zip(chosen, made, strict=True)]
        self.found = sorted(self.found, key=lambda one: one[:2])[:HTML_LIMIT]
        self.count += len(block)

    def write(self, path: str, truth: list[Any], guess: list[Any], reports: list[str], names: list[str]) -> None:
        """The page."""
        from scansion.display.evaluation import Agreement, evaluation_page

        levels = list(map(Agreement, names, truth, guess, self.sure, reports))
        for errors, number, entry in self.found:
            entry.name = f"Sequence {number + 1}: " + (f"{-errors} wrong" if errors else "all right")
        title = "Truth and prediction"
        write_text(path, evaluation_page(levels, [one[2] for one in self.found], title, self.count - len(self.found)))


def _report(truth: list[Any], guess: list[Any], scheme: str, segmental: bool) -> tuple[dict[str, Any], str]:
    """The figures of one level, and the table that shows them."""
    figures: dict[str, Any] = {
        "scheme": scheme,
        "sequences": len(truth),
        "tokens": sum(map(len, truth)),
        "accuracy": flat_accuracy_score(truth, guess),
        "sequence_accuracy": sequence_accuracy_score(truth, guess),
    }
    if not segmental:
        table = flat_classification_report(truth, guess, digits=4, zero_division=0, output_dict=True)
        text = flat_classification_report(truth, guess, digits=4, zero_division=0)
        assert isinstance(table, dict) and isinstance(text, str)
        rows = {str(y): row for y, row in table.items() if isinstance(row, dict) and not y.endswith(" avg")}
        return figures | {"labels": rows}, text
    # conlleval's rules where they apply: published figures read malformed tags as it does
    rules = "conlleval" if scheme in ("iob1", "iob2", "ioe1", "ioe2") else scheme
    scores = segment_scores(truth, guess, rules)
    for name, score in (("micro", scores.micro), ("macro", scores.macro), ("weighted", scores.weighted)):
        figures[name] = score._asdict()
    figures["labels"] = {str(label): score._asdict() for label, score in scores.labels.items()}
    return figures, str(scores)
