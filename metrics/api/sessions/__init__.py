"""Search sessions."""
