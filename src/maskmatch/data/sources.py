"""Opening what the user names: a path, standard input or a stream, as bytes or as checked lines of text.

Everything that can go wrong between the disk and a line of text is turned into one sentence here, so that the
readers of the single formats only know about their format.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import sys
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import WriteableBuffer

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_READ_ERRORS = (OSError, EOFError, zlib.error)
# The marks of UTF-32 come first: the one for little-endian begins like that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def is_path(source: object) -> bool:
    """Tell whether the source names a file, rather than being standard input or a stream."""
    return isinstance(source, (str, os.PathLike)) and source != STANDARD_INPUT


def is_stream(source: object) -> bool:
    """Tell whether the source is an open stream."""
    return hasattr(source, "read") and hasattr(source, "__iter__")


def stream_path(source: Source) -> str | None:
    """Return the path of a file or of the file behind a stream, or None where there is none."""
    if isinstance(source, (str, os.PathLike)):
        return None if source == STANDARD_INPUT else os.fspath(source)
    name = getattr(source, "name", None)
    # A stream over a descriptor is named by a number, and standard input by "<stdin>".
    return name if isinstance(name, str) and not name.startswith("<") else None


def source_name(source: Source) -> str:
    """Return what messages call the source."""
    if source == STANDARD_INPUT or source is sys.stdin or source is getattr(sys.stdin, "buffer", None):
        return "standard input"
    return stream_path(source) or "the stream"


@contextmanager
def open_lines(source: Source, encoding: str) -> Iterator[Iterator[str]]:
    """Open a source as lines of text with their line ends.

    A byte-order mark decides over `encoding`. Lines that are not valid in the encoding, or that hold a NUL
    byte, are refused when they are reached. A stream given by the user stays open.
    """
    name = source_name(source)
    with _opened(source, name) as stream:
        if _is_text(stream):
            yield _checked_lines(stream, name, encoding)
            return
        unpacked = _unpacked(stream, name, gzip_expected=_is_gzip_path(source))
        actual_encoding = _encoding_of(unpacked.peek(4), encoding)
        try:
            # Bytes that cannot be decoded pass as surrogates, so that the line that holds them can be named.
            text = io.TextIOWrapper(unpacked, actual_encoding, errors="surrogateescape", newline="")
        except (LookupError, ValueError) as error:
            raise MaskMatchError(
                f"The encoding {encoding!r} is not known; use a name such as utf-8, utf-16 or latin-1."
            ) from error
        yield _checked_lines(text, name, actual_encoding)


@contextmanager
def open_seekable(source: Source) -> Iterator[IO[bytes]]:
    """Open a source as bytes to be read in any order; all but plain files are taken into memory."""
    name = source_name(source)
    with _opened(source, name) as stream:
        if _is_text(stream):
            raise MaskMatchError(f"{name} is open as text; open it as binary to read a binary format.")
        if isinstance(stream, io.BufferedReader) and is_path(source) and not _is_gzip_path(source):
            yield stream
        else:
            yield io.BytesIO(_unpacked(stream, name, gzip_expected=_is_gzip_path(source)).read())


@contextmanager
def _opened(source: Source, name: str) -> Iterator[IO[Any]]:
    """Open a path and close it afterwards; hand a stream through and leave it open."""
    if not isinstance(source, (str, os.PathLike)):
        if getattr(source, "closed", False):
            raise MaskMatchError(f"{name} is closed; give a stream that is open for reading.")
        yield source
    elif source == STANDARD_INPUT:
        if sys.stdin is None:
            raise MaskMatchError("There is no standard input to read; name a file instead of '-'.")
        yield _standard_input()
    else:
        if not os.fspath(source):
            raise MaskMatchError("The name of the file is empty; name a file, or '-' for standard input.")
        try:
            file = open(source, "rb")  # noqa: SIM115 (closed below; errors of the caller must not be caught here)
        except (OSError, ValueError) as error:
            raise MaskMatchError(_reason(error, name)) from error
        with file:
            yield file


def _standard_input() -> IO[Any]:
    """The bytes of standard input, where there are any: the encoding is the user's choice, not the terminal's.

    They come through a reader of our own: Python dies of an interpreter's end while a thread waits in its reader.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError, AttributeError):  # no file stands behind it
        return getattr(sys.stdin, "buffer", sys.stdin)


