"""Dynamic 8-bit quantisation of an exported graph."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def quantize(path: Path) -> None:
    """Quantise the weights of a graph's matrix products, in its place.

    Each output channel has a scale of its own. Weights take 7 of the 8 bits: processors without VNNI add two products
    in 16 bits, which full 8 bits would overflow. Embeddings stay as they are, as they cost no time.

    Args:
        path: The graph's file.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    scratch = path.with_suffix(".int8")
    with _quiet():
        quantize_dynamic(
            path,
            scratch,
            op_types_to_quantize=["MatMul", "Gemm"],
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
    scratch.replace(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's advice to prepare the graph, which a graph of matrix products does not need."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
