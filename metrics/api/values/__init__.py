"""Values, curves and rankings of runs."""
