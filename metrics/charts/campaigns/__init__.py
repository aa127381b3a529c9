"""Charts of campaigns."""
