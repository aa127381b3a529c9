"""Pools: the documents of runs that assessors judge, and their judgements."""
