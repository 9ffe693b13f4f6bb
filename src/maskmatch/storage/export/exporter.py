"""Export a classifier: the graph of its input vectors as ONNX, and a check that it computes what torch does."""

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

from maskmatch.errors import MaskMatchError
from maskmatch.files import write_folder
from maskmatch.model.encoder import TokenBatch
from maskmatch.prediction.runtimes import GRAPH_FILE
from maskmatch.prediction.runtimes.onnx import INPUTS, INSTALL, OUTPUT
from maskmatch.prediction.runtimes.torch import logit_scale
from maskmatch.prompts.batches import PaddedBatch
from maskmatch.storage.export.folder import (
    FILES,
    INDEX_FILE,
    Export,
    describe_export,
    is_export,
    read_export,
    write_export,
)
from maskmatch.storage.export.int8 import quantize
from maskmatch.storage.export.parity import Parity, measure_parity, parity_texts
from maskmatch.storage.layout import check_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.matcher import MaskMatcher
    from maskmatch.model.matching import MatchingModel
    from maskmatch.prediction.pipeline import Pipeline

OPSET = 17
TRACED_ROWS = 4
SAME = 0.9999
"""The mean cosine that an export in full precision must reach."""


def export(
    matcher: MaskMatcher,
    folder: str | Path,
    *,
    int8: bool = False,
    texts: Sequence[Any] | None = None,
    texts_from: str | None = None,
) -> Parity:
    """Export a classifier to ONNX, so that it predicts without torch.

    Args:
        matcher: The classifier.
        folder: Where to write the export, whole or not at all.
        int8: Whether matrices are quantised to 8 bits: faster, smaller, a little less exact.
        texts: Texts to compare the export with torch on; None: a few sentences and the label names.
        texts_from: Where these texts come from, for the report.

    Returns:
        How much the export differs from torch; the export holds it, too.
    """
    _check_libraries()
    folder = Path(folder).expanduser()
    check_target(folder, is_export, "an export")
    _check_form(matcher)
    pipeline = matcher.pipeline
    if texts is None:
        texts, texts_from = parity_texts(pipeline.config, pipeline.labels), "built-in sentences and label names"
    written = Export(
        source=matcher.name,
        int8=int8,
        parity=None,
        notes=[*matcher.notes, *(["Its matrices are quantised to 8 bits."] if int8 else [])],
        fixed=_why_fixed(matcher.config),
        versions={
            **{name: version(name) for name in ("maskmatch", "torch", "transformers", "onnxruntime")},
            "python": platform.python_version(),
        },
    )
    with write_folder(folder, ours=(GRAPH_FILE, *FILES, INDEX_FILE)) as scratch:
        _write_graph(matcher.model, pipeline, texts, scratch / GRAPH_FILE, matcher.name)
        if int8:
            quantize(scratch / GRAPH_FILE)
        logits = logit_scale(matcher.bank)
        write_export(matcher.bank, pipeline, logits, written, scratch)
        exported = read_export(scratch).pipeline
        parity = measure_parity(pipeline, exported, texts, texts_from or "given")
        if not int8 and parity.mean_cosine < SAME:
            raise MaskMatchError(
                f"The exported graph of {matcher.name} does not compute what torch does (mean cosine "
                f"{parity.mean_cosine:.4f}), so nothing was written; this family of encoders cannot be exported."
            )
        describe_export(pipeline, logits, replace(written, parity=parity.to_dict()), scratch)
    return parity


def _reads_alike(config: MatcherConfig) -> bool:
    """Whether texts and label texts are read in the same way, by prompts."""
    method = config.method
    alike = not method.transform and method.input_readout == method.label_readout
    return alike and method.label_source == "prompt" and config.debias == "none"


def _why_fixed(config: MatcherConfig) -> str | None:
    """Why the graph cannot read label texts, so that the labels of the export are fixed; None if it can."""
    method = config.method
    if not _reads_alike(config):
        return f"The method {method.name}, as it was exported, reads labels in another way than texts"
    if len(config.prompts) != len(config.label_prompts):
        return "The numbers of input prompts and label prompts of this export differ"
    return None


def _check_form(matcher: MaskMatcher) -> None:
    """Raise for what one graph cannot compute: labels read with each text, but in another way than texts."""
    config, method = matcher.config, matcher.config.method
    alike = _reads_alike(config)
    if not config.labels_in_context:
        return
    seen = f"The label prompt {config.label_prompt.template!r} names a field of the text"
    if not alike:
        raise MaskMatchError(
            f"{seen}, and {method.name} reads labels in another way than texts, so the classifier cannot be exported; "
            "mask-matching without debiasing can be."
        )
    if len(config.prompts) != len(config.label_prompts):
        raise MaskMatchError(
            f"{seen}, and the numbers of input prompts and label prompts differ, so the classifier cannot be exported; "
            "with as many of both it can be."
        )


class _Graph(nn.Module):
    """Token ids, attention mask and mask positions → input vectors."""

    def __init__(self, model: MatchingModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, mask_positions: torch.Tensor
    ) -> torch.Tensor:
        rows = input_ids[:, 0]  # row numbers are not used
        return self.model.input_vectors(TokenBatch(input_ids, attention_mask, mask_positions, rows))


def _write_graph(model: MatchingModel, pipeline: Pipeline, texts: Sequence[Any], path: Path, name: str) -> None:
    """Trace the model on a few padded texts, with dynamic numbers of rows, tokens and masks."""
    prompts = pipeline.tokenize(texts)
    rows = prompts.lengths.argsort()[:: max(1, len(prompts) // TRACED_ROWS)]  # short ones and long ones
    batch = TokenBatch.of(PaddedBatch.of(prompts, rows, pipeline.tokenizer.vocabulary.pad_id)).to(model.device)
    axes = {each: {0: "rows", 1: "length"} for each in INPUTS[:2]}
    axes |= {INPUTS[2]: {0: "rows", 1: "masks"}, OUTPUT: {0: "texts", 1: "vectors"}}  # a text may have several rows
    arguments = (batch.input_ids, batch.attention_mask, batch.mask_positions)
    try:
        with warnings.catch_warnings(), torch.inference_mode(), _plain_attention(model.encoder):
            warnings.simplefilter("ignore")  # the parity check finds what tracing got wrong
            # The older of torch's two exporters: it is correct for all families we know, many times faster than the
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
            raise MaskMatchError(f"An export needs {library}, which is not installed; {INSTALL}.") from error
