"""Spark: the answers of one process, in a data frame. Skipped, and reported so, without pyspark or Java."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from integration_tools import made_texts
from maskmatch import MaskMatchError
from maskmatch.integrations.arrow import ArrowPredictor
from maskmatch.integrations.spark import classify, predict_in_arrow

pytest.importorskip("pyspark", reason='pyspark is not installed: pip install "maskmatch[spark]"')
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, and there is none on this machine", allow_module_level=True)

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A Spark of two processes on this machine, which uses no network."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def test_the_answers_of_one_process(spark: Any, exported: Path) -> None:
    rows = [(place, text) for place, text in enumerate([*made_texts(99), None])]
    frame = spark.createDataFrame(rows, "n int, text string").repartition(3)
    answered = classify(frame, exported, top_k=2, novelty=True)
    found = pa.Table.from_pylist([row.asDict(recursive=True) for row in answered.orderBy("n").collect()])
    table = pa.table({"n": pa.array(range(100), pa.int32()), "text": [text for _, text in rows]})
    expected = ArrowPredictor(exported, top_k=2, novelty=True)(table)
    assert found.column_names == expected.column_names == answered.columns
    for name in ("text", "label", "error", "model", "label_set"):
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    assert found["probability"].to_pylist()[:99] == pytest.approx(expected["probability"].to_pylist()[:99], abs=1e-5)
    assert found["error"].to_pylist()[99] == "the text is missing"


def test_several_labels(spark: Any, several: Path) -> None:
    frame = spark.createDataFrame([(text,) for text in made_texts(10)], "text string")
    labels = [row.labels for row in classify(frame, several).collect()]
    assert labels == ArrowPredictor(several)(pa.table({"text": made_texts(10)}))["labels"].to_pylist()


def test_mistakes_are_told_by_the_driver(spark: Any, exported: Path, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", "b")], "text string, label string")
    with pytest.raises(MaskMatchError, match="column 'label' already"):
        classify(frame, exported)
    with pytest.raises(MaskMatchError, match="top_k"):
        predict_in_arrow(exported, top_k=0)
    with pytest.raises(MaskMatchError, match="all machines can read"):
        predict_in_arrow(tmp_path)
