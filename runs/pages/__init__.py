"""Pages with forms: submitting a run, making tokens."""
