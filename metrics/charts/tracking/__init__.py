"""Charts of parameters, costs and progress."""
