"""The same states with less work: packed batches, and a last layer that computes only what is read."""
