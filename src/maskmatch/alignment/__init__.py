"""Teach an encoder to answer through its mask.

A sentence encoder keeps its meaning in the mean of its tokens, not at a mask. Aligning it pulls the mask states of
prompted texts and names to the encoder's own mean-pooled vectors, over many prompts; no labels are needed. Where
there are label sets with texts, it learns to match them as well.
"""

from maskmatch.alignment.align import Alignment, align, check_output
from maskmatch.alignment.config import AlignmentConfig

__all__ = ["Alignment", "AlignmentConfig", "align", "check_output"]
