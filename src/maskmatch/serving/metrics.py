"""Metrics of the server, for Prometheus."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable of prometheus-client with the folder that several workers share."""


class Metrics:
    """What the server counts. With several workers, all of them together."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        several = SHARED in os.environ
        self.requests = Counter(
            "maskmatch_requests", "Requests by endpoint and status.", ["endpoint", "status"], registry=registry
        )
        self.refusals = Counter("maskmatch_refusals", "Refused requests by reason.", ["reason"], registry=registry)
        self.seconds = Histogram(
            "maskmatch_request_seconds", "Seconds per request.", ["endpoint"], buckets=SECONDS, registry=registry
        )
        self.in_progress = Gauge(
            "maskmatch_requests_in_progress",
            "Requests that are being read or answered.",
            registry=registry,
            **({"multiprocess_mode": "livesum"} if several else {}),  # type: ignore[arg-type]
        )
        self.texts = Counter("maskmatch_texts", "Texts that were classified.", registry=registry)
        self.tokens = Counter("maskmatch_tokens", "Tokens that were encoded.", registry=registry)
        self.labels_encoded = Counter("maskmatch_labels_encoded", "Labels whose names were encoded.", registry=registry)
        self.batch_texts = Histogram("maskmatch_batch_texts", "Texts per batch.", buckets=SIZES, registry=registry)
        self.queue = Gauge(
            "maskmatch_queue_texts",
            "Texts that wait, after the last batch was taken.",
            ["model"],
            registry=registry,
            **({"multiprocess_mode": "livesum"} if several else {}),  # type: ignore[arg-type]
        )

    def observe_batch(self, model: str, texts: int, tokens: int, waiting: int) -> None:
        """Count a batch."""
        self.batch_texts.observe(texts)
        self.tokens.inc(tokens)
        self.queue.labels(model).set(waiting)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
