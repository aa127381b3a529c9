"""Submitting, changing and withdrawing runs and session sets."""
