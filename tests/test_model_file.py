"""Model files: what is written comes back, and nothing else ever does."""

from __future__ import annotations

import doctest
import errno
import itertools
import json
import math
import mmap
import os
import pickle
import random
import stat
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import scansion
from scansion import _files, model_file
from scansion.model_file import ModelFile, ModelFileError, read, write

METADATA = {"labels": ["B-NP", "O", 'é"\\\n\x00'], "c2": 0.1, "order": 1, "x": None, "ok": True, "nested": {"a": [[]]}}
ARRAYS = {
    "flags": np.array([True, False, True]),
    "weights": np.array([[0.5, -np.inf], [np.nan, -0.0]]),
    "index": np.arange(3, dtype=np.int32),
}
DTYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions, links and limits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.safetensors"
    write(file, "crf", METADATA, ARRAYS)
    return file


def same(left: ModelFile, right: ModelFile) -> bool:
    """Equal to the bit and in order; NaN equals NaN."""
    return (
        (left.kind, left.version, left.library) == (right.kind, right.version, right.library)
        and json.dumps(left.metadata) == json.dumps(right.metadata)
        and list(left.arrays) == list(right.arrays)
        and all(
            (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
            for a, b in zip(left.arrays.values(), right.arrays.values(), strict=True)
        )
    )


# ---- what is written comes back -------------------------------------------------------------------
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
names = st.text(min_size=1).filter(lambda name: name != "__metadata__")
dtypes = st.sampled_from([order + code for code in DTYPES for order in "<>"]).map(np.dtype)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
arrays = dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes))


@given(
    kind=st.text(),
    metadata=st.dictionaries(st.text(), json_values, max_size=5),
    arrays=st.dictionaries(names, arrays, max_size=5),
)
def test_round_trip_and_valid_safetensors(folder, kind, metadata, arrays):
    file = folder / "round"
    write(file, kind, metadata, arrays)
    for options in ({}, {"mmap": True}, {"verify": False}, {"mmap": True, "verify": False}):
        found = read(file, kind=kind, **options)
        assert (found.kind, found.version, found.library) == (kind, 1, scansion.__version__)
        assert found.metadata == metadata
        assert json.dumps(found.metadata) == json.dumps(metadata)  # also true apart from 1 and 1.0, and in order
        assert list(found.arrays) == list(arrays)
        for name, array in arrays.items():
            got = found.arrays[name]
            assert got.dtype == array.dtype.newbyteorder("<") and got.shape == array.shape
            assert got.tobytes() == array.astype(got.dtype).tobytes()
            assert type(got) is np.ndarray and got.flags.aligned and not got.flags.writeable

    peer = safetensors.numpy.load_file(file)
    assert peer.keys() == arrays.keys()
    for name, array in arrays.items():
        assert peer[name].dtype == array.dtype.newbyteorder("=") and peer[name].shape == array.shape
        np.testing.assert_array_equal(peer[name], array)
    with safetensors.safe_open(file, framework="np") as opened:
        assert json.loads(opened.metadata()["scansion"])["metadata"] == metadata


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(10)[::-2],
        np.broadcast_to(np.float32(3), (2, 3)),
        np.array(7.0),
        np.empty((3, 0, 2)),
        np.zeros((1,) * 32, dtype=bool),
        np.frombuffer(b"x" + np.arange(3.0).tobytes(), dtype=np.uint8)[1:].view(np.float64),  # unaligned
    ],
    ids=["transposed", "fortran", "reversed", "broadcast", "scalar", "empty", "32-d", "unaligned"],
)
def test_memory_layouts(tmp_path, array):
    before = array.tobytes(), array.flags.writeable
    write(tmp_path / "m", "crf", {}, {"small": np.ones(3, dtype=np.uint8), "a": array})
    got = read(tmp_path / "m").arrays["a"]
    assert got.shape == array.shape and got.flags.c_contiguous and got.flags.aligned
    np.testing.assert_array_equal(got, array)
    assert (array.tobytes(), array.flags.writeable) == before


