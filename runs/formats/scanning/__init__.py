"""Scan bytes into columns: compiled and plain, piece by piece."""
