"""Open a path, standard input or a stream, as bytes or as decoded lines.

Every error between the disk and a line of text (missing file, gzip, encoding) becomes one sentence here, so that the
reader of a format deals with that format only.
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

from maskmatch.data.limits import limits, too_large
from maskmatch.data.values import is_valid_unicode
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path, "-" for standard input, or an open stream of text or bytes."""

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_RATIO_FROM = 16_000_000
"""Decompressed bytes from which the ratio to the compressed ones counts: small files may be all alike."""

_READ_ERRORS = (OSError, EOFError, zlib.error)
# UTF-32 comes first: its little-endian mark starts with the bytes of the UTF-16 mark.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def is_path(source: object) -> bool:
    """Whether a source is a path, not standard input or a stream."""
    return isinstance(source, (str, os.PathLike)) and source != STANDARD_INPUT


def is_stream(source: object) -> bool:
    """Whether a source is an open stream."""
    return hasattr(source, "read") and hasattr(source, "__iter__")


def path_of(source: Source) -> str | None:
    """The path of a source, also of the file that a stream reads; None if there is no path."""
    if isinstance(source, (str, os.PathLike)):
        return None if source == STANDARD_INPUT else os.fspath(source)
    name = getattr(source, "name", None)
    # The name of a stream over a file descriptor is a number, that of standard input "<stdin>".
    return name if isinstance(name, str) and not name.startswith("<") else None


def source_name(source: Source) -> str:
    """The name of a source in error messages."""
    if source == STANDARD_INPUT or source is sys.stdin or source is getattr(sys.stdin, "buffer", None):
        return "standard input"
    return path_of(source) or "the stream"


@contextmanager
def open_lines(source: Source, encoding: str, longest: int | None = None) -> Iterator[Iterator[str]]:
    """Open a source as lines of text, with their line ends.

    A byte-order mark overrides `encoding`. A line that is not valid in the encoding, or that contains a NUL byte,
    raises when the iteration reaches it. A stream passed by the user stays open.

    Args:
        source: A path, "-" for standard input, or an open stream of text or bytes.
        encoding: The encoding of the text.
        longest: The most characters of a line; None: the limit of a line.
    """
    name, longest = source_name(source), longest or limits().line
    with _open(source, name) as stream:
        if _is_text(stream):
            yield _check_lines(stream, name, encoding, longest)
            return
        decompressed = _decompress(stream, name, gzip_expected=_is_gzip_path(source))
        actual_encoding = _detect_encoding(decompressed.peek(4), encoding)
        try:
            # surrogateescape lets invalid bytes through, so that the error can name their line.
            text = io.TextIOWrapper(decompressed, actual_encoding, errors="surrogateescape", newline="")
        except (LookupError, ValueError) as error:
            raise MaskMatchError(
                f"Unknown encoding {encoding!r}; use a name such as utf-8, utf-16 or latin-1."
            ) from error
        yield _check_lines(text, name, actual_encoding, longest)


def non_blank_lines(source: Source, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield the location and the content of each line that is not blank, without its line end."""
    name = source_name(source)
    with open_lines(source, encoding) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield f"{name}, line {number}", line.rstrip("\r\n")


@contextmanager
def open_seekable(source: Source) -> Iterator[IO[bytes]]:
    """Open a source as seekable bytes. All sources except uncompressed files are loaded into memory."""
    name = source_name(source)
    with _open(source, name) as stream:
        if _is_text(stream):
            raise MaskMatchError(f"{name} is open in text mode; open it in binary mode to read a binary format.")
        if isinstance(stream, io.BufferedReader) and is_path(source) and not _is_gzip_path(source):
            yield stream
        else:
            yield io.BytesIO(_read_whole(_decompress(stream, name, gzip_expected=_is_gzip_path(source)), name))


def _read_whole(stream: io.BufferedReader[_SafeBytes], name: str) -> bytes:
    most = limits().whole
    content = stream.read(most + 1)
    if len(content) > most:
        raise too_large(name, f"has more than {most:,} bytes, and must be read as a whole", "whole")
    return content


@contextmanager
def _open(source: Source, name: str) -> Iterator[IO[Any]]:
    """Open a path and close it afterwards; pass a stream through and leave it open."""
    if not isinstance(source, (str, os.PathLike)):
        if getattr(source, "closed", False):
            raise MaskMatchError(f"{name} is closed; pass a stream that is open for reading.")
        yield source
    elif source == STANDARD_INPUT:
        if sys.stdin is None:
            raise MaskMatchError("There is no standard input to read; give a file instead of '-'.")
        yield _open_standard_input()
    else:
        if not os.fspath(source):
            raise MaskMatchError("The file name is empty; give a file, or '-' for standard input.")
        try:
            file = open(source, "rb")  # noqa: SIM115 (closed below; errors of the caller must not be caught here)
        except (OSError, ValueError) as error:
            raise MaskMatchError(_read_error(error, name)) from error
        with file:
            yield file


def _open_standard_input() -> IO[Any]:
    """Standard input as bytes if possible, because the user chooses the encoding, not the terminal.

    The bytes come through a new reader, not through ``sys.stdin.buffer``: at exit, Python aborts if a thread is still
    waiting in that one.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError, AttributeError):  # no file descriptor, for example in a test
        return getattr(sys.stdin, "buffer", sys.stdin)


