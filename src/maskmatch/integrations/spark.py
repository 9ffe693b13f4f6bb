"""Spark: a function for ``DataFrame.mapInArrow``, and the schema of what it gives.

>>> from maskmatch.integrations.spark import classify                          # doctest: +SKIP
>>> answers = classify(spark.read.parquet("texts"), "support-bot", top_k=1)    # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from maskmatch.integrations.arrow import AnswerOptions, ArrowPredictor, answer_fields, config_in, model_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def classify(frame: DataFrame, folder: str | Path, **options: Any) -> DataFrame:
    """A data frame with the columns of answers.

    Args:
        frame: The rows.
        folder: The folder of a saved classifier or of an export, which all executors can read.
        **options: The fields of ``AnswerOptions``.
    """
    return frame.mapInArrow(predict_in_arrow(folder, **options), answer_schema(frame.schema, folder, **options))


def predict_in_arrow(
    folder: str | Path, **options: Any
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for ``mapInArrow``. It holds the name of the folder; each Python worker loads the model once.

    Args:
        folder: The folder of a saved classifier or of an export, which all executors can read.
        **options: The fields of ``AnswerOptions``. Without ``threads``, a worker computes with the number of threads
            that Spark sets: ``spark.task.cpus``.
    """
    AnswerOptions.of(options)  # errors are raised here, not on an executor
    options = {"model_hash": model_hash(folder), **options}
    path = os.path.abspath(os.path.expanduser(folder))  # executors may have another working directory
    return partial(_predict, path, json.dumps(options))


def answer_schema(schema: StructType, folder: str | Path, **options: Any) -> StructType:
    """The schema of rows with the columns of answers.

    Args:
        schema: The schema of the rows.
        folder: The folder of the classifier or export.
        **options: The fields of ``AnswerOptions``.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    asked, config = AnswerOptions.of(options), config_in(folder)
    asked.columns(schema.names, config)
    answers = answer_fields(multi_label=config.multi_label, novelty=asked.novelty, prefix=asked.prefix)
    return StructType([*schema.fields, *from_arrow_schema(pa.schema(answers)).fields])


def _predict(folder: str, options: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    predictor = _load(folder, options)
    for batch in batches:
        yield from predictor(pa.Table.from_batches([batch])).combine_chunks().to_batches()


@lru_cache(maxsize=1)
def _load(folder: str, options: str) -> ArrowPredictor:
    """The model of this worker, which Spark uses for many tasks."""
    return ArrowPredictor(folder, **json.loads(options))
