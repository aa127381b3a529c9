"""Charts of suites."""
