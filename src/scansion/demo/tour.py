"""The tour, ``scansion demo``: what the library is for, computed while one looks on."""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scansion import rules
from scansion.demo import output
from scansion.demo.bibliography import PARTS, Reference, references
from scansion.demo.console import Console
from scansion.demo.models import Answers, Folds, Scores, chain, fitted, hide, labels_of, mean, nested, scores, semi
from scansion.demo.robot import WORLD, Robot, squares
from scansion.lattice import ChainLattice
from scansion.metrics import compress, edit_distance_score, exact_match_score, randomization_test
from scansion.schemes import segments
from scansion.training.convergence import ConvergenceWarning

__all__ = ["Options", "Tour", "main"]


class Options(argparse.Namespace):
    """How much is done: all of it in half a minute, or (quick) little, to see that it works."""

    output: Path
    quick: bool
    jobs: int

    @property
    def folds(self) -> int:
        """Into how many parts the references are cut."""
        return 2 if self.quick else 3

    @property
    def iterations(self) -> int:
        """Of training."""
        return 6 if self.quick else 50


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour; argv: its arguments. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="scansion demo",
        description="A tour of scansion on data that come with it: half a minute on two processors.",
        epilog="example: scansion demo -o tour",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("scansion-demo"), metavar="DIR", help="where files go (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer references, fewer iterations: a few seconds")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads; -1: all processors (%(default)s)")
    options = parser.parse_args(argv, namespace=Options())
    if options.jobs != -1 and options.jobs < 1:
        parser.error(f"--jobs must be -1 or at least 1, got {options.jobs}")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"scansion demo: cannot write to {options.output}: {error.strerror}; give -o DIR", file=sys.stderr)
        return 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a tour has no time to learn to the end
        Tour(options).run()
    return 0