def test_equal_arguments_give_equal_bytes(path, tmp_path):
    write(str(tmp_path / "again"), "crf", METADATA, ARRAYS)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_numbers_come_back_exactly(tmp_path):
    values = [0.1, 5e-324, 1.7976931348623157e308, -0.0, 1.0, 1, 2**64, -(2**1024) + 1, np.float64(0.1)]
    write(tmp_path / "m", "crf", {"v": values}, {})
    got = read(tmp_path / "m").metadata["v"]
    assert got == values and math.copysign(1, got[3]) == -1
    assert [type(v) for v in got] == [float] * 5 + [int] * 3 + [float]


def test_an_empty_model(tmp_path):
    write(tmp_path / "m", "", {}, {})
    found = read(tmp_path / "m", kind="", mmap=True)
    assert (found.metadata, found.arrays) == ({}, {})
    assert safetensors.numpy.load_file(tmp_path / "m") == {}


# ---- memory mapping ------------------------------------------------------------------------------
def owner(array):
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def test_arrays_are_mapped_or_copied_and_read_only(path):
    for array in read(path, mmap=True).arrays.values():
        assert isinstance(owner(array), mmap.mmap)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    for array in read(path).arrays.values():
        assert isinstance(owner(array), np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_mapping_copies_nothing(tmp_path):
    write(tmp_path / "m", "crf", {}, {"w": np.zeros(1_000_000)})
    tracemalloc.start()
    try:
        read(tmp_path / "m", mmap=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500_000


@posix
def test_a_mapped_model_outlives_the_replacement_of_its_file(path):
    old = read(path, mmap=True)
    write(path, "crf", METADATA, {**old.arrays, "index": np.zeros(0)})
    assert read(path).arrays["index"].shape == (0,)
    np.testing.assert_array_equal(old.arrays["index"], ARRAYS["index"])
    path.unlink()
    np.testing.assert_array_equal(old.arrays["weights"], ARRAYS["weights"])


# ---- writing: refused arguments ------------------------------------------------------------------
holds_itself: list = []
holds_itself.append(holds_itself)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ((1, 2), TypeError, r"metadata\['k'\]\[0\] is tuple.*use a list"),
        ({1, 2}, TypeError, r"metadata\['k'\]\[0\] is set"),
        (b"x", TypeError, r"metadata\['k'\]\[0\] is bytes"),
        (np.int64(3), TypeError, r"metadata\['k'\]\[0\] is int64"),
        (np.float32(3), TypeError, r"metadata\['k'\]\[0\] is float32"),
        (np.bool_(True), TypeError, r"metadata\['k'\]\[0\] is bool"),
        (np.zeros(2), TypeError, r"metadata\['k'\]\[0\] is ndarray.*arrays"),
        (1j, TypeError, r"metadata\['k'\]\[0\] is complex"),
        (print, TypeError, r"metadata\['k'\]\[0\] is builtin_function"),
        ({1: 2}, TypeError, r"metadata\['k'\]\[0\] has the key 1 of type int"),
        ({None: 2}, TypeError, r"metadata\['k'\]\[0\] has the key None"),
        (math.nan, ValueError, r"metadata\['k'\]\[0\] is nan.*None, text or an array"),
        (math.inf, ValueError, r"metadata\['k'\]\[0\] is inf"),
        (np.float64("-inf"), ValueError, r"metadata\['k'\]\[0\] is -inf"),
        ("\ud800", ValueError, r"metadata\['k'\]\[0\] '\\ud800' holds a lone surrogate"),
        ({"\udcff": 1}, ValueError, r"metadata\['k'\]\[0\]: the key '\\udcff' holds a lone surrogate"),
        (2**1024, ValueError, r"metadata\['k'\]\[0\] is an integer of 1025 bits"),
        (holds_itself, ValueError, "nested deeper than 64"),
    ],
)
def test_metadata_that_is_not_json(tmp_path, value, error, message):
    with pytest.raises(error, match=message):
        write(tmp_path / "m", "crf", {"fine": 1, "k": [value]}, {})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([{}]), r"arrays\['bad'\] has dtype object.*UTF-8"),
        (np.array(["a"]), r"arrays\['bad'\] has dtype <U1.*UTF-8"),
        (np.array([b"a"]), r"arrays\['bad'\] has dtype \|S1.*UTF-8"),
        (np.array([1j]), r"arrays\['bad'\] has dtype complex128.*astype"),
        (np.array([1], dtype="M8[s]"), r"arrays\['bad'\] has dtype datetime64"),
        (np.zeros(2, dtype=[("a", "f8")]), r"arrays\['bad'\] has dtype .*'a'"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), r"arrays\['bad'\] is MaskedArray"),
        ([1.0, 2.0], r"arrays\['bad'\] is list"),
        (np.float64(1), r"arrays\['bad'\] is float64"),
        (None, r"arrays\['bad'\] is NoneType"),
    ],
)
def test_arrays_that_are_refused(tmp_path, array, message):
    with pytest.raises(TypeError, match=message):
        write(tmp_path / "m", "crf", {}, {"good": np.zeros(1), "bad": array})
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 1")
def test_variable_width_text_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"arrays\['bad'\] has dtype StringDType.*UTF-8"):
        write(tmp_path / "m", "crf", {}, {"bad": np.array(["a"], dtype=np.dtypes.StringDType())})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((b"m", "crf", {}, {}), TypeError, "path is bytes"),
        ((7, "crf", {}, {}), TypeError, "int"),
        (("m", 1, {}, {}), TypeError, "kind is int"),
        (("m", "\ud800", {}, {}), ValueError, "kind .* lone surrogate"),
        (("m", "crf", [1], {}), TypeError, "metadata is list"),
        (("m", "crf", {2: 1}, {}), TypeError, "metadata has the key 2 of type int"),
        (("m", "crf", {}, {1: np.zeros(1)}), TypeError, "the name 1 is int"),
        (("m", "crf", {}, {"": np.zeros(1)}), ValueError, "reserved"),
        (("m", "crf", {}, {"__metadata__": np.zeros(1)}), ValueError, "reserved"),
        (("m", "crf", {}, {"\ud800": np.zeros(1)}), ValueError, "lone surrogate"),
    ],
)
def test_other_arguments_that_are_refused(tmp_path, monkeypatch, arguments, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        write(*arguments)
    assert os.listdir(tmp_path) == []


def test_depth_limits_agree(tmp_path):
    deepest: dict = {}
    for _ in range(model_file.MAX_DEPTH - 1):
        deepest = {"a[": deepest}
    write(tmp_path / "m", "crf", deepest, {})
    assert read(tmp_path / "m").metadata == deepest
    with pytest.raises(ValueError, match="deeper"):
        write(tmp_path / "m", "crf", {"a": deepest}, {})


def test_a_header_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "MAX_HEADER_BYTES", 2000)
    with pytest.raises(ValueError, match="move large tables into arrays"):
        write(tmp_path / "m", "crf", {"vocabulary": ["word"] * 1000}, {})
    assert os.listdir(tmp_path) == []


