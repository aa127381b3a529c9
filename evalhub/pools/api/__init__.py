"""The API of pools."""
