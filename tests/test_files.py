"""Files that are written beside their place: all or nothing, and nothing is left of processes that were killed."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import scansion as sc
from scansion import _files, model_file
from scansion._files import replacing
from scansion.display.markup import Markup
from scansion.display.page import Page

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals, locks and limits")


def temporaries(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith(".scansion-"))


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "out.txt"
    file.write_text("old")
    return file


def test_text_and_bytes(path):
    with replacing(path) as file:
        file.write("é\r\n\n")
        assert path.read_text() == "old"  # until the block ends
    assert path.read_bytes() == "é\r\n\n".encode()
    with replacing(str(path), encoding="latin-1") as file:
        file.write("é")
    assert path.read_bytes() == b"\xe9"
    with replacing(path.parent / "new", "wb") as file:
        file.write(b"\x00" * 100_000)
        file.write(b"\x01")
    assert (path.parent / "new").read_bytes() == b"\x00" * 100_000 + b"\x01"
    assert sorted(os.listdir(path.parent)) == ["new", "out.txt"]


@pytest.mark.parametrize("error", [ValueError("line 7"), KeyboardInterrupt(), OSError(errno.EIO, "other", "input")])
@pytest.mark.parametrize("size", [3, 1_000_000])
@pytest.mark.parametrize("exists", [True, False])
def test_a_block_that_raises(path, error, size, exists):
    target = path if exists else path.parent / "new"
    with pytest.raises(type(error)) as caught, replacing(target) as file:
        file.write("x" * size)
        raise error
    assert caught.value is error  # what is not about the file does not name it
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out.txt"]


@posix
@pytest.mark.parametrize("mode", ["w", "wb"])
def test_a_full_disk(path, mode):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        for block in (1000, 40_000, 100_000):  # the error comes at a write, or with the last buffer
            with pytest.raises(OSError, match="too large") as caught, replacing(path, mode) as file:
                for _ in range(60_000 // block + 1):
                    file.write("x" * block if mode == "w" else b"x" * block)
            assert caught.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_errors_of_the_last_steps_name_the_file(path, monkeypatch, step):
    def fail(*args):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with pytest.raises(OSError, match="quota") as caught, replacing(path) as file:
        file.write("new")
        monkeypatch.setattr(os, step, fail)
    monkeypatch.undo()
    assert (caught.value.errno, caught.value.filename) == (errno.EDQUOT, str(path))
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out.txt"]


@posix
def test_content_and_name_reach_the_disk(path, monkeypatch):
    """First the content, then the new name, then the directory that holds it."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def sync(descriptor):
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.fstat(descriptor).st_size
        steps.append(kind)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", lambda *args: (steps.append("replace"), replace(*args)))
    with replacing(path) as file:
        file.write("four")
    assert steps == [4, "replace", "directory"]


@posix
@pytest.mark.parametrize("mode", [0o666, 0o640, 0o600, 0o755])
def test_permissions_stay(path, mode):
    path.chmod(mode)
    seen = []
    old = os.umask(0o077)
    try:
        with replacing(path) as file:
            seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
    finally:
        os.umask(old)
    assert seen == [mode]  # before anything is written
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_protected_files_and_directories(path, monkeypatch):
    """As the system says them to users other than root."""
    monkeypatch.setattr(os, "access", lambda name, mode: (name, mode) != (str(path), os.W_OK))
    with pytest.raises(PermissionError, match=r"write-protected.*out\.txt"), replacing(path):
        pass
    monkeypatch.undo()

    def refuse(name, *args):
        raise PermissionError(errno.EACCES, "Permission denied", name)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"out\.txt") as caught, replacing(path):
        pass
    assert caught.value.filename == str(path)
    monkeypatch.undo()
    assert path.read_text() == "old" and os.listdir(path.parent) == ["out.txt"]


