"""The pages of search sessions."""
