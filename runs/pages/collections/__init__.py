"""Pages that create and manage collections."""
