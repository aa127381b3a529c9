"""Mail: rows of the outbox, written with their event and sent by the workers."""
