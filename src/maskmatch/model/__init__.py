"""The model: encoder, adapter, read-outs, similarity, label vectors. ``matching.py`` is the place to start."""
