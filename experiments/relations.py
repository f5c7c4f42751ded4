"""Relation arguments: paper 001, section 3.2.1, tables 3 to 5, figure 4.

The paper's corpus (ACE 2005) is not free; the entities and relations of Roth and Yih (`conll2004/corp.tsv`) stand in
for it: five types of relations in place of six, news text only. For one type at a time, a word of a first argument is
Arg1, of a second one Arg2, of both Arg1Arg2, others are O; entity mentions are known. There are as many sentences
without the type as with it, drawn at random; 70 % of each for training. With BIO, Arg1-B begins an argument and Arg1-I
goes on. Scored are the arguments, runs of words with the same label (without B and I), by micro F1.

Features, as the paper lists them. Order 0, summed over the positions i of a segment: the words at i - 1, i, i + 1;
words up to four places before and after, their distance forgotten; capitalisation, mention and part of speech at i -
1, i, i + 1, neighbouring pairs of each and mention with part of speech; letter n-grams of the word. Order 1, at the
start of a segment: ``start`` alone, with the word, with the word before, with the capitalisation of both; ``inner``
likewise, as in `experiments.bibliography`. Orders 2 and 3: label patterns alone. sigma = 1.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.bibliography import letter_ngrams
from experiments.data import open_text
from experiments.report import Figure, Options, Report, Table, spread
from experiments.rows import HIGHER, P_VALUES, ROWS, Fitted, draw_orders, fit, is_semi, order_of, settings
from scansion.metrics import randomization_test, segment_scores

TITLE = "Relation arguments, Roth and Yih's sentences (paper 001, tables 3 to 5, figure 4)"
TYPES = ("Kill", "Live_In", "Located_In", "OrgBased_In", "Work_For")
BIO = tuple(f"{row}-BIO" for row in ROWS[:3])
SPLITS = 5
PAPER = dict(zip((*ROWS, *BIO), (42.91, 46.09, 48.58, 42.99, 48.51, 49.26, 43.31, 46.15, 51.11), strict=True))
PAPER_P = {
    ("C1", "C2"): "0.001<",
    ("C1", "C3"): "0.001<",
    ("C1", "SC1"): "0.226<",
    ("C1", "SC2"): "0.001<",
    ("C1", "SC3"): "0.001<",
    ("C2", "C3"): "0.001<",
    ("C2", "SC1"): "0.001>",
    ("C2", "SC2"): "0.001<",
    ("C2", "SC3"): "0.001<",
    ("C3", "SC1"): "0.001>",
    ("C3", "SC2"): "0.441>",
    ("C3", "SC3"): "0.074<",
    ("SC1", "SC2"): "0.001<",
    ("SC1", "SC3"): "0.001<",
    ("SC2", "SC3"): "0.017<",
}
PARTS = {"start": "start", "inner": "inner"}


@dataclass(frozen=True)
class Sentence:
    """Words with part of speech and mention (B-, I- and type, or O); relations as (first argument, second, type).

    Arguments are (start, stop) of tokens.
    """

    words: list[str]
    pos: list[str]
    mentions: list[str]
    relations: list[tuple[tuple[int, int], tuple[int, int], str]]

    def arguments(self, type: str) -> list[str]:
        """Labels of the words for one type of relations."""
        roles: list[set[int]] = [set() for _ in self.words]
        for first, second, name in self.relations:
            if name == type:
                for role, (start, stop) in enumerate((first, second), start=1):
                    for t in range(start, stop):
                        roles[t].add(role)
        return ["".join(f"Arg{role}" for role in sorted(found)) or "O" for found in roles]


def read_sentences(lines: Iterable[str]) -> list[Sentence]:
    """Sentences of the corpus file: a block of rows, a blank line, a block of relations (or none), a blank line."""
    found: list[Sentence] = []
    spans: list[tuple[int, int]] = []
    number = None
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if len(fields) == 3:
            first, second, name = fields
            found[-1].relations.append((spans[int(first)], spans[int(second)], name))
        elif len(fields) > 3:
            if fields[0] != number:
                number, spans = fields[0], []
                found.append(Sentence([], [], [], []))
            words, tags, kind = fields[5].split("/"), fields[4].split("/"), fields[1]
            if kind == "O" or not all(words):
                words = [fields[5]]
            sentence = found[-1]
            spans.append((len(sentence.words), len(sentence.words) + len(words)))
            sentence.words.extend("," if word == "COMMA" else word for word in words)
            sentence.pos.extend(tags if len(tags) == len(words) else [tags[-1]] * len(words))
            sentence.mentions.extend("O" if kind == "O" else f"{'I' if i else 'B'}-{kind}" for i in range(len(words)))
    return found


def shape(word: str) -> str:
    """Capitalisation: runs of A, a, 0 and others."""
    if not word:
        return ""
    plain = "".join("A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word)
    return re.sub(r"(.)\1+", r"\1+", plain)


def token_attributes(sentence: Sentence, i: int, semi: bool) -> dict[str, float]:
    """Attributes of one token with their counts, for `SemiCRF` or for `CRF`."""
    T = len(sentence.words)
    shapes = [shape(word) for word in sentence.words[max(0, i - 1) : i + 2]]

    def at(values: list[str], j: int) -> str:
        return values[j] if 0 <= j < T else ""

    def shaped(j: int) -> str:
        return shapes[j - max(0, i - 1)] if 0 <= j < T else ""

    words = sentence.words
    names = [f"w={words[i]}", f"w-1={at(words, i - 1)}", f"w+1={at(words, i + 1)}"]
    names += [f"before={at(words, j)}" for j in range(i - 1, max(i - 5, -2), -1)]
    names += [f"after={at(words, j)}" for j in range(i + 1, min(i + 5, T + 1))]
    names += [f"letters={ngram}" for ngram in letter_ngrams(words[i])]
    names += [f"shape{k:+d}={shaped(i + k)}" for k in (-1, 0, 1)]
    for name, values in (("ne", sentence.mentions), ("pos", sentence.pos)):
        names += [f"{name}{k:+d}={at(values, i + k)}" for k in (-2, -1, 0, 1, 2)]
        names += [f"{name}{k:+d}|{k + 1:+d}={at(values, i + k)}|{at(values, i + k + 1)}" for k in (-2, -1, 0, 1)]
    names.append(f"ne|pos={sentence.mentions[i]}|{sentence.pos[i]}")
    if i > 0:
        edge = [f":w={words[i]}", f":w-1={words[i - 1]}", f":shapes={shaped(i - 1)}|{shaped(i)}"]
        names += [f"start{name}" for name in edge]
        if semi:
            names += ["start", "inner", *(f"inner{name}" for name in edge)]
    return {name: float(count) for name, count in Counter(names).items()}


def with_bio(labels: list[str]) -> list[str]:
    return [
        label if label == "O" else f"{label}-{'I' if t and labels[t - 1] == label else 'B'}"
        for t, label in enumerate(labels)
    ]


def arguments(labels: list[str]) -> list[tuple[int, int, str]]:
    """Runs of words with the same label other than O; B and I are left out."""
    plain = [label.removesuffix("-B").removesuffix("-I") for label in labels]
    starts = [t for t in range(len(plain)) if t == 0 or plain[t] != plain[t - 1]]
    runs = zip(starts, [*starts[1:], len(plain)], strict=True)
    return [(u, v, plain[u]) for u, v in runs if plain[u] != "O"]


def sample(sentences: list[Sentence], type: str, rng: np.random.Generator) -> tuple[list[Sentence], list[Sentence]]:
    """Training and test: all sentences with the type and as many without it, 70 % and 30 % of each."""
    has = [any(name == type for _, _, name in sentence.relations) for sentence in sentences]
    chosen = [rng.permutation(np.flatnonzero(np.array(has) == wanted)) for wanted in (True, False)]
    n = min(len(one) for one in chosen)
    cut = round(0.7 * n)
    parts: tuple[list[Sentence], list[Sentence]] = ([], [])
    for numbers in chosen:
        for part, some in zip(parts, (numbers[:cut], numbers[cut:n]), strict=True):
            part.extend(sentences[i] for i in some.tolist())
    return parts


def answer(
    row: str, options: Options, type: str, train: list[Sentence], test: list[Sentence]
) -> tuple[Fitted, list[Any]]:
    """A trained model, and the arguments it finds."""
    semi = is_semi(row)

    def attributes(sentence: Sentence) -> list[dict[str, float]]:
        return [token_attributes(sentence, i, semi) for i in range(len(sentence.words))]

    y = [sentence.arguments(type) for sentence in train]
    chosen = {**settings(row), "attribute_orders": {"start": 1}, **({"attribute_parts": PARTS} if semi else {})}
    fitted = fit(
        row,
        options,
        ([attributes(s) for s in train], [with_bio(labels) for labels in y] if row in BIO else y),
        [attributes(s) for s in test],
        timing=False,
        **chosen,
    )
    return fitted, [arguments(labels) for labels in fitted.predicted]


def run(options: Options) -> Report:
    with open_text("conll2004/corp.tsv") as lines:
        sentences = read_sentences(lines)
    types, splits = (TYPES[:1], 1) if options.quick else (TYPES, SPLITS)
    f1: dict[str, dict[str, list[float]]] = {type: {row: [] for row in (*ROWS, *BIO)} for type in types}
    sizes: dict[str, list[Fitted]] = {}
    p: dict[bool, dict[tuple[str, str], list[float]]] = {True: {}, False: {}}
    counts: dict[str, int] = {}
    for split in range(splits):
        truth: list[Any] = []
        found: dict[str, list[Any]] = {row: [] for row in (*ROWS, *BIO)}
        for type in types:
            rng = np.random.default_rng([split, TYPES.index(type)])
            train, test = sample(sentences, type, rng)
            counts[type] = len(train) + len(test)
            wanted = [arguments(sentence.arguments(type)) for sentence in test]
            truth += wanted
            for row in (*ROWS, *BIO, *(HIGHER if split == 0 and not options.quick else ())):
                fitted, answers = answer(row, options, type, train, test)
                if is_semi(row) and split == 0:
                    sizes.setdefault(row, []).append(fitted)
                if row in found:
                    found[row] += answers
                    scores = segment_scores(wanted, answers, scheme="plain")
                    f1[type][row].append(100 * float(scores.micro.f1))
            options.say(f"  split {split}, {type}: " + ", ".join(f"{one[-1]:.2f}" for one in f1[type].values()))
        for paper_way, numbers in p.items():
            how: dict[str, Any] = {"unit": "segment", "one_sided": True} if paper_way else {}
            for i, one in enumerate(ROWS):
                for other in ROWS[i + 1 :]:
                    test_of = randomization_test(truth, found[one], found[other], n=999, scheme="plain", **how)
                    numbers.setdefault((one, other), []).append(test_of.p_value)
    f1["average"] = {
        row: [statistics.fmean(f1[type][row][split] for type in types) for split in range(splits)]
        for row in (*ROWS, *BIO)
    }
    report = Report("relations", TITLE, notes=[P_VALUES])
    report.results = {"f1": f1, "sentences": counts}
    report.tables += _f1_tables(f1, counts, splits)
    for paper_way, numbers in p.items():
        report.tables.append(_p_table(numbers, f1["average"], paper_way, splits))
        report.results["p, the paper's way" if paper_way else "p by sentences"] = {
            f"{a} {b}": values for (a, b), values in numbers.items()
        }
    means = {order_of(row): _mean(found) for row, found in sizes.items()}
    report.results["orders"] = {order: one.figures() for order, one in means.items()}
    report.figures.append(
        Figure("orders", "Patterns and time by maximum order, mean of the types (figure 4)", lambda: draw_orders(means))
    )
    return report


def _f1_tables(f1: dict[str, dict[str, list[float]]], counts: dict[str, int], splits: int) -> list[Table]:
    caption = (
        f"F1 of arguments in percent, mean ± standard deviation of {splits} splits (the paper's average, on other data"
    )
    tables = []
    for rows, note in ((ROWS, "table 3"), ((*ROWS[:3], "SC3", *BIO), "table 5")):
        table = Table(f"{caption}, on other data, in brackets; {note}):", ["", "sentences", *rows])
        for type, by_row in f1.items():
            average = type == "average"
            cells = [spread(by_row[row], 1) + (f" ({PAPER[row]})" if average else "") for row in rows]
            table.rows.append([type, counts.get(type), *cells])
        tables.append(table)
    ahead = Table("Ahead of C1, average of the types, split by split:", ["", *ROWS[1:], *BIO])
    average = f1["average"]
    gains = {row: [a - b for a, b in zip(average[row], average["C1"], strict=True)] for row in (*ROWS[1:], *BIO)}
    ahead.rows.append(["here", *(spread(one, 1) for one in gains.values())])
    ahead.rows.append(["paper", *(f"{PAPER[row] - PAPER['C1']:.2f}" for row in gains)])
    return [*tables, ahead]


def _p_table(
    numbers: dict[tuple[str, str], list[float]], average: dict[str, list[float]], paper_way: bool, splits: int
) -> Table:
    how = "the paper's way (table 4; the paper's in brackets)" if paper_way else "by sentences, two-sided"
    table = Table(f"p' of all types together, {how}: median of {splits} splits:", ["", *ROWS[1:]])
    for i, one in enumerate(ROWS[:-1]):
        cells: list[str | None] = [None] * i
        for other in ROWS[i + 1 :]:
            sign = "<" if statistics.fmean(average[one]) < statistics.fmean(average[other]) else ">"
            published = f" ({PAPER_P[one, other]})" if paper_way else ""
            cells.append(f"{statistics.median(numbers[one, other]):.3f}{sign}{published}")
        table.rows.append([one, *cells])
    return table


def _mean(found: list[Fitted]) -> Fitted:
    """Sizes and times of several models, on average."""
    figures = [one.figures() for one in found]
    means = {name: statistics.fmean(one[name] for one in figures) for name in figures[0]}
    return Fitted([], **means)  # type: ignore[arg-type]
