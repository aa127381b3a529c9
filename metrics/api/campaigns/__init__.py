"""The API of what depends on the values of entries."""
