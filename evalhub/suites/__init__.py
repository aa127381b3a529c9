"""Suites: ordered, versioned sets of collections with one leaderboard."""
