"""8-bit quantisation of an exported graph, row by row: the answer for a text does not depend on its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maskmatch.files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

WEIGHT_STEPS = 63
"""Weights use 7 of the 8 bits: processors without VNNI add two products in 16 bits, which 8 bits would overflow."""

ROW_STEPS = 127.0
MIDDLE = 128
"""The byte that stands for zero."""

SMALLEST = 1e-8
"""The least magnitude of a row or a column, so that none is divided by zero."""

CONTRIBUTED = "com.microsoft"
"""The domain of onnxruntime's own operators."""


def quantize(path: Path) -> None:
    """Quantise the matrix products of a graph with constant weights, in place.

    Each output channel of the weights has a scale, and so has each row of the activations, which is one token. A scale
    for a whole batch would let a text change the answer for its neighbours. Embeddings are not quantised, as they cost
    no time, nor are products of a single row per text.

    Args:
        path: The graph's file.
    """
    import onnx

    model = onnx.load(str(path))
    _Rewriter(model).run()
    with write_file(path) as scratch:
        onnx.save(model, str(scratch))


class _Rewriter:
    """Replaces matrix products by products of bytes."""

    def __init__(self, model: Any) -> None:
        self._model, self._graph = model, model.graph
        self._weights = {each.name: each for each in self._graph.initializer}
        self._users: dict[str, list[Any]] = {}
        for node in self._graph.node:
            for name in node.input:
                self._users.setdefault(name, []).append(node)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._matrices: dict[str, str] = {}  # the prefixes of quantised matrices, by name
        self._rows: dict[str, str] = {}  # what is quantised already, by the name of its float form
        self._merged: set[str] = set()  # outputs of nodes that are part of another one now

    def run(self) -> None:
        """Rewrite the graph."""
        from onnx import helper

        self._constant("one", np.array(1, np.float32))
        self._constant("middle", np.array(MIDDLE, np.uint8))
        self._constant("middles", np.array([MIDDLE], np.uint8))
        self._constant("row_steps", np.array(ROW_STEPS, np.float32))
        self._constant("smallest", np.array(SMALLEST, np.float32))
        self._constant("last", np.array([-1], np.int64))
        self._constant("first", np.array([0], np.int64))
        replaced = set()
        for node in self._graph.node:
            weight = self._weights.get(node.input[1]) if node.op_type == "MatMul" else None
            if weight is not None and len(weight.dims) == 2:
                self._product(node, weight)
                replaced.add(weight.name)
            elif not node.output or node.output[0] not in self._merged:
                self._nodes.append(node)
        used = set(_inputs(self._nodes))
        kept = [each for each in self._graph.initializer if each.name not in replaced or each.name in used]
        del self._graph.node[:], self._graph.initializer[:]
        self._graph.node.extend(self._nodes)
        self._graph.initializer.extend([*kept, *self._constants])
        if all(each.domain != CONTRIBUTED for each in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(CONTRIBUTED, 1))

    def _product(self, node: Any, weight: Any) -> None:
        """A product (…, k) x (k, n), and the bias that is added to it."""
        name, matrix = f"int8_product_{len(self._nodes)}_", self._quantised_weights(weight)
        rows = self._quantised_rows(node.input[0], weight.dims[0])
        inputs = [f"{rows}bytes", f"{matrix}weights", "int8_one", f"{matrix}scales", "int8_middle"]
        self._node("MatMulIntegerToFloat", inputs, f"{name}columns", domain=CONTRIBUTED)  # scaled by column
        self._node("Mul", [f"{name}columns", f"{rows}scale"], f"{name}product")
        result, target = f"{name}product", node.output[0]
        bias = self._bias(node)
        if bias is not None:  # before the shape is restored: that lets onnxruntime join what follows
            add, vector = bias
            self._node("Add", [result, vector], f"{name}biased")
            result, target = f"{name}biased", add.output[0]
            self._merged.add(target)
        self._node("Slice", [f"{rows}shape", "int8_first", "int8_last"], f"{name}lead")
        self._node("Concat", [f"{name}lead", f"{matrix}width"], f"{name}shape", axis=0)
        self._node("Reshape", [result, f"{name}shape"], target)

    def _quantised_weights(self, weight: Any) -> str:
        """The prefix of what stands for a constant matrix (k, n): bytes, a scale per column, its width.

        Some encoders use one matrix in all layers.
        """
        if weight.name not in self._matrices:
            from onnx import numpy_helper

            own = self._matrices[weight.name] = f"int8_matrix_{len(self._matrices)}_"
            matrix = numpy_helper.to_array(weight)
            scales = np.maximum(np.abs(matrix).max(axis=0), SMALLEST) / WEIGHT_STEPS  # (n,)
            self._constant(f"{own}weights", np.round(matrix / scales).astype(np.int8))
            self._constant(f"{own}scales", scales.astype(np.float32))
            self._constant(f"{own}width", np.array([matrix.shape[1]], np.int64))
        return self._matrices[weight.name]

    def _quantised_rows(self, name: str, width: int) -> str:
        """The prefix of what stands for an input (…, k): its rows as bytes (rows, k), their scale (rows, 1), its shape.

        Several products of one input, such as query, key and value, share it.
        """
        if name not in self._rows:
            own = self._rows[name] = f"int8_rows_{len(self._rows)}_"
            self._constant(f"{own}flat_shape", np.array([-1, width], np.int64))
            self._node("Shape", [name], f"{own}shape")
            self._node("Reshape", [name, f"{own}flat_shape"], f"{own}flat")
            self._node("Abs", [f"{own}flat"], f"{own}magnitudes")
            self._node("ReduceMax", [f"{own}magnitudes"], f"{own}largest", axes=[-1], keepdims=0)
            self._node("Max", [f"{own}largest", "int8_smallest"], f"{own}at_least")
            self._node("Div", [f"{own}at_least", "int8_row_steps"], f"{own}scales")  # (rows,)
            self._node("Shape", [f"{own}scales"], f"{own}count")
            self._node("Expand", ["int8_middles", f"{own}count"], f"{own}zeros")
            self._node("QuantizeLinear", [f"{own}flat", f"{own}scales", f"{own}zeros"], f"{own}bytes", axis=0)
            self._node("Unsqueeze", [f"{own}scales", "int8_last"], f"{own}scale")
        return self._rows[name]

    def _bias(self, node: Any) -> tuple[Any, str] | None:
        """The node that adds a constant vector to a product, and the vector; None if something else follows."""
        users = self._users.get(node.output[0], [])
        if len(users) != 1 or users[0].op_type != "Add":
            return None
        others = [name for name in users[0].input if name != node.output[0]]
        vector = self._weights.get(others[0]) if others else None
        return (users[0], vector.name) if vector is not None and len(vector.dims) == 1 else None

    def _constant(self, name: str, value: Any) -> None:
        from onnx import numpy_helper

        full = name if name.startswith("int8_") else f"int8_{name}"
        self._constants.append(numpy_helper.from_array(value, full))

    def _node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(operator, inputs, [output], name=f"{output}_node", **attributes))


def _inputs(nodes: Iterable[Any]) -> Iterator[str]:
    """The names of everything that nodes read, in their subgraphs too."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _inputs(graph.node)
