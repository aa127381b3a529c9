"""Saved views and share links."""
