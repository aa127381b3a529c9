"""Pages of results of campaigns."""
