"""Session logs."""
