"""Benchmarks: every figure of the README and the docs is computed here, and one command reproduces it."""
