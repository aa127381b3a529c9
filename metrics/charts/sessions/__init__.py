"""Charts of search sessions."""
