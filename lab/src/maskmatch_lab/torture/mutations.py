"""Mutations of bytes: what damaged, truncated and hostile files look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

TOKENS = (
    b'"', b'""', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\n\n\n", b"\0", b"\xef\xbb\xbf", b"\xff\xfe",
    b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b":", b"{}", b"[]", b"null", b"true", b"NaN",
    b"Infinity", b"-0", b"1e999", b"9" * 400, b'"text":', b'"label":', b"\\u0000", b"\\ud800", b"\\", b"\x1a", b"\x0b",
    b"\x85", b"\xe2\x80\xa8", b"\x1f\x8b\x08", b"PAR1", b"# ", b"text,label\n", b"[" * 600, b'{"a":' * 300, b" " * 300,
)  # fmt: skip
"""What parsers trip over."""


def flip_bit(data: bytearray, random: random.Random) -> None:
    """Flip one bit."""
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def set_byte(data: bytearray, random: random.Random) -> None:
    """Set one byte to any value."""
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def delete_slice(data: bytearray, random: random.Random) -> None:
    """Delete some bytes."""
    start, size = _slice(data, random)
    del data[start : start + size]


def repeat_slice(data: bytearray, random: random.Random) -> None:
    """Repeat some bytes."""
    start, size = _slice(data, random)
    data[start:start] = data[start : start + size] * random.choice((1, 2, 5))


def insert_token(data: bytearray, random: random.Random) -> None:
    """Insert what parsers trip over."""
    place = random.randrange(len(data) + 1)
    data[place:place] = random.choice(TOKENS)


def truncate(data: bytearray, random: random.Random) -> None:
    """Cut the end off."""
    del data[random.randrange(len(data) + 1) :]


def zero_slice(data: bytearray, random: random.Random) -> None:
    """Overwrite some bytes with zeros, as a lost block would be."""
    start, size = _slice(data, random)
    data[start : start + size] = bytes(len(data[start : start + size]))


def append_noise(data: bytearray, random: random.Random) -> None:
    """Append random bytes."""
    data += random.randbytes(random.randrange(1, 40))


MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip_bit,
    set_byte,
    delete_slice,
    repeat_slice,
    insert_token,
    truncate,
    zero_slice,
    append_noise,
)


def mutated(
    data: bytes, random: random.Random, kinds: Sequence[Callable[[bytearray, random.Random], None]] = MUTATIONS
) -> bytes:
    """The data with one to four mutations."""
    result = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        random.choice(kinds)(result, random)
    return bytes(result)


def _slice(data: bytearray, random: random.Random) -> tuple[int, int]:
    return random.randrange(len(data) + 1), random.randrange(1, max(2, min(64, len(data))))
