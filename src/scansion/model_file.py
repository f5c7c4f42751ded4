"""Model files: named arrays and JSON metadata in one safetensors file. The format is docs/model-file.md.

Conventions
-----------
- A file is an 8-byte length, a JSON header and the data section. Integers are little-endian, text is UTF-8.
- Arrays are in C order, without gaps, by descending item size: each begins at a multiple of its item size.
- Reading trusts nothing: no number from the file sizes an allocation or a view before it was compared with
  the size of the file, and nothing in a file is ever executed.
- Checksums find accidents. They do not authenticate: whoever can change a file can change its checksums.

The safetensors library writes the files: table, header and data come from its ``save``, which takes twice the size of
the arrays for a moment. (``save_file`` would not, but it goes through a temporary of its own: if the process is killed,
nobody can tell whose that was.) Reading is done here, because the library cannot map arrays but copies them, 6.1 ms in
a new process for a model of 460,000 weights (8.7 MB) where mapping and verifying take 3.1 ms. It also opens the file by
its name, so that what was verified and what is loaded may be two files, and it maps the file while it copies, so that
cutting it at that moment ends the process. To load the library would take 1.2 ms. (benchmarks/model_files.py)
"""

from __future__ import annotations

import json
import math
import mmap as _mmap
import os
import re
import stat
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from scansion._files import replacing

__all__ = ["FORMAT_VERSION", "ModelFile", "ModelFileError", "read", "write", "write_files"]

Array = NDArray[Any]

FORMAT_VERSION = 1
MAX_HEADER_BYTES = 32 << 20  # safetensors allows 100 MB; parsed JSON can take some twenty times its text
MAX_DEPTH = 64  # lists and objects inside each other in the metadata
MAX_CONTAINERS = 1_000_000  # lists and objects in the metadata
MAX_DIMENSIONS = 32  # NumPy 1's limit
MAX_INTEGER_BITS = 1024
PIECE = 1 << 20  # bytes copied at a time
ALIGNMENT = 64  # of the data section within the file: a cache line

# Every version begins so, and the eight hexadecimal digits of the header's checksum follow.
PREFIX = rb'{"__metadata__":{"scansion":"{\"header_crc32\":\"'
DIGITS = slice(len(PREFIX), len(PREFIX) + 8)

DTYPES = {
    name: np.dtype(code)
    for name, code in {
        "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "F16": "<f2",
        "U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8",
    }.items()
}  # fmt: skip
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

DOCUMENT_KEYS = {"header_crc32", "format", "kind", "library", "data_crc32", "arrays", "metadata"}
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
TO_ARRAYS = "move large tables into arrays (text as UTF-8 bytes with offsets)"
COPY_AGAIN = "Copy it again from where it came from, or save the model again."


class ModelFileError(ValueError):
    """A file is not an intact model file that this version can read; the message says what to do."""


@dataclass(frozen=True)
class ModelFile:
    """What `read` found in a file.

    Attributes
    ----------
    kind : str
        What the file describes: "crf", "semicrf", ...
    metadata : dict
        The metadata as written.
    arrays : dict of str to ndarray
        Read-only, in the order as written.
    version : int
        Version of the file format.
    library : str
        Version of scansion that wrote the file.
    """

    kind: str
    metadata: dict[str, Any]
    arrays: dict[str, Array]
    version: int
    library: str


