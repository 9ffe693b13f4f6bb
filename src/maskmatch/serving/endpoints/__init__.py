"""The endpoints: each file adds those of one kind to the application."""

from __future__ import annotations

from maskmatch.serving.endpoints import classify, dialects, feedback, labels, operations

ENDPOINTS = (classify.add, labels.add, feedback.add, dialects.add, operations.add)
"""What adds endpoints."""
