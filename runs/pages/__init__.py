"""Pages with forms: submitting runs, creating tokens, the reader's account."""
