"""Campaigns: phases by the clock, teams that take part, and entries."""
