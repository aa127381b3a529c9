"""The API of collections."""
