"""What a test collection can tell apart: discriminative power, swap rates, and how many topics it takes."""
