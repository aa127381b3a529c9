"""Runs compared: families of pairs, stored comparisons, orders and designs."""
