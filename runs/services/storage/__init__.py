"""Stored files, and the install that they belong to."""
