"""Working processes: rounds of problems, one at a time, so that one that dies or hangs is a fault and no more."""

from __future__ import annotations

import faulthandler
import multiprocessing
import time
import traceback
import zlib
from importlib import import_module
from typing import Any

import numpy as np

from fuzz import Fault

TARGETS = ("lattices", "api", "model_files", "foreign_models", "texts", "hardship")
PATIENCE = 120.0  # seconds that a round may take


def kinds() -> list[str]:
    """All kinds of problems, as "target.kind"."""
    return [f"{target}.{kind}" for target in TARGETS for kind in import_module(f"fuzz.{target}").KINDS]


def generator(seed: int, kind: str, number: int) -> np.random.Generator:
    """That of one round."""
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), number])


def problems_of(seed: int, kind: str, number: int) -> int:
    """Do one round: how many problems it had."""
    target, name = kind.split(".")
    return int(import_module(f"fuzz.{target}").KINDS[name](generator(seed, kind, number)))


def rounds(channel: Any) -> None:
    """The working process: rounds as they are asked for, until the other end closes."""
    faulthandler.enable()
    while True:
        try:
            seed, kind, number = channel.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            channel.send((problems_of(seed, kind, number), ""))
        except Fault as fault:
            channel.send((0, str(fault)))
        except KeyboardInterrupt:
            return
        except BaseException:  # what no target expects is a fault too
            channel.send((0, traceback.format_exc()))


class Worker:
    """A process that does one round at a time."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.channel, other = context.Pipe()
        self.process = context.Process(target=rounds, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.task: tuple[int, str, int] | None = None
        self.begin = 0.0

    def give(self, *task: Any) -> None:
        """Begin a round: seed, kind, number."""
        self.task, self.begin = task, time.perf_counter()
        self.channel.send(task)

    def answer(self, patience: float) -> tuple[int, str] | None:
        """(problems, fault or ""), once the round is over; None: it is not."""
        try:
            if self.channel.poll():
                return self.channel.recv()  # type: ignore[no-any-return]
        except (EOFError, OSError):
            self.process.join()
            return 0, f"the process died (exit code {self.process.exitcode})"
        if time.perf_counter() - self.begin > patience:
            self.stop()
            return 0, f"no answer after {patience:.0f} seconds"
        return None

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
