"""What requests name and ask of suites."""
