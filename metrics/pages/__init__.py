"""Pages to look at: one file for each."""
