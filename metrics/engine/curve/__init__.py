"""Measures by rank: curves, their readings and their intervals."""
