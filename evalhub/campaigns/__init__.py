"""Campaigns: phases in which teams enter runs, their results, and what is published of them."""
