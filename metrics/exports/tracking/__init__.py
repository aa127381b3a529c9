"""Files about the parameters of runs."""
