"""Text classification by the names of labels."""
