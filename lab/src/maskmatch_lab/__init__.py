"""The lab of maskmatch: comparisons, studies, benchmarks, and the recipe of the shipped adapter."""
