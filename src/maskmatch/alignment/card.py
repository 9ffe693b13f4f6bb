"""The model card of an aligned encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from huggingface_hub import ModelCardData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskmatch.adapter import Adapter
    from maskmatch.alignment.config import AlignmentConfig
    from maskmatch.training_config import TrainingSummary


def alignment_card(
    adapter: Adapter, config: AlignmentConfig, training: TrainingSummary, sources: Sequence[str] = ()
) -> str:
    """A model card: what the adapter is for, what it learned from, how it was made."""
    header = ModelCardData(library_name="maskmatch", base_model=adapter.base, tags=["maskmatch", "lora"])
    settings = "\n".join(f"| {name.replace('_', ' ')} | {value} |" for name, value in config.recipe.items())
    sections = [
        f"---\n{header.to_yaml()}\n---",
        "# An encoder that answers through its mask",
        f"A low-rank adapter of rank {adapter.rank} for the encoder `{adapter.base}`, made by the Python library "
        "maskmatch (`pip install maskmatch`). With it, the state at the mask of a prompted text, or of a prompted "
        "label name, says what the encoder knows of it. It is merged into the weights when it is loaded. The files are "
        "in the format of the peft library.",
        "```python\nfrom maskmatch import MaskMatcher\n\n"
        'classifier = MaskMatcher.from_pretrained("path/or/hub-id", labels=["refund", "card lost"])\n```',
        "## What it learned from\n\n" + "\n".join(f"- {source}" for source in sources) if sources else "",
        f"## How it was made\n\n{training.steps} steps in {training.seconds:.0f} seconds.\n\n"
        f"| setting | value |\n|---|---|\n{settings}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