@posix
def test_what_cannot_be_replaced(path):
    pipe = path.parent / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"not a regular file.*pipe"), replacing(pipe):
        pass
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe, through=True) as file:
        file.write("through")
    reader.join()
    assert read == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)
    with replacing(os.devnull, "wb", through=True) as file:
        file.write(b"x")
    link = path.parent / "link"
    link.symlink_to(path.parent / "absent")
    with replacing(link) as file:  # a link to what does not exist yet
        file.write("new")
    assert link.is_symlink() and (path.parent / "absent").read_text() == "new"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_device():
    with pytest.raises(OSError, match="No space") as caught, replacing("/dev/full", through=True) as file:
        file.write("x")
    assert caught.value.filename == "/dev/full"


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no /dev/stdout")
def test_standard_output_by_name(tmp_path):
    program = (
        "from scansion._files import replacing\nwith replacing('/dev/stdout', through=True) as f: f.write('hello')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "hello" and os.listdir(tmp_path) == []


def test_pages(path, monkeypatch):
    page = Page("title", Markup("<p>é</p>"))
    assert page.save(path) == path and path.read_text(encoding="utf-8") == page.html
    before = path.read_bytes()

    def fail(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space.*out\.txt"):
        page.save(path)
    assert path.read_bytes() == before and os.listdir(path.parent) == ["out.txt"]


# ---- processes that were killed ------------------------------------------------------------------
def start(program, *args):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), *map(str, args)], stdout=subprocess.PIPE)


WAITS = """
    import os, sys, time
    from scansion._files import replacing
    with replacing(sys.argv[1]) as file:
        file.write("half")
        file.flush()
        print("ready", flush=True)
        time.sleep(600)
"""


@posix
def test_temporaries_of_killed_processes_are_removed(path):
    writer = start(WAITS, path)
    try:
        assert writer.stdout.readline() == b"ready\n"
        (live,) = temporaries(path.parent)
        assert re.fullmatch(rf"\.scansion-{writer.pid}-[0-9a-f]{{16}}\.tmp", live)
        with replacing(path) as file:
            file.write("new")
            assert len(temporaries(path.parent)) == 2
        assert temporaries(path.parent) == [live]  # it is alive
        assert (path.parent / live).read_text() == "half"
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
    assert temporaries(path.parent) == [live] and path.read_text() == "new"
    with replacing(path.parent / "another") as file:
        file.write("newer")
        assert live not in temporaries(path.parent)  # before anything needs the space
    assert sorted(os.listdir(path.parent)) == ["another", "out.txt"]


def test_other_files_are_left_alone(path):
    folder = path.parent
    names = [".scansion-1.tmp", ".scansion-1-0123456789abcdef.tmp.bak", "scansion-1-0123456789abcdef.tmp", ".tmpabcdef"]
    for name in names:
        (folder / name).write_text("keep")
    (folder / ".scansion-1-0123456789abcdef.tmp").mkdir()
    if os.name == "posix":
        (folder / ".scansion-2-0123456789abcdef.tmp").symlink_to(path)
        os.mkfifo(folder / ".scansion-3-0123456789abcdef.tmp")
    before = sorted(os.listdir(folder))
    with replacing(folder / "out.txt") as file:
        file.write("new")
    assert sorted(os.listdir(folder)) == before and path.read_text() == "new"
    (folder / ".scansion-4-0123456789abcdef.tmp").write_text("left")
    with replacing(folder / "out.txt") as file:
        file.write("new")
    assert sorted(os.listdir(folder)) == before


@posix
@pytest.mark.parametrize("when", ["before", "during", "unsupported"])
def test_a_temporary_that_is_swept_before_it_is_locked(path, monkeypatch, when):
    """Another process comes between its creation and its lock: it is made again. Without locks, nothing changes."""
    flock, calls = _files.fcntl.flock, []

    def between(descriptor, operation):
        calls.append(operation)
        if when == "unsupported":
            raise OSError(errno.ENOLCK, "No locks available")
        if len(calls) == 1 and when == "before":
            os.unlink(path.parent / temporaries(path.parent)[0])  # swept, and the lock given up
        if len(calls) == 1 and when == "during":
            os.unlink(path.parent / temporaries(path.parent)[0])
            raise BlockingIOError(errno.EWOULDBLOCK, "held by the sweep")
        flock(descriptor, operation)

    monkeypatch.setattr(_files.fcntl, "flock", between)
    with replacing(path) as file:
        file.write("new")
    assert path.read_text() == "new" and os.listdir(path.parent) == ["out.txt"]
    assert len(calls) == (1 if when == "unsupported" else 2)


