"""Exports: a classifier that predicts without torch."""
