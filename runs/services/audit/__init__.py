"""The audit trail, revisions of collections, and limits."""
