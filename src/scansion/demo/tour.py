"""The tour, ``scansion demo``: what the library is for, computed while one looks on."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scansion.demo.bibliography import FIELDS, Reference, references
from scansion.demo.console import Console
from scansion.demo.models import Answers, Folds, chain, hide, labels_of, mean, scores, semi
from scansion.demo.robot import WORLD, Robot, squares
from scansion.metrics import compress, edit_distance_score, exact_match_score, randomization_test

__all__ = ["main"]

SHOWN = 1  # the reference that opens the tour


class Options(argparse.Namespace):
    """How much is done: all of it in about a minute, or (quick) little, to see that it works."""

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
        return 10 if self.quick else 50


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour; argv: its arguments. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="scansion demo",
        description="A tour of scansion on data that come with it: about a minute on two processors.",
        epilog="example: scansion demo -o tour",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("scansion-demo"), metavar="DIR", help="where files go (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer references, fewer iterations: a few seconds")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads; -1: all processors (%(default)s)")
    options = parser.parse_args(argv, namespace=Options())
    options.output.mkdir(parents=True, exist_ok=True)
    Tour(options).run()
    return 0


class Tour:
    """The sections, in order; what one learns the next ones use."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.console = Console()
        chosen = references()
        self.folds = Folds(chosen[::4] if options.quick else chosen, options.folds)

    def run(self) -> None:
        """All sections."""
        begin = time.perf_counter()
        self.opening()
        crf, semicrf = self.flat_models()
        self.constraints(semicrf)
        self.partial_labels(crf)
        self.trajectories()
        self.files()
        self.console.line()
        self.console.text(f"That took {time.perf_counter() - begin:.0f} seconds.")

    def opening(self) -> None:
        """What the data are."""
        say, chosen = self.console, self.folds.references
        say.heading("1. The task: find the fields of bibliographic references")
        say.text(
            f"{len(chosen)} references to well-known books and papers come with scansion, in "
            f"{len({r.style for r in chosen})} styles: {sum(len(r.tokens) for r in chosen):,} tokens in "
            f"{len({s.label for r in chosen for s in r.levels[0]})} kinds of fields. One of them:"
        )
        say.line()
        say.pairs(_rows(chosen[SHOWN], chosen[SHOWN].levels[0]))

    def flat_models(self) -> tuple[Answers, Answers]:
        """CRF and SemiCRF side by side."""
        say, folds, options = self.console, self.folds, self.options
        say.heading("2. Labels of tokens, or whole segments? CRF and SemiCRF")
        say.text(
            f"Every reference is read by a model that learnt from other references ({options.folds} folds). "
            "Tokens: share with the right field. Fields: F1, a field being right if both ends and its name are. Whole: "
            "references in which everything is right. All in percent."
        )
        say.line()
        crf = folds.answers(lambda: chain(options.iterations, options.jobs), folds.known(0, as_labels=True))
        semicrf = folds.answers(lambda: semi(options.iterations, options.jobs), folds.known(0, as_labels=False))
        rows = []
        for name, answers in (("CRF, first order", crf), ("SemiCRF, second order", semicrf)):
            rows.append([name, *scores(folds.truth, answers.predicted).cells(), f"{answers.seconds:.1f} s"])
        say.table(["", "tokens", "fields", "whole", "time"], rows)
        test = randomization_test(folds.truth, semicrf.predicted, crf.predicted, n=999 if options.quick else 9999)
        say.line()
        say.text(
            "The CRF decides token by token, looking one label back. The SemiCRF scores whole fields: how they begin "
            "and end, how long they are, and which three fields follow each other. In F1 that makes "
            f"{100 * test.difference:+.1f} points (p = {test.p_value:.2g} by approximate randomisation)."
        )
        better = [
            i
            for i, truth in enumerate(folds.truth)
            if semicrf.predicted[i] == truth and crf.predicted[i] != truth
        ]
        if better:
            i = max(better, key=lambda i: _wrong(folds.truth[i], crf.predicted[i]))
            say.line()
            say.text("A reference that the SemiCRF gets right and the CRF does not. The CRF:")
            self._show(i, crf.predicted[i])
            say.text("The SemiCRF:")
            self._show(i, semicrf.predicted[i])
        return crf, semicrf

    def _show(self, i: int, answer: Any) -> None:
        """A reference as a model reads it; what is wrong is marked."""
        truth = self.folds.truth[i]
        wrong = [k for k, segment in enumerate(answer) if segment not in truth]
        self.console.pairs(_rows(self.folds.references[i], answer), wrong)

    def constraints(self, semicrf: Answers) -> None:
        """One field is told; the others follow."""
        say, folds = self.console, self.folds
        say.heading("3. Somebody corrects one field, and the rest follows: constraints")
        wrong = []
        for i, truth in enumerate(folds.truth):
            missed = [s for s in truth if s not in semicrf.predicted[i] and s.label in semicrf.models[i].classes_]
            if missed:
                wrong.append((i, missed[0]))
        if not wrong:
            say.text("The SemiCRF made no error: there is nothing to correct.")
            return
        before = after = solved = 0
        best: tuple[int, int, Any, Any] | None = None
        for i, told in wrong:
            truth, answer, model = folds.truth[i], semicrf.predicted[i], semicrf.models[i]
            held = model.predict([folds.X[i]], constraints=[[told]])[0]
            first, second = _wrong(truth, answer, told), _wrong(truth, held, told)
            before, after, solved = before + first, after + second, solved + (held == truth)
            if best is None or first - second > best[0]:
                best = first - second, i, told, held
        assert best is not None
        _, i, told, held = best
        say.text("A model that is wrong can be told what is known, and decodes the rest again. A reference as it was:")
        self._show(i, semicrf.predicted[i])
        words = " ".join(folds.references[i].tokens[told.start : told.stop])
        sure = np.exp(semicrf.models[i].log_likelihood([folds.X[i]], [[told]]))
        say.text(f'Told that "{words}" is the {told.label} (the model gave that {sure:.1%}), it reads:')
        self._show(i, held)
        say.line()
        say.text(
            f"The same for all {len(wrong)} references with an error, the first wrong field being told: of the tokens "
            f"that were wrong outside that field, {before - after} of {before} come right by themselves; {solved} "
            "references become wholly right."
        )

    def partial_labels(self, crf: Answers) -> None:
        """Half of the labels are hidden."""
        say, folds, options = self.console, self.folds, self.options
        say.heading("4. Half of the labels are missing: partial supervision")
        drawings = 1 if options.quick else 3
        say.text(
            "Labelling is dear. Half of the training labels are hidden now: a quarter of the references stays complete, "
            "the others keep one label in three, at random. What is known counts, what is not is summed out."
        )
        say.line()
        settings = {"all_possible_transitions": True}  # a pair of labels may never be seen side by side
        partly, complete = [], []
        for seed in range(drawings):

            def hidden(others: Sequence[int], seed: int = seed) -> tuple[list[int], list[Any]]:
                return list(others), hide([folds.references[i].fields for i in others], 1 / 4, 1 / 3, seed)

            def kept(others: Sequence[int], seed: int = seed) -> tuple[list[int], list[Any]]:
                pairs = zip(*hidden(others, seed), strict=True)
                chosen = [(i, labels) for i, labels in pairs if None not in labels]
                return [i for i, _ in chosen], [labels for _, labels in chosen]

            for found, targets in ((partly, hidden), (complete, kept)):
                answers = folds.answers(lambda: chain(options.iterations, options.jobs, **settings), targets)
                found.append(scores(folds.truth, answers.predicted))
        whole = folds.answers(
            lambda: chain(options.iterations, options.jobs, **settings), folds.known(0, as_labels=True)
        )
        say.table(
            ["CRF learning from", "tokens", "fields", "whole"],
            [
                ["all labels", *scores(folds.truth, whole.predicted).cells()],
                ["half of them", *mean(partly).cells()],
                ["complete references only", *mean(complete).cells()],
            ],
        )
        say.line()
        say.text(
            f"The last row is what is left where incomplete references must be thrown away. Both are means of {drawings} "
            f"drawing{'s' * (drawings > 1)}."
        )

    def trajectories(self) -> None:
        """Compressed inference."""
        from scansion import ChainLattice

        say = self.console
        say.heading("5. What happened, no matter when: compressed inference")
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
        names = squares()
        truth, seen, routes = [], [], [[], [], []]  # type: ignore[var-annotated]
        for _ in range(20 if self.options.quick else 400):
            at, told = robot.walk(rng, 30)
            with np.errstate(divide="ignore"):
                lattice = ChainLattice.from_hmm(robot.start, robot.transition, np.log(robot.emission[:, told].T))
            compressed = lattice.compressed()
            truth.append(compress(at))
            seen.append(told)
            found = (compress(lattice.viterbi()[0].tolist()), compressed.predict(), compressed.best(budget=2000)[0][0])
            for answers, answer in zip(routes, found, strict=True):
                answers.append(list(answer))
        titles = ("best labelling, merged", "compressed, place by place", "compressed, best route")
        say.table(
            ["", "right", "exact"],
            [
                [title, f"{edit_distance_score(truth, answers):.1f}", f"{exact_match_score(truth, answers):.1f}"]
                for title, answers in zip(titles, routes, strict=True)
            ],
        )
        say.line()
        say.text(
            f"Percent of {len(truth)} walks of 30 steps; right: by edit distance, exact: the whole route. The best labelling "
            "commits itself to a time for every move, and short visits get lost. Compressed inference sums over all "
            "times. A walk on which they differ:"
        )
        differ = [i for i, one in enumerate(truth) if routes[2][i] == one and routes[0][i] != one]
        for i in differ[:1]:
            shown = {"tracker": seen[i], "truth": truth[i], "labelling": routes[0][i], "best route": routes[2][i]}
            say.pairs([(name, "".join(names[square] for square in way)) for name, way in shown.items()])

    def files(self) -> None:
        """What was written, and what to try next."""
        say = self.console
        say.heading("6. Pictures, and what to try next")


def _rows(reference: Reference, answer: Any) -> list[tuple[str, str]]:
    """The fields of an answer with their words."""
    return [(label, " ".join(reference.tokens[start:stop])) for start, stop, label in answer]


def _wrong(truth: Any, answer: Any, told: Any = None) -> int:
    """Tokens with a wrong label, outside the segment that was told."""
    inside = range(told.start, told.stop) if told is not None else range(0)
    pairs = zip(labels_of(truth), labels_of(answer), strict=True)
    return sum(a != b for t, (a, b) in enumerate(pairs) if t not in inside)
