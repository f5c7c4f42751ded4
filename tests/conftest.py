"""Hypothesis profiles: quick and repeatable by default, ``HYPOTHESIS_PROFILE=thorough`` for a long search.

And what the tests of the command share: a directory with data and models, and calls in it.
"""

import io
import os
import signal
import sys
import threading

import pytest
from command_data import columns, sentences
from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=60, derandomize=True, deadline=None, suppress_health_check=QUIET)
settings.register_profile("short", max_examples=25, derandomize=True, deadline=None, suppress_health_check=QUIET)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell that starts something in the background has it ignore Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    """A directory with data and models."""
    from scansion.cli import main

    path = tmp_path_factory.mktemp("command")
    data = sentences(30)
    (path / "train.txt").write_text(columns(data))
    (path / "test.txt").write_text(columns(sentences(10, 1)))
    (path / "words.txt").write_text(columns([[row[:2] for row in rows] for rows in sentences(10, 1)]))
    (path / "template").write_text("U00:%x[0,0]\nU01:%x[-1,1]\nU02:%x[0,1]\nU03:%x[1,1]\nB\n")
    run = ["train", str(path / "train.txt"), "-q", "--max-iterations", "20", "-t", str(path / "template")]
    assert main([*run, "-o", str(path / "crf")]) == 0
    assert main([*run, "-o", str(path / "semi"), "--model", "semicrf"]) == 0
    return path


@pytest.fixture
def call(here, capsysbinary, monkeypatch):
    """Run the command in the directory of the data: (exit code, standard output, standard error)."""
    from scansion.cli import main

    monkeypatch.chdir(here)

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


@pytest.fixture
def ok(call):
    def ok(*arguments, stdin=None):
        code, out, err = call(*arguments, stdin=stdin)
        assert code == 0, err
        return out

    return ok
