"""Training: fit, the loop, sampled labels, alignment."""
