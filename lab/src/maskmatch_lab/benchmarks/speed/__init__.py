"""How fast maskmatch is beside its peers: training, prediction, and what both cost over labels and lengths of texts."""
