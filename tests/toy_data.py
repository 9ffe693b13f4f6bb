"""A toy set that a tiny encoder can learn by heart: three labels, each with words of its own."""

from __future__ import annotations

LABELS = ["refund", "card lost", "exchange rate"]

TOY = [
    ("Where is my refund?", "refund"),
    ("The refund is still pending.", "refund"),
    ("I sent the parcel back two weeks ago, refund it", "refund"),
    ("refund the parcel please", "refund"),
    ("My card was lost at the station.", "card lost"),
    ("card lost yesterday, block it at once!", "card lost"),
    ("please block the lost card", "card lost"),
    ("The card is lost", "card lost"),
    ("What is the exchange rate?", "exchange rate"),
    ("It is a question of the exchange rate; money", "exchange rate"),
    ("exchange money at this rate", "exchange rate"),
    ("this exchange rate is about money", "exchange rate"),
]
TEXTS = [text for text, _ in TOY]
TRUTH = [label for _, label in TOY]

FAST = {"learning_rate": 1e-2, "batch_size": 12, "epochs": 60, "calibrate": False}
"""Enough for the tiny encoders to learn the toy set, in about a second of time; calibration has tests of its own."""

A_LITTLE = {"learning_rate": 1e-2, "batch_size": 64, "epochs": 3, "calibrate": False}
"""Enough to change the weights."""
