"""``scansion tag``: labels for the sequences of a file, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scansion.cli import UsageError
from scansion.cli.common import check_target, load_model, note, open_output, reading_for, write_text
from scansion.cli.tagger import Tagger
from scansion.formats import Block, read
from scansion.formats.blocks import cut

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
    if tagger.kind == "hierarchical" and args.compressed:
        raise UsageError("--compressed goes with models of one level")
    page = _Page(tagger) if args.html is not None else None
    write = _writer(args, tagger)
    with open_output(args.output) as out:
        for block in read(args.file, reading):
            if not len(block):
                out.write(block.rows.annotate([], [], "") if block.rows is not None else b"")
                continue
            data = tagger.dataset(block)
            known = tagger.known(block) if args.constraints else None
            out.write(write(block, data, known))
            out.flush()
            if page is not None:
                page.add(block, data, known)
    if page is not None:
        page.write(args.html)
    return 0


def _writer(args: Any, tagger: Tagger) -> Callable[[Block, Any, Any], bytes]:
    """What turns a block, its attributes and what is known of it into output."""
    form = tagger.reading.format
    if args.compressed:
        return lambda block, data, known: _trajectories(tagger, block, data, known)
    if form == "jsonl":
        return lambda block, data, known: _objects(args, tagger, block, data, known)
    if args.kbest:
        return lambda block, data, known: _kbest(args.kbest, tagger, block, data, known)
    return lambda block, data, known: _columns(args, tagger, block, data, known)


def _separator(block: Block) -> str:
    if block.rows is None:
        return "\t"
    return block.reading.separator or ("\t" if block.rows.has_tab() or block.rows.width == 1 else " ")


def _columns(args: Any, tagger: Tagger, block: Block, data: Any, known: Any) -> bytes:
    """The block with the labels of each level, and probabilities if they are wanted, as further columns."""
    added: list[tuple[Any, list[str]]] = []
    chosen: list[Any]
    if tagger.kind == "crf":
        chosen = [tagger.codes(data, known)]
        added.append((chosen[0], [str(y) for y in tagger.labels]))
    else:
        answers = list(zip(tagger.best(data, known), data.lengths.tolist(), strict=True))
        for level in zip(*(tagger.rows(c, n) for c, n in answers), strict=True):
            added.append(_coded([str(y) for row in level for y in row]))
        chosen = [np.concatenate(codes) for codes in zip(*(tagger.predicted(c, n) for c, n in answers), strict=True)]
    if args.marginals or args.all_marginals:
        every = np.arange(data.n_tokens, dtype=np.int32)
        tables = tagger.marginals(data, known)
        if args.marginals:
            for table, codes in zip(tables, chosen, strict=True):
                added.append((every, [f"{p:.6f}" for p in table[every, codes].tolist()]))
        if args.all_marginals:
            for table, labels in zip(tables, tagger.classes, strict=True):
                for k, name in enumerate(labels):
                    added.append((every, [f"{name}:{p:.6f}" for p in table[:, k].tolist()]))
    if block.rows is not None:
        return block.rows.annotate([codes for codes, _ in added], [names for _, names in added], _separator(block))
    rows = list(zip(*([names[c] for c in codes.tolist()] for codes, names in added), strict=True))
    text = "".join("".join("\t".join(row) + "\n" for row in part) + "\n" for part in cut(rows, data.offsets))
    return text.encode()


def _coded(cells: list[str]) -> tuple[Any, list[str]]:
    number: dict[str, int] = {}
    codes = np.array([number.setdefault(cell, len(number)) for cell in cells], np.int32)
    return codes, list(number)


def _kbest(k: int, tagger: Tagger, block: Block, data: Any, known: Any) -> bytes:
    """As CRF++ writes them: before each labelling a line with its number and probability."""
    lines = block.rows.row_texts() if block.rows is not None else [""] * data.n_tokens
    separator = _separator(block) if block.rows is not None else ""
    out: list[str] = []
    answers = tagger.model.predict_kbest(data, k, constraints=known)
    for rows, found in zip(cut(lines, data.offsets), answers, strict=True):
        for rank, (config, log_probability) in enumerate(found):
            out.append(f"# {rank} {math.exp(min(log_probability, 0.0)):.6f}\n")
            levels = tagger.rows(config, len(rows))
            for line, *cells in zip(rows, *levels, strict=True):
                out.append(line + separator + (separator or "\t").join(map(str, cells)) + "\n")
            out.append("\n")
    return "".join(out).encode()


def _trajectories(tagger: Tagger, block: Block, data: Any, known: Any) -> bytes:
    answers = tagger.model.predict_compressed(data, constraints=known)
    if tagger.reading.format == "jsonl":
        rows = zip(block.objects, answers, strict=True)
        return "".join(_json(entry | {"trajectory": answer}) for entry, answer in rows).encode()
    return "".join(" ".join(map(str, answer)) + "\n" for answer in answers).encode()


def _json(entry: dict[str, Any]) -> str:
    import json

    return json.dumps(entry, ensure_ascii=False) + "\n"


def _objects(args: Any, tagger: Tagger, block: Block, data: Any, known: Any) -> bytes:
    """The block's objects with answers in place of what they say of the labels."""
    sizes = data.lengths.tolist()
    if args.kbest:
        found = tagger.model.predict_kbest(data, args.kbest, constraints=known)
        configs = [answers[0][0] if answers else [] for answers in found]
    else:
        found = [None] * len(sizes)
        configs = tagger.best(data, known)
    tables = tagger.marginals(data, known) if args.marginals or args.all_marginals else None
    bounds = data.offsets.tolist()
    out: list[str] = []
    for b, (entry, config, size) in enumerate(zip(block.objects, configs, sizes, strict=True)):
        result = {key: value for key, value in entry.items() if key not in ("labels", "spans", "levels")}
        result |= _answer(tagger, config)
        if found[b] is not None:
            result["alternatives"] = [_answer(tagger, c) | {"probability": math.exp(min(p, 0.0))} for c, p in found[b]]
        if tables is not None:
            parts = [table[bounds[b] : bounds[b + 1]] for table in tables]
            if args.marginals:
                codes = zip(parts, tagger.predicted(config, size), strict=True)
                result["probabilities"] = _by_level(tagger, [part[np.arange(size), c].tolist() for part, c in codes])
            if args.all_marginals:
                named = [
                    [dict(zip(map(str, labels), row, strict=True)) for row in part.tolist()]
                    for part, labels in zip(parts, tagger.classes, strict=True)
                ]
                result["marginals"] = _by_level(tagger, named)
        out.append(_json(result))
    return "".join(out).encode()


