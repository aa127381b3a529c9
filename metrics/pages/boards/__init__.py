"""The page of a collection with its leaderboard, and of other measures for it."""
