"""Leaderboards, how reliable they are, and other measures for the same runs."""
