"""Search sessions: their judged views, values, leaderboards and comparisons."""
