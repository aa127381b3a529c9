"""Questions about the values of several runs."""
