"""The API of runs and session sets."""
