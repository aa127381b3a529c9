"""The API of suites."""
