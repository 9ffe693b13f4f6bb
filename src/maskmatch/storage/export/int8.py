"""Dynamic 8-bit quantisation of an exported graph."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from maskmatch.atomic import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def quantize(path: Path) -> None:
    """Quantise the weights of a graph's matrix products, in place.

    Each output channel has its own scale. Weights use 7 of the 8 bits: processors without VNNI add two products in 16
    bits, which full 8 bits would overflow. Embeddings are not quantised, as they cost no time.

    Args:
        path: The graph's file.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with write_file(path) as scratch, _quiet():
        quantize_dynamic(
            path,
            scratch,
            op_types_to_quantize=["MatMul", "Gemm"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's advice to preprocess the graph, which a graph of matrix products does not need."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
