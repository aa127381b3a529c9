"""The pages of pools."""
