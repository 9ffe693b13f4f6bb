"""Tools for label names: expand them with phrases and examples, and check them."""
