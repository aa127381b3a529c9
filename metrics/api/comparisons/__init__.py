"""Comparisons, orders and designs."""