# ---- writing -------------------------------------------------------------------------------------
def write(path: str | os.PathLike[str], kind: str, metadata: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a model file, all of it or nothing.

    The bytes go to a temporary file in the same directory, reach the disk, and then take the place of
    `path` in one step: whatever fails, an older file stays as it was. Links are followed. A new file has
    the permissions that the umask gives, a replaced one those it had. Equal arguments give equal bytes.

    Parameters
    ----------
    path : str or os.PathLike
        Where to write. The directory must exist.
    kind : str
        What the file describes: "crf", "semicrf", ...
    metadata : mapping of str to JSON value
        None, bool, int, finite float, str, list, and dict with str keys. Tuples are refused, as they would
        come back as lists.
    arrays : mapping of str to ndarray
        Of booleans, integers or floats of 16 to 64 bits, in any memory layout or byte order.

    Raises
    ------
    TypeError
        If a metadata value or an array has a type that the format does not hold; the message names it.
    ValueError
        If a metadata value is not finite, not valid Unicode, nested too deeply, or too large.
    OSError
        If the file cannot be written.
    """
    blocks = {name: _little_endian(name, array) for name, array in arrays.items()}
    text = _document(kind, metadata, list(blocks))
    from safetensors.numpy import save  # reading does not need it

    content = memoryview(save(blocks, {"scansion": text}))
    start = 8 + int.from_bytes(content[:8], "little")
    header = _seal(bytes(content[8:start]), zlib.crc32(content[start:]))
    with replacing(path, "wb") as file:
        file.write(header)
        file.write(content[start:])


def write_files(
    path: str | os.PathLike[str], kind: str, metadata: Mapping[str, Any], arrays: Mapping[str, tuple[str, BinaryIO]]
) -> None:
    """Write a model file whose 1-D arrays lie in files, with memory for some megabytes alone.

    Parameters
    ----------
    path, kind, metadata : as in `write`
    arrays : mapping of str to (safetensors' name of a dtype, binary file with the items)
    """
    ordered = sorted(arrays, key=lambda name: (-DTYPES[arrays[name][0]].itemsize, name))
    table: dict[str, Any] = {"__metadata__": {"scansion": _document(kind, metadata, list(arrays))}}
    crc32, at = 0, 0
    for name in ordered:
        code, file = arrays[name]
        file.seek(0)
        size = 0
        while piece := file.read(PIECE):
            crc32, size = zlib.crc32(piece, crc32), size + len(piece)
        table[name] = {"dtype": code, "shape": [size // DTYPES[code].itemsize], "data_offsets": [at, at + size]}
        at += size
    header = _seal(_to_json(table).encode(), crc32)
    with replacing(path, "wb") as target:
        target.write(header)
        for name in ordered:
            file = arrays[name][1]
            file.seek(0)
            while piece := file.read(PIECE):
                target.write(piece)


def _little_endian(name: Any, array: Any) -> Array:
    """`array` in the layout of the data section: a view where it has that layout already."""
    if not isinstance(name, str):
        raise TypeError(f"arrays: the name {name!r} is {type(name).__name__}, not str")
    check_text(name, "arrays: the name")
    if name in ("", "__metadata__"):
        raise ValueError(f"arrays: the name {name!r} is reserved; choose another")
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"arrays[{name!r}] is {type(array).__name__}, not a plain NumPy array; convert it")
    dtype = array.dtype.newbyteorder("<") if array.dtype.kind in "biuf" else None
    if dtype not in DTYPE_NAMES:
        text = array.dtype.kind in "OSUT"
        remedy = "store text as UTF-8 bytes (uint8) with offsets" if text else "convert it with astype"
        raise TypeError(f"arrays[{name!r}] has dtype {array.dtype}, which model files do not hold; {remedy}")
    if array.ndim > MAX_DIMENSIONS:
        raise ValueError(f"arrays[{name!r}] has {array.ndim} dimensions; model files hold {MAX_DIMENSIONS}")
    return np.asarray(array, dtype=dtype, order="C")


def _document(kind: Any, metadata: Any, names: list[str]) -> str:
    """What stands in the header beside the table, as JSON; zeros in place of the checksums."""
    import scansion

    if not isinstance(kind, str):
        raise TypeError(f"kind is {type(kind).__name__}, not str")
    check_text(kind, "kind")
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata is {type(metadata).__name__}, not a mapping")
    metadata = dict(metadata)
    _check_json(metadata, "metadata", 1)
    text = _to_json(
        {
            "header_crc32": "00000000",
            "format": FORMAT_VERSION,
            "kind": kind,
            "library": str(scansion.__version__),
            "data_crc32": "00000000",
            "arrays": names,
            "metadata": metadata,
        }
    )
    _check_limits(text.encode(), MAX_DEPTH + 1)
    return text


def _seal(header: bytes, data_crc32: int) -> bytes:
    """The length and the header of a file, padded and with its checksums, from the header that the library made."""
    if not header.startswith(PREFIX):
        raise RuntimeError(f"this version of safetensors begins a header by {header[: len(PREFIX)]!r}: use another one")
    header = header.replace(rb"\"data_crc32\":\"00000000\"", rb"\"data_crc32\":\"%08x\"" % data_crc32, 1)
    header += b" " * (-(8 + len(header)) % ALIGNMENT)
    _check_limits(header, 4)
    length = len(header).to_bytes(8, "little")
    digits = b"%08x" % zlib.crc32(header, zlib.crc32(length))
    return length + header[: DIGITS.start] + digits + header[DIGITS.stop :]


def _check_limits(text: bytes, max_depth: int) -> None:
    """Raise for JSON that would not be read."""
    try:
        if len(text) > MAX_HEADER_BYTES:
            raise ValueError(f"{len(text)} bytes of JSON are more than the {MAX_HEADER_BYTES} of a header")
        _check_containers(text, max_depth)
    except ValueError as error:
        raise ValueError(f"metadata cannot be written: {error}; {TO_ARRAYS}") from error


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _check_json(value: Any, where: str, depth: int) -> None:
    """Raise unless `value` comes back equal from JSON; `where` is its place in the metadata."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        check_text(value, where)
    elif isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise ValueError(f"{where} is an integer of {value.bit_length()} bits; store it as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}, which JSON cannot hold; use None, text or an array")
    elif isinstance(value, (dict, list)):
        if depth > MAX_DEPTH:
            raise ValueError(f"metadata is nested deeper than {MAX_DEPTH} levels (or holds itself); flatten it")
        items = enumerate(value) if isinstance(value, list) else value.items()
        for key, item in items:
            if isinstance(value, dict):
                if not isinstance(key, str):
                    raise TypeError(f"{where} has the key {key!r} of type {type(key).__name__}; use a str")
                check_text(key, f"{where}: the key")
            _check_json(item, f"{where}[{key!r}]", depth + 1)
    else:
        remedy = {"tuple": "use a list", "ndarray": "put it into arrays"}.get(type(value).__name__)
        remedy = remedy or "use None, bool, int, float, str, list or dict"
        raise TypeError(f"{where} is {type(value).__name__}, which is not a JSON value; {remedy}")


def check_text(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"{where} {text!r} holds a lone surrogate and cannot be written as UTF-8; replace it"
        raise ValueError(message) from error


# ---- reading -------------------------------------------------------------------------------------
def read(
    path: str | os.PathLike[str], *, kind: str | None = None, mmap: bool = False, verify: bool = True
) -> ModelFile:
    """Read a model file.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    kind : str, optional
        Refuse files of another kind.
    mmap : bool, default False
        Map the arrays from the file instead of copying them into memory. The pages are shared between
        processes and loaded at first use. While arrays are alive, the file may be replaced (as `write`
        does; Windows refuses even that) but must not be changed in place: where it is cut short, the
        process ends with SIGBUS.
    verify : bool, default True
        Compare the data with its checksum, which reads all of it once. The header is always verified.

    Returns
    -------
    ModelFile
        Its arrays are read-only, with or without `mmap`.

    Raises
    ------
    ModelFileError
        If the file is not an intact model file that this version can read.
    FileNotFoundError
        If there is no such file.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"path is {type(name).__name__}, not str or os.PathLike[str]")
    if not stat.S_ISREG(os.stat(name).st_mode):  # before opening, which would wait for a pipe's writer
        _fail(name, "is not a regular file", "Name a file that scansion saved.")
    with open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file, size, name)
        table, document = _parse_header(header, name)
        found, library, data_crc32, names, metadata = _check_document(document, name)
        data_size = size - 8 - len(header)
        blocks = _check_table(table, data_size, name)
        if len(set(names)) != len(names) or set(names) != set(blocks):
            _fail(name, "lists other arrays than it holds", COPY_AGAIN)
        if kind is not None and found != kind:
            remedy = f"Load it as {_short(found)}, or name another file."
            _fail(name, f"holds a model of kind {_short(found)}, not {kind!r}", remedy)
        data = _map(file, size, data_size, name) if mmap else _load(file, data_size, name)
    if verify and zlib.crc32(data.data) != data_crc32:
        _fail(name, "is damaged: the data does not match its checksum", COPY_AGAIN)

    arrays = {}
    for key in names:
        dtype, shape, begin, end = blocks[key]
        block = data[begin:end]
        if dtype == np.bool_ and block.max(initial=0) > 1:
            _fail(name, f"holds bytes other than 0 and 1 in the boolean array {_short(key)}", COPY_AGAIN)
        arrays[key] = block.view(dtype).reshape(shape)
    return ModelFile(found, metadata, arrays, FORMAT_VERSION, library)


def _fail(path: str, problem: str, remedy: str) -> NoReturn:
    raise ModelFileError(f"{path!r} {problem}. {remedy}")


def _short(value: Any) -> str:
    """What a message shows of a value from a file."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _read_header(file: BinaryIO, size: int, path: str) -> bytes:
    """The header, complete and with the right checksum."""
    head = file.read(8 + len(PREFIX))
    start = head[8:]
    if not head:
        _fail(path, "is empty", COPY_AGAIN)
    if start != PREFIX:
        if start and PREFIX.startswith(start):
            _fail(path, f"is truncated: it ends after {size} bytes, within the header", COPY_AGAIN)
        _fail(path, f"is not a scansion model but {_guess(head, size)}", "Name a file that scansion saved.")
    length = int.from_bytes(head[:8], "little")
    if length > MAX_HEADER_BYTES:
        _fail(path, f"is damaged: it claims a header of {length} bytes (limit: {MAX_HEADER_BYTES})", COPY_AGAIN)
    if length > size - 8:
        missing = f"{length} bytes of header are announced, {size - 8} follow"
        _fail(path, f"is truncated or damaged: {missing}", COPY_AGAIN)
    if length < DIGITS.stop or (8 + length) % ALIGNMENT:
        _fail(path, f"is damaged: no header of scansion has {length} bytes", COPY_AGAIN)
    header = start + file.read(length - len(start))
    zeroed = header[: DIGITS.start] + b"00000000" + header[DIGITS.stop :]
    if len(header) != length or header[DIGITS] != b"%08x" % zlib.crc32(zeroed, zlib.crc32(head[:8])):
        _fail(path, "is damaged: the header does not match its checksum", COPY_AGAIN)
    return header


def _guess(head: bytes, size: int) -> str:
    """What a file that does not begin like a model may be, for the message only."""
    if len(head) >= 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size - 8:
        return "a safetensors file of another program"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a pickle, which scansion never loads"
    for magic, what in {
        b"PK\x03\x04": "a zip archive (npz, PyTorch, skops, ...)",
        b"\x1f\x8b": "a gzip file (decompress it first if it holds a model)",
        b"\x93NUMPY": "a NumPy array file",
        b"lCRF": "a CRFsuite model",
    }.items():
        if head.startswith(magic):
            return what
    text = head.decode("utf-8", errors="ignore")
    if len(text.encode()) > len(head) - 4 and all(c.isprintable() or c in "\t\n\r\f\ufeff" for c in text):
        return "a text file"
    return "something else, or too damaged to tell"


def _parse_header(header: bytes, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The table of arrays, and the document that `__metadata__` holds."""
    try:
        table = _from_json(header, 4)
        # What begins with PREFIX and is valid JSON without repeated keys has these types.
        holder = table.pop("__metadata__")
        if len(holder) != 1:
            raise ValueError("__metadata__ has other keys than 'scansion'")
        document = _from_json(holder["scansion"].encode(), MAX_DEPTH + 1)
    except (ValueError, RecursionError) as error:  # UnicodeError and JSONDecodeError are ValueErrors
        _fail(path, f"has an invalid header ({error})", COPY_AGAIN)
    return table, document


def _from_json(data: bytes, max_depth: int) -> Any:
    """Strict JSON: UTF-8, finite numbers, no repeated key, no lone surrogate, few and flat containers."""
    _check_containers(data, max_depth)
    value = json.loads(
        data.decode(),
        object_pairs_hook=_unique,
        parse_int=_integer,
        parse_float=_finite,
        parse_constant=_finite,
    )
    if re.search(rb"\\u[dD][89a-fA-F]", data):
        _to_json(value).encode()  # raises for a lone surrogate
    return value


def _check_containers(data: bytes | bytearray, max_depth: int) -> None:
    """Limit depth and number of the lists and objects in JSON text before it is parsed.

    Depth, because the parser recurses on the C stack, protected only by a recursion limit that programs are
    free to raise; number, because the three bytes of an empty list grow to some eighty.
    """
    if data.count(b"[") + data.count(b"{") <= max_depth:
        return
    # Without escaped quotes, the pieces between quotes are in turn outside and inside of strings.
    outside = b"".join(data.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2])
    brackets = np.frombuffer(outside.translate(None, NO_BRACKETS), dtype=np.uint8)
    if brackets.size > 2 * MAX_CONTAINERS:
        raise ValueError(f"JSON with more than {MAX_CONTAINERS} lists and objects")
    opening = (brackets == ord("[")) | (brackets == ord("{"))
    if np.cumsum(np.where(opening, 1, -1)).max(initial=0) > max_depth:
        raise ValueError(f"JSON nested deeper than {max_depth} levels")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has a key twice")
    return result


def _integer(text: str) -> int:
    if len(text) > 310:  # more than MAX_INTEGER_BITS; int() would take quadratic time
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {_short(text)} is not finite")
    return value


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _check_document(document: dict[str, Any], path: str) -> tuple[str, str, int, list[str], dict[str, Any]]:
    """Kind, library version, checksum of the data, names of the arrays, and metadata."""
    version = document.get("format")
    if type(version) is not int or version < 1:
        _fail(path, f"has an invalid format version, {_short(version)}", COPY_AGAIN)
    if version > FORMAT_VERSION:
        writer = f"scansion {_short(document.get('library'))}, format {_short(version)}"
        remedy = f"Upgrade scansion: this one reads formats up to {FORMAT_VERSION}."
        _fail(path, f"was written by a newer scansion ({writer})", remedy)
    kind, library, data_crc32 = (document.get(key) for key in ("kind", "library", "data_crc32"))
    names, metadata = document.get("arrays"), document.get("metadata")
    if (
        document.keys() != DOCUMENT_KEYS
        or not isinstance(kind, str)
        or not isinstance(library, str)
        or not isinstance(data_crc32, str)
        or not re.fullmatch("[0-9a-f]{8}", data_crc32)
        or not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or not isinstance(metadata, dict)
    ):
        _fail(path, f"has a header that is not of format {version}", COPY_AGAIN)
    return kind, library, int(data_crc32, 16), names, metadata


def _check_table(
    table: dict[str, Any], data_size: int, path: str
) -> dict[str, tuple[np.dtype[Any], list[int], int, int]]:
    """Dtype, shape, begin and end of each array, all within a data section of `data_size` bytes."""
    blocks = {}
    for name, entry in table.items():
        where = f"the array {_short(name)}"
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            _fail(path, f"describes {where} by something other than dtype, shape and data_offsets", COPY_AGAIN)
        code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        dtype = DTYPES.get(code) if isinstance(code, str) else None
        if dtype is None:
            _fail(path, f"gives {where} the unknown dtype {_short(code)}", COPY_AGAIN)
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_size, shape)):
            _fail(path, f"gives {where} the invalid shape {_short(shape)}", COPY_AGAIN)
        # NumPy multiplies the dimensions other than zero, so their product must fit as well.
        if dtype.itemsize * math.prod(n for n in shape if n) > np.iinfo(np.intp).max:
            _fail(path, f"gives {where} the impossibly large shape {_short(shape)}", COPY_AGAIN)
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
            _fail(path, f"gives {where} the invalid offsets {_short(offsets)}", COPY_AGAIN)
        begin, end = offsets
        if end - begin != dtype.itemsize * math.prod(shape):
            sizes = f"{_short(offsets)}, but {code} of shape {_short(shape)}"
            _fail(path, f"gives {where} the offsets {sizes}", COPY_AGAIN)
        if begin % dtype.itemsize:
            _fail(path, f"places {where} at {begin}, not at a multiple of its item size", COPY_AGAIN)
        blocks[name] = (dtype, shape, begin, end)

    total = 0
    for begin, end in sorted((begin, end) for _, _, begin, end in blocks.values()):
        if begin != total:
            _fail(path, f"has arrays that overlap or leave a gap at {min(begin, total)}", COPY_AGAIN)
        total = end
    if data_size < total:
        _fail(path, f"is truncated: its last {total - data_size} bytes are missing", COPY_AGAIN)
    if data_size > total:
        _fail(path, f"is damaged: {data_size - total} bytes follow the last array", COPY_AGAIN)
    return blocks


def _map(file: BinaryIO, size: int, data_size: int, path: str) -> NDArray[np.uint8]:
    """The data section in the pages of the file; the views of it keep the mapping alive."""
    try:
        pages = _mmap.mmap(file.fileno(), size, access=_mmap.ACCESS_READ)
    except ValueError:  # shorter by now
        _fail(path, "changed while it was read", "Read it again when nothing writes to it.")
    data: NDArray[np.uint8] = np.ndarray((data_size,), dtype=np.uint8, buffer=pages, offset=size - data_size)
    return data


def _load(file: BinaryIO, data_size: int, path: str) -> NDArray[np.uint8]:
    """A copy of the data section; `file` stands at its beginning."""
    data = np.empty(data_size, dtype=np.uint8)
    rest = data.data
    while rest:
        count = file.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            _fail(path, "changed while it was read", "Read it again when nothing writes to it.")
        rest = rest[count:]
    data.flags.writeable = False
    return data
