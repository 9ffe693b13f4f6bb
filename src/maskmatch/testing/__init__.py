"""For those who build on maskmatch: checks for predictors, and tiny encoders for tests."""

from typing import TYPE_CHECKING, Any

from maskmatch.testing.conformance import CHECKS, CheckResult, ConformanceError, check_predictor

if TYPE_CHECKING:
    from maskmatch.testing.tiny_encoders import write_tiny_encoder

__all__ = ["CHECKS", "CheckResult", "ConformanceError", "check_predictor", "write_tiny_encoder"]


def __getattr__(name: str) -> Any:
    if name == "write_tiny_encoder":  # it imports torch and transformers
        from maskmatch.testing.tiny_encoders import write_tiny_encoder

        return write_tiny_encoder
    raise AttributeError(f"module 'maskmatch.testing' has no attribute {name!r}")
