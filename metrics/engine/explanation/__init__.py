"""Associations of a measure with the settings of runs, compared value by value."""