def _by_level(tagger: Tagger, answers: list[Any]) -> Any:
    """Answers for each level; of a model of one level its answer."""
    return answers if tagger.kind == "hierarchical" else answers[0]


def _answer(tagger: Tagger, config: Any) -> dict[str, Any]:
    """A configuration as JSON has it: labels, spans, or levels of spans."""
    if tagger.kind == "crf" and tagger.scheme is None:
        return {"labels": list(config)}
    from scansion.formats.targets import spans_of

    levels = tagger.segments(config, tagger.scheme or "iob2")
    found = [[list(span) for span in spans_of(level, tagger.scheme)] for level in levels]
    return {"levels": found} if tagger.kind == "hierarchical" else {"spans": found[0]}


class _Page:
    """Sequences for the page that `scansion.display` makes."""

    def __init__(self, tagger: Tagger) -> None:
        from scansion.formats.targets import detect

        self.tagger = tagger
        self.entries: list[Any] = []
        self.left_out = 0
        self.scheme: str = tagger.scheme or detect([[str(y) for y in tagger.labels]])

    def add(self, block: Block, data: Any, known: Any) -> None:
        """Add the sequences of a block, up to the limit."""
        from scansion.display import Sequence

        room = max(0, HTML_LIMIT - len(self.entries))
        self.left_out += max(0, len(block) - room)
        if not room:
            return
        chosen = np.arange(min(room, len(block)))
        part = data.take(chosen)
        held = known[:room] if isinstance(known, list) else None  # the page's answers are free if segments are held
        tagger = self.tagger
        found = tagger.model.predict_kbest(part, 3, constraints=held)
        tables = np.split(tagger.marginals(part, held)[-1], part.offsets[1:-1])  # of several levels, the bottom's
        for words, answers, table in zip(block.words(), found, tables, strict=False):
            levels = [self._levels(config) for config, _ in answers]
            others = [(other, math.exp(min(p, 0.0))) for other, (_, p) in zip(levels, answers, strict=True)]
            entry = Sequence(
                tokens=words,
                levels=levels[0] if levels else [],
                level_names=None,
                marginals=table,
                labels=[str(y) for y in tagger.labels],
                alternatives=others[1:] or None,
            )
            self.entries.append(entry)

    def _levels(self, config: Any) -> list[list[tuple[int, int, str]]]:
        from scansion.formats.targets import spans_of

        levels = self.tagger.segments(config, self.scheme)
        return [[(u, v, str(y)) for u, v, y in spans_of(level, self.scheme)] for level in levels]

    def write(self, path: str) -> None:
        """Write the page."""
        from scansion.display import sequence_page

        write_text(path, sequence_page(self.entries))
        if self.left_out:
            note(f"{path} shows the first {len(self.entries)} sequences; {self.left_out} are left out")
