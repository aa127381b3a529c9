"""Accounts, teams and tokens; the install."""
