"""Checks for those who build on maskmatch: does something that predicts keep all promises of a predictor?"""

from maskmatch.testing.conformance import CHECKS, CheckResult, ConformanceError, check_predictor

__all__ = ["CHECKS", "CheckResult", "ConformanceError", "check_predictor"]