def _is_text(stream: IO[Any]) -> bool:
    """Tell a stream of text from one of bytes."""
    try:
        return isinstance(stream.read(0), str)
    except _READ_ERRORS as error:
        raise MaskMatchError(_reason(error, source_name(stream))) from error


def _is_gzip_path(source: Source) -> bool:
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).lower().endswith(".gz")


def _unpacked(stream: IO[bytes], name: str, *, gzip_expected: bool) -> io.BufferedReader[_GuardedBytes]:
    """Return the bytes of a stream, decompressed if they begin like a gzip file."""
    plain = io.BufferedReader(_GuardedBytes(stream, name))
    start = plain.peek(2)[:2]
    if start == _GZIP_MAGIC:
        return io.BufferedReader(_GuardedBytes(gzip.GzipFile(fileobj=plain), name))
    if start and gzip_expected:
        raise MaskMatchError(f"{name} is not a gzip file; compress it with gzip, or drop .gz from its name.")
    return plain


class _GuardedBytes(io.RawIOBase):
    """Another stream's bytes, with its errors turned into sentences; closing this leaves the other open."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, name: str) -> None:
        # read1 returns what a pipe has now, where read would wait for a full buffer.
        self._read = getattr(stream, "read1", stream.read)
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            chunk = self._read(len(view)) or b""
        except _READ_ERRORS as error:
            raise MaskMatchError(_reason(error, self._name)) from error
        view[: len(chunk)] = chunk
        return len(chunk)


def _encoding_of(start: bytes, encoding: str) -> str:
    """Return the encoding a byte-order mark tells of, or else the one asked for."""
    return next((marked for mark, marked in _BYTE_ORDER_MARKS if start.startswith(mark)), encoding)


def _checked_lines(lines: Iterable[str], name: str, encoding: str) -> Iterator[str]:
    """Yield the lines, refusing the first one that is not clean text."""
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            if not is_unicode(line):
                raise MaskMatchError(f"{name}, line {number} is {_wrong_encoding(encoding)}")
            if "\0" in line:
                raise MaskMatchError(
                    f"{name}, line {number} holds a NUL byte; save it as plain text, or name the encoding it "
                    "was written in, for example --encoding utf-16 (encoding= in Python)."
                )
            yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        # Lines are decoded some thousand bytes at a time, so only the last good line handed out is known.
        raise MaskMatchError(f"{name}, after line {number}, is {_wrong_encoding(encoding)}") from error
    except _READ_ERRORS as error:
        raise MaskMatchError(_reason(error, name)) from error


def is_unicode(text: str) -> bool:
    """Tell whether a string has whole characters only: no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _wrong_encoding(encoding: str) -> str:
    example = "utf-8" if encoding.lower().replace("_", "-") in {"latin-1", "iso-8859-1"} else "latin-1"
    return (
        f"not valid {encoding.removesuffix('-sig').upper()}; name the encoding it was written in, "
        f"for example --encoding {example} (encoding= in Python)."
    )


def _reason(error: Exception, name: str) -> str:
    """Say in one sentence why a file cannot be read."""
    if isinstance(error, FileNotFoundError):
        return f"{name} does not exist; check the name and the folder."
    # Windows answers to opening a folder with a refused permission, so the folder is looked for first.
    if isinstance(error, IsADirectoryError) or os.path.isdir(name):
        return f"{name} is a folder; name a file in it."
    if isinstance(error, PermissionError):
        return f"{name} cannot be read, for lack of permission; ask its owner to allow reading."
    if isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error)):
        return f"{name} is a broken gzip file ({error}); compress or download it again."
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return f"{name} cannot be read: {os.strerror(error.errno)}."
    return f"{name} cannot be read: {error}."
