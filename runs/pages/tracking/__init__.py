"""Pages of how runs were made, and of what their teams write about them."""
