"""The pages of two runs and of many."""
