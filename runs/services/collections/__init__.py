"""Collections, their topics and their judgements."""