def test_too_many_lists(tmp_path, monkeypatch):
    write(tmp_path / "m", "crf", {"a": [[]] * 100}, {})
    monkeypatch.setattr(model_file, "MAX_CONTAINERS", 50)
    refuses(tmp_path / "m", "more than 50 lists")
    with pytest.raises(ValueError, match="more than 50 lists and objects; move large tables"):
        write(tmp_path / "n", "crf", {"a": [[]] * 100}, {})
    write(tmp_path / "n", "crf", {"a": ["[{" * 100, '\\"[[' * 100]}, {})  # text does not count
    assert read(tmp_path / "n").metadata["a"][1] == '\\"[[' * 100


# ---- writing: all or nothing ---------------------------------------------------------------------
@pytest.mark.parametrize("step", ["fsync", "replace", "write", "interrupt"])
def test_a_failing_write_leaves_the_old_file(path, monkeypatch, step):
    before = path.read_bytes()
    error = KeyboardInterrupt() if step == "interrupt" else OSError(errno.ENOSPC, "No space left on device")

    def fail(*args):
        raise error

    if step == "write":
        calls = itertools.count(1)  # what is larger than a buffer is written at once
        write_some = _files._Raw.write
        monkeypatch.setattr(_files._Raw, "write", lambda *args: fail() if next(calls) == 2 else write_some(*args))
    else:
        monkeypatch.setattr(os, "fsync" if step == "interrupt" else step, fail)
    with pytest.raises(type(error)):
        write(path, "crf", {}, {"w": np.zeros(50_000), "v": np.zeros(5)})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@posix