class Tour:
    """The sections, in order; what one learns the next ones use."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.say = Console()
        chosen = references()
        self.gains: list[list[str]] = []
        self.folds = Folds(chosen[::6] if options.quick else chosen, options.folds)

    def run(self) -> None:
        """All sections."""
        begin, begin_cpu = time.perf_counter(), time.process_time()
        self.opening()
        crf, semicrf = self.flat_models()
        trees = self.hierarchy(crf)
        self.constraints(semicrf)
        self.rules(crf)
        self.partial_labels(crf)
        self.trajectories()
        self.summary()
        self.files(semicrf, trees)
        self.say.line()
        self.say.text(
            f"That took {time.perf_counter() - begin:.0f} seconds, and "
            f"{time.process_time() - begin_cpu:.0f} of processor time."
        )

    def opening(self) -> None:
        """What the data are."""
        say, chosen = self.say, self.folds.references
        say.heading("1. The task: find the fields of bibliographic references")
        say.text(
            f"{len(chosen)} references to well-known books and papers come with scansion, in "
            f"{len({r.style for r in chosen})} styles: {sum(len(r.tokens) for r in chosen):,} tokens in "
            f"{len({s.label for r in chosen for s in r.levels[0]})} kinds of fields. One of them:"
        )
        if self.options.quick:
            say.text("(Quick: every sixth reference only, and little training. The figures below mean little.)")
        say.line()
        say.pairs(_rows(chosen[1], chosen[1].levels[0]))

    # ---- models ------------------------------------------------------------------------------------------------

    def flat_models(self) -> tuple[Answers, Answers]:
        """CRF and SemiCRF side by side."""
        say, folds, options = self.say, self.folds, self.options
        say.heading("2. Tokens or whole segments? CRF and SemiCRF")
        say.text(
            f"Every reference is read by a model that learnt from other references ({options.folds} folds). In "
            "percent: tokens with the right field; F1 of fields, one being right if its name and both ends are; "
            "references in which all is right."
        )
        say.line()
        crf = folds.answers(lambda: chain(options.iterations, options.jobs), folds.labels(0))
        semicrf = folds.answers(lambda: semi(options.iterations, options.jobs), folds.segments())
        rows = []
        for name, answers in (("CRF", crf), ("SemiCRF of order 2", semicrf)):
            rows.append([name, *scores(folds.truth, answers.predicted).cells(), f"{answers.seconds:.1f} s"])
        say.table(["", "tokens", "F1", "whole", "time"], rows)
        self._gain("SemiCRF for CRF: references right", rows[0][3], rows[1][3])
        say.line()
        say.text(
            "The CRF labels tokens, begin or inside of a field, and looks one label back. The SemiCRF scores whole "
            "fields: how they begin and end, how long they are, which three fields follow each other. "
            f"{self._difference(semicrf, crf)}"
        )
        better = [i for i, truth in enumerate(folds.truth) if semicrf.predicted[i] == truth != crf.predicted[i]]
        if better:
            i = max(better, key=lambda i: _wrong(folds.truth[i], crf.predicted[i]))
            say.line()
            say.text("One that only the SemiCRF gets right. The CRF reads (> is wrong):")
            self._show(i, crf.predicted[i])
            say.text("The SemiCRF:")
            self._show(i, semicrf.predicted[i])
        return crf, semicrf

    def _difference(self, one: Answers, other: Answers) -> str:
        """How many references more are right, how much more F1; each with its significance."""
        truth, n = self.folds.truth, 999 if self.options.quick else 9999
        f1 = randomization_test(truth, one.predicted, other.predicted, n=n)
        # of answers that are one segment each, right or not, F1 is the share that is right
        first, second = (list(map(_as_one, answers.predicted, truth)) for answers in (one, other))
        right = randomization_test([[(0, 1, True)]] * len(truth), first, second, n=n)
        more = round(right.difference * len(truth))
        return (
            f"It reads {abs(more)} {'more' if more >= 0 else 'fewer'} references without an error (p = "
            f"{right.p_value:.2g}), and has "
            f"{100 * f1.difference:+.1f} points of F1 (p = {f1.p_value:.2g}; approximate randomisation)."
        )

    def hierarchy(self, crf: Answers) -> Answers:
        """Parts inside fields."""
        say, folds, options = self.say, self.folds, self.options
        say.heading("3. Segments inside segments: HierarchicalCRF")
        say.text(
            "Fields have parts: authors have family and given names, a date has a year and a month, a title may have a "
            "subtitle. One model reads both levels at once; the alternative is a second CRF for the parts, which knows "
            "nothing of the first."
        )
        say.line()
        truth = [r.levels[1] for r in folds.references]
        parts = folds.answers(lambda: chain(options.iterations, options.jobs), folds.labels(1))
        trees = folds.answers(lambda: nested(options.iterations, options.jobs), folds.trees())
        upper, lower = ([tree[level] for tree in trees.predicted] for level in ("field", "part"))
        rows = [
            ["two CRFs", *self._tree_cells(crf.predicted, parts.predicted), f"{crf.seconds + parts.seconds:.1f} s"],
            ["HierarchicalCRF", *self._tree_cells(upper, lower), f"{trees.seconds:.1f} s"],
        ]
        say.table(["", "fields", "parts", "whole", "misfit", "time"], rows)
        self._gain("one model for two levels: references right", rows[0][3], rows[1][3])
        say.line()
        say.text(
            "F1 of fields and of parts; references in which both levels are right; references in which the two levels "
            "contradict each other, as a given name in a title. An example:"
        )
        i = max(range(len(truth)), key=lambda i: (trees.predicted[i]["part"] == truth[i], len(truth[i])))
        tokens = folds.references[i].tokens
        rows_shown = []
        for start, stop, label in trees.predicted[i]["field"]:
            inside = [p for p in trees.predicted[i]["part"] if start <= p.start < stop]
            text = _text(tokens[start:stop])
            if any(p.label != label for p in inside):
                text = " | ".join(f"{p.label}: {_text(tokens[p.start : p.stop])}" for p in inside)
            rows_shown.append((label, text))
        say.pairs(rows_shown)
        return trees

    def _tree_cells(self, upper: Sequence[Any], lower: Sequence[Any]) -> list[str]:
        """F1 of both levels, share of the references that are right, share of those whose levels do not fit."""
        fields, parts = self.folds.truth, [r.levels[1] for r in self.folds.references]
        n = len(fields)
        whole = sum(upper[i] == fields[i] and lower[i] == parts[i] for i in range(n))
        misfits = sum(not _nests(upper[i], lower[i]) for i in range(n))
        values = (scores(fields, upper).segments, scores(parts, lower).segments, whole / n, misfits / n)
        return [f"{100 * value:.1f}" for value in values]

    def _show(self, i: int, answer: Any) -> None:
        """A reference as a model reads it; what is wrong is marked."""
        truth = self.folds.truth[i]
        wrong = [k for k, segment in enumerate(answer) if segment not in truth]
        self.say.pairs(_rows(self.folds.references[i], answer), wrong)

    # ---- what is known -----------------------------------------------------------------------------------------

    def constraints(self, semicrf: Answers) -> None:
        """One field is told; the others follow."""
        say, folds = self.say, self.folds
        say.heading("4. Somebody corrects one field, and the rest follows: constraints")
        wrong = []
        for i, truth in enumerate(folds.truth):
            missed = [s for s in truth if s not in semicrf.predicted[i] and s.label in semicrf.models[i].classes_]
            if missed:
                wrong.append((i, missed[0]))
        if not wrong:
            say.text("The SemiCRF made no error: there is nothing to correct.")
            return
        before = after = solved = 0
        held = {}
        for i, told in wrong:
            held[i] = semicrf.models[i].predict([folds.X[i]], constraints=[[told]])[0]
            before += _wrong(folds.truth[i], semicrf.predicted[i], told)
            after += _wrong(folds.truth[i], held[i], told)
            solved += held[i] == folds.truth[i]
        right = [sum(semicrf.predicted[i] == truth for i, truth in enumerate(folds.truth))]
        right.append(right[0] + solved)
        self._gain("one field told: references right", *(f"{100 * n / len(folds.truth):.1f}" for n in right))

        def follow(pair: tuple[int, Any]) -> int:
            """How many fields come right, beside the one that was told."""
            truth, answer, now = folds.truth[pair[0]], semicrf.predicted[pair[0]], held[pair[0]]
            return sum((s in now) - (s in answer) for s in truth if s != pair[1])

        i, told = max(wrong, key=follow)
        say.text("What is known can be told to a model, which then reads the rest again. A reference with errors:")
        self._show(i, semicrf.predicted[i])
        words = _text(folds.references[i].tokens[told.start : told.stop])
        sure = np.exp(semicrf.models[i].log_likelihood([folds.X[i]], [[told]]))
        say.text(f"Told that {words} is the {told.label} (to which the model had given {sure:.0%}), it reads:")
        self._show(i, held[i])
        say.line()
        say.text(
            f"The same for all {len(wrong)} references with an error, the first wrong field being told: of the tokens "
            f"that were wrong outside that field, {before - after} of {before} come right by themselves; {solved} "
            "references become wholly right."
        )

    def rules(self, crf: Answers) -> None:
        """What holds of all references is learnt, and kept."""
        say, folds = self.say, self.folds
        counted = {"at_most_once", "before", "never"}  # without those that say what is there, which styles differ in
        found: dict[int, list[rules.Proposal]] = {}
        predicted, broken = [], 0
        for i, x in enumerate(folds.X):
            fold = i % folds.n
            if fold not in found:
                _, y = folds.labels(0)([k for k in range(len(folds.X)) if k % folds.n != fold])
                learnt = rules.learn(y, support=len(y) // 4, scheme="iob2")
                found[fold] = [one for one in learnt if one.rule.name in counted]
            kept = [rules.scheme("iob2"), *found[fold]]
            labels = crf.models[i].predict([x], rules=kept)[0]
            broken += bool(crf.models[i].broken_rules(crf.models[i].predict([x]), kept)[0])
            predicted.append(segments(labels, "iob2"))
        before, after = (scores(folds.truth, answers) for answers in (crf.predicted, predicted))
        self._gain("rules for the CRF: F1 of fields", before.cells()[1], after.cells()[1])
        say.line()
        say.text(
            f"Rules hold of whole references: scansion.rules.learn finds {len(found[0])} in the other folds, such as "
            f"{' and '.join(str(one.rule) for one in found[0][:2]) or 'none'}. {broken} of the CRF's "
            f"{len(folds.X)} answers break one, or have an I without its B. Its best answers among those that keep "
            f"them all have an F1 of {after.cells()[1]} in place of {before.cells()[1]}, and {after.cells()[2]} "
            f"percent of the references are right in place of {before.cells()[2]}."
        )

    def partial_labels(self, crf: Answers) -> None:
        """Half of the labels are hidden."""
        say, folds, options = self.say, self.folds, self.options
        say.heading("5. Half of the labels are missing: partial supervision")
        say.text(
            "Half of the training labels are hidden: a quarter of the references stays complete, the others keep one "
            "label in three, at random. What is known counts, what is not is summed out."
        )
        say.line()
        every = folds.labels(0)
        partly: list[Scores] = []
        complete: list[Scores] = []
        drawings = 1 if options.quick else 3
        for seed in range(drawings):

            def hidden(others: Sequence[int], seed: int = seed) -> tuple[list[int], list[Any]]:
                chosen, y = every(others)
                return chosen, hide(y, 1 / 4, 1 / 3, seed)

            def kept(others: Sequence[int], seed: int = seed) -> tuple[list[int], list[Any]]:
                left = [(i, labels) for i, labels in zip(*hidden(others, seed), strict=True) if None not in labels]
                return [i for i, _ in left], [labels for _, labels in left]

            for found, targets in ((partly, hidden), (complete, kept)):
                # all transitions: labels that follow each other may never be known side by side
                answers = folds.answers(
                    lambda: chain(options.iterations, options.jobs, all_possible_transitions=True), targets
                )
                found.append(scores(folds.truth, answers.predicted))
        rows = [
            ["all labels", *scores(folds.truth, crf.predicted).cells()],
            ["half of the labels", *mean(partly).cells()],
            ["complete references only", *mean(complete).cells()],
        ]
        say.table(["CRF learning from", "tokens", "F1", "whole"], rows)
        self._gain("incomplete references used, not dropped: F1", rows[2][2], rows[1][2])
        say.line()
        means = f" Means of {drawings} drawings." if drawings > 1 else ""
        say.text(f"The last row is what remains if incomplete references have to be thrown away.{means}")

    # ---- trajectories ------------------------------------------------------------------------------------------

    def trajectories(self) -> None:
        """Compressed inference."""
        say = self.say
        say.heading("6. What happened, no matter when: compressed inference")
        say.text(
            "Simulated: a robot wanders over the squares of a small world. At each step it stays (60 %) or moves to a "
            "square beside its own; a tracker tells where it is, one time in five wrongly. Which way did it take?"
        )
        say.line()
        for row in WORLD:
            say.line("    " + " ".join(row))
        say.line()
        robot = Robot.build(stay=0.6, accuracy=0.8)
        rng = np.random.default_rng(0)
        truth: list[list[int]] = []
        seen: list[list[int]] = []
        routes: list[list[list[int]]] = [[], [], []]
        for _ in range(20 if self.options.quick else 400):
            at, told = robot.walk(rng, 30)
            with np.errstate(divide="ignore"):
                lattice = ChainLattice.from_hmm(robot.start, robot.transition, np.log(robot.emission[:, told].T))
            compressed = lattice.compressed()
            truth.append(compress(at))
            seen.append(told)
            routes[0].append(compress(lattice.viterbi()[0].tolist()))
            routes[1].append(list(compressed.predict()))
            routes[2].append(list(compressed.best(budget=2000)[0][0]))
        titles = ("best labelling, merged", "compressed, place by place", "compressed, best route")
        rows = [
            [title, f"{edit_distance_score(truth, answers):.1f}", f"{exact_match_score(truth, answers):.1f}"]
            for title, answers in zip(titles, routes, strict=True)
        ]
        say.table(["", "right", "exact"], rows)
        self._gain("times summed out: places right", rows[0][1], rows[1][1])
        say.line()
        say.text(
            f"Percent, {len(truth)} walks of 30 steps; right: places, by edit distance; exact: the whole route. The "
            "best labelling commits itself to a time for every move, and short visits get lost; compressed inference "
            "sums over all times."
        )
        only = [i for i, one in enumerate(truth) if routes[2][i] == one != routes[0][i]]
        for i in only[:1]:
            say.line()
            say.text("A walk that the best route gets right, the best labelling not:")
            shown = {"tracker": seen[i], "truth": truth[i], "labelling": routes[0][i], "best route": routes[2][i]}
            say.pairs([(name, "".join(squares()[square] for square in way)) for name, way in shown.items()])

    # ---- the end -----------------------------------------------------------------------------------------------

    def _gain(self, name: str, before: str, after: str) -> None:
        """One line of the summary."""
        self.gains.append([name, before, after, f"{float(after) - float(before):+.1f}"])

    def summary(self) -> None:
        """What each section gained."""
        self.say.heading("7. In short")
        self.say.table(["percent", "before", "after", "gain"], self.gains)

    def files(self, semicrf: Answers, trees: Answers) -> None:
        """What is written, and what to try next."""
        say, folds, options = self.say, self.folds, self.options
        say.heading("8. Pictures, and what to try next")
        say.text("Two models learn from all references now, and are written with what they say:")
        _, y = folds.segments()(range(len(folds.X)))
        flat = fitted(semi(options.iterations, options.jobs), folds.X, y)
        _, y = folds.trees()(range(len(folds.X)))
        deep = fitted(nested(options.iterations, options.jobs), folds.X, y)
        say.pairs(output.write(options.output, folds, semicrf, trees, flat, deep))
        say.line()
        say.text("Open the pages in a browser. Then, from the command line, train and test a model of your own:")
        for command in output.commands(options.output):
            say.line()
            say.command(command)
        say.line()
        say.text("Or in Python, with a reference of yours:")
        say.line()
        for line in output.snippet(options.output):
            say.line(f"  {line}".rstrip())
        say.line()
        say.text("docs/demo.md has the rules of the data; docs/index.md leads to everything else.")


def _rows(reference: Reference, answer: Any) -> list[tuple[str, str]]:
    """The fields of an answer with their words."""
    return [(label, _text(reference.tokens[start:stop])) for start, stop, label in answer]


def _text(tokens: Sequence[str]) -> str:
    """Tokens as one writes them: no space before closing marks and behind opening ones."""
    return re.sub(r" (?=[.,;:?!)\]”’])|(?<=[(\[“‘]) ", "", " ".join(tokens))


def _wrong(truth: Any, answer: Any, told: Any = None) -> int:
    """Tokens with a wrong label, outside the segment that was told."""
    inside = range(told.start, told.stop) if told is not None else range(0)
    pairs = zip(labels_of(truth), labels_of(answer), strict=True)
    return sum(a != b for t, (a, b) in enumerate(pairs) if t not in inside)


def _as_one(answer: Any, truth: Any) -> list[tuple[int, int, bool]]:
    """A whole answer as one segment, which tells whether it is right."""
    return [(0, 1, answer == truth)]


def _nests(upper: Any, lower: Any) -> bool:
    """Whether every lower segment lies in one upper segment that may have it."""
    return all(any(f.start <= p.start and p.stop <= f.stop and p.label in PARTS[f.label] for f in upper) for p in lower)
