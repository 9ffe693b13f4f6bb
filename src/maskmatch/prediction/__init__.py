"""The prediction pipeline: runtime → label scorer → search → answers. Numpy only, but for the torch runtime."""
