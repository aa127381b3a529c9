"""Values of runs as files."""
