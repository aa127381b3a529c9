"""Collections, and who sees what depends on their judgements."""
