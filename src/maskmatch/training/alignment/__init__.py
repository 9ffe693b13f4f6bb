"""Alignment: train the mask states of an encoder to match its own sentence vectors.

A sentence encoder is trained for the mean of its token states, not for the state at a mask. Alignment trains a low-rank
adapter (LoRA) so that the mask states of prompted texts and names match the mean-pooled vectors of the frozen encoder,
over many prompts. This distillation needs no labels. If there are label sets with texts, the adapter also learns to
match texts with label names.
"""

from maskmatch.config.alignment import AlignmentConfig
from maskmatch.training.alignment.align import Alignment, align, check_output

__all__ = ["Alignment", "AlignmentConfig", "align", "check_output"]
