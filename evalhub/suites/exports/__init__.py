"""Tables of suites."""
