"""What is stored and computed of suites."""
