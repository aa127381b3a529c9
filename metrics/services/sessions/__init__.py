"""Search sessions: their judged views, values, boards and comparisons."""