SAVES = """
    import sys
    import numpy as np
    from scansion import model_file
    for i in range(int(sys.argv[2])):
        model_file.write(sys.argv[1], "crf", {"i": i}, {"w": np.full(200_000, float(i))})
        if i == 0:
            print("ready", flush=True)
"""


@posix
def test_killed_in_the_middle_of_saving(tmp_path):
    """Whenever the process is killed, the model is whole: the old one or the new one. The next save cleans up."""
    target = tmp_path / "model"
    model_file.write(target, "crf", {"i": -1}, {"w": np.full(200_000, -1.0)})
    rng = np.random.default_rng(0)
    left = 0
    for tries in range(60):
        if left >= 3 and tries >= 8:
            break
        saver = start(SAVES, target, 10**9)
        assert saver.stdout.readline() == b"ready\n"
        time.sleep(float(rng.uniform(0, 0.05)))
        saver.kill()
        saver.wait()
        saver.stdout.close()
        found = model_file.read(target)
        assert (found.arrays["w"] == found.metadata["i"]).all()
        left += len(temporaries(tmp_path))
        model_file.write(target, "crf", {"i": -1}, {"w": np.full(200_000, -1.0)})
        assert os.listdir(tmp_path) == ["model"]
    assert left >= 3  # as many were in the middle


def test_many_at_once(tmp_path):
    """Processes and threads that save into one directory do not take each other's temporaries for left ones."""
    savers = [start(SAVES, tmp_path / f"model{i % 2}", 60) for i in range(3)]
    errors = []

    def save(i):
        try:
            for _ in range(60):
                model_file.write(tmp_path / f"model{i}", "crf", {"i": i}, {"w": np.full(1000, float(i))})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for saver in savers:
        assert saver.wait() == 0
        saver.stdout.close()
    assert errors == []
    assert sorted(os.listdir(tmp_path)) == ["model0", "model1", "model2"]
    for name in os.listdir(tmp_path):
        found = model_file.read(tmp_path / name)
        assert (found.arrays["w"] == found.metadata["i"]).all()


# ---- files that change while a model is in use ---------------------------------------------------
X = [[["a", "b"], ["b"], ["a"]]] * 4
Y = [["x", "y", "x"]] * 4


@posix
@pytest.mark.parametrize("length", [0, 100])
def test_a_model_outlives_its_file(tmp_path, length):
    """Cut short in place while it is in use, as `cp` over it would do: answers stay, nothing crashes."""
    sc.CRF(max_iterations=5).fit(X, Y).save(tmp_path / "model")
    program = """
        import os, sys
        import scansion as sc
        crf = sc.load(sys.argv[1])
        os.truncate(sys.argv[1], int(sys.argv[2]))
        print(crf.predict([[["a", "b"], ["b"], ["a"]]]), len(crf.attributes_))
        crf.save(sys.argv[1])
        print(sc.load(sys.argv[1]).predict([[["a", "b"], ["b"], ["a"]]]))
    """
    asked = start(program, tmp_path / "model", length)
    said = asked.stdout.read().decode()
    asked.stdout.close()
    assert asked.wait() == 0
    assert said == "[['x', 'y', 'x']] 2\n[['x', 'y', 'x']]\n"


def test_models_are_mapped_if_asked_for(tmp_path):
    import mmap

    crf = sc.CRF(max_iterations=5).fit(X, Y)
    crf.save(tmp_path / "model")
    for mapped in (True, False):
        loaded = sc.load(tmp_path / "model", mmap=mapped)
        owner = loaded.model_.weights
        while isinstance(owner, np.ndarray):
            owner = owner.base
        assert isinstance(owner, mmap.mmap) == mapped
        assert loaded.predict(X) == Y