def test_a_full_disk(path):
    """A real short write: the system cuts the file at a limit."""
    import resource
    import signal

    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match=f"large.*{path.name}"):
            write(path, "crf", {}, {"w": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions(tmp_path, umask, mode):
    old = os.umask(umask)
    try:
        write(tmp_path / "m", "crf", {}, {})
        assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == mode
        (tmp_path / "m").chmod(0o640)
        write(tmp_path / "m", "crf", {}, {})
        assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o640
    finally:
        os.umask(old)


@posix
def test_links_are_followed(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to(path)
    write(link, "semicrf", {}, {})
    assert link.is_symlink() and read(path).kind == read(link).kind == "semicrf"
    assert os.listdir(tmp_path / "elsewhere") == ["link"]


def test_places_that_cannot_be_written(path, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such directory, create it first.*absent"):
        write(tmp_path / "absent" / "m", "crf", {}, {})
    with pytest.raises(NotADirectoryError, match="no such directory"):
        write(path / "m", "crf", {}, {})
    with pytest.raises(IsADirectoryError, match="name a file"):
        write(tmp_path, "crf", {}, {})
    with pytest.raises(IsADirectoryError, match="name a file"):
        write(f"{tmp_path}/absent/", "crf", {}, {})
    assert os.listdir(tmp_path) == [path.name]


@posix
def test_devices_and_pipes_are_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        write(tmp_path / "pipe", "crf", {}, {})
    with pytest.raises(OSError, match="not a regular file"):
        write(os.devnull, "crf", {}, {})
    with pytest.raises(ModelFileError, match="not a regular file"):
        read(tmp_path / "pipe")  # and does not wait for a writer
    with pytest.raises(ModelFileError, match="not a regular file"):
        read(os.devnull)
    assert os.listdir(tmp_path) == ["pipe"] and stat.S_ISCHR(os.stat(os.devnull).st_mode)


# ---- damage --------------------------------------------------------------------------------------
def refuses(file: Path, match: str | None = None, **options) -> str:
    """Check that reading fails as it should; return the message."""
    with pytest.raises(ModelFileError, match=match) as caught:
        read(file, **options)
    message = str(caught.value)
    assert repr(str(file)) in message
    assert message.endswith(".") and len(message) < 400 + len(str(file))
    return message


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"verify": False}], ids=["copy", "mmap", "unverified"])
def test_truncation_at_every_length(path, options):
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        message = refuses(path, **options)
        assert ("truncated" in message) == (length > 8), message


@pytest.mark.parametrize("options", [{}, {"mmap": True}], ids=["copy", "mmap"])
def test_every_single_altered_byte(path, options):
    content, original = path.read_bytes(), read(path)
    with path.open("r+b", buffering=0) as file:
        for i, byte in enumerate(content):
            for flip in (1, 2, 4, 8, 16, 32, 64, 128, 255):
                file.seek(i)
                file.write(bytes([byte ^ flip]))
                refuses(path, **options)
            file.seek(i)
            file.write(bytes([byte]))
    assert same(read(path, **options), original)


def test_an_altered_header_is_noticed_without_verification(path):
    content = path.read_bytes()
    victim = path.parent / "victim"
    end = 8 + int.from_bytes(content[:8], "little")
    for i in range(end):
        victim.write_bytes(content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :])
        refuses(victim, verify=False)
    victim.write_bytes(content[:end] + bytes([content[end] ^ 1]) + content[end + 1 :])
    read(victim, verify=False)  # the one check that is given up
    refuses(victim, "data does not match its checksum")


def test_random_damage(path):
    """Blocks zeroed, swapped, dropped, repeated: an error, or the very same content."""
    content, original = path.read_bytes(), read(path)
    victim = path.parent / "victim"
    rng = random.Random(0)
    for _ in range(3000):
        altered = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            i, j = sorted(rng.choices(range(len(altered) + 1), k=2))
            altered[i:j] = rng.choice([b"", bytes(j - i), altered[i:j] * 2, altered[i:j][::-1], rng.randbytes(j - i)])
        victim.write_bytes(altered)
        try:
            assert same(read(victim), original)
        except ModelFileError:
            pass


def test_appended_bytes(path):
    with path.open("ab") as file:
        file.write(b"\n")
    refuses(path, "1 bytes follow the last array")


