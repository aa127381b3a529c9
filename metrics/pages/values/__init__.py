"""The pages of a run and of the measures."""
