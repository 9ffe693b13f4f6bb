"""Reading Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskmatch.data.rows import Row, refuse_repeated
from maskmatch.data.sources import Source, open_seekable, source_name
from maskmatch.errors import MaskMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS_AT_ONCE = 1024


def read_parquet(source: Source, encoding: str) -> Iterator[Row]:
    """Yield the rows of a Parquet file; its texts are UTF-8 by definition, so `encoding` has no say."""
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
            f'{name} is a Parquet file, which needs pyarrow; install it by pip install "maskmatch[parquet]".'
        ) from error
    try:
        if not file.read(1):
            return  # an empty file has no rows, in this format as in the others
        file.seek(0)
        table = pyarrow.parquet.ParquetFile(file)
        refuse_repeated(table.schema_arrow.names, name)
        for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE):
            yield from batch.to_pylist()
    except MaskMatchError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else "it is damaged"
        raise MaskMatchError(f"{name} cannot be read as Parquet: {reason}.") from error
