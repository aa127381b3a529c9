"""Pages of parameters, costs, experiments and systems."""