@pytest.mark.parametrize("length", [0, 100])
@pytest.mark.parametrize("mapped", [True, False])
def test_a_file_cut_while_it_is_read(path, monkeypatch, length, mapped):
    check = model_file._check_table
    monkeypatch.setattr(model_file, "_check_table", lambda *args: os.truncate(path, length) or check(*args))
    write(path, "crf", {}, {"w": np.zeros(100_000)})  # more than a buffer
    refuses(path, "changed while it was read", mmap=mapped)


# ---- hostile files -------------------------------------------------------------------------------
def seal(header: bytes, data: bytes = b"") -> bytes:
    """A file with these bytes as header and a right checksum, written from the documentation alone."""
    prefix = rb'{"__metadata__":{"scansion":"{\"header_crc32\":\"'
    header = header.ljust((len(header) + 8 + 63) // 64 * 64 - 8)
    content = struct.pack("<Q", len(header)) + header + data
    if header.startswith(prefix):
        at = 8 + len(prefix)
        crc = zlib.crc32(content[:at] + b"0" * 8 + content[at + 8 : 8 + len(header)])
        content = content[:at] + b"%08x" % crc + content[at + 8 :]
    return content


def compact(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def forge(table: dict | None = None, data: bytes = b"", text: str | None = None, **changes) -> bytes:
    """A file with right checksums whose table or document are of our choice."""
    document = {
        "header_crc32": "00000000",
        "format": 1,
        "kind": "crf",
        "library": "0.1.0",
        "data_crc32": f"{zlib.crc32(data):08x}",
        "arrays": list(table or {}),
        "metadata": {},
    }
    document |= changes
    document = {key: value for key, value in document.items() if value is not ...}
    text = compact(document) if text is None else '{"header_crc32":"00000000",' + text
    return seal(compact({"__metadata__": {"scansion": text}, **(table or {})}).encode(), data)


def entry(dtype, shape, *offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


def test_a_forged_file_is_otherwise_right(tmp_path):
    data = np.arange(3.0).tobytes()
    (tmp_path / "m").write_bytes(forge({"a": entry("F64", [3], 0, 24)}, data))
    np.testing.assert_array_equal(read(tmp_path / "m").arrays["a"], np.arange(3.0))
    again = tmp_path / "again"
    write(again, "crf", {}, {"a": np.arange(3.0)})
    assert again.read_bytes() == forge({"a": entry("F64", [3], 0, 24)}, data, library=scansion.__version__)


A = entry("F64", [2], 0, 16)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": A, "b": entry("F64", [2], 8, 24)}, "overlap or leave a gap at 8"),
        ({"a": A, "b": A}, "overlap or leave a gap at 0"),
        ({"a": A, "b": entry("F64", [0], 8, 8), "c": entry("F64", [1], 16, 24)}, "overlap or leave a gap at 8"),
        ({"b": entry("F64", [2], 8, 24)}, "gap at 0"),
        ({"a": entry("F64", [1], 0, 8), "b": entry("F64", [1], 16, 24)}, "gap at 8"),
        ({"a": A}, "8 bytes follow"),
        ({"a": entry("F64", [4], 0, 32)}, "last 8 bytes are missing"),
        ({"a": entry("F64", [2**50], 0, 2**53)}, "truncated"),
        ({"a": entry("F64", [-3], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [-1, -3], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [3.0], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [True, 3], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", ["3"], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [None], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", 3, 0, 24)}, "invalid shape"),
        ({"a": entry("F64", "3", 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [1] * 33 + [3], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [2**64 + 3], 0, 24)}, "invalid shape"),
        ({"a": entry("F64", [2**32, 2**32], 0, 0)}, "impossibly large"),
        ({"a": entry("F64", [2**61, 1], 0, 0)}, "impossibly large"),
        ({"a": entry("F64", [2**62, 2**62, 0], 0, 0)}, "impossibly large"),
        ({"a": entry("U8", [2**63 - 1, 3, 0], 0, 0)}, "impossibly large"),
        ({"a": entry("F64", [2], 0, 24)}, "offsets .* but F64 of shape"),
        ({"a": entry("F32", [3], 0, 24)}, "offsets .* but F32 of shape"),
        ({"a": entry("F64", [3], 24, 0)}, "offsets .* but F64"),
        ({"a": entry("F64", [3], -24, 0)}, "invalid offsets"),
        ({"a": entry("F64", [3], 0.0, 24.0)}, "invalid offsets"),
        ({"a": entry("F64", [3], False, 24)}, "invalid offsets"),
        ({"a": entry("F64", [3], 0)}, "invalid offsets"),
        ({"a": entry("F64", [3], 0, 24, 24)}, "invalid offsets"),
        ({"a": entry("F64", [3], 2**64, 2**64 + 24)}, "invalid offsets"),
        ({"b": entry("U8", [4], 0, 4), "a": entry("F64", [2], 4, 20), "c": entry("U8", [4], 20, 24)}, "multiple"),
        ({"a": entry("F7", [3], 0, 24)}, "unknown dtype 'F7'"),
        ({"a": entry("f64", [3], 0, 24)}, "unknown dtype"),
        ({"a": entry("object", [3], 0, 24)}, "unknown dtype"),
        ({"a": entry(None, [3], 0, 24)}, "unknown dtype"),
        ({"a": entry(["F64"], [3], 0, 24)}, "unknown dtype"),
        ({"a": entry("F64" * 1000, [3], 0, 24)}, "unknown dtype"),
        ({"a": {**A, "more": 1}}, "something other"),
        ({"a": {"dtype": "F64", "shape": [3]}}, "something other"),
        ({"a": [0, 24]}, "something other"),
        ({"a": None}, "something other"),
        ({"a" * 5000: None}, "something other"),
    ],
)
def test_invalid_tables(tmp_path, table, message):
    file = tmp_path / "m"
    file.write_bytes(forge(table, np.arange(3.0).tobytes()))
    for options in ({}, {"mmap": True}, {"verify": False}, {"mmap": True, "verify": False}):
        refuses(file, message, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, r"written by a newer scansion \(scansion '0.1.0', format 2\)\. Upgrade"),
        ({"format": 10**200, "kind": ..., "library": {}, "arrays": 7}, "newer scansion"),
        ({"format": 0}, "invalid format version, 0"),
        ({"format": -1}, "invalid format version"),
        ({"format": True}, "invalid format version"),
        ({"format": 1.0}, "invalid format version"),
        ({"format": "1"}, "invalid format version"),
        ({"format": ...}, "invalid format version, None"),
        ({"kind": ...}, "not of format 1"),
        ({"kind": 3}, "not of format 1"),
        ({"library": None}, "not of format 1"),
        ({"metadata": []}, "not of format 1"),
        ({"metadata": ...}, "not of format 1"),
        ({"arrays": {}}, "not of format 1"),
        ({"arrays": [[]]}, "not of format 1"),
        ({"data_crc32": 0}, "not of format 1"),
        ({"data_crc32": "0x00000"}, "not of format 1"),
        ({"data_crc32": "00000000\n"}, "not of format 1"),
        ({"data_crc32": "ffffffff"}, "data does not match its checksum"),
        ({"more": 1}, "not of format 1"),
        ({"arrays": ["a"]}, "other arrays than it holds"),
        ({"text": '"format":1,"format":1}'}, "key twice"),
        ({"text": '"a":NaN}'}, "not finite"),
        ({"text": '"a":-Infinity}'}, "not finite"),
        ({"text": '"a":1e999}'}, "not finite"),
        ({"text": '"a":' + "1" * 100_000 + "}"}, "integer of 100000 digits"),
        ({"text": '"a":"\\ud800"}'}, "surrogates not allowed"),
        ({"text": '"a":"\\udc00\\ud800"}'}, "surrogates not allowed"),
        ({"text": '"a":"\x01"}'}, "invalid header"),
        ({"text": '"a":1'}, "invalid header"),
        ({"text": '"a":1} {}'}, "invalid header"),
        ({"text": '"a":' + "[" * 100_000}, "nested deeper"),
        ({"text": '"a":' + "[" * 100_000 + "]" * 100_000 + "}"}, "nested deeper"),
        ({"text": '"a":' + '{"a":' * 100_000 + "1" + "}" * 100_001}, "nested deeper"),
        ({"text": '"a":"' + "]" * 1000 + '","b":' + "[" * 900 + '"\\"' + "]" * 1000 + '"'}, "nested deeper"),
    ],
)
def test_invalid_documents(tmp_path, changes, message):
    file = tmp_path / "m"
    file.write_bytes(forge(**changes))
    refuses(file, message)


