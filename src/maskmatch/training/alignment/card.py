"""The model card of an aligned encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from huggingface_hub import ModelCardData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.config.alignment import AlignmentConfig
    from maskmatch.config.training import TrainingSummary
    from maskmatch.model.adapter import Adapter

DIGEST_LENGTH = 16
"""The number of hexadecimal digits of the encoder's digest on the card."""


def alignment_card(
    adapter: Adapter, config: AlignmentConfig, training: TrainingSummary, sources: Sequence[str] = ()
) -> str:
    """Return a model card: the purpose of the adapter, its training data and its settings.

    An encoder that is a folder is named by the folder's name and its digest: a path would only be valid on one machine.
    """
    base_model = None if adapter.base_is_folder else adapter.base
    header = ModelCardData(library_name="maskmatch", base_model=base_model, tags=["maskmatch", "lora"])
    digest = f" (digest of its matrices: `{adapter.base_digest[:DIGEST_LENGTH]}`)" if adapter.base_is_folder else ""
    settings = "\n".join(f"| {name.replace('_', ' ')} | {value} |" for name, value in config.recipe.items())
    sections = [
        f"---\n{header.to_yaml()}\n---",
        "# An encoder with aligned mask states",
        f"A low-rank adapter (LoRA) of rank {adapter.rank} for the encoder `{adapter.base_name}`{digest}, made by the "
        "Python library maskmatch (`pip install maskmatch`). It trains the hidden state at the mask of a prompt to "
        "represent the prompted text or label name. It is merged into the weights when it is loaded. The files have "
        "the format of the peft library.",
        "```python\nfrom maskmatch import MaskMatcher\n\n"
        'classifier = MaskMatcher.from_pretrained("path/or/hub-id", labels=["refund", "card lost"])\n```',
        "## Training data\n\n" + "\n".join(f"- {source}" for source in sources) if sources else "",
        f"## Training\n\n{training.steps} steps in {training.seconds:.0f} seconds.\n\n"
        f"| setting | value |\n|---|---|\n{settings}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
