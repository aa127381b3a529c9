"""The audit trail, stored answers and counters of limits."""
