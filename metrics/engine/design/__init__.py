"""Which differences a test collection can detect: discriminative power, swap rates, and the number
of topics needed."""
