"""The answer for a text is the same alone and in every company."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from maskmatch import ExportedMatcher, MaskMatcher, export
from maskmatch.prediction.label_scorer import lead_probability
from toy_data import LABELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tiny = Callable[..., Path]

COMPANY = [
    "refund",
    "Where is my refund? I sent the parcel back two weeks ago and it is still pending.",
    "?",
    "card lost",
    "the the the the the the the the the the the the the the the the the the the the the the",
    "It is about the exchange rate; this is a question of money.",
    "0 1 2 3 4 5 6 7 8 9 !!! ??? ... ### @@@",
]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert", "deberta-v3"])
def test_int8_exports_do_not_depend_on_the_batch(tiny: Tiny, tmp_path: Path, family: str) -> None:
    export(MaskMatcher.from_pretrained(tiny(family), LABELS, similarity="dot"), tmp_path / "export", int8=True)
    pipeline = ExportedMatcher.from_pretrained(tmp_path / "export").pipeline

    def vectors(texts: list[str]) -> NDArray[np.float32]:
        return pipeline.all_vectors(pipeline.tokenize(texts))

    together = vectors(COMPANY)
    close = 1e-5 * np.abs(together).max()
    for text, expected in zip(COMPANY, together, strict=True):
        np.testing.assert_allclose(vectors([text])[0], expected, atol=close)
    np.testing.assert_allclose(vectors(COMPANY[::-1])[::-1], together, atol=close)
    assert np.abs(together - together[0]).max() > 100 * close  # the texts do differ


def test_int8_products_have_eight_bits(tiny: Tiny, tmp_path: Path) -> None:
    import onnx

    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS)
    export(matcher, tmp_path / "plain")
    parity = export(matcher, tmp_path / "int8", int8=True)
    graph = onnx.load(str(tmp_path / "int8" / "model.onnx")).graph
    constants = {each.name: each for each in graph.initializer}
    floats = [n for n in graph.node if n.op_type == "MatMul" and n.input[1] in constants]
    assert not floats
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in graph.node) >= 6 * 2  # two layers
    assert parity.mean_cosine > 0.99


@pytest.mark.parametrize("number", [2, 3])
def test_several_labels_without_training(tiny: Tiny, number: int) -> None:
    """By their lead, two labels are at one standard deviation from their mean, however small that is."""
    matcher = MaskMatcher.from_pretrained(tiny("bert"), LABELS[:number], multi_label=True)
    together = matcher.predict_proba(COMPANY)
    ranked = matcher.top_k(COMPANY, number)
    for row, text in enumerate(COMPANY):
        assert matcher.predict([text]) == [matcher.predict(COMPANY)[row]]
        np.testing.assert_allclose(matcher.predict_proba([text])[0], together[row], atol=1e-3)
        alone = dict(matcher.top_k([text], number)[0])
        for place, label in enumerate(LABELS[:number]):
            assert alone[label] == pytest.approx(together[row, place], abs=1e-3)
            assert dict(ranked[row])[label] == pytest.approx(together[row, place], abs=1e-5)


def test_labels_whose_scores_differ_by_rounding_have_no_lead() -> None:
    scores = np.float32([[5.0, 5.0 + 1e-6], [5.0, 5.0], [5.0, 6.0]])
    mean, spread = scores.mean(axis=1, keepdims=True), scores.std(axis=1, keepdims=True)
    found = lead_probability(scores, mean, spread, 2)
    assert (found[:2] < 0.5).all()
    assert (found[2] > 0.5).tolist() == [False, True]
