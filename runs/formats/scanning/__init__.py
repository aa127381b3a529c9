"""Bytes to columns: compiled and plain, piece by piece."""
