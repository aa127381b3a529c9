"""How runs were made, and what their teams write about them."""
