"""Saved classifiers and exports of earlier versions, with the answers that they gave."""
