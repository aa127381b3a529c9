"""Compiled kernels, how they are loaded, and arrays in few bytes."""
