"""The pages of suites."""
