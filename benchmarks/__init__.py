"""Benchmarks: every figure of the README and the docs comes from here, and one command makes it again."""