@pytest.mark.parametrize(
    "rest",
    [
        b'00000000\\"}"},"a":' + b"[" * 1_000_000,
        b'00000000\\"}","more":"1"}}',
        b'00000000\\"}"},"__metadata__":{"scansion":"{}"}}',
        b'00000000\\"}"},"__metadata__":7}',
        b'00000000\\"}","scansion":7}}',
        b'00000000\\"}","scansion":"[]"}}',
        b'00000000\\"}"}',
        b'00000000\\"}"}}{}',
        b"00000000\\",
        b"00000000\\\xff",
        b'00000000\\"\xff"}}',
        b'00000000\\"\xed\xa0\x80"}}',  # a surrogate in UTF-8
        b'00000000\\",\\"a\\":\\"\\ud800\\"}"}}',
        b'00000000\\"}"},"a":{"dtype":"F64","dtype":"F64","shape":[0],"data_offsets":[0,0]}}',
        b'00000000\\"}"},"a":{},"a":{}}',
    ],
)
def test_invalid_headers(tmp_path, rest):
    file = tmp_path / "m"
    file.write_bytes(seal(model_file.PREFIX + rest))
    refuses(file, "invalid header")


def test_array_named_twice_in_the_list(tmp_path):
    (tmp_path / "m").write_bytes(forge({"a": entry("U8", [1], 0, 1)}, b"x", arrays=["a", "a"]))
    refuses(tmp_path / "m", "other arrays")


