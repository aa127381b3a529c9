"""Which differences a test collection can detect, and how many topics that takes."""
