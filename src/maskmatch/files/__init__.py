"""Files: written whole or not at all, locked while they are edited, known by their digest."""

from maskmatch.files.locks import Lock, exclusive, locked, resolved
from maskmatch.files.writing import (
    file_digest,
    recover,
    scratch_folder,
    sync_folder,
    write_file,
    write_folder,
    write_text,
)

__all__ = [
    "Lock",
    "exclusive",
    "file_digest",
    "locked",
    "recover",
    "resolved",
    "scratch_folder",
    "sync_folder",
    "write_file",
    "write_folder",
    "write_text",
]