def test_booleans_are_zero_or_one(tmp_path):
    (tmp_path / "m").write_bytes(forge({"a": entry("BOOL", [3], 0, 3)}, b"\x00\x01\x02"))
    refuses(tmp_path / "m", "boolean array 'a'")
    refuses(tmp_path / "m", "boolean array 'a'", verify=False)


def test_text_that_looks_like_an_escape_is_no_surrogate(tmp_path):
    write(tmp_path / "m", "crf", {"a": "\\ud800", "emoji": "\U0001f600"}, {})
    assert read(tmp_path / "m").metadata == {"a": "\\ud800", "emoji": "\U0001f600"}


@pytest.mark.parametrize("length", [0, 1, 55, 56, 57, 2**25 + 56, 2**31, 2**40 - 8, 2**63 - 8, 2**64 - 8, 2**64 - 1])
@posix
def test_absurd_header_lengths_allocate_nothing(path, length):
    with path.open("r+b") as file:
        file.write(struct.pack("<Q", length))
        file.truncate(2**34)  # sparse, so that most of these lengths lie within the file
    tracemalloc.start()
    try:
        refuses(path, "damaged")
        refuses(path, "damaged", mmap=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_deep_nesting_does_not_exhaust_the_stack(tmp_path):
    """Even if the program has lifted Python's recursion limit."""
    (tmp_path / "m").write_bytes(forge(text='"a":' + "[" * 900_000))
    program = (
        "import sys; from scansion.model_file import ModelFileError, read; sys.setrecursionlimit(10**8)\n"
        "try: read(sys.argv[1])\n"
        "except ModelFileError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "m"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "nested deeper" in done.stdout


# Tables and documents of nearly right shape, behind right checksums.
sizes = st.integers(-1, 4) | st.integers() | st.sampled_from([8, 16, 24, 2**31, 2**32, 2**61, 2**62, 2**63, 2**64])
oddities = st.none() | st.booleans() | sizes | st.floats() | st.text(max_size=5) | st.lists(sizes, max_size=3)
tables = st.dictionaries(
    st.sampled_from(["a", "b", "c", "é", ""]),
    st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F64", "F32", "U8", "BOOL"]) | oddities,
            "shape": st.lists(sizes, max_size=3) | oddities,
            "data_offsets": st.lists(sizes, min_size=2, max_size=2) | oddities,
        }
    )
    | oddities,
    max_size=4,
)


@given(table=tables, data=st.binary(max_size=40), listed=st.none() | oddities)
def test_garbage_tables(folder, table, data, listed):
    file = folder / "table"
    file.write_bytes(forge(table, data, **({} if listed is None else {"arrays": listed})))
    try:
        found = read(file)
    except ModelFileError:
        return
    assert found.arrays.keys() == table.keys()
    assert sum(array.nbytes for array in found.arrays.values()) == len(data)
    for name, array in found.arrays.items():
        begin, end = table[name]["data_offsets"]
        assert array.tobytes() == data[begin:end]


