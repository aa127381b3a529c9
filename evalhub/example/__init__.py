"""A small collection about the sea, with the systems that a lab and teams run on it."""
