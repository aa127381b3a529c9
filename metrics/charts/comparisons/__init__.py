"""Charts of compared runs."""