@given(dims=st.lists(st.integers(0, 5), max_size=4), cut=st.lists(st.integers(0, 24), min_size=1, max_size=3))
def test_partitions_of_the_data(folder, dims, cut):
    """Arrays that tile the data are read, whatever the order of the table; all others are refused."""
    data = bytes(range(24))
    table = {f"a{i}": entry("U8", [j - k], k, j) for i, (k, j) in enumerate(itertools.pairwise([0, *cut, 24]))}
    table = dict(reversed(table.items()))
    file = folder / "partition"
    file.write_bytes(forge(table | {"z": entry("U8", [*dims, 0], 24, 24)}, data))
    if cut == sorted(cut):
        found = read(file).arrays
        assert found.pop("z").shape == (*dims, 0)
        assert b"".join(found[name].tobytes() for name in sorted(found)) == data
    else:
        refuses(file)


@given(content=st.binary(max_size=300))
def test_garbage_files(folder, content):
    file = folder / "garbage"
    file.write_bytes(content)
    refuses(file)
    file.write_bytes(model_file.PREFIX.join([struct.pack("<Q", len(content)), content]))
    refuses(file)
    file.write_bytes(seal(model_file.PREFIX + b'00000000\\"' + content))
    refuses(file)


@given(value=json_values)
def test_garbage_headers(folder, value):
    file = folder / "garbage"
    for header in (compact(value), compact({"__metadata__": value}), compact({"__metadata__": {"scansion": value}})):
        file.write_bytes(seal(header.encode(errors="replace")))
        refuses(file)
    file.write_bytes(forge(text=compact({"k": value})[1:]))
    refuses(file)


# ---- other files ---------------------------------------------------------------------------------
class Payload:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_never_loaded(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "model.pkl"
    file.write_bytes(pickle.dumps(Payload(), protocol=protocol))
    refuses(file, "a pickle, which scansion never loads" if protocol >= 2 else "not a scansion model")
    assert os.listdir(tmp_path) == ["model.pkl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x00", "something else"),
        (b"a\n", "a text file"),
        (b"He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\ncurrent JJ I-NP\n", "a text file"),
        ("Größe NN B-NP\n".encode() * 9, "a text file"),
        ("日本語".encode() * 20, "a text file"),
        (b'{"a": [1, 2, 3]}', "a text file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "something else"),
        (b"PK\x03\x04" + bytes(100), "a zip archive"),
        (b"\x1f\x8b\x08" + bytes(100), "a gzip file"),
        (b"\x93NUMPY\x01\x00" + bytes(100), "a NumPy array file"),
        (b"lCRF" + bytes(100), "a CRFsuite model"),
        (safetensors.numpy.save({"w": np.zeros(3)}), "a safetensors file of another program"),
        (safetensors.numpy.save({}, {"scansion": "{}"}), "a safetensors file of another program"),
    ],
)
def test_files_of_other_programs(tmp_path, content, message):
    (tmp_path / "m").write_bytes(content)
    assert refuses(tmp_path / "m", message).endswith((model_file.COPY_AGAIN, "Name a file that scansion saved."))


def test_a_model_saved_again_by_another_program(path):
    with safetensors.safe_open(path, framework="np") as opened:
        metadata = opened.metadata()
    safetensors.numpy.save_file(safetensors.numpy.load_file(path), path, metadata)
    refuses(path, "damaged")


def test_missing_files_and_directories(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        read(tmp_path / "absent")
    refuses(tmp_path, "not a regular file")
    with pytest.raises(TypeError, match="path is bytes"):
        read(os.fsencode(tmp_path))
    with pytest.raises(TypeError):
        read(0)


def test_kinds(path):
    assert read(path, kind="crf").kind == "crf"
    refuses(path, "holds a model of kind 'crf', not 'semicrf'. Load it as 'crf'", kind="semicrf")


def test_the_documented_format(tmp_path, monkeypatch):
    """The reader printed in the documentation runs, and reads what the library writes."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parent.parent / "docs" / "model-file.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0
