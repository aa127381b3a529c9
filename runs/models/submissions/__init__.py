"""Runs and session sets."""
