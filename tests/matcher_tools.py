"""What tests of classifiers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskmatch import MaskMatcher
from maskmatch.model.model_bank import ModelBank
from maskmatch.storage.folder import Classifier

if TYPE_CHECKING:
    from maskmatch.config.matcher import MatcherConfig
    from maskmatch.labels import LabelSet
    from maskmatch.model.encoder import Encoder


def new_matcher(encoder: Encoder, config: MatcherConfig, labels: LabelSet | None = None) -> MaskMatcher:
    """A classifier that knows nothing but its encoder, config and labels."""
    return MaskMatcher(Classifier(encoder, ModelBank.of(encoder, config, labels=labels)))
