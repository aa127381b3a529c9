"""Charts of pools."""
