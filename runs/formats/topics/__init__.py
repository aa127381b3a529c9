"""Topic files."""
