"""The workbench: a page on which people who own the labels make them work."""
