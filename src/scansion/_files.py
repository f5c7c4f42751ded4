"""Files that are written beside their place and put there in one step: all of it, or nothing.

Conventions
-----------
- Temporaries are ``.scansion-<process>-<random>.tmp`` in the directory of the file that they become. The process
  that writes one holds a lock on it (flock) for as long as it lives, whatever ends it.
- Whoever writes next in a directory removes the temporaries there that nobody holds: those of processes that were
  killed. Where a file system has no locks, none are removed. Windows needs none: open files cannot be removed there.
- Errors name the file that was asked for, not the temporary.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
from collections.abc import Iterator
from typing import IO, Any, Literal

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["replacing"]

_WRITE = os.O_WRONLY | getattr(os, "O_BINARY", 0)
_TEMPORARY = re.compile(r"\.scansion-\d+-[0-9a-f]{16}\.tmp")


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w", *, through: bool = False, encoding: str = "utf-8"
) -> Iterator[IO[Any]]:
    """A file to write, which takes the place of `path` when the block ends.

    If the block raises, or the disk is full, `path` stays as it was and nothing is left beside it. Links are
    followed. A new file has the permissions that the umask gives, a replaced one those it had. When the block has
    ended, the content has reached the disk.

    Parameters
    ----------
    path : str or os.PathLike
        Where the file belongs. The directory must exist.
    mode : {"w", "wb"}
        Text, whose line ends are written as they are, or bytes.
    through : bool, default False
        Write straight into what cannot be replaced: a pipe, a terminal, /dev/null. Refused unless given.
    encoding : str
        Of text.

    Yields
    ------
    file object
        To write to; the end of the block closes it.

    Raises
    ------
    OSError
        With the name of the file, if it cannot be written.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path is {type(name).__name__}, not str or os.PathLike[str]")
    target = os.path.realpath(name)
    there = _mode(name, target)
    if there is not None and not stat.S_ISREG(there):
        if not through:
            raise OSError(errno.EINVAL, "is not a regular file, so nothing can take its place", name)
        with _opened(os.open(name, _WRITE), name, mode, encoding) as file:
            yield file
        return

    directory = os.path.dirname(target)
    _sweep(directory)
    permissions = 0o666 if there is None else stat.S_IMODE(there) & 0o777
    with _naming(name):
        temporary, descriptor, lock = _create(directory, permissions)
    try:
        with _opened(descriptor, name, mode, encoding) as file:
            if there is not None:
                os.chmod(temporary, permissions)  # the umask may have taken bits away
            yield file
            file.flush()
            with _naming(name):
                os.fsync(descriptor)
        with _naming(name):
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            os.unlink(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    _sync(directory)


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Errors of the system name `name`."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


class _Raw(io.FileIO):
    """A file whose errors name the one that was asked for."""

    def __init__(self, descriptor: int, asked: str) -> None:
        super().__init__(descriptor, "wb")
        self._asked = asked

    def write(self, data: Any) -> int:
        with _naming(self._asked):
            return super().write(data)


@contextlib.contextmanager
def _opened(descriptor: int, name: str, mode: str, encoding: str) -> Iterator[IO[Any]]:
    """A descriptor as a buffered file, closed at the end."""
    buffered = io.BufferedWriter(_Raw(descriptor, name))
    file = buffered if mode == "wb" else io.TextIOWrapper(buffered, encoding=encoding, newline="")
    try:
        yield file
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            file.close()
        raise
    file.close()


def _mode(name: str, target: str) -> int | None:
    """Type and permissions of what is there and may be written; None: nothing is, and a file may be made."""
    try:
        mode = os.stat(name).st_mode
    except (FileNotFoundError, NotADirectoryError):
        directory = os.path.dirname(target)
        if not os.path.isdir(directory):
            code = errno.ENOTDIR if os.path.exists(directory) else errno.ENOENT
            raise OSError(code, "cannot write here: no such directory, create it first", directory) from None
        if os.path.basename(name):
            return None
        mode = stat.S_IFDIR  # "models/": a directory is meant
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory; name a file", name)
    if not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, "is write-protected", name)
    return mode


def _create(directory: str, permissions: int) -> tuple[str, int, int | None]:
    """A temporary: its path, a descriptor to write to, and one that keeps its lock when the first is closed."""
    while True:
        temporary = os.path.join(directory, f".scansion-{os.getpid()}-{os.urandom(8).hex()}.tmp")
        descriptor = os.open(temporary, _WRITE | os.O_CREAT | os.O_EXCL, permissions)
        if fcntl is None:
            return temporary, descriptor, None
        swept = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            swept = True
        except OSError:
            pass  # no locks here
        if not swept and os.path.lexists(temporary):
            return temporary, descriptor, os.dup(descriptor)
        os.close(descriptor)  # somebody swept before it was locked


def _sweep(directory: str) -> None:
    """Remove the temporaries of processes that were killed."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if _TEMPORARY.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # held, gone meanwhile, no locks here, or not ours to remove
                    _remove_unless_held(entry.path)


def _remove_unless_held(path: str) -> None:
    if fcntl is None:
        os.unlink(path)  # refused while it is open
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(descriptor)


def _sync(directory: str) -> None:
    """Make the new name durable, where the system has a way to."""
    if os.name == "posix":
        with contextlib.suppress(OSError):  # some file systems refuse; the file is complete without
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