def _is_text(stream: IO[Any]) -> bool:
    """Whether a stream yields text, not bytes."""
    try:
        return isinstance(stream.read(0), str)
    except _READ_ERRORS as error:
        raise MaskMatchError(_read_error(error, source_name(stream))) from error


def _is_gzip_path(source: Source) -> bool:
    return isinstance(source, (str, os.PathLike)) and os.fspath(source).lower().endswith(".gz")


def _decompress(stream: IO[bytes], name: str, *, gzip_expected: bool) -> io.BufferedReader[_SafeBytes]:
    """The bytes of a stream, decompressed if they start like a gzip file."""
    compressed = _SafeBytes(stream, name)
    raw = io.BufferedReader(compressed)
    start = raw.peek(2)[:2]
    if start == _GZIP_MAGIC:
        return io.BufferedReader(_Decompressed(gzip.GzipFile(fileobj=raw), name, compressed))
    if start and gzip_expected:
        raise MaskMatchError(f"{name} is not a gzip file; compress it with gzip, or remove .gz from its name.")
    return raw


class _SafeBytes(io.RawIOBase):
    """The bytes of another stream, with its errors as MaskMatchError. Closing it leaves the other stream open."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, name: str) -> None:
        # read1 returns the bytes that a pipe has now; read would wait for a full buffer.
        self._read = getattr(stream, "read1", stream.read)
        self._name = name
        self.count = 0  # bytes so far

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            chunk = self._read(len(view)) or b""
        except _READ_ERRORS as error:
            raise MaskMatchError(_read_error(error, self._name)) from error
        view[: len(chunk)] = chunk
        self.count += len(chunk)
        return len(chunk)


class _Decompressed(_SafeBytes):
    """The decompressed bytes of a gzip stream. A small file that expands without end raises an error."""

    def __init__(self, stream: gzip.GzipFile, name: str, compressed: _SafeBytes) -> None:
        super().__init__(stream, name)
        self._compressed, self._most = compressed, limits().ratio

    def readinto(self, buffer: WriteableBuffer) -> int:
        found = super().readinto(buffer)
        if self.count > _RATIO_FROM and self.count > self._most * self._compressed.count:
            raise too_large(self._name, f"expands to more than {self._most} times its size, unlike texts", "ratio")
        return found


def _detect_encoding(start: bytes, encoding: str) -> str:
    """The encoding of the byte-order mark, or the requested encoding if there is no mark."""
    return next((detected for mark, detected in _BYTE_ORDER_MARKS if start.startswith(mark)), encoding)


def _check_lines(stream: IO[str], name: str, encoding: str, most: int) -> Iterator[str]:
    """Yield the lines; raise at the first one that is too long or not valid text."""
    number = 0
    try:
        for number, line in enumerate(iter(lambda: stream.readline(most + 1), ""), start=1):
            if len(line) > most:
                raise too_large(f"{name}, line {number}", f"has more than {most:,} characters", "line")
            if not is_valid_unicode(line):
                raise MaskMatchError(f"{name}, line {number} is {_wrong_encoding(encoding)}")
            if "\0" in line:
                raise MaskMatchError(
                    f"{name}, line {number} contains a NUL byte; save the file as plain text, or give its encoding, "
                    "for example --encoding utf-16 (encoding= in Python)."
                )
            yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        # Lines are decoded in blocks of several thousand bytes, so only the last yielded line is known.
        raise MaskMatchError(f"{name}, after line {number}, is {_wrong_encoding(encoding)}") from error
    except _READ_ERRORS as error:
        raise MaskMatchError(_read_error(error, name)) from error


def _wrong_encoding(encoding: str) -> str:
    example = "utf-8" if encoding.lower().replace("_", "-") in {"latin-1", "iso-8859-1"} else "latin-1"
    return (
        f"not valid {encoding.removesuffix('-sig').upper()}; give the file's encoding, "
        f"for example --encoding {example} (encoding= in Python)."
    )


def _read_error(error: Exception, name: str) -> str:
    """Why a file cannot be read, in one sentence."""
    if isinstance(error, FileNotFoundError):
        return f"{name} does not exist; check the file name and the folder."
    # On Windows, opening a folder raises PermissionError, so folders are checked first.
    if isinstance(error, IsADirectoryError) or os.path.isdir(name):
        return folder_message(name)
    if isinstance(error, PermissionError):
        return f"{name} cannot be read: permission denied; ask its owner for read permission."
    if isinstance(error, (gzip.BadGzipFile, EOFError, zlib.error)):
        return f"{name} is a broken gzip file ({error}); compress or download it again."
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return f"{name} cannot be read: {os.strerror(error.errno)}."
    return f"{name} cannot be read: {error}."


def folder_message(name: str) -> str:
    """The error message for a folder where a file is expected."""
    return f"{name} is a folder; give a file in it."
