"""Command line: ``python -m fuzz [--minutes M] [--seed S] [--only KINDS] [--rounds R] [--round N] [--jobs J]``."""

from __future__ import annotations

import argparse
import os
import sys
import time

from fuzz.rounds import PATIENCE, TARGETS, Worker, kinds, problems_of


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if a fault was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Random problems against oracles.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    parser.add_argument("--problems", type=float, help="how many of each kind, instead of a time")
    parser.add_argument("--seed", type=int, help="default: one that differs from run to run; it is printed")
    parser.add_argument("--only", help="kinds or targets, separated by commas: lattices, lattices.chain, ...")
    parser.add_argument("--round", type=int, help="this round only, in this process: to repeat a fault")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="processes")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds that a round may take")
    parser.add_argument("--faults", type=int, default=10, help="stop after so many (default: 10)")
    parser.add_argument("--list", action="store_true", help="list the kinds")
    given = parser.parse_args(arguments)
    chosen = kinds()
    if given.only:
        names = given.only.split(",")
        unknown = [name for name in names if name not in chosen and name not in TARGETS]
        if unknown:
            parser.error(f"there is no {', '.join(unknown)}; there are {', '.join((*TARGETS, *chosen))}")
        chosen = [kind for kind in chosen if kind in names or kind.split(".")[0] in names]
    if given.list:
        print("\n".join(chosen))
        return 0
    seed = int.from_bytes(os.urandom(4), "little") if given.seed is None else given.seed
    if given.round is not None:
        for kind in chosen:
            print(f"{kind}: {problems_of(seed, kind, given.round)} problems, no fault")
        return 0
    print(f"seed {seed}, {given.jobs} processes", flush=True)
    return 1 if Search(chosen, seed, given).run() else 0


class Search:
    """Rounds of all kinds in turn until the time is over, or every kind has had its problems."""

    def __init__(self, chosen: list[str], seed: int, given: argparse.Namespace) -> None:
        self.seed, self.given = seed, given
        self.numbers = dict.fromkeys(chosen, 0)
        self.problems = dict.fromkeys(chosen, 0)
        self.seconds = dict.fromkeys(chosen, 0.0)
        self.faults: list[str] = []
        self.begin = time.perf_counter()

    def next_task(self) -> tuple[int, str, int] | None:
        """The next round of the kind that has had least time; None: enough."""
        if len(self.faults) >= self.given.faults:
            return None
        limit = self.given.problems
        if limit is None and time.perf_counter() - self.begin > 60.0 * self.given.minutes:
            return None
        open_ = [kind for kind, n in self.problems.items() if limit is None or n < limit]
        if not open_:
            return None
        kind = min(open_, key=lambda kind: (self.seconds[kind], self.numbers[kind]))
        number = self.numbers[kind]
        self.numbers[kind] += 1
        self.seconds[kind] += 1e-6  # so that kinds take turns before their first round is over
        return self.seed, kind, number

    def run(self) -> int:
        """Number of faults."""
        workers = [Worker() for _ in range(self.given.jobs)]
        said = self.begin
        try:
            while True:
                for i, worker in enumerate(workers):
                    answer = None if worker.task is None else worker.answer(self.given.patience)
                    if answer is not None:
                        self.take(worker, *answer)
                        if not worker.process.is_alive():
                            workers[i] = Worker()
                for worker in workers:
                    task = self.next_task() if worker.task is None else None
                    if task is not None:
                        worker.give(*task)
                if all(worker.task is None for worker in workers):
                    break
                if time.perf_counter() - said > 300.0:
                    said = time.perf_counter()
                    self.report()
                time.sleep(0.001)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
        finally:
            for worker in workers:
                worker.stop()
        self.report()
        return len(self.faults)

    def take(self, worker: Worker, problems: int, fault: str) -> None:
        """Count a finished round."""
        assert worker.task is not None
        seed, kind, number = worker.task
        self.problems[kind] += problems
        self.seconds[kind] += time.perf_counter() - worker.begin
        worker.task = None
        if fault:
            self.faults.append(kind)
            print(f"\nFAULT {kind}: {fault}\n  again: python -m fuzz --seed {seed} --only {kind} --round {number}\n")
            sys.stdout.flush()

    def report(self) -> None:
        """Problems and rates, kind by kind."""
        passed = time.perf_counter() - self.begin
        print(f"after {passed / 60:.1f} minutes, {sum(self.problems.values()):,} problems, {len(self.faults)} faults:")
        for kind, n in self.problems.items():
            rate = n / max(self.seconds[kind], 1e-9)
            print(f"  {kind:28} {n:>12,} problems in {self.numbers[kind]:>8,} rounds, {rate:>8,.0f} a second")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
