"""Read Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.data.rows import Row, check_unique_columns
from maskmatch.data.streams import Source, open_seekable, source_name
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH_SIZE = 1024


def read_parquet(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a Parquet file. Its strings are always UTF-8, so `encoding` is ignored."""
    name = source_name(source)
    with open_seekable(source) as file:
        for number, fields in enumerate(_records(file, name), start=1):
            yield Row(fields, f"{name}, row {number}")


def _records(file: Any, name: str) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MaskMatchError(
            f'{name} is a Parquet file, which requires pyarrow; install it with pip install "maskmatch[parquet]".'
        ) from error
    try:
        if not file.read(1):
            return  # an empty file has no rows, as in the other formats
        file.seek(0)
        table = pyarrow.parquet.ParquetFile(file)
        check_unique_columns(table.schema_arrow.names, name)
        for batch in table.iter_batches(batch_size=_BATCH_SIZE):
            yield from batch.to_pylist()
    except MaskMatchError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "the file is damaged"
        raise MaskMatchError(f"{name} cannot be read as Parquet: {reason}.") from error
