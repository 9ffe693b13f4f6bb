"""A classifier as a folder: saved, exported, described by a model card."""
