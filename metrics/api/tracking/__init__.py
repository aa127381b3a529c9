"""The API of the parameters of runs and of systems."""
