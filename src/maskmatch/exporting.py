"""From a classifier to an export: the graph of its input vectors as ONNX, and a look at how far it is from torch."""

from __future__ import annotations

import platform
import warnings
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from maskmatch.batches import PaddedBatch
from maskmatch.encoder import TokenBatch
from maskmatch.errors import MaskMatchError
from maskmatch.exports import (
    FILES,
    INDEX_FILE,
    MODEL_FILE,
    Export,
    describe_export,
    is_export,
    read_export,
    write_export,
)
from maskmatch.int8 import quantize
from maskmatch.onnx_runtime import INPUTS, INSTALL, OUTPUT
from maskmatch.parity import Parity, measure_parity, parity_texts
from maskmatch.saving import check_target
from maskmatch.whole_folder import whole_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from maskmatch.classifier import MaskMatcher
    from maskmatch.model import MatchingModel
    from maskmatch.prediction import Prediction

OPSET = 17
TRACED_ROWS = 4
SAME = 0.9999
"""The mean cosine that an export in full precision has to reach: below it, something was lost on the way."""


def export(
    matcher: MaskMatcher,
    folder: str | Path,
    *,
    int8: bool = False,
    texts: Sequence[Any] | None = None,
    texts_from: str | None = None,
) -> Parity:
    """Export a classifier to ONNX, so that it predicts without torch; labels are fixed from then on.

    Args:
        matcher: The classifier.
        folder: Where to write the export, whole or not at all.
        int8: Whether matrices are quantised to 8 bits: faster and smaller, and somewhat less exact.
        texts: Texts to compare the export with torch on; None: a few sentences and the names of the labels.
        texts_from: What the figures should call these texts.

    Returns:
        How far the export is from torch; it is kept in the export too.
    """
    _check_libraries()
    folder = Path(folder).expanduser()
    check_target(folder, is_export, "export")
    _check_form(matcher)
    prediction = matcher.prediction()
    if texts is None:
        texts, texts_from = parity_texts(prediction.config, prediction.labels), "built-in sentences and label names"
    written = Export(
        source=matcher.name,
        int8=int8,
        parity=None,
        notes=[*matcher.notes, *(["Its matrices are quantised to 8 bits."] if int8 else [])],
        versions={
            **{name: version(name) for name in ("maskmatch", "torch", "transformers", "onnxruntime")},
            "python": platform.python_version(),
        },
    )
    with whole_folder(folder, ours=(*FILES, INDEX_FILE)) as scratch:
        _write_graph(matcher.model(), prediction, texts, scratch / MODEL_FILE, matcher.name)
        if int8:
            quantize(scratch / MODEL_FILE)
        write_export(prediction, written, scratch)
        exported = read_export(scratch).prediction()
        parity = measure_parity(prediction, exported, texts, texts_from or "given")
        if not int8 and parity.mean_cosine < SAME:
            raise MaskMatchError(
                f"The exported graph of {matcher.name} does not compute what torch does (mean cosine "
                f"{parity.mean_cosine:.4f}), so nothing was written; this family of encoders cannot be exported."
            )
        describe_export(prediction, replace(written, parity=parity.to_dict()), scratch)
    return parity


def _check_form(matcher: MaskMatcher) -> None:
    """Refuse what one graph cannot compute: labels that are read with each text, but otherwise than texts."""
    config, method = matcher.config, matcher.config.method
    alike = not method.transform and method.input_readout == method.label_readout and config.debias == "none"
    if not config.labels_in_context:
        return
    seen = f"The label prompt {config.label_prompt.template!r} names a field of the text"
    if not alike:
        raise MaskMatchError(
            f"{seen}, and {method.name} reads labels otherwise than texts, so the classifier cannot be exported; "
            "mask-matching without debiasing can be."
        )
    if len(config.prompts) != len(config.label_prompts):
        raise MaskMatchError(
            f"{seen}, and labels are read in another number of prompts than texts, so the classifier cannot be "
            "exported; with as many prompts for both it can be."
        )


class _Graph(nn.Module):
    """Token ids, attention mask and mask positions → input vectors."""

    def __init__(self, model: MatchingModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, mask_positions: torch.Tensor
    ) -> torch.Tensor:
        rows = input_ids[:, 0]  # their numbers are not used
        return self.model.input_vectors(TokenBatch(input_ids, attention_mask, mask_positions, rows))


def _write_graph(model: MatchingModel, prediction: Prediction, texts: Sequence[Any], path: Path, name: str) -> None:
    """Trace the model on a few padded texts. Rows, lengths and masks stay free."""
    prompts = prediction.tokenize(texts)
    rows = prompts.lengths.argsort()[:: max(1, len(prompts) // TRACED_ROWS)]  # short ones and long ones
    batch = TokenBatch.of(PaddedBatch.of(prompts, rows, prediction.tokenizer.vocabulary.pad_id)).to(model.device)
    axes = {each: {0: "rows", 1: "length"} for each in INPUTS[:2]}
    axes |= {INPUTS[2]: {0: "rows", 1: "masks"}, OUTPUT: {0: "texts", 1: "vectors"}}  # a text may have several rows
    arguments = (batch.input_ids, batch.attention_mask, batch.mask_positions)
    try:
        with warnings.catch_warnings(), torch.inference_mode(), _plain_attention(model.encoder):
            warnings.simplefilter("ignore")  # what a trace fixes is looked at by the parity check
            # The older of torch's two exporters: for all families we know it is right, many times faster than the
            # other one, and needs no further library.
            torch.onnx.export(
                _Graph(model).eval(),
                arguments,
                str(path),
                dynamo=False,
                opset_version=OPSET,
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                dynamic_axes=axes,
            )
    except Exception as error:  # whatever the exporter raises for an operator that it does not know
        reason = (str(error).strip() or type(error).__name__).partition("\n")[0]
        kind = type(model.encoder).__name__
        raise MaskMatchError(
            f"{name} cannot be exported, as its encoder ({kind}) has no ONNX form: {reason}"
        ) from error


@contextmanager
def _plain_attention(encoder: Any) -> Iterator[None]:
    """Attention as plain products and a softmax: fewer operators than the traced form of torch's fused one."""
    before = encoder.config._attn_implementation
    encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)


def _check_libraries() -> None:
    for library in ("onnx", "onnxruntime"):
        try:
            __import__(library)
        except ImportError as error:
            raise MaskMatchError(f"An export needs {library}, which is not there; {INSTALL}.") from error
